/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/profiler.h"
#include "agent/proof_internal.h"
#include "agent/recorder.h"

/* A program whose steps are left so often is not one to be proved. */
#define GIVEN_UP_MAX 16
/* Nor one that has not begun a step after the ops of so many. */
#define WAIT_STEPS_MAX 64

struct ts_proof ts_proof;

static void forget_step(void)
{
	free(ts_proof.verdicts);
	free(ts_proof.agreed);
	free(ts_proof.unstable);
	free(ts_proof.trials);
	ts_proof.verdicts = NULL;
	ts_proof.agreed = NULL;
	ts_proof.unstable = NULL;
	ts_proof.trials = NULL;
	ts_proof.step = NULL;
	ts_proof.done = 0;
	ts_proof.given_up = 0;
	ts_proof.waited = 0;
}

static int remember_step(const struct ts_observed *step)
{
	size_t ops = step->op_count + 1;

	ts_proof.verdicts = calloc(ops, sizeof(*ts_proof.verdicts));
	ts_proof.agreed = calloc(ops, sizeof(*ts_proof.agreed));
	ts_proof.unstable =
	        calloc(step->step.block_count + 1, sizeof(*ts_proof.unstable));
	ts_proof.trials = calloc(ops, sizeof(*ts_proof.trials));
	if (!ts_proof.verdicts || !ts_proof.agreed || !ts_proof.unstable ||
	        !ts_proof.trials)
		return -ENOMEM;
	ts_proof.step = step;
	return ts_verdict_by_rule(&step->step, ts_proof.verdicts);
}

/* Gives back what the shadow steps took. Lock held. */
static void let_go(bool driver_alive)
{
	ts_scratch_finish(&ts_proof.scratch, driver_alive);
	ts_checks_destroy(ts_proof.checks, driver_alive);
	ts_proof.checks = NULL;
	if (driver_alive)
		ts_agent_room_changed();
}

void ts_proof_init(void)
{
	static const struct ts_watch nothing;

	ts_proof.on = ts_agent.config.replay;
	if (!ts_proof.on)
		return;
	ts_mutex_init(&ts_proof.lock, TS_RANK_PROOF);
	/* Steps have to be known. */
	ts_profiler_watch(&nothing);
}

void ts_proof_of(const struct ts_observed *step)
{
	if (!ts_proof.on || !step->turn_count || !step->device_count)
		return;
	ts_mutex_lock(&ts_proof.lock);
	if (ts_proof.step && ts_proof.step->hash == step->hash) {
		/* The same ops: what was proved of them holds. */
	} else if (atomic_load(&ts_proof.phase) != TS_PROOF_RUNNING) {
		forget_step();
		if (remember_step(step))
			forget_step();
		atomic_store(&ts_proof.phase,
		        ts_proof.step ? TS_PROOF_WAITING : TS_PROOF_IDLE);
	}
	ts_mutex_unlock(&ts_proof.lock);
}

/* The step is proved, or not worth more. Lock held. */
static void end(const char *how)
{
	uint32_t count[TS_REFUSED_BY_PROOF + 1] = {0};

	for (uint32_t i = 0; i < ts_proof.step->op_count; i++)
		count[ts_verdict_class(ts_proof.verdicts[i])]++;
	ts_log(TS_LOG_INFO,
	        "proof: %s: %u of %u ops come out the same when they run "
	        "again, %u are refused by rule, %u by proof, %u not tried",
	        how, count[TS_PROVED], ts_proof.step->op_count,
	        count[TS_REFUSED_BY_RULE], count[TS_REFUSED_BY_PROOF],
	        count[TS_NOT_TRIED]);
	let_go(true);
	atomic_store(&ts_proof.phase, TS_PROOF_IDLE);
}

/* Looks whether the device has told. True where the step is settled. */
static bool take_results(void)
{
	if (!ts_checks_ready(ts_proof.checks))
		return false;
	ts_proof_judge();
	if (ts_proof.done < TS_PROOF_STEPS) {
		atomic_store(&ts_proof.phase, TS_PROOF_WAITING);
		return false;
	}
	end("done");
	return true;
}

static bool begins_step(const struct ts_op *op)
{
	return ts_proof.may_begin && !ts_recorder_is_timing() &&
	       !op->capturing && !atomic_load(&ts_agent.capturing) &&
	       op->signature == ts_proof.step->signatures[0];
}

/* Lock held. True where the step is settled. */
static bool comes(struct ts_op *op)
{
	enum ts_proof_phase phase = atomic_load(&ts_proof.phase);

	if (phase == TS_PROOF_RESULTS) {
		if (take_results())
			return true;
		phase = atomic_load(&ts_proof.phase);
	}
	if (phase == TS_PROOF_WAITING) {
		int rc;

		if (ts_proof.given_up >= GIVEN_UP_MAX ||
		        ts_proof.waited++ / WAIT_STEPS_MAX >
		                ts_proof.step->op_count) {
			end("given up");
			return true;
		}
		if (!begins_step(op))
			return false;
		rc = ts_proof_step_start();
		if (rc) {
			ts_log(TS_LOG_DEBUG, "proof: no shadow step: %s",
			        strerror(-rc));
			ts_proof.given_up++;
			return false;
		}
	}
	if (atomic_load(&ts_proof.phase) == TS_PROOF_RUNNING)
		ts_proof_step_comes(op);
	return false;
}

bool ts_proof_is_pending(void)
{
	return atomic_load_explicit(&ts_proof.phase, memory_order_acquire) !=
	       TS_PROOF_IDLE;
}

bool ts_proof_wants_uses(void)
{
	return ts_proof_is_pending();
}

void ts_proof_comes(struct ts_op *op)
{
	const struct ts_observed *settled = NULL;

	if (!ts_proof_is_pending())
		return;
	ts_mutex_lock(&ts_proof.lock);
	if (ts_proof.step && comes(op))
		settled = ts_proof.step;
	ts_mutex_unlock(&ts_proof.lock);
	if (settled)
		ts_profiler_rewrite(settled);
}

void ts_proof_ready(const struct ts_op *op)
{
	if (atomic_load(&ts_proof.phase) != TS_PROOF_RUNNING)
		return;
	ts_mutex_lock(&ts_proof.lock);
	if (atomic_load(&ts_proof.phase) == TS_PROOF_RUNNING)
		ts_proof_step_ready(op);
	ts_mutex_unlock(&ts_proof.lock);
}

void ts_proof_issued(const struct ts_op *op, bool issued)
{
	if (!ts_proof_is_pending())
		return;
	ts_mutex_lock(&ts_proof.lock);
	if (atomic_load(&ts_proof.phase) == TS_PROOF_RUNNING)
		ts_proof_step_issued(op, issued);
	ts_proof.may_begin = !op->spot.step || op->spot.ends;
	ts_mutex_unlock(&ts_proof.lock);
}

enum ts_verdict ts_proof_verdict(const struct ts_observed *step, uint32_t op)
{
	enum ts_verdict verdict = TS_VERDICT_OPEN;

	if (!ts_proof.on)
		return verdict;
	ts_mutex_lock(&ts_proof.lock);
	if (ts_proof.step && ts_proof.step->hash == step->hash &&
	        op < ts_proof.step->op_count)
		verdict = ts_proof.verdicts[op];
	ts_mutex_unlock(&ts_proof.lock);
	return verdict;
}

void ts_proof_context_gone(CUcontext context)
{
	if (!ts_proof.on)
		return;
	ts_mutex_lock(&ts_proof.lock);
	if (ts_proof.checks && ts_proof.context == context) {
		let_go(false);
		ts_proof.stamp = 0;
		ts_proof.making_count = 0;
		atomic_store(&ts_proof.phase, TS_PROOF_IDLE);
	}
	ts_mutex_unlock(&ts_proof.lock);
}
