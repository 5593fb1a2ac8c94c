/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside of page assignment, shared by pages.c (from stays to runs of pages,
 * from chunks to tenancies) and packing.c (which chunk for which run). Not for
 * other files. Ops are counted from where the step is cut open.
 */
#ifndef TS_PLANNER_PAGES_INTERNAL_H
#define TS_PLANNER_PAGES_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/* Chunks that may be added to the peak's to save remaps: one in so many. */
#define TS_SPARE_SHARE 104

/* Ops [from, to] of one step. */
struct ts_span {
	uint32_t from;
	uint32_t to;
};

/* Neighbouring pages that are resident over the same ops. */
struct ts_page_run {
	uint64_t first_page;
	uint32_t count;
	/* Spans, ascending, with at least one op between two of them. */
	uint32_t first_span;
	uint32_t n_spans;
	/* The last span goes on in the first: one chunk, or the page moves. */
	bool wraps;
	/* Where chunk numbers begin: those of span k at k * count from here. */
	uint64_t first_chunk;
};

struct ts_runs {
	struct ts_page_run *runs;
	uint32_t n_runs;
	struct ts_span *spans;
	uint32_t n_ops;
	uint32_t peak_pages;
	/* No more chunks than these; at least the peak's. */
	uint32_t most_chunks;
	/* Not worth going on when more pages had to give up their chunks. */
	uint64_t most_sent;
};

/*
 * Fills @chunks, by span and page of each run; ret_n_chunks gets how many
 * chunks that are. 0, -ENOMEM, or -ECANCELED where most_sent was passed.
 */
int ts_pages_pack(
        const struct ts_runs *runs, uint32_t *chunks, uint32_t *ret_n_chunks);

#endif
