/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a recorded step and its profile to what the runtime enforces: the
 * planner decides what leaves when, the blocks' addresses say which pages that
 * is, and pages are assigned to chunks. Where they need more chunks than there
 * are, the planner is asked again for less; where that would be less than the
 * largest op needs, for less beside all other ops. What may be made again is if
 * that makes a better plan. Pure.
 */
#ifndef TS_PLANNED_MAKE_H
#define TS_PLANNED_MAKE_H

#include "agent/planned_view.h"
#include "agent/proof_candidates.h"
#include "agent/recording.h"
#include "agent/values.h"
#include "planner/page_plan.h"
#include "planner/plan.h"
#include "planner/profile.h"
#include "runtime/enforce.h"

/* A step as it was observed, and the device it is planned for. */
struct ts_planned_step {
	const struct ts_profile *profile;
	/* That it is of; or both NULL, where the profile is all there is. */
	const struct ts_recording *step;
	const struct ts_values *values;
	const struct ts_enforce_survey *survey;
	/* Of a profile alone: pages that small values share may move. */
	bool small_move;
	/* A plan for this very step, made before with so many bytes for pages
	 * that move; or NULL. */
	const struct ts_plan *offered;
	uint64_t offered_bytes;
	/* What may be made again, or NULL; and the scratch that is there for it
	 * already, which the survey has among what others use. */
	const struct ts_replay_candidates *candidates;
	uint64_t scratch_bytes;
	/* It can still be proved what of it can be made again. */
	bool is_open;
};

/*
 * What small values share moves only where it is no smaller a part of what a
 * limit leaves: such pages are often used, and by many ops.
 */
#define TS_PLANNED_SMALL_PART 16

static inline bool ts_planned_small_moves(
        uint64_t small_bytes, uint64_t left_bytes)
{
	return small_bytes >= left_bytes / TS_PLANNED_SMALL_PART;
}

struct ts_planned_plan {
	struct ts_plan plan;
	uint64_t model_ns; /* a step by it, before pages; 0: not asked */
	bool is_open;      /* with values made again it may be shorter */
	bool lets_go;      /* what no op uses any more leaves at once */
	struct ts_page_plan pages;
	uint64_t chunks_there; /* that the limit leaves for pages */
	uint64_t moving_bytes; /* that the planner had for pages that move */
	bool was_offered;
	/* Why the one offered was not taken, as an errno (-ENOTSUP: it has
	 * values made again); and what it needs. */
	int offered_rc;
	uint64_t offered_chunks;
	struct ts_page_view view;         /* what the plan's values are */
	struct ts_replay_choice *replays; /* ascending by from_op */
	uint32_t n_replays;
	uint64_t replayed_bytes; /* that are given up in a step */
	uint64_t scratch_bytes;  /* that it takes to make them */
	uint64_t kept_ns;        /* a step in which nothing is; 0: no plan */
};

/*
 * 0, -ENOSPC where no plan fits, with a limit that one would fit into in
 * @ret_least_bytes (NULL: not wanted), or 0; or another negative errno. The
 * caller finishes @ret_plan after success; its view holds while @step->profile
 * does.
 */
int ts_planned_make(const struct ts_planned_step *step,
        struct ts_planned_plan *ret_plan, uint64_t *ret_least_bytes);
void ts_planned_plan_finish(struct ts_planned_plan *plan);

#endif
