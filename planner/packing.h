/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The heart of page assignment: which chunk for which run of pages. Pure, the
 * same input gives the same result; called by page_plan.c. Times are slots,
 * counted from where the step is cut open.
 */
#ifndef TS_PLANNER_PACKING_H
#define TS_PLANNER_PACKING_H

#include <stdbool.h>
#include <stdint.h>

/* As many chunks as it takes for pages never to change theirs. */
#define TS_PACK_STATIC UINT32_MAX

/* Slots [from, to] of one step, both included. */
struct ts_pack_span {
	uint32_t from;
	uint32_t to;
};

/* Pages that are resident over the same slots. */
struct ts_pack_run {
	uint32_t count;
	/* Spans, ascending, with at least one slot between two of them. */
	uint32_t first_span;
	uint32_t n_spans;
	/* The last span goes on in the first: one chunk, or the page moves. */
	bool wraps;
};

struct ts_pack_input {
	const struct ts_pack_run *runs;
	uint32_t n_runs;
	const struct ts_pack_span *spans;
	uint32_t n_slots;
	/*
	 * No more chunks than these, at least the peak's: pages then change
	 * their chunks where that does not suffice.
	 */
	uint32_t most_chunks;
	/* Not worth going on when more pages had to give up their chunks. */
	uint64_t most_sent;
};

/* Pages of a run, from @offset on, and their chunks over one of its spans. */
struct ts_pack_piece {
	uint32_t run;
	uint32_t span; /* of the run */
	uint32_t offset;
	uint32_t count;
	uint32_t first_chunk;
};

struct ts_packing {
	struct ts_pack_piece *pieces; /* by run, span and offset */
	uint32_t n_pieces;
	uint32_t n_chunks;
	/* Pages that have another chunk than in the span before, each time. */
	uint64_t remaps;
	/* Those among them that are resident all the while: copied, too. */
	uint64_t moves;
};

/*
 * 0, -ENOMEM, -ECANCELED where most_sent was passed, or -E2BIG where it would
 * take more memory or time than a plan may. The caller finishes @ret_packing
 * after success.
 */
int ts_pack(const struct ts_pack_input *input, struct ts_packing *ret_packing);
void ts_packing_finish(struct ts_packing *packing);

#endif
