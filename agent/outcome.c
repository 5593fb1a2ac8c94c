/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/outcome.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/agent_internal.h"
#include "agent/base/units.h"
#include "agent/planned.h"
#include "agent/proof_outcome.h"

static void by_plan(char *ret_text, size_t size)
{
	struct ts_planned_outcome plan;

	ts_planned_outcome(&plan);
	*ret_text = '\0';
	if (plan.steps && plan.step_ns)
		snprintf(ret_text, size,
		        ", %" PRIu64
		        " by a plan, %.1f ms each (%.1f predicted)",
		        plan.steps, (double)plan.step_ns * 1e-6,
		        (double)plan.predicted_ns * 1e-6);
	else if (plan.steps)
		snprintf(ret_text, size, ", %" PRIu64 " by a plan", plan.steps);
}

void ts_outcome_steps(uint64_t steps, uint64_t step_ops, uint64_t alike,
        char *ret_text, size_t size)
{
	char ops[48] = "", planned[96];

	*ret_text = '\0';
	if (!steps)
		return;
	if (step_ops)
		snprintf(ops, sizeof(ops), "%s of %" PRIu64 " ops",
		        alike < steps ? ", most" : "", step_ops);
	by_plan(planned, sizeof(planned));
	snprintf(
	        ret_text, size, "; %" PRIu64 " steps%s%s", steps, ops, planned);
}

/* Why nothing was; NULL where nobody asks. */
static const char *why_not(enum ts_proof_outcome proof)
{
	struct ts_planned_outcome plan;

	ts_planned_outcome(&plan);
	switch (proof) {
	case TS_PROOF_NOT_BEGUN:
		return ts_agent.config.replay == TS_REPLAY_ALWAYS
		               ? "no step was known"
		               : NULL;
	case TS_PROOF_NOT_ENDED:
		return "the proof did not end";
	case TS_PROOF_OF_NONE:
		return "no value may be";
	case TS_PROOF_OF_SOME:
		break;
	}
	if (plan.replays)
		return "no step went by the plan for it";
	if (ts_agent.config.mode == TS_MODE_PLAN && !plan.weighed && plan.turns)
		return "blocks take turns from step to step";
	if (ts_agent.config.mode == TS_MODE_PLAN && !plan.weighed)
		return "no plan could use it";
	return "it would not pay";
}

void ts_outcome_replay(char *ret_text, size_t size)
{
	uint64_t made, bytes;
	enum ts_proof_outcome proof = ts_proof_outcome(&made, &bytes);
	const char *why = made ? NULL : why_not(proof);

	*ret_text = '\0';
	if (made)
		snprintf(ret_text, size,
		        "; %" PRIu64 " values made again, %s of them", made,
		        ts_size(bytes).text);
	else if (why)
		snprintf(ret_text, size, "; nothing made again: %s", why);
}
