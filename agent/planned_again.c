/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "agent/planned_make_internal.h"
#include "planner/graph.h"

/* What is given up by the plan, and when it is made again. */
int ts_planned_list_replays(struct ts_planned_work *work,
        const struct ts_graph *g, struct ts_planned_plan *to)
{
	to->replays =
	        malloc((to->plan.n_replays + 1ull) * sizeof(*to->replays));
	if (!to->replays)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_planned_gap *gap = &work->run.gaps[i];
		const struct ts_replay_candidate *candidate =
		        ts_replay_candidate_of(
		                work->step->candidates, g->gaps[i].version);

		if (!gap->away || !gap->replayed)
			continue;
		if (!candidate || to->n_replays == to->plan.n_replays)
			return -EINVAL;
		to->replays[to->n_replays++] =
		        (struct ts_replay_choice){.closure = candidate->closure,
		                .from_op = g->gaps[i].from_op,
		                .make_op = gap->take_op};
		to->replayed_bytes += g->gaps[i].size_bytes;
	}
	return 0;
}

/* Values can be made again with so much scratch, where that was proved. */
void ts_planned_allow_replays(
        struct ts_planned_work *work, uint64_t scratch_bytes)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	struct ts_value *values = work->view->profile.values;

	for (uint32_t v = 0; v < work->view->profile.n_values; v++)
		values[v].no_replay = true;
	for (uint32_t i = 0; all && i < all->count; i++)
		values[all->list[i].value].no_replay =
		        all->list[i].scratch_bytes > scratch_bytes;
	work->scratch_bytes = scratch_bytes;
}

/* How the profile's values are made again. */
int ts_planned_add_rebuilds(struct ts_planned_work *work)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	struct ts_profile *profile = &work->view->profile;
	uint32_t count = all ? all->count : 0;
	uint32_t uses = all ? all->pool_count : 0;
	void *more;

	more = realloc(profile->rebuilds, (profile->n_rebuilds + count + 1ull) *
	                                          sizeof(*profile->rebuilds));
	if (!more)
		return -ENOMEM;
	profile->rebuilds = more;
	more = realloc(profile->uses,
	        (profile->n_uses + uses + 1ull) * sizeof(*profile->uses));
	if (!more)
		return -ENOMEM;
	profile->uses = more;
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_replay_candidate *from = &all->list[i];

		profile->values[from->value].rebuild = profile->n_rebuilds;
		profile->rebuilds[profile->n_rebuilds++] =
		        (struct ts_rebuild){.duration_ns = from->duration_ns,
		                .first_read = profile->n_uses,
		                .n_reads = from->n_reads};
		for (uint32_t k = 0; k < from->n_reads; k++)
			profile->uses[profile->n_uses++] =
			        all->pool[from->first_read + k];
	}
	return 0;
}

/* A plan tells of the ops that are launched, not of what was priced as one. */
int ts_planned_tell_ops(
        const struct ts_planned_work *work, struct ts_plan *plan)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	const struct ts_profile *profile = &work->view->profile;
	struct ts_replay *told;
	uint64_t room = 1;
	uint32_t count = 0;

	for (uint32_t i = 0; i < plan->n_replays; i++) {
		const struct ts_replay_candidate *from =
		        ts_replay_candidate_of(all, plan->replays[i].value);

		if (!from)
			return -EINVAL;
		room += from->n_ops;
	}
	told = calloc(room, sizeof(*told));
	if (!told)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->n_replays; i++) {
		const struct ts_replay *replay = &plan->replays[i];
		const struct ts_replay_candidate *from =
		        ts_replay_candidate_of(all, replay->value);

		for (uint32_t k = 0; k < from->n_ops; k++) {
			uint32_t op = all->pool[from->first_op + k];
			const struct ts_profile_op *made = &profile->ops[op];
			uint32_t value =
			        made->n_writes
			                ? profile->uses[made->first_write]
			                : replay->value;

			if (k + 1 == from->n_ops)
				value = replay->value;
			told[count++] = (struct ts_replay){
			        .before_op = replay->before_op,
			        .value = value,
			        .op = op,
			        .duration_ns = made->duration_ns};
		}
	}
	free(plan->replays);
	plan->replays = told;
	plan->n_replays = count;
	return 0;
}
