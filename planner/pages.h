/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Static page assignment. Residency intervals of storages follow from a plan;
 * pages whose intervals do not meet share a chunk, and a page that comes back
 * after a gap comes back to its own chunk, so that a steady step maps
 * nothing. What cannot have that is counted as remaps. Pure.
 */
#ifndef TS_PLANNER_PAGES_H
#define TS_PLANNER_PAGES_H

#include "planner/program.h"

#define TS_PAGE_BYTES (UINT64_C(2) << 20)

/* Chunks [first, first + count) hold the next pages of an object. */
struct ts_page_run {
	uint32_t first_chunk;
	uint32_t count;
};

/* One residency of one object: ops [from_op, to_op], and its chunks. */
struct ts_residency {
	uint32_t object;
	uint32_t from_op;
	uint32_t to_op;
	uint32_t first_run;
	uint32_t n_runs;
};

struct ts_pages {
	struct ts_residency *residencies;
	uint32_t n_residencies;
	struct ts_page_run *runs;
	uint32_t n_runs;
	/* Chunks in all, and the most pages alive at one op. */
	uint32_t n_chunks;
	uint32_t peak_pages;
	/* Pages that come back to another chunk than they left. */
	uint32_t remaps;
};

/*
 * Assigns chunks to what is at least one page big; smaller values stay on
 * resident pages and are left out, as is scratch of replays. @left and @back
 * give per gap that is not kept the ops between which it is off the device
 * (ts_model_left(), ts_model_back()). 0 or -ENOMEM; the caller finishes
 * @ret_pages.
 */
int ts_pages_assign(const struct ts_graph *graph,
        const struct ts_choice *choice, const uint32_t *left,
        const uint32_t *back, struct ts_pages *ret_pages);
void ts_pages_finish(struct ts_pages *pages);

#endif
