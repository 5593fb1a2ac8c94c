/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which chunk of physical memory each page of address range has in a step
 * that repeats itself. Pages that are never resident at the same time share a
 * chunk, which is mapped under all of them. In a static plan a page has the
 * same chunk whenever it is resident, so that a steady step maps nothing: this
 * is what the runtime enforces. With fewer chunks some pages are mapped anew
 * in every step; such plans only say how many. Pure; whoever makes a plan owns
 * it.
 */
#ifndef TS_PLANNER_PAGE_PLAN_H
#define TS_PLANNER_PAGE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* Pages side by side that a plan may move. */
struct ts_plan_segment {
	uint64_t base;
	uint32_t pages;
};

/*
 * A range is resident from before op @take_op until before op @release_op
 * (n_ops: into the next step). Its chunk is taken for the time between two
 * ticks of the step; what lies above n_ticks is in the next step.
 */
struct ts_plan_hold {
	uint64_t address, bytes;
	uint32_t take_op, release_op;
	uint32_t from_tick, free_tick;
};

struct ts_plan_stay {
	uint32_t take_op, release_op;
	uint32_t from_tick, free_tick;
};

/* Pages side by side that the same holds are for. */
struct ts_plan_strip {
	uint64_t address;
	uint32_t pages;
	uint32_t first_page; /* index into chunk_of */
	uint32_t first_stay, n_stays;
};

struct ts_page_plan {
	uint32_t n_ops, n_ticks;
	uint64_t page_bytes;
	struct ts_plan_strip *strips; /* ascending by address */
	uint32_t n_strips;
	struct ts_plan_stay *stays; /* of a strip ascending, apart */
	uint32_t n_stays;
	uint32_t *chunk_of; /* by page; NULL unless static */
	/*
	 * By chunk, and one past the last: false where whoever has it has the
	 * one before it under the page before, in the same strip. What is not
	 * apart can be one piece of memory. NULL: all are.
	 */
	bool *apart;
	uint32_t n_pages;
	uint32_t n_chunks;
	uint32_t peak_pages; /* no assignment needs fewer chunks */
	/* Pages that are mapped anew in a step, each time; 0 where static. */
	uint64_t remaps;
	/* Those among them whose content has to be copied, too. */
	uint64_t moves;
};

/* Pages side by side, and the chunks that they have. */
struct ts_plan_place {
	uint64_t address;
	uint32_t pages, first_chunk;
};

struct ts_page_plan_input {
	/* Sorted by base; holds outside are left out. */
	const struct ts_plan_segment *segments;
	uint32_t n_segments;
	/* There are no segments: holds may lie anywhere. */
	bool anywhere;
	const struct ts_plan_hold *holds;
	uint32_t n_holds;
	uint64_t page_bytes;
	uint32_t n_ops, n_ticks;
	/*
	 * Pages may be mapped anew, to do with the peak's chunks and a few
	 * more, at most most_chunks (the peak's whatever it says). Else
	 * most_chunks are there (0: any number): where they do not suffice for
	 * the ticks, pages share one that are not there for the same op, and
	 * whose copies wait for one another.
	 */
	bool may_remap;
	uint64_t most_chunks;
	/* Where not NULL, this is already decided, of so many chunks: for all
	 * pages, ascending. */
	const struct ts_plan_place *places;
	uint32_t n_places, n_chunks;
};

/* The segment of @segments, sorted by base, @address lies in, or NULL. */
const struct ts_plan_segment *ts_plan_segment_at(
        const struct ts_plan_segment *segments, uint32_t n_segments,
        uint64_t address, uint64_t page_bytes);

/*
 * Plans for the holds. 0, -ENOMEM, -EINVAL for a hold without ops, -EBUSY where
 * pages that have the same chunk by their places are there for the same op, or
 * -E2BIG for more pages than any device has or more than a plan may take.
 */
int ts_page_plan_find(
        const struct ts_page_plan_input *input, struct ts_page_plan *ret_plan);

/* The same of a static plan for holds in @segments, with any chunks it needs.
 */
int ts_page_plan_make(const struct ts_plan_segment *segments,
        uint32_t n_segments, const struct ts_plan_hold *holds, uint32_t n_holds,
        uint64_t page_bytes, uint32_t n_ops, uint32_t n_ticks,
        struct ts_page_plan *ret_plan);
void ts_page_plan_finish(struct ts_page_plan *plan);

#endif
