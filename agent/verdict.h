/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether an op may be launched again for what it makes, and why not: rules
 * that need no proof, and what a proof may come to. Pure.
 */
#ifndef TS_VERDICT_H
#define TS_VERDICT_H

#include "agent/recording.h"

enum ts_verdict {
	TS_VERDICT_OPEN, /* not tried often enough */
	TS_VERDICT_PROVED,

	/* By rule: these are never tried. */
	TS_VERDICT_NO_LAUNCH,
	TS_VERDICT_COLLECTIVE,
	TS_VERDICT_CAPTURED,
	TS_VERDICT_OPTIMIZER,
	TS_VERDICT_ATOMICS,
	TS_VERDICT_STATISTICS,
	TS_VERDICT_SHARED_STATE,
	TS_VERDICT_NO_OUTPUT,
	TS_VERDICT_PARAMETERS,
	TS_VERDICT_ATTRIBUTES,

	/* By proof. */
	TS_VERDICT_CHANGES_OPERAND,
	TS_VERDICT_UNSEEN_CHANGE,
	TS_VERDICT_WRITES_NOTHING,
	TS_VERDICT_DIFFERS,
	TS_VERDICT_CHANGES_OTHERS,
	TS_VERDICT_LEAF_CHANGED, /* of closures */

	/* Could not be tried. */
	TS_VERDICT_NO_ROOM,
	TS_VERDICT_FAILED,
	TS_VERDICTS,
};

enum ts_verdict_class {
	TS_NOT_TRIED,
	TS_PROVED,
	TS_REFUSED_BY_RULE,
	TS_REFUSED_BY_PROOF,
};

enum ts_verdict_class ts_verdict_class(enum ts_verdict verdict);

/* "proved", "refused by rule", "refused by proof", "not tried". */
const char *ts_verdict_class_text(enum ts_verdict_class verdict_class);

/* Why, for people: what comes after "because it". */
const char *ts_verdict_reason(enum ts_verdict verdict);

/*
 * By what is known before anything is tried, for every op of @step: fills
 * @ret_verdicts with refusals by rule, or TS_VERDICT_OPEN. 0 or -ENOMEM.
 */
int ts_verdict_by_rule(
        const struct ts_recording *step, enum ts_verdict *ret_verdicts);

#endif
