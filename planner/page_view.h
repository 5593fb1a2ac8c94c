/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A step as pages see it. Only whole pages move, so what a plan is about are
 * ranges of them: of each block those that are its own, and apart from them the
 * pages that several blocks have a part of while they live, each a value that
 * is used whenever one of them is. What no op uses any more has its memory
 * until it is freed: of such a range the view tells a use by the last op that
 * it lives for. Pure; whoever makes one owns it. Made by planner/paged.c of a
 * profile on its own, by agent/planned_view.c of a step of a run.
 */
#ifndef TS_PLANNER_PAGE_VIEW_H
#define TS_PLANNER_PAGE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/profile.h"

struct ts_page_range {
	/* Whole pages; none: it does not move. No address: nobody can say. */
	uint64_t address, bytes;
	uint32_t first, end; /* ops it lives for; end: n_ops, it stays */
	uint32_t idle;       /* from this op on none uses it */
	bool used;           /* by an op, or there is something to be kept */
	bool before;         /* was there when the step began */
	/*
	 * What is in it is on the host from end on: it lives for longer, though
	 * no op uses it any more.
	 */
	bool leaves;
};

struct ts_page_view {
	/* The blocks' own, by block, then those that blocks share. */
	struct ts_page_range *ranges;
	uint32_t n_ranges;
	/* By block, of which there are so many: the ranges at its ends that it
	 * shares with others, or TS_NONE. */
	uint32_t (*shared)[2];
	uint32_t n_blocks;
	uint32_t *range_of; /* by value */
	/*
	 * Values, ops, rebuilds and uses are the view's, all else that of the
	 * profile it was made of, which has to outlive it.
	 */
	struct ts_profile profile;
	/*
	 * By use, as ts_graph_options wants it: the runtime is not told that
	 * the op only reads there, so that the host's copy is old after it.
	 */
	uint8_t *dirties;
};

/* By an op whose profile tells nothing of it: it may use @block. */
struct ts_page_doubt {
	uint32_t op, block;
	bool edges; /* a part of pages that others share: those alone */
};

struct ts_page_contents {
	const struct ts_profile *profile;
	/* By value; those of blocks from @n_valued on are not the profile's. */
	const uint32_t *block_of;
	uint32_t n_valued;
	/* By use: the runtime is told that the op only reads there. */
	const uint8_t *only_read;
	const struct ts_page_doubt *doubts; /* ascending by op */
	uint32_t n_doubts;
};

/*
 * In this order. Room for the ranges of so many blocks, all zero, for the
 * caller to tell what each has, in bytes, and when. Then whole pages of
 * @page_bytes out of those: a block whose address is not known (0) has pages of
 * its own, somewhere, and pages of @fixed, by number, ascending, do not move.
 * Then, for who wants that, what no op uses any more leaves at once, as far as
 * @limit_bytes let it, and what was freed late is not there at all: dead
 * gradients that are freed together would need memory together. At last the
 * profile. Each 0 or -ENOMEM; the caller finishes the view in any case.
 */
int ts_page_view_init(struct ts_page_view *view, uint32_t n_blocks);
int ts_page_view_cut(struct ts_page_view *view, uint64_t page_bytes,
        const uint64_t *fixed, size_t n_fixed);
int ts_page_view_let_go(
        struct ts_page_view *view, uint32_t n_ops, uint64_t limit_bytes);
int ts_page_view_fill(
        struct ts_page_view *view, const struct ts_page_contents *contents);
void ts_page_view_finish(struct ts_page_view *view);

/* True where the use of @range that the view tells of @op is not the op's. */
static inline bool ts_page_range_lingers(
        const struct ts_page_range *range, uint32_t op)
{
	return op >= range->idle;
}

#endif
