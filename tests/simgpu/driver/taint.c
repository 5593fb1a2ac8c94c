/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the wrong bytes of a mutation are: intervals of physical and
 * page-locked memory. What a kernel writes after reading some is wrong too, in
 * order of arrival, as effects are; what is overwritten or freed is wrong no
 * more. Wrong bytes that never come to the host were harmless: by what the
 * device saw of reads and writes, not by what the program printed.
 *
 * Page-locked memory of our own is hidden from the host while it is wrong, so
 * that a look at it is noticed; other memory of the host, and pages of which
 * only a part is wrong, count as looked at when they are written. Guarded by
 * the lock.
 */
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/races.h"

#include <stdio.h>
#include <stdlib.h>

struct piece {
	struct sg_range range; /* offsets in the memory */
};
struct set {
	struct sg_ranges pieces;
};

static uint64_t n_pieces; /* in all memory */
static char reached[320];

const char *sg_taint_reached(void)
{
	return *reached ? reached : NULL;
}

/* Without the address: host memory lies elsewhere in every run. */
static void reach(const char *how, uint64_t bytes)
{
	if (!*reached)
		snprintf(reached, sizeof(reached),
		        "%llu bytes of it %s, before operation %llu",
		        (unsigned long long)bytes, how,
		        (unsigned long long)sg_op_next_seq());
}

static void piece_add(struct set *set, uint64_t start, uint64_t bytes)
{
	struct piece *piece = sg_xcalloc(1, sizeof(*piece));

	piece->range.start = start;
	piece->range.bytes = bytes;
	sg_ranges_insert(&set->pieces, &piece->range);
	n_pieces++;
}

static void piece_remove(struct set *set, struct sg_range *range)
{
	sg_ranges_remove(&set->pieces, range);
	free(sg_range_entry(range, struct piece, range));
	n_pieces--;
}

static void clear_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	struct set *set = *place->taint;
	uint64_t end = offset + bytes;
	struct sg_range *range;

	while (set &&
	        (range = sg_ranges_overlap(&set->pieces, offset, bytes))) {
		uint64_t start = range->start, stop = start + range->bytes;

		piece_remove(set, range);
		if (start < offset)
			piece_add(set, start, offset - start);
		if (stop > end)
			piece_add(set, end, stop - end);
	}
}

static void add_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	clear_stretch(arg, place, offset, va, bytes);
	if (!*place->taint)
		*place->taint = sg_xcalloc(1, sizeof(struct set));
	piece_add(*place->taint, offset, bytes);
}

void sg_taint_add(uint64_t va, uint64_t bytes)
{
	if (!sg_is_device_va(va) && !sg_host_hide(va, bytes)) {
		reach("written to host memory", bytes);
		return;
	}
	sg_stretches(va, bytes, add_stretch, NULL);
}

void sg_taint_clear(uint64_t va, uint64_t bytes)
{
	if (n_pieces)
		sg_stretches(va, bytes, clear_stretch, NULL);
}

static void end_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	const struct sg_mapping *mapping = sg_mapping_at(va);

	/* Another block may lie there through another address. */
	if (mapping && mapping->chunk->maps == 1)
		clear_stretch(arg, place, offset, va, bytes);
}

void sg_taint_block_gone(uint64_t va, uint64_t bytes)
{
	if (n_pieces)
		sg_stretches(va, bytes, end_stretch, NULL);
}

void sg_taint_forget(void **place)
{
	struct set *set = *place;
	struct sg_range *range;

	if (!set)
		return;
	while ((range = sg_ranges_ceil(&set->pieces, 0)))
		piece_remove(set, range);
	free(set);
	*place = NULL;
}

/* The wrong parts of a range, by address. */
struct found {
	struct {
		uint64_t va, bytes;
	} * parts;
	unsigned n, cap;
};

static void find_stretch(void *arg, struct sg_place *place, uint64_t offset,
        uint64_t va, uint64_t bytes)
{
	const struct set *set = *place->taint;
	struct found *found = arg;
	uint64_t at = offset, end = offset + bytes;
	struct sg_range *range;

	while (set && at < end &&
	        (range = sg_ranges_overlap(&set->pieces, at, end - at))) {
		uint64_t from = range->start > at ? range->start : at;
		uint64_t to = range->start + range->bytes;

		if (to > end)
			to = end;
		if (found->n == found->cap) {
			found->cap = 2 * found->cap + 8;
			found->parts = sg_xrealloc(found->parts,
			        found->cap * sizeof(*found->parts));
		}
		found->parts[found->n].va = va + (from - offset);
		found->parts[found->n++].bytes = to - from;
		at = to;
	}
}

void sg_taint_copied(uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct found found = {0};

	if (!n_pieces)
		return;
	sg_stretches(src, bytes, find_stretch, &found);
	sg_taint_clear(dst, bytes);
	for (unsigned i = 0; i < found.n; i++)
		sg_taint_add(
		        dst + (found.parts[i].va - src), found.parts[i].bytes);
	free(found.parts);
}

void sg_taint_launched(const struct sg_op *op)
{
	struct found found = {0};

	if (!n_pieces)
		return;
	for (unsigned i = 0; i < op->n_accesses && !found.n; i++) {
		const struct sg_access *access = &op->accesses[i];

		if (access->read)
			sg_stretches(access->va, access->bytes, find_stretch,
			        &found);
	}
	for (unsigned i = 0; i < op->n_accesses; i++) {
		const struct sg_access *access = &op->accesses[i];

		if (access->write && found.n)
			sg_taint_add(access->va, access->bytes);
		else if (access->write && access->certain && !access->read)
			sg_taint_clear(access->va, access->bytes);
	}
	free(found.parts);
}

void sg_taint_touched(uint64_t va, uint64_t bytes)
{
	struct found found = {0};

	if (!n_pieces)
		return;
	sg_stretches(va, bytes, find_stretch, &found);
	if (found.n)
		reach("touched by the host", found.parts[0].bytes);
	free(found.parts);
}

void sg_taint_touches_lost(void)
{
	if (n_pieces)
		reach("perhaps touched by the host", 0);
}
