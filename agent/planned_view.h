/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorded step as pages see it. Only whole pages move, so what the planner
 * is asked about are ranges of them: of each block the pages that are its own,
 * and apart from those the pages that several blocks have a part of while they
 * live, each a value that is used whenever one of them is. What no op uses any
 * more has its memory until it is freed: of such a range the view tells a use
 * by the last op that it lives for. Pure.
 */
#ifndef TS_PLANNED_VIEW_H
#define TS_PLANNED_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/recording.h"
#include "agent/values.h"
#include "planner/profile.h"
#include "runtime/enforce.h"

struct ts_planned_range {
	uint64_t address, bytes; /* whole pages; none: it does not move */
	uint32_t first, end;     /* ops it lives for; end: n_ops, it stays */
	uint32_t idle;           /* from this op on none uses it */
	bool used;
	bool before; /* was there when the step began */
	/*
	 * What is in it is on the host from end on: it lives for longer, though
	 * no op uses it any more.
	 */
	bool leaves;
};

struct ts_planned_view {
	/* The blocks' own, by block, then those that blocks share. */
	struct ts_planned_range *ranges;
	uint32_t n_ranges;
	/* By block, of which there are so many: the ranges at its ends that it
	 * shares with others, or TS_NONE. */
	uint32_t (*shared)[2];
	uint32_t n_blocks;
	uint32_t *range_of; /* by value */
	/* Values, ops and uses are the view's, all else the step's. */
	struct ts_profile profile;
	/*
	 * By use: the runtime is not told that the op only reads there, so
	 * that the host's copy is old after it.
	 */
	uint8_t *dirties;
};

/* True where the use of @range that the view tells of @op is not the op's. */
static inline bool ts_planned_range_lingers(
        const struct ts_planned_range *range, uint32_t op)
{
	return op >= range->idle;
}

/*
 * Of @step, of which @profile and @values tell. Where it @lets_go, what no op
 * uses any more leaves at once, and what was freed late is not there at all:
 * dead gradients that are freed together would need memory together. 0 or
 * -ENOMEM; after success the caller finishes @ret_view, and keeps @profile
 * until then.
 */
int ts_planned_view_make(const struct ts_recording *step,
        const struct ts_profile *profile, const struct ts_values *values,
        const struct ts_enforce_survey *survey, bool lets_go,
        struct ts_planned_view *ret_view);
void ts_planned_view_finish(struct ts_planned_view *view);

#endif
