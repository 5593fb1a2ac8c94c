/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/beside.h"
#include "agent/in_place.h"
#include "agent/planned.h"
#include "agent/profiler.h"
#include "agent/proof_internal.h"
#include "agent/recorder.h"
#include "agent/remake.h"

/*
 * A program whose steps are left so often is not one to be proved; nor, where
 * nobody has asked for it, one whose steps are left a few times.
 */
#define GIVEN_UP_MAX 16
#define GIVEN_UP_FEW 4
/*
 * Nor one that has not begun a step after the ops of so many; of few where
 * steps of other kinds go by plans that stand back meanwhile.
 */
#define WAIT_STEPS_MAX 64
#define WAIT_STEPS_FEW 8
/* Who writes files at exit waits for other threads a second at most. */
#define LOCK_TRIES   1000
#define LOCK_WAIT_US 1000
/* Smaller values are kept; and so many closures are enough to look at. */
#define CLOSURE_BYTES_MIN (64u << 10)
#define CLOSURES_MAX      1024u

struct ts_proof ts_proof;

bool ts_proof_lock_at_exit(void)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (ts_mutex_try_lock(&ts_proof.lock))
			return true;
		usleep(LOCK_WAIT_US);
	}
	return false;
}

static void forget_step(void)
{
	free(ts_proof.verdicts);
	free(ts_proof.in_place);
	free(ts_proof.agreed);
	free(ts_proof.unstable);
	free(ts_proof.trials);
	ts_proof.verdicts = NULL;
	ts_proof.in_place = NULL;
	ts_proof.agreed = NULL;
	ts_proof.unstable = NULL;
	ts_proof.trials = NULL;
	ts_closures_destroy(ts_proof.closures);
	ts_proof.closures = NULL;
	ts_proof.step = NULL;
	ts_proof.verifying = false;
	ts_proof.looked = false;
	ts_proof.done = 0;
	ts_proof.given_up = 0;
	ts_proof.waited = 0;
}

/*
 * What makes nothing new may make again what it changed, of a copy. Where
 * addresses stand in memory it may change other memory beside, which nobody
 * sees: such programs have none of that launched again.
 */
static void allow_in_place(void)
{
	bool hidden = atomic_load(&ts_agent.tables.pinned) != 0;

	for (uint32_t i = 0; i < ts_proof.step->op_count; i++) {
		enum ts_verdict *verdict = &ts_proof.verdicts[i];

		ts_proof.in_place[i] &=
		        !hidden && *verdict == TS_VERDICT_NO_OUTPUT;
		if (ts_proof.in_place[i])
			*verdict = TS_VERDICT_OPEN;
	}
}

static int remember_step(const struct ts_observed *step)
{
	size_t ops = step->op_count + 1;
	int rc;

	ts_proof.verdicts = calloc(ops, sizeof(*ts_proof.verdicts));
	ts_proof.in_place = calloc(ops, sizeof(*ts_proof.in_place));
	ts_proof.agreed = calloc(ops, sizeof(*ts_proof.agreed));
	ts_proof.unstable =
	        calloc(step->step.block_count + 1, sizeof(*ts_proof.unstable));
	ts_proof.trials = calloc(ops, sizeof(*ts_proof.trials));
	if (!ts_proof.verdicts || !ts_proof.in_place || !ts_proof.agreed ||
	        !ts_proof.unstable || !ts_proof.trials)
		return -ENOMEM;
	ts_proof.step = step;
	rc = ts_verdict_by_rule(&step->step, ts_proof.verdicts);
	if (!rc)
		rc = ts_in_place_find(
		        &step->devices[0].profile, ts_proof.in_place);
	if (!rc)
		allow_in_place();
	return rc;
}

/* Gives back what the shadow steps took. Lock held. */
static void let_go(bool driver_alive)
{
	ts_scratch_finish(&ts_proof.scratch, driver_alive);
	ts_checks_destroy(ts_proof.checks, driver_alive);
	ts_proof.checks = NULL;
	if (driver_alive)
		ts_agent_after_unmanaged();
}

void ts_proof_init(void)
{
	static const struct ts_watch nothing;

	ts_proof.asks = ts_agent.config.replay == TS_REPLAY_WANTED;
	ts_proof.on = ts_agent.config.replay == TS_REPLAY_ALWAYS ||
	              (ts_proof.asks && ts_agent.config.mode == TS_MODE_PLAN);
	if (!ts_proof.on)
		return;
	ts_mutex_init(&ts_proof.lock, TS_RANK_PROOF);
	/* Steps have to be known. */
	if (!ts_proof.asks)
		ts_profiler_watch(&nothing);
}

static void prove(const struct ts_observed *step)
{
	if (!step->turn_count || !step->device_count)
		return;
	/* Values that are given up can only be made again by what is known. */
	if (!ts_remake_all())
		return;
	ts_mutex_lock(&ts_proof.lock);
	if (ts_proof.step && ts_proof.step->hash == step->hash) {
		/* The same ops: what was proved of them holds. */
	} else if (ts_remake_is_planned()) {
		/* Steps by a plan rely on what was proved. */
	} else if (atomic_load(&ts_proof.phase) != TS_PROOF_RUNNING) {
		ts_remake_stop(true);
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
	ts_proof.verified += ts_proof.verifying;
	atomic_store(&ts_proof.phase, TS_PROOF_IDLE);
	if (ts_proof.closures && ts_agent.config.mode == TS_MODE_CAP &&
	        !ts_remake_is_on())
		ts_remake_start(ts_proof.closures);
}

/* Looks whether the device has told. True where the step is settled. */
static bool take_results(void)
{
	if (!ts_checks_ready(ts_proof.checks))
		return false;
	ts_proof_judge();
	if (ts_proof.closures)
		ts_closures_judge(ts_proof.closures);
	else if (ts_proof.done == TS_PROOF_STEPS)
		ts_proof.closures = ts_closures_create(ts_proof.step,
		        ts_proof.verdicts, ts_proof.in_place, CLOSURE_BYTES_MIN,
		        CLOSURES_MAX);
	if (ts_proof.done < TS_PROOF_STEPS ||
	        (ts_proof.closures && ts_proof.done < 2 * TS_PROOF_STEPS)) {
		atomic_store(&ts_proof.phase, TS_PROOF_WAITING);
		return false;
	}
	end(ts_proof.verifying ? "looked again" : "done");
	return true;
}

/* Values are made again for so long that it is time to look at all anew. */
static void look_again(void)
{
	if (ts_proof_is_pending() ||
	        !ts_remake_wants_look(ts_agent.config.verify))
		return;
	ts_proof.verifying = true;
	ts_proof.given_up = 0;
	ts_proof.waited = 0;
	atomic_store(&ts_proof.phase, TS_PROOF_WAITING);
}

/*
 * Closures were proved, or are not any more: what goes by them is planned
 * anew. Takes the lock; none is held.
 */
void ts_proof_pass_on(const struct ts_observed *step)
{
	bool demoted;

	if (!step)
		return;
	ts_mutex_lock(&ts_proof.lock);
	demoted = ts_proof.demoted != ts_proof.told;
	ts_proof.told = ts_proof.demoted;
	ts_mutex_unlock(&ts_proof.lock);
	if (demoted)
		ts_log(TS_LOG_INFO,
		        "proof: what came out the same does not any more: it "
		        "is made again no longer");
	ts_planned_proved(step, demoted);
	ts_profiler_rewrite(step);
}

void ts_proof_of(const struct ts_observed *step)
{
	if (ts_proof.on && !ts_proof.asks)
		prove(step);
}

bool ts_proof_is_open(const struct ts_observed *step)
{
	bool open;

	/* Steps in the midst of which copies come are never the same. */
	if (!ts_proof.on || !ts_proof.asks || ts_proof_is_pending() ||
	        ts_beside_any())
		return false;
	ts_mutex_lock(&ts_proof.lock);
	open = !ts_remake_is_planned() &&
	       (!ts_proof.step || ts_proof.step->hash != step->hash);
	ts_mutex_unlock(&ts_proof.lock);
	return open;
}

void ts_proof_ask(const struct ts_observed *step)
{
	if (ts_proof.on && ts_proof.asks)
		prove(step);
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

	/* No capture would survive what follows. */
	if (atomic_load(&ts_agent.capturing)) {
		if (phase == TS_PROOF_RUNNING)
			ts_proof_step_leave("a capture has begun");
		return false;
	}
	if (phase == TS_PROOF_RESULTS) {
		if (take_results())
			return true;
		phase = atomic_load(&ts_proof.phase);
	}
	if (phase == TS_PROOF_WAITING) {
		uint64_t most = ts_proof.asks ? WAIT_STEPS_FEW : WAIT_STEPS_MAX;
		unsigned int vain = ts_proof.asks ? GIVEN_UP_FEW : GIVEN_UP_MAX;
		int rc;

		if (ts_proof.given_up >= vain ||
		        ts_proof.waited++ / most > ts_proof.step->op_count) {
			end("given up");
			return true;
		}
		if (!begins_step(op))
			return false;
		rc = ts_proof_step_start();
		if (rc) {
			ts_log(rc == -ENOTSUP ? TS_LOG_INFO : TS_LOG_DEBUG,
			        "proof: no shadow step: %s",
			        rc == -ENOTSUP ? "the kernels that look at "
			                         "memory do not work here"
			                       : strerror(-rc));
			ts_proof.given_up++;
			/* Nor will they the next time. */
			if (rc == -ENOTSUP)
				ts_proof.given_up = GIVEN_UP_MAX;
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

CUresult ts_proof_comes(struct ts_op *op)
{
	const struct ts_observed *settled = NULL;
	CUresult rc = CUDA_SUCCESS;

	if (!ts_proof_is_pending() && !ts_remake_is_on())
		return rc;
	ts_mutex_lock(&ts_proof.lock);
	if (ts_proof.step && ts_proof_is_pending() && comes(op)) {
		/* A look that finds all as it was changes nothing. */
		if (!ts_proof.verifying || ts_proof.demoted != ts_proof.told)
			settled = ts_proof.step;
	} else if (ts_remake_is_on() && !ts_proof_is_pending())
		rc = ts_remake_comes(op, ts_proof.may_begin);
	ts_mutex_unlock(&ts_proof.lock);
	ts_proof_pass_on(settled);
	return rc;
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

const struct ts_observed *ts_proof_issued(const struct ts_op *op, bool issued)
{
	const struct ts_observed *settled = NULL;

	if (!ts_proof_is_pending() && !ts_remake_is_on())
		return NULL;
	ts_mutex_lock(&ts_proof.lock);
	if (atomic_load(&ts_proof.phase) == TS_PROOF_RUNNING)
		ts_proof_step_issued(op, issued);
	else if (ts_remake_is_on())
		ts_remake_issued(op, issued);
	if (!op->beside)
		ts_proof.may_begin = !op->spot.step || op->spot.ends;
	if (ts_remake_is_on())
		look_again();
	if (!ts_proof_is_pending() && ts_proof.demoted != ts_proof.told)
		settled = ts_proof.step;
	ts_mutex_unlock(&ts_proof.lock);
	return settled;
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

bool ts_proof_give_back(void)
{
	struct ts_scratch *scratch = &ts_proof.scratch;
	bool given = false;
	uint64_t held;

	/* Nothing may be waited for, or freed, while something captures. */
	if (!ts_proof.on || atomic_load(&ts_agent.capturing))
		return false;
	ts_mutex_lock(&ts_proof.lock);
	/* What was given up is made in that memory: while it is still there. */
	if (!ts_remake_all_locked())
		goto out;
	held = scratch->held_bytes;
	if (held && atomic_load(&ts_proof.phase) == TS_PROOF_RUNNING)
		ts_proof_step_spare();
	if (held) {
		ts_scratch_trim(scratch);
		given = scratch->held_bytes < held;
		ts_agent_after_unmanaged();
	}
	/* Asked again: what is left are the results, and the proof with them.
	 */
	if (!given && ts_proof.checks && ts_proof_is_pending()) {
		if (atomic_load(&ts_proof.phase) == TS_PROOF_RUNNING)
			ts_proof_step_leave("the program needs the memory");
		end("the program needs the memory");
		given = true;
	}
out:
	ts_mutex_unlock(&ts_proof.lock);
	return given;
}

void ts_proof_context_gone(CUcontext context)
{
	if (!ts_proof.on)
		return;
	ts_mutex_lock(&ts_proof.lock);
	if (ts_proof.context == context) {
		ts_remake_stop(false);
		let_go(false);
		ts_proof.stamp = 0;
		ts_proof.making_count = 0;
		atomic_store(&ts_proof.phase, TS_PROOF_IDLE);
	}
	ts_mutex_unlock(&ts_proof.lock);
}
