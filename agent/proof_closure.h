/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Proves whole closures: what is idle between two uses is made again right
 * before the second one, out of what is on the device then, while it is still
 * there itself. All of a step's gaps whose closure consists of proved ops are
 * tried, each twice from two kinds of memory, with the parameters of this step;
 * intermediate values live in scratch. What is read must hold what it held when
 * the ops ran first. Two steps have to agree.
 *
 * Part of the proof; guarded by its lock.
 */
#ifndef TS_PROOF_CLOSURE_H
#define TS_PROOF_CLOSURE_H

#include <jansson.h>

#include "agent/observed.h"
#include "agent/op.h"
#include "agent/verdict.h"

struct ts_closures;

/*
 * The gaps of @step's first device of at least @least_bytes, with @verdicts by
 * op, and whether it works @in_place. At most @most of them, the largest first.
 * NULL where there are none, or no memory. @step must stay.
 */
struct ts_closures *ts_closures_create(const struct ts_observed *step,
        const enum ts_verdict *verdicts, const bool *in_place,
        uint64_t least_bytes, uint32_t most);
void ts_closures_destroy(struct ts_closures *closures);

/* A shadow step begins. */
void ts_closures_begin(struct ts_closures *closures);

/* Op @at comes next: closures that are read by it are launched. 0, or a
 * negative errno where the step cannot go on as one. */
int ts_closures_before(
        struct ts_closures *closures, const struct ts_op *op, uint32_t at);

/* Op @at was issued, and sums of what it touched were: keeps what closures
 * need of it. */
int ts_closures_after(
        struct ts_closures *closures, const struct ts_op *op, uint32_t at);

/* All results are there. */
void ts_closures_judge(struct ts_closures *closures);

/* What it is made from was not there when it was to be given up. */
void ts_closures_demote(struct ts_closures *closures, uint32_t index);

/* Was the value refused? */
bool ts_closures_refuse(const struct ts_closures *closures, uint32_t value);

/* How many there are, were proved, refused and why. */
json_t *ts_closures_json(const struct ts_closures *closures);

#endif
