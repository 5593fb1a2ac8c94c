/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/demangle.h"
#include "agent/funcs.h"
#include "agent/kernel.h"

static const struct {
	enum ts_verdict_class verdict_class;
	const char *reason;
} texts[TS_VERDICTS] = {
        [TS_VERDICT_OPEN] = {TS_NOT_TRIED, "was not tried often enough"},
        [TS_VERDICT_PROVED] = {TS_PROVED,
                "comes out the same whatever memory held before"},
        [TS_VERDICT_NO_LAUNCH] = {TS_REFUSED_BY_RULE,
                "is no launch of a kernel"},
        [TS_VERDICT_COLLECTIVE] = {TS_REFUSED_BY_RULE,
                "is one that other processes take part in"},
        [TS_VERDICT_CAPTURED] = {TS_REFUSED_BY_RULE, "is part of a graph"},
        [TS_VERDICT_OPTIMIZER] = {TS_REFUSED_BY_RULE,
                "is part of the optimizer's update"},
        [TS_VERDICT_ATOMICS] = {TS_REFUSED_BY_RULE,
                "adds to what is there by atomics"},
        [TS_VERDICT_STATISTICS] = {TS_REFUSED_BY_RULE,
                "keeps statistics from step to step"},
        [TS_VERDICT_SHARED_STATE] = {TS_REFUSED_BY_RULE,
                "goes by state or sizes that other launches leave on the "
                "device"},
        [TS_VERDICT_NO_OUTPUT] = {TS_REFUSED_BY_RULE,
                "makes nothing new: it changes what is there"},
        [TS_VERDICT_PARAMETERS] = {TS_REFUSED_BY_RULE,
                "has parameters of unknown layout"},
        [TS_VERDICT_ATTRIBUTES] = {TS_REFUSED_BY_RULE,
                "was launched in a way that is not known"},
        [TS_VERDICT_CHANGES_OPERAND] = {TS_REFUSED_BY_PROOF,
                "changes what it reads"},
        [TS_VERDICT_UNSEEN_CHANGE] = {TS_REFUSED_BY_PROOF,
                "reads what changes while nothing is known to write it"},
        [TS_VERDICT_WRITES_NOTHING] = {TS_REFUSED_BY_PROOF,
                "writes to addresses that its parameters do not tell"},
        [TS_VERDICT_DIFFERS] = {TS_REFUSED_BY_PROOF,
                "did not come out the same"},
        [TS_VERDICT_CHANGES_OTHERS] = {TS_REFUSED_BY_PROOF,
                "changed other memory when it ran again"},
        [TS_VERDICT_LEAF_CHANGED] = {TS_REFUSED_BY_PROOF,
                "reads what is no longer what it was"},
        [TS_VERDICT_NO_ROOM] = {TS_NOT_TRIED,
                "makes more than there is room for beside it"},
        [TS_VERDICT_FAILED] = {TS_NOT_TRIED, "could not be launched again"},
};

enum ts_verdict_class ts_verdict_class(enum ts_verdict verdict)
{
	return texts[verdict].verdict_class;
}

const char *ts_verdict_reason(enum ts_verdict verdict)
{
	return texts[verdict].reason;
}

const char *ts_verdict_class_text(enum ts_verdict_class verdict_class)
{
	switch (verdict_class) {
	case TS_PROVED:
		return "proved";
	case TS_REFUSED_BY_RULE:
		return "refused by rule";
	case TS_REFUSED_BY_PROOF:
		return "refused by proof";
	case TS_NOT_TRIED:
		break;
	}
	return "not tried";
}

/* Parts of names. Running means and variances are the next step's too. */
static const char *const statistics[] = {"batch_norm_collect_statistics",
        "batch_norm_update_stats", "batch_norm_gather_stats",
        "batch_norm_reduce_statistics"};

/*
 * Passes of one algorithm that wait for each other's marks on the device, and
 * what works out a size that the host reads.
 */
static const char *const shared_state[] = {
        "cub::", "nonzero", "unique", "masked_select", "cooperative_groups::"};

static bool has_part(const char *text, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}

/* Of what the name alone tells. */
static enum ts_verdict by_name(const char *name)
{
	enum ts_verdict verdict = TS_VERDICT_OPEN;
	struct ts_kernel *kernel = ts_kernel_create(name);
	char *text = ts_demangle(name);

	/* Without memory nothing is known: not tried. */
	if (!kernel || !text)
		verdict = TS_VERDICT_PARAMETERS;
	else if (kernel->op_class == TS_CLASS_COLLECTIVE)
		verdict = TS_VERDICT_COLLECTIVE;
	else if (kernel->op_class == TS_CLASS_OPTIMIZER)
		verdict = TS_VERDICT_OPTIMIZER;
	else if (kernel->adds)
		verdict = TS_VERDICT_ATOMICS;
	else if (has_part(text, statistics,
	                 sizeof(statistics) / sizeof(statistics[0])))
		verdict = TS_VERDICT_STATISTICS;
	else if (has_part(text, shared_state,
	                 sizeof(shared_state) / sizeof(shared_state[0])))
		verdict = TS_VERDICT_SHARED_STATE;
	ts_kernel_destroy(kernel);
	free(text);
	return verdict;
}

static bool makes_something(
        const struct ts_recording *step, const struct ts_rec_op *op)
{
	for (uint32_t i = 0; i < op->use_count; i++) {
		const struct ts_rec_use *use = ts_recording_use(step, op, i);

		if (use->fresh && !step->blocks[use->block].scratch)
			return true;
	}
	return false;
}

static enum ts_verdict by_op(
        const struct ts_recording *step, const struct ts_rec_op *op)
{
	if (op->collective)
		return TS_VERDICT_COLLECTIVE;
	if (op->kind != TS_REC_LAUNCH)
		return TS_VERDICT_NO_LAUNCH;
	if (op->captured)
		return TS_VERDICT_CAPTURED;
	if (op->updating)
		return TS_VERDICT_OPTIMIZER;
	if (!op->func || !op->func->has_layout)
		return TS_VERDICT_PARAMETERS;
	return TS_VERDICT_OPEN;
}

/* One look at a name for all launches of a function. */
struct named {
	const struct ts_func *func;
	enum ts_verdict verdict;
};

int ts_verdict_by_rule(
        const struct ts_recording *step, enum ts_verdict *ret_verdicts)
{
	size_t slots = 2 * step->op_count + 1;
	struct named *known = calloc(slots, sizeof(*known));

	if (!known)
		return -ENOMEM;
	for (size_t i = 0; i < step->op_count; i++) {
		const struct ts_rec_op *op = &step->ops[i];
		enum ts_verdict verdict = by_op(step, op);
		size_t at;

		ret_verdicts[i] = verdict;
		if (verdict != TS_VERDICT_OPEN)
			continue;
		at = (uintptr_t)op->func / sizeof(void *) % slots;
		while (known[at].func && known[at].func != op->func)
			at = (at + 1) % slots;
		if (!known[at].func) {
			known[at].func = op->func;
			known[at].verdict = by_name(op->func->name);
		}
		ret_verdicts[i] = known[at].verdict;
		if (ret_verdicts[i] == TS_VERDICT_OPEN &&
		        !makes_something(step, op))
			ret_verdicts[i] = TS_VERDICT_NO_OUTPUT;
	}
	free(known);
	return 0;
}
