/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_offer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The gap that @decision is about, or TS_NONE. */
static uint32_t gap_of(
        const struct ts_graph *g, const struct ts_decision *decision)
{
	uint32_t op = decision->from_op + 1;
	uint32_t gap =
	        ts_graph_gap_at(g, decision->value, op < g->n_ops ? op : 0);

	if (gap == TS_NONE || g->gaps[gap].version != decision->value ||
	        g->gaps[gap].from_op != decision->from_op ||
	        g->gaps[gap].to_op != decision->to_op)
		return TS_NONE;
	return gap;
}

int ts_planned_offer_copy(const struct ts_plan *offered,
        const struct ts_graph *g, uint32_t n_values, struct ts_plan *ret_plan)
{
	bool of_profile = offered->n_values == n_values;

	if (offered->n_ops != g->n_ops ||
	        (!of_profile && offered->n_values != g->profile->n_values))
		return -EINVAL;
	*ret_plan = *offered;
	ret_plan->replays = NULL;
	ret_plan->n_replays = 0;
	ret_plan->n_values = g->profile->n_values;
	ret_plan->n_decisions = 0;
	ret_plan->profile_name = strdup(offered->profile_name);
	ret_plan->decisions = malloc(
	        (offered->n_decisions + 1ull) * sizeof(*ret_plan->decisions));
	if (!ret_plan->profile_name || !ret_plan->decisions) {
		ts_plan_finish(ret_plan);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < offered->n_decisions; i++) {
		const struct ts_decision *decision = &offered->decisions[i];

		if (decision->action == TS_REPLAY ||
		        (of_profile && gap_of(g, decision) == TS_NONE))
			continue;
		ret_plan->decisions[ret_plan->n_decisions++] = *decision;
	}
	return 0;
}
