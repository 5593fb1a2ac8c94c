/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a shadow step found, op by op, and what it means for verdicts. */
#include "agent/proof_internal.h"

static struct ts_check_result result(uint32_t slot)
{
	return ts_checks_result(ts_proof.checks, slot);
}

static bool differ(uint32_t a, uint32_t b)
{
	return a != TS_PROOF_NO_SLOT && b != TS_PROOF_NO_SLOT &&
	       !ts_check_same(result(a), result(b));
}

/* What the op made, by comparison of the three. */
static enum ts_verdict judge_outputs(const struct ts_proof_trial *trial)
{
	bool written = false;

	for (uint32_t i = 0; i < trial->output_count; i++) {
		struct ts_check_result found =
		        result(ts_proof.outputs[trial->first_output + i]);

		if (found.word[0])
			return TS_VERDICT_DIFFERS;
		written |= found.word[1] != 0;
	}
	return written ? TS_VERDICT_PROVED : TS_VERDICT_WRITES_NOTHING;
}

static bool changes_operand(const struct ts_proof_trial *trial)
{
	const struct ts_proof_touch *touches =
	        &ts_proof.touches[trial->first_touch];

	for (uint32_t i = 0; i < trial->touch_count; i++)
		if (!touches[i].scratch && !touches[i].changes &&
		        differ(touches[i].before, touches[i].after))
			return true;
	return false;
}

/*
 * What works in place must be seen to: where nothing changes a launch on a copy
 * that did nothing would leave the same.
 */
static bool changes_all(const struct ts_proof_trial *trial)
{
	const struct ts_proof_touch *touches =
	        &ts_proof.touches[trial->first_touch];

	for (uint32_t i = 0; i < trial->touch_count; i++)
		if (touches[i].changes &&
		        !differ(touches[i].before, touches[i].after))
			return false;
	return true;
}

static enum ts_verdict judge_trial(const struct ts_proof_trial *trial)
{
	const struct ts_proof_touch *touches =
	        &ts_proof.touches[trial->first_touch];

	if (trial->failed != TS_VERDICT_OPEN)
		return trial->failed;
	if (changes_operand(trial))
		return TS_VERDICT_CHANGES_OPERAND;
	if (!changes_all(trial))
		return TS_VERDICT_WRITES_NOTHING;
	for (uint32_t i = 0; i < trial->touch_count; i++)
		if (!touches[i].scratch &&
		        differ(touches[i].after, touches[i].again))
			return TS_VERDICT_CHANGES_OTHERS;
	return judge_outputs(trial);
}

static void settle(uint32_t op, enum ts_verdict found)
{
	enum ts_verdict *verdict = &ts_proof.verdicts[op];

	if (found != TS_VERDICT_PROVED) {
		ts_proof.agreed[op] = 0;
		*verdict = found;
		return;
	}
	if (ts_proof.agreed[op] < TS_PROOF_STEPS)
		ts_proof.agreed[op]++;
	*verdict = ts_proof.agreed[op] == TS_PROOF_STEPS ? TS_VERDICT_PROVED
	                                                 : TS_VERDICT_OPEN;
}

/* Blocks that changed under an op that is taken to read them. */
static void find_unstable(uint32_t op)
{
	const struct ts_recording *step = &ts_proof.step->step;
	const struct ts_rec_op *rec = &step->ops[op];
	const struct ts_proof_trial *trial = &ts_proof.trials[op];

	for (uint32_t i = 0; i < trial->touch_count; i++) {
		const struct ts_proof_touch *touch =
		        &ts_proof.touches[trial->first_touch + i];

		if (!touch->read_only || touch->scratch ||
		        touch->use >= rec->use_count ||
		        !differ(touch->before, touch->after))
			continue;
		ts_proof.unstable[ts_recording_use(step, rec, touch->use)
		                          ->block] = 1;
	}
}

/* Nothing that such a block enters can be relied on. */
static void refuse_unstable(void)
{
	const struct ts_recording *step = &ts_proof.step->step;

	for (uint32_t i = 0; i < step->op_count; i++) {
		const struct ts_rec_op *rec = &step->ops[i];

		for (uint32_t k = 0; k < rec->use_count; k++)
			if (ts_proof.unstable[ts_recording_use(step, rec, k)
			                              ->block] &&
			        ts_verdict_class(ts_proof.verdicts[i]) !=
			                TS_REFUSED_BY_RULE &&
			        ts_verdict_class(ts_proof.verdicts[i]) !=
			                TS_REFUSED_BY_PROOF)
				settle(i, TS_VERDICT_UNSEEN_CHANGE);
	}
}

void ts_proof_judge(void)
{
	for (uint32_t i = 0; i < ts_proof.step->op_count; i++) {
		if (ts_proof.trials[i].tried)
			settle(i, judge_trial(&ts_proof.trials[i]));
		else if ((ts_proof.verdicts[i] == TS_VERDICT_OPEN ||
		                 ts_proof.verdicts[i] == TS_VERDICT_PROVED) &&
		         changes_operand(&ts_proof.trials[i]))
			settle(i, TS_VERDICT_CHANGES_OPERAND);
		/* Before it is launched again: it may write what tables on the
		 * device name, which would be written once more. */
		else if (ts_proof.verdicts[i] == TS_VERDICT_OPEN &&
		         !changes_all(&ts_proof.trials[i]))
			settle(i, TS_VERDICT_WRITES_NOTHING);
		find_unstable(i);
	}
	refuse_unstable();
	ts_proof.done += ts_proof.looked;
	ts_proof.looked = true;
}
