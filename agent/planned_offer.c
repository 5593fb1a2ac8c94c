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

/* The object that is operand @operand of @op, or TS_NONE. */
static uint32_t object_at(
        const struct ts_graph *g, uint32_t op, uint32_t operand)
{
	const struct ts_profile_op *info = &g->profile->ops[op];
	uint32_t at = info->first_read + operand;

	if (operand >= info->n_reads + info->n_writes)
		return TS_NONE;
	if (operand >= info->n_reads)
		at = info->first_write + operand - info->n_reads;
	return g->object_of[g->profile->uses[at]];
}

/*
 * The same by the operands of its ops: what lives beside the step's own values
 * may be more, or less, in another run, and numbers with it.
 */
static uint32_t gap_at_operands(
        const struct ts_graph *g, const struct ts_decision *decision)
{
	uint32_t object;

	if (decision->from_operand == TS_NONE ||
	        decision->to_operand == TS_NONE)
		return gap_of(g, decision);
	if (decision->from_op >= g->n_ops)
		return TS_NONE;
	object = object_at(g, decision->from_op, decision->from_operand);
	for (uint32_t gap = g->from_first[decision->from_op];
	        gap < g->from_first[decision->from_op + 1]; gap++)
		if (g->gaps[gap].object == object &&
		        g->gaps[gap].to_op == decision->to_op &&
		        object_at(g, decision->to_op % g->n_ops,
		                decision->to_operand) == object)
			return gap;
	return TS_NONE;
}

int ts_planned_offer_copy(const struct ts_plan *offered,
        const struct ts_graph *g, bool of_profile, struct ts_plan *ret_plan)
{
	if (offered->n_ops != g->n_ops)
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
		struct ts_decision *to;
		uint32_t gap = of_profile ? gap_of(g, decision)
		                          : gap_at_operands(g, decision);

		if (decision->action == TS_REPLAY ||
		        (of_profile && gap == TS_NONE))
			continue;
		if (gap == TS_NONE) {
			ts_plan_finish(ret_plan);
			return -EINVAL;
		}
		to = &ret_plan->decisions[ret_plan->n_decisions++];
		*to = *decision;
		to->value = g->gaps[gap].version;
	}
	return 0;
}
