/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Regions: subsequences of ops that repeat, one after the other, as the layers
 * of a network do. Pure functions.
 */
#ifndef TS_REGIONS_H
#define TS_REGIONS_H

#include <stddef.h>
#include <stdint.h>

struct ts_run {
	uint32_t first;  /* op */
	uint32_t period; /* ops of one repetition */
	uint32_t count;  /* repetitions, at least 2 */
};

/*
 * The runs in @signatures [first, end), in order and apart from each other;
 * at most @room. @cut_bytes[i] is what is alive between ops i - 1 and i to be
 * read again in the same pass: of places where a run may begin, the one with
 * the least is taken. Returns how many.
 */
size_t ts_regions_find(const uint64_t *signatures, const uint64_t *cut_bytes,
        uint32_t first, uint32_t end, struct ts_run *ret_runs, size_t room);

/*
 * The run of exactly @count repetitions that covers most of [first, end).
 * Returns 0, or -ENOENT.
 */
int ts_regions_find_counted(const uint64_t *signatures, uint32_t first,
        uint32_t end, uint32_t count, struct ts_run *ret_run);

#endif
