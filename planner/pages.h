/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a plan's residencies mean for pages: how many chunks it takes, and how
 * many pages are mapped anew, by the same assignment (page_plan.h) that the
 * runtime enforces. Pure, the same input gives the same result, no locks.
 */
#ifndef TS_PLANNER_PAGES_H
#define TS_PLANNER_PAGES_H

#include "planner/page_plan.h"
#include "planner/plan.h"
#include "planner/program.h"

#define TS_PAGE_BYTES (UINT64_C(2) << 20)

/* Values without an address get pages of their own, from here on. */
#define TS_INVENTED_ADDRESS (UINT64_C(1) << 62)

/* What is on the device when, as page_plan.h wants it; ticks are ops. */
struct ts_pages_holds {
	struct ts_plan_hold *list;
	uint32_t n;
};

/*
 * What @choice leaves on the device. @left and @back give per gap that is not
 * kept the ops between which it is off the device (ts_model_left(),
 * ts_model_back()). Scratch of replays is left out. Pages of values that are
 * smaller than a page never leave. 0, -ENOMEM, or -E2BIG where values need
 * more addresses than there are. The caller frees the list.
 */
int ts_pages_hold(const struct ts_graph *graph, const struct ts_choice *choice,
        const uint32_t *left, const uint32_t *back,
        struct ts_pages_holds *ret_holds);

/* Figures of an assignment. */
struct ts_pages {
	/* Most pages that are on the device at one time. */
	uint32_t peak;
	/* Chunks with @remaps pages mapped anew in every steady step. */
	uint32_t chunks;
	uint64_t remaps;
	/* Chunks where none is ever mapped anew: what the runtime enforces. */
	uint32_t static_chunks;
};

/*
 * Assigns chunks to @holds of a step of @graph, no more than fit in
 * @limit_bytes. Errors as ts_page_plan_find().
 */
int ts_pages_assign(const struct ts_graph *graph,
        const struct ts_pages_holds *holds, uint64_t limit_bytes,
        struct ts_pages *ret_pages);

/* The static chunks alone; errors as above. */
int ts_pages_static(const struct ts_graph *graph,
        const struct ts_pages_holds *holds, uint32_t *ret_chunks);

/*
 * The limit under which a run has @chunks: what lies beside its pages, and
 * what it leaves for what was not there when it was observed, come on top.
 */
uint64_t ts_pages_limit(uint64_t resident_bytes, uint32_t chunks);

/*
 * Both from a plan, made now or read from a file: runs it on the event model
 * first. -EINVAL where @plan is not one of @profile, too.
 */
int ts_pages_of_plan(const struct ts_profile *profile,
        const struct ts_plan *plan, struct ts_pages *ret_pages);

#endif
