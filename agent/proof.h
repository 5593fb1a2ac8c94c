/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Proves what may be done with the values of a step: which ops can be launched
 * again for what they make, and which blocks keep their content from one use to
 * the next, as an early copy needs it. TAPESWAP_REPLAY says when.
 *
 * In a shadow step everything runs as always and the agent looks. Around each
 * op it takes sums of what the op touches: what changed was written, whatever
 * the op's name says. In a first one that is all: what changes an operand is
 * known before anything is launched again. From then on an op that does not,
 * and that no rule refuses (verdict.h), is launched again right behind itself,
 * twice, with this step's parameters but for the addresses of what it makes:
 * these lead to memory that holds one pattern, then another. What it makes must
 * come out the same both times, must be what it made the first time wherever it
 * writes, and it must write everything that the first launch changed; nothing
 * else may change. Two such steps have to agree.
 *
 * Functions run on the program's threads inside its CUDA calls; one lock, taken
 * before the pager's gate.
 */
#ifndef TS_PROOF_H
#define TS_PROOF_H

#include <jansson.h>

#include "agent/observed.h"
#include "agent/op.h"
#include "agent/verdict.h"

/* Before ts_profiler_init(). */
void ts_proof_init(void);

/*
 * A step is known from now on; it stays. Takes the place of another one. Does
 * nothing where steps are only proved that a plan may be faster by.
 */
void ts_proof_of(const struct ts_observed *step);

/* There, whether it is of use to ask for this step; and it is asked for. */
bool ts_proof_is_open(const struct ts_observed *step);
void ts_proof_ask(const struct ts_observed *step);

/*
 * Around an op: it comes next, before anything is made resident (anything but
 * CUDA_SUCCESS: it must not run); what it touches is resident now; it was
 * issued, or was not, and all of that is resident still. What is returned
 * there, NULL or a step of which more is proved by now, is to be told once
 * nothing is held any more: a plan may come into force for it.
 */
CUresult ts_proof_comes(struct ts_op *op);
void ts_proof_ready(const struct ts_op *op);
const struct ts_observed *ts_proof_issued(const struct ts_op *op, bool issued);
void ts_proof_pass_on(const struct ts_observed *proved);

/*
 * The program is short of memory: what the proofs hold goes back, and a shadow
 * step that goes on is left; the next ones do with less. False where they held
 * none. Takes the lock.
 */
bool ts_proof_give_back(void);

/* Shadow steps are to come, or go on: steps should not be changed now. */
bool ts_proof_is_pending(void);

/*
 * The verdict on op @op of @step; TS_VERDICT_OPEN where nothing is known, as of
 * another step.
 */
enum ts_verdict ts_proof_verdict(const struct ts_observed *step, uint32_t op);

/*
 * Adds to a profile of @step what was found: to each of "signatures" a
 * "replay" with its verdict and how many ops it was of; "values" of ops without
 * proof are no longer "replayable", and all say whether they are "stable"; and
 * figures under "proof": these alone where nothing was proved yet.
 */
void ts_proof_tell(const struct ts_observed *step, json_t *profile);

/* The same by signature, with their names; NULL where there is nothing. */
json_t *ts_proof_kernels(const struct ts_observed *step);

/* A context goes, and what was loaded in it. */
void ts_proof_context_gone(CUcontext context);

#endif
