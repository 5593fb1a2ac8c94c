/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What was proved, for profile.json and plan.json. */
#include <stdlib.h>
#include <string.h>

#include "agent/proof_internal.h"

/* Of the ops of one signature. */
struct tally {
	uint32_t ops;
	uint32_t of[TS_REFUSED_BY_PROOF + 1]; /* by class of verdict */
	/* What speaks most against them: refusals by proof, then by rule. */
	enum ts_verdict worst;
};

static int weight(enum ts_verdict verdict)
{
	switch (ts_verdict_class(verdict)) {
	case TS_REFUSED_BY_PROOF:
		return 3;
	case TS_REFUSED_BY_RULE:
		return 2;
	case TS_NOT_TRIED:
		return 1;
	case TS_PROVED:
		break;
	}
	return 0;
}

/* By signature of the profile. */
static struct tally *count(void)
{
	const struct ts_observed *step = ts_proof.step;
	const struct ts_profile *profile = &step->devices[0].profile;
	struct tally *tallies =
	        calloc(profile->n_signatures + 1, sizeof(*tallies));

	for (uint32_t i = 0; tallies && i < profile->n_signatures; i++)
		tallies[i].worst = TS_VERDICT_PROVED;
	for (uint32_t i = 0; tallies && i < profile->n_ops; i++) {
		struct tally *tally = &tallies[profile->ops[i].signature];
		enum ts_verdict verdict = ts_proof.verdicts[i];

		tally->ops++;
		tally->of[ts_verdict_class(verdict)]++;
		if (weight(verdict) > weight(tally->worst))
			tally->worst = verdict;
	}
	return tallies;
}

static json_t *tally_json(const struct tally *tally)
{
	enum ts_verdict_class what = ts_verdict_class(tally->worst);

	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "verdict",
	        ts_verdict_class_text(what), "reason",
	        ts_verdict_reason(tally->worst), "ops", (json_int_t)tally->ops,
	        "proved", (json_int_t)tally->of[TS_PROVED], "refused_by_rule",
	        (json_int_t)tally->of[TS_REFUSED_BY_RULE], "refused_by_proof",
	        (json_int_t)tally->of[TS_REFUSED_BY_PROOF]);
}

static void tell_signatures(json_t *list, const struct tally *tallies)
{
	size_t index;
	json_t *item;

	json_array_foreach (list, index, item) {
		json_object_set_new(
		        item, "replay", tally_json(&tallies[index]));
		json_object_set_new(item, "replayable",
		        json_boolean(tallies[index].of[TS_PROVED] != 0));
	}
}

/* Values whose op was not proved, and blocks that keep their content. */
static void tell_values(json_t *list)
{
	const struct ts_observed_device *device = &ts_proof.step->devices[0];
	const struct ts_profile *profile = &device->profile;
	const uint32_t *block_of = device->values.block_of;
	size_t index;
	json_t *item;

	for (uint32_t i = 0; i < profile->n_ops; i++) {
		const struct ts_profile_op *op = &profile->ops[i];

		if (ts_proof.verdicts[i] == TS_VERDICT_PROVED)
			continue;
		for (uint32_t k = 0; k < op->n_writes; k++)
			json_object_set_new(
			        json_array_get(list,
			                profile->uses[op->first_write + k]),
			        "replayable", json_false());
	}
	json_array_foreach (list, index, item) {
		if (ts_proof.closures &&
		        ts_closures_refuse(ts_proof.closures, (uint32_t)index))
			json_object_set_new(item, "replayable", json_false());
		json_object_set_new(item, "stable",
		        json_boolean(!ts_proof.unstable[block_of[index]]));
	}
}

/* Lock held. */
static json_t *figures(void)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "shadow_steps",
	        (json_int_t)ts_proof.done, "left",
	        (json_int_t)ts_proof.given_up, "replays",
	        (json_int_t)ts_proof.replays, "looked_at_bytes",
	        (json_int_t)ts_proof.looked_bytes, "scratch_peak_bytes",
	        (json_int_t)ts_proof.scratch.peak_bytes);
}

void ts_proof_tell(const struct ts_observed *step, json_t *profile)
{
	struct tally *tallies = NULL;

	if (!ts_proof.on || !ts_proof_lock_at_exit())
		return;
	if (ts_proof.done && ts_proof.step->hash == step->hash)
		tallies = count();
	/* That nothing was proved yet is told as well. */
	json_object_set_new(profile, "proof", figures());
	if (tallies) {
		tell_signatures(
		        json_object_get(profile, "signatures"), tallies);
		tell_values(json_object_get(profile, "values"));
		if (ts_proof.closures)
			json_object_set_new(json_object_get(profile, "proof"),
			        "closures",
			        ts_closures_json(ts_proof.closures));
	}
	ts_mutex_unlock(&ts_proof.lock);
	free(tallies);
}

json_t *ts_proof_kernels(const struct ts_observed *step)
{
	const struct ts_profile *profile;
	struct tally *tallies = NULL;
	json_t *list = NULL;

	if (!ts_proof.on || !ts_proof_lock_at_exit())
		return NULL;
	if (ts_proof.done && ts_proof.step->hash == step->hash)
		tallies = count();
	if (tallies)
		list = json_array();
	profile = tallies ? &ts_proof.step->devices[0].profile : NULL;
	for (uint32_t i = 0; list && i < profile->n_signatures; i++) {
		json_t *item = tally_json(&tallies[i]);

		json_object_set_new(item, "kernel",
		        json_string(profile->signatures[i].name));
		json_array_append_new(list, item);
	}
	ts_mutex_unlock(&ts_proof.lock);
	free(tallies);
	return list;
}
