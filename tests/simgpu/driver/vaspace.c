/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Device address space: one window of inaccessible host addresses, its free
 * parts, the areas in it and the table of pages. Called under sg_lock.
 */
#include "tests/simgpu/driver/content_exact.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WINDOW_BYTES     ((uint64_t)16 << 40)
#define WINDOW_MIN_BYTES ((uint64_t)64 << 30)
/* Where the window goes if nothing is there: the same addresses in every run.
 * Sanitizers keep some of it for themselves; then the kernel chooses. */
#define WINDOW_VA ((uint64_t)0x200000000000)

static struct {
	uint64_t va, bytes;
	struct sg_mapping **pages; /* by page of the window; NULL: unmapped */
	struct sg_mapping *mappings;
	struct sg_ranges free;
	struct sg_ranges areas;
	uint64_t next_id;
} space;

/* The system call itself: sanitizers would take the range for memory. */
static uint64_t map_raw(uint64_t hint, uint64_t bytes, int flags)
{
	long r = syscall(SYS_mmap, hint, bytes, PROT_NONE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	return r == -1 ? 0 : (uint64_t)r;
}

/* Aligned to pages of 2 MiB. */
static uint64_t map_window(uint64_t bytes)
{
	uint64_t va = map_raw(WINDOW_VA, bytes, MAP_FIXED_NOREPLACE);

	if (va == WINDOW_VA)
		return va;
	if (va)
		syscall(SYS_munmap, va, bytes);
	va = map_raw(0, bytes + SG_PAGE_BYTES, 0);
	return va ? sg_round_up(va, SG_PAGE_BYTES) : 0;
}

static void window_start(void)
{
	struct sg_range *all;
	uint64_t bytes = WINDOW_BYTES;
	void *pages;

	while (bytes >= WINDOW_MIN_BYTES) {
		space.va = map_window(bytes);
		if (space.va)
			break;
		bytes /= 2;
	}
	if (!space.va) {
		sg_say("no room for %llu GiB of device addresses",
		        (unsigned long long)(WINDOW_MIN_BYTES >> 30));
		abort();
	}
	space.bytes = bytes;
	pages = mmap(NULL, bytes / SG_PAGE_BYTES * sizeof(*space.pages),
	        PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages == MAP_FAILED) {
		sg_say("no room for the table of device pages");
		abort();
	}
	space.pages = pages;
	all = sg_xcalloc(1, sizeof(*all));
	all->start = space.va;
	all->bytes = space.bytes;
	sg_ranges_insert(&space.free, all);
}

uint64_t sg_va_window(uint64_t *ret_bytes)
{
	if (!space.va)
		window_start();
	*ret_bytes = space.bytes;
	return space.va;
}

bool sg_is_device_va(uint64_t va)
{
	return space.va && va - space.va < space.bytes;
}

/* Cuts [va, va+bytes) out of a free range. */
static void cut(struct sg_range *range, uint64_t va, uint64_t bytes)
{
	uint64_t end = range->start + range->bytes;
	struct sg_range *rest;

	sg_ranges_remove(&space.free, range);
	if (end > va + bytes) {
		rest = sg_xcalloc(1, sizeof(*rest));
		rest->start = va + bytes;
		rest->bytes = end - rest->start;
		sg_ranges_insert(&space.free, rest);
	}
	range->bytes = va - range->start;
	if (range->bytes)
		sg_ranges_insert(&space.free, range);
	else
		free(range);
}

/* SIMGPU_RANDOM_ADDRESS: a place in the window that follows from the seed and
 * the number of places so far; 0: none wanted. */
static uint64_t random_place(uint64_t align)
{
	static uint64_t places;
	uint64_t bytes, start = sg_va_window(&bytes);

	if (!sg_settings.random_address)
		return 0;
	return sg_round_up(
	        start + sg_mix(sg_settings.random_address, ++places) % bytes,
	        align);
}

uint64_t sg_va_take(uint64_t bytes, uint64_t align, uint64_t hint)
{
	struct sg_range *range;
	uint64_t va = hint;

	if (!space.va)
		window_start();
	if (align < SG_PAGE_BYTES)
		align = SG_PAGE_BYTES;
	if (!hint)
		hint = random_place(align);
	if (hint && hint % align == 0 && sg_is_device_va(hint)) {
		range = sg_ranges_at(&space.free, hint);
		if (range && range->bytes - (hint - range->start) >= bytes) {
			cut(range, hint, bytes);
			return hint;
		}
	}
	range = sg_ranges_fit(&space.free, bytes, align, &va);
	if (!range)
		return 0;
	cut(range, va, bytes);
	return va;
}

void sg_va_give(uint64_t va, uint64_t bytes)
{
	struct sg_range *before = NULL, *after, *range;

	if (va > space.va)
		before = sg_ranges_at(&space.free, va - 1);
	after = sg_ranges_at(&space.free, va + bytes);
	if (after)
		sg_ranges_remove(&space.free, after);
	if (before) {
		sg_ranges_remove(&space.free, before);
		range = before;
		range->bytes += bytes;
	} else {
		range = sg_xcalloc(1, sizeof(*range));
		range->start = va;
		range->bytes = bytes;
	}
	if (after)
		range->bytes += after->bytes;
	free(after);
	sg_ranges_insert(&space.free, range);
}

/* ------------------------------------------------------------------- areas */

void sg_area_add(struct sg_area *area)
{
	area->id = ++space.next_id;
	sg_ranges_insert(&space.areas, &area->range);
}

void sg_area_remove(struct sg_area *area)
{
	sg_ranges_remove(&space.areas, &area->range);
}

struct sg_area *sg_area_at(uint64_t va)
{
	struct sg_range *range = sg_ranges_at(&space.areas, va);

	return range ? sg_range_entry(range, struct sg_area, range) : NULL;
}

struct sg_area *sg_area_next(uint64_t va)
{
	struct sg_range *range = sg_ranges_ceil(&space.areas, va);

	return range ? sg_range_entry(range, struct sg_area, range) : NULL;
}

/* ---------------------------------------------------------------- mappings */

static size_t page_of(uint64_t va)
{
	return (va - space.va) / SG_PAGE_BYTES;
}

struct sg_mapping *sg_mapping_at(uint64_t va)
{
	return sg_is_device_va(va) ? space.pages[page_of(va)] : NULL;
}

const struct sg_mapping *sg_mappings(void)
{
	return space.mappings;
}

struct sg_mapping *sg_mapping_create(
        struct sg_chunk *chunk, uint64_t va, uint64_t bytes)
{
	struct sg_mapping *mapping = sg_xcalloc(1, sizeof(*mapping));
	size_t first = page_of(va), n = bytes / SG_PAGE_BYTES;

	mapping->va = va;
	mapping->bytes = bytes;
	mapping->chunk = chunk;
	mapping->next = space.mappings;
	if (mapping->next)
		mapping->next->prev = mapping;
	space.mappings = mapping;
	chunk->maps++;
	for (size_t i = 0; i < n; i++)
		space.pages[first + i] = mapping;
	sg_exact_map(mapping);
	return mapping;
}

void sg_mapping_destroy(struct sg_mapping *mapping)
{
	struct sg_chunk *chunk = mapping->chunk;

	sg_exact_unmap(mapping);
	memset(&space.pages[page_of(mapping->va)], 0,
	        mapping->bytes / SG_PAGE_BYTES * sizeof(*space.pages));
	if (mapping->prev)
		mapping->prev->next = mapping->next;
	else
		space.mappings = mapping->next;
	if (mapping->next)
		mapping->next->prev = mapping->prev;
	free(mapping);
	chunk->maps--;
	sg_chunk_put(chunk);
}

bool sg_mapping_accessible(const struct sg_mapping *mapping,
        const struct sg_device *dev, bool write)
{
	uint64_t mask = write ? mapping->write : mapping->read;

	if (mask >> dev->ordinal & 1)
		return true;
	return !mapping->reservation &&
	       sg_peer_enabled(dev, mapping->chunk->dev);
}

void sg_mapped_run(const struct sg_area *area, uint64_t va, uint64_t *ret_va,
        uint64_t *ret_bytes)
{
	uint64_t end = area->range.start + area->range.bytes;
	uint64_t first = va & ~(SG_PAGE_BYTES - 1), last = first;
	bool mapped = sg_mapping_at(va);

	while (first > area->range.start &&
	        !!sg_mapping_at(first - SG_PAGE_BYTES) == mapped)
		first -= SG_PAGE_BYTES;
	do {
		last += SG_PAGE_BYTES;
	} while (last < end && !!sg_mapping_at(last) == mapped);
	*ret_va = first;
	*ret_bytes = last - first;
}

/* How far from va dev may go; va itself if it may not touch it. */
static uint64_t reach(struct sg_device *dev, uint64_t va, bool write)
{
	const struct sg_mapping *mapping = sg_mapping_at(va);
	const struct sg_area *area;
	const struct sg_host *host;

	if (!sg_is_device_va(va)) {
		host = sg_host_at(va);
		return host ? host->range.start + host->range.bytes : va;
	}
	if (!mapping || !sg_mapping_accessible(mapping, dev, write))
		return va;
	if (mapping->reservation)
		return mapping->va + mapping->bytes;
	/* Of an allocation's pages only what was asked for is its own. */
	area = sg_area_at(va);
	return area ? area->range.start + area->range.bytes : va;
}

uint64_t sg_first_forbidden(
        struct sg_device *dev, uint64_t va, uint64_t bytes, bool write)
{
	uint64_t end = va + bytes, to;

	if (end < va)
		return va;
	while (va < end) {
		to = reach(dev, va, write);
		if (to == va)
			return va;
		va = to;
	}
	return 0;
}

uint64_t sg_first_unmapped(struct sg_device *dev, uint64_t va, uint64_t bytes)
{
	return sg_first_forbidden(dev, va, bytes, false);
}

/* Where a host range stands; its block is itself. */
static bool where_host(uint64_t va, struct sg_where *ret_where)
{
	const struct sg_host *host = sg_host_at(va);

	if (!host)
		return false;
	ret_where->dev = host->ctx ? host->ctx->dev : NULL;
	ret_where->alloc_va = host->range.start;
	ret_where->alloc_bytes = host->range.bytes;
	ret_where->block_va = host->range.start;
	ret_where->block_bytes = host->range.bytes;
	ret_where->map_va = host->range.start;
	ret_where->map_bytes = host->range.bytes;
	ret_where->accessible = true;
	ret_where->managed = host->managed;
	return true;
}

bool sg_where(uint64_t va, struct sg_where *ret_where)
{
	struct sg_where where = {0};
	const struct sg_mapping *mapping;
	const struct sg_area *area;

	if (!sg_is_device_va(va)) {
		if (!where_host(va, &where))
			return false;
		*ret_where = where;
		return true;
	}
	area = sg_area_at(va);
	if (!area)
		return false;
	mapping = sg_mapping_at(va);
	where.dev = area->dev;
	where.alloc_va = area->range.start;
	where.alloc_bytes = area->range.bytes;
	where.vmm = area->kind == SG_AREA_RESERVATION;
	where.from_pool = area->kind == SG_AREA_POOL;
	if (mapping) {
		where.dev = mapping->chunk->dev;
		where.map_va = mapping->va;
		where.map_bytes = mapping->bytes;
		where.chunk = mapping->chunk;
		where.chunk_offset = va - mapping->va;
		where.accessible =
		        sg_mapping_accessible(mapping, where.dev, false);
	}
	sg_block_at(va, &where.block_va, &where.block_bytes);
	*ret_where = where;
	return true;
}
