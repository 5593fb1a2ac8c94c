/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_worth.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/in_place.h"

/* A plan is shorter where its step takes no more than so much of another's. */
#define SHORTER_OF(ns) ((ns) / 100 * 97)

/* What is changed in place, all of it in the step, may come out the same. */
static int allow_in_place(
        const struct ts_profile *from, struct ts_profile *profile)
{
	bool *by_op = calloc(from->n_ops + 1ull, sizeof(*by_op));
	int rc = by_op ? ts_in_place_find(from, by_op) : -ENOMEM;

	for (uint32_t i = 0; !rc && i < from->n_ops; i++) {
		const struct ts_profile_op *op = &from->ops[i];

		if (!by_op[i] || !from->signatures[op->signature].replayable)
			continue;
		for (uint32_t k = 0; k < op->n_writes; k++)
			profile->values[from->uses[op->first_write + k]]
			        .no_replay = false;
	}
	free(by_op);
	return rc;
}

/* What the profile says of it, not what was proved; then what it was. */
static bool *allow_all(
        const struct ts_profile *from, struct ts_profile *profile)
{
	bool *kept = malloc((profile->n_values + 1ull) * sizeof(*kept));

	for (uint32_t v = 0; kept && v < profile->n_values; v++) {
		kept[v] = profile->values[v].no_replay;
		profile->values[v].no_replay =
		        v >= from->n_values || from->values[v].no_replay;
	}
	/* Without memory these are left out. */
	if (kept)
		(void)allow_in_place(from, profile);
	return kept;
}

static void put_back(struct ts_profile *profile, bool *kept)
{
	for (uint32_t v = 0; v < profile->n_values; v++)
		profile->values[v].no_replay = kept[v];
	free(kept);
}

bool ts_planned_worth_proof(
        const struct ts_planned_step *step, struct ts_planned_plan *plan)
{
	struct ts_profile *profile = &plan->view.profile;
	struct ts_plan_options options = ts_plan_default_options();
	uint64_t step_ns =
	        plan->model_ns ? plan->model_ns : plan->plan.predicted_step_ns;
	struct ts_plan_stats stats;
	struct ts_plan other;
	bool shorter = false;
	bool *kept;
	int rc;

	/* Nothing that is made again takes less time than nothing does. */
	if (!plan->plan.swap_bytes ||
	        plan->plan.unlimited_step_ns > SHORTER_OF(step_ns))
		return false;
	kept = allow_all(step->profile, profile);
	if (!kept)
		return false;
	options.pages = false;
	options.quick = true;
	options.dirties = plan->view.dirties;
	options.min_gap_bytes = step->survey->page_bytes;
	rc = ts_plan_make(
	        profile, plan->moving_bytes, &options, &other, &stats);
	put_back(profile, kept);
	if (!rc)
		shorter = other.predicted_step_ns <= SHORTER_OF(step_ns);
	if (!rc || rc == -ENOSPC)
		ts_plan_finish(&other);
	return shorter;
}
