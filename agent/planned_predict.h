/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long a step takes that goes by a page plan, as the runtime carries it
 * out: copies are issued long before they can begin, one after the other each
 * way, and wait for what was in their chunks. So they run as soon as chunks
 * let them, which the planner's own model, where memory is a sum, does not
 * tell. Pure.
 */
#ifndef TS_PLANNED_PREDICT_H
#define TS_PLANNED_PREDICT_H

#include "agent/planned_view.h"
#include "planner/page_plan.h"
#include "planner/plan.h"

/* A range leaves or comes before an op of the step. */
struct ts_planned_move {
	uint32_t op;
	uint32_t range;
	uint32_t tick; /* orders those of one op */
	bool take;
	bool copies; /* false: the host has what is in it */
};

/* What happens in a step beside its ops; replays as the planner orders them. */
struct ts_planned_extras {
	struct ts_planned_move *moves;
	uint32_t n_moves;
	const struct ts_replay *replays;
	uint32_t n_replays;
};

/*
 * The moves are sorted here as the runtime has them. 0 or -ENOMEM; UINT64_MAX
 * in @ret_step_ns where something waits for itself.
 */
int ts_planned_predict(const struct ts_page_view *view,
        const struct ts_page_plan *pages,
        const struct ts_planned_extras *extras, uint64_t *ret_step_ns);

#endif
