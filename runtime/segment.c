/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"

#define LINE_BYTES 64

static void set_page(struct ts_page *page, struct ts_segment *segment,
        size_t first, size_t count)
{
	page->segment = segment;
	page->units = segment->units + first;
	page->count = count;
	page->end = first + count;
	page->address = segment->base + first * segment->unit_bytes;
	page->bytes = count * segment->unit_bytes;
	page->live_units = 0;
	for (size_t i = 0; i < count; i++) {
		page->units[i].page = page;
		page->live_units += page->units[i].live_bytes != 0;
	}
}

/* Zeroed, from the beginning of a line of the cache on; to be freed. */
static void *alloc_lines(size_t bytes)
{
	size_t whole = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	void *lines = aligned_alloc(LINE_BYTES, whole);

	return lines ? memset(lines, 0, whole) : NULL;
}

static struct ts_page *new_page(void)
{
	struct ts_page *page = alloc_lines(sizeof(*page));

	if (!page)
		return NULL;
	ts_list_init(&page->list);
	ts_list_init(&page->alias);
	return page;
}

static void free_pages(struct ts_segment *segment)
{
	size_t i = 0;

	while (i < segment->unit_count && segment->units[i].page) {
		struct ts_page *page = segment->units[i].page;

		i += page->count;
		ts_list_remove(&page->list);
		free(page);
	}
}

static int make_pages(struct ts_segment *segment, uint64_t page_bytes)
{
	size_t most = page_bytes / segment->unit_bytes, count;

	segment->page_units = most;
	for (size_t i = 0; i < segment->unit_count; i += count) {
		struct ts_page *page = new_page();

		if (!page)
			return -ENOMEM;
		count = segment->unit_count - i;
		if (count > most)
			count = most;
		set_page(page, segment, i, count);
	}
	return 0;
}

static struct ts_segment *new_segment(uint64_t bytes, uint64_t unit_bytes)
{
	struct ts_segment *segment = alloc_lines(sizeof(*segment));

	if (!segment)
		return NULL;
	ts_list_init(&segment->slabs);
	segment->unit_bytes = unit_bytes;
	segment->unit_count = (bytes + unit_bytes - 1) / unit_bytes;
	segment->bytes = segment->unit_count * unit_bytes;
	segment->units = calloc(segment->unit_count, sizeof(struct ts_unit));
	if (segment->units)
		return segment;
	free(segment);
	return NULL;
}

int ts_segment_adopt(uint64_t base, uint64_t bytes, uint64_t unit_bytes,
        uint64_t page_bytes, struct ts_segment **ret_segment)
{
	struct ts_segment *segment = new_segment(bytes, unit_bytes);

	if (!segment)
		return -ENOMEM;
	segment->base = base;
	segment->adopted = true;
	if (make_pages(segment, page_bytes)) {
		ts_segment_destroy(NULL, segment, false);
		return -ENOMEM;
	}
	*ret_segment = segment;
	return 0;
}

CUresult ts_segment_create(const struct ts_gpu_ops *ops, uint64_t bytes,
        uint64_t unit_bytes, uint64_t page_bytes, bool slab,
        struct ts_segment **ret_segment)
{
	struct ts_segment *segment = new_segment(bytes, unit_bytes);
	CUdeviceptr base;
	CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

	if (!segment)
		return rc;
	if (slab) {
		segment->taken = calloc(1, segment->bytes / TS_SLAB_UNIT_BYTES);
		if (!segment->taken)
			goto out_units;
	}
	rc = ts_gpu_said("cuMemAddressReserve",
	        ops->address_reserve(&base, segment->bytes, unit_bytes, 0, 0));
	if (rc != CUDA_SUCCESS)
		goto out_taken;
	segment->base = base;
	if (!make_pages(segment, page_bytes)) {
		*ret_segment = segment;
		return CUDA_SUCCESS;
	}
	rc = CUDA_ERROR_OUT_OF_MEMORY;
	ops->address_free(segment->base, segment->bytes);
	free_pages(segment);
out_taken:
	free(segment->taken);
out_units:
	free(segment->units);
	free(segment);
	return rc;
}

void ts_segment_destroy(const struct ts_gpu_ops *ops,
        struct ts_segment *segment, bool driver_alive)
{
	if (!segment)
		return;
	if (driver_alive && !segment->adopted)
		ops->address_free(segment->base, segment->bytes);
	free_pages(segment);
	free(segment->taken);
	free(segment->units);
	free(segment);
}

struct ts_segment *ts_segment_of(const struct ts_map *map, uint64_t address)
{
	struct ts_map_node *node = ts_map_floor(map, address);
	struct ts_segment *segment;

	if (!node)
		return NULL;
	segment = ts_container_of(node, struct ts_segment, node);
	return address - segment->base < segment->bytes ? segment : NULL;
}

struct ts_page *ts_page_after(const struct ts_page *page)
{
	if (page->end == page->segment->unit_count)
		return NULL;
	return page->segment->units[page->end].page;
}

int ts_page_cut(struct ts_page *page, size_t at)
{
	struct ts_segment *segment = page->segment;
	size_t first = ts_page_first(page), end = first + page->count;
	struct ts_page *rest;

	ts_assert(!page->mapping && first < at && at < end);
	rest = new_page();
	if (!rest)
		return -ENOMEM;
	rest->fence = page->fence;
	rest->former_op = page->former_op;
	rest->former = page->former;
	rest->next_use = page->next_use;
	rest->used_at = page->used_at;
	memcpy(rest->uses, page->uses, sizeof(rest->uses));
	rest->use_at = page->use_at;
	rest->pins = page->pins;
	rest->written = page->written;
	set_page(page, segment, first, at - first);
	set_page(rest, segment, at, end - at);
	return 0;
}

void ts_page_join(struct ts_page *page)
{
	struct ts_page *rest = ts_page_after(page);

	ts_assert(!page->mapping && !rest->mapping);
	ts_fence_join(&page->fence, &rest->fence);
	if (rest->former_op > page->former_op)
		page->former_op = rest->former_op;
	page->former |= rest->former;
	page->pins |= rest->pins;
	page->written |= rest->written;
	ts_list_remove(&rest->list);
	/* Not set_page(): a page of many is joined of as many. */
	for (size_t i = 0; i < rest->count; i++)
		rest->units[i].page = page;
	page->count += rest->count;
	page->end = rest->end;
	page->bytes += rest->bytes;
	page->live_units += rest->live_units;
	free(rest);
}

bool ts_page_has_slots(const struct ts_page *page)
{
	for (size_t i = 0; i < page->count; i++)
		if (page->units[i].slot)
			return true;
	return false;
}

static size_t piece_count(uint64_t bytes)
{
	return (bytes + TS_SLAB_UNIT_BYTES - 1) / TS_SLAB_UNIT_BYTES;
}

uint64_t ts_slab_take(struct ts_segment *slab, uint64_t bytes)
{
	size_t total = slab->bytes / TS_SLAB_UNIT_BYTES;
	size_t wanted = piece_count(bytes), run = 0;

	if (wanted > total - slab->taken_count)
		return 0;
	for (size_t i = 0; i < total; i++) {
		run = slab->taken[i] ? 0 : run + 1;
		if (run < wanted)
			continue;
		memset(slab->taken + i + 1 - wanted, 1, wanted);
		slab->taken_count += wanted;
		return slab->base + (i + 1 - wanted) * TS_SLAB_UNIT_BYTES;
	}
	return 0;
}

bool ts_slab_put(struct ts_segment *slab, uint64_t address, uint64_t bytes)
{
	size_t first = (address - slab->base) / TS_SLAB_UNIT_BYTES;
	size_t count = piece_count(bytes);

	ts_assert(slab->taken[first]);
	memset(slab->taken + first, 0, count);
	slab->taken_count -= count;
	return !slab->taken_count;
}
