/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ops as they come: where the plan is left, and taken up again. */
#include <errno.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/planned_clock.h"
#include "agent/planned_cost.h"
#include "agent/planned_file.h"
#include "agent/planned_internal.h"
#include "agent/profiler.h"
#include "agent/proof.h"
#include "agent/recorder.h"
#include "runtime/vmm_calls.h"

/*
 * After so many steps in a row in which pages were not where the plan has them
 * it is put into force anew.
 */
#define BAD_STEPS_MAX 2
/* It is gone after so many, where no other one has taken its place. */
#define GIVEN_UP 16
/* Where one op in so many needs the pager's help a step takes longer than with
 * that alone. */
#define MANY_OF 32
/* Steps are timed over so many ops between them. */
#define BETWEEN_TIMED 64
/* So often in a row the device may not be done when a plan is taken up. */
#define WAITS_IN_VAIN_MAX 3
/* Whole steps that pass at most before a plan that was left is tried again. */
#define WAIT_MAX 15
/* Plans taken up in vain after which no more steps in a row are asked for. */
#define RESTLESS_MAX 3
/* Steps by the plan before one is taken for the same as all that follow. */
#define SETTLING 2
/*
 * Every so many of those it is asked what others have of the memory; of the
 * limit one part in so many more or less changes the plan. Each time that it
 * was less one waits longer for the next time, up to so many steps.
 */
#define MEMORY_STEPS   4
#define MEMORY_PART    100
#define LESS_STEPS_MAX 4096
/* So many steps of either are timed before they are compared. */
#define TIMED_STEPS 2
/*
 * A step that was left goes on where so many of the ops came that came next,
 * and one in so many of all; and so often at most until one goes by whole. Not
 * where it had gone on for more than a few ops: then it is of another kind.
 */
#define GOES_ON     8
#define GOES_ON_OF  16
#define GOES_ON_MAX 64
#define MENDED_MAX  2
#define BEGUN_MAX   16
/* So many steps in a row may have their large blocks where no plan has them. */
#define STRANGE_MAX 3
/* Whole steps after which it is proved what of them can be made again. */
#define PROVED_AFTER 16

void ts_planned_stand_off(void)
{
	ts_planned_clock_stop();
	ts_planned.timed = 0;
	ts_planned.in_row = 0;
	ts_planned.now = NULL;
	ts_planned.mending = false;
	ts_planned.stand = TS_PLANNED_OFF;
}

/* How many steps like that have just passed in a row. */
static unsigned int count_row(const struct ts_planned_entry *entry)
{
	bool again = entry == ts_planned.last &&
	             ts_planned.apart <= entry->follow.n_ops + BETWEEN_TIMED;

	ts_planned.row = again ? ts_planned.row + 1 : 1;
	ts_planned.last = entry;
	ts_planned.apart = 0;
	return ts_planned.row;
}

/* In an earlier run, and it had values made again in the end. */
static bool was_proved_before(const struct ts_planned_entry *entry)
{
	return entry->made.offered_rc == -ENOTSUP &&
	       ts_planned_file_is_of_run();
}

/*
 * Steps that are proved take several times as long: not before the program has
 * shown that it runs for more than a few, nor while the device may have changed
 * and what was measured of it may be old.
 */
static void count_whole(struct ts_planned_entry *entry)
{
	if (!entry->made.is_open || entry->stale || entry->drift.off)
		return;
	if (++entry->whole < PROVED_AFTER && !was_proved_before(entry))
		return;
	entry->made.is_open = false;
	ts_proof_ask(entry->observed);
}

void ts_planned_found_step(struct ts_planned_entry *entry)
{
	if (entry && entry->declined)
		count_whole(entry);
	if (!entry || entry->declined || entry->misplaced ||
	        count_row(entry) <= ts_planned.restless)
		return;
	if (entry->phases.strange > STRANGE_MAX) {
		ts_log(TS_LOG_DEBUG,
		        "plan: blocks lie elsewhere, a new one follows");
		ts_planned_drop(entry);
		return;
	}
	if (entry->wait) {
		entry->wait--;
		return;
	}
	ts_planned.torn = NULL;
	ts_planned.now = entry;
	ts_planned.stand = entry->pager_ns ? TS_PLANNED_ON : TS_PLANNED_TIMING;
	/* What was timed so far may be steps by a plan. */
	if (ts_planned.stand == TS_PLANNED_TIMING)
		ts_planned_clock_forget();
	ts_planned.to_join = true;
	ts_planned.between = 0;
	ts_planned.at = 0;
}

static const char *name_of(const struct ts_op *item)
{
	if (!item)
		return "a step that is looked at";
	if (item->func)
		return item->func->name;
	return item->name ? item->name : "another op";
}

/* Begun in vain, and again in vain: ever more rarely. */
static void back_off(struct ts_planned_entry *entry)
{
	entry->vain = 2 * entry->vain + 1;
	if (entry->vain > WAIT_MAX)
		entry->vain = WAIT_MAX;
	entry->wait = entry->vain / 2;
}

/* So many ops of a step tell it from most others. */
static uint32_t enough_ops(const struct ts_planned_entry *entry)
{
	uint32_t ops = entry->follow.n_ops / GOES_ON_OF + GOES_ON;

	return ops < GOES_ON_MAX ? ops : GOES_ON_MAX;
}

/* What began like a step went on otherwise from op @at on. */
static void want_more(struct ts_planned_entry *entry, uint32_t at)
{
	uint32_t wanted = at + enough_ops(entry);

	if (wanted > entry->wanted)
		entry->wanted = wanted;
}

/*
 * Op @op is not what comes next in the step: off it. What went by of it may
 * yet be the start of another one. Lock held.
 */
static void leave(const struct ts_follow_op *op, const struct ts_op *item)
{
	struct ts_planned_entry *entry = ts_planned.now;
	bool mending = ts_planned.mending;
	enum ts_planned_stand stand = ts_planned.stand;
	uint32_t at = ts_planned.at;

	if (ts_planned.stand == TS_PLANNED_ON && at)
		ts_log(TS_LOG_DEBUG, "plan: left before op %u of %u: %s comes",
		        at, entry->follow.n_ops, name_of(item));
	ts_planned.figures.left += ts_planned.stand == TS_PLANNED_ON && at;
	ts_planned_cost_step(true);
	/* One that was only timed has cost nothing. */
	if (at && stand == TS_PLANNED_ON) {
		back_off(entry);
		want_more(entry, at);
		/* So are others, where steps of several kinds take turns. */
		if (!mending && ts_planned.joined &&
		        ts_planned.restless < RESTLESS_MAX)
			ts_planned.restless++;
	}
	ts_planned_stand_off();
	ts_planned_cache_rewind(&ts_planned.cache, entry, op ? at : 0);
	if (!op)
		return;
	if (at && at <= BEGUN_MAX && stand == TS_PLANNED_ON &&
	        ts_planned.mended < MENDED_MAX) {
		ts_planned.torn = entry;
		ts_planned.torn_number = entry->number;
		ts_planned.torn_at = at;
		ts_planned.torn_ops = 0;
	}
	ts_planned_found_step(
	        ts_planned_cache_push(&ts_planned.cache, op, item));
}

/* Where the step that comes, or goes on, begins in the plan. */
static uint32_t first_op(const struct ts_planned_entry *entry)
{
	return entry->phases.now * entry->follow.n_ops;
}

/*
 * Puts the plan of @entry into force, with op @next of its steps to come. 0;
 * -EINTR where another thread's op came meanwhile, so that nobody knows what
 * comes next; or a negative errno. Lock held, let go meanwhile.
 */
static int adopt(
        struct ts_pager *pager, struct ts_planned_entry *entry, uint32_t next)
{
	int rc;

	ts_planned.adopting = true;
	ts_planned.crossed = false;
	ts_mutex_unlock(&ts_planned.lock);
	rc = ts_enforce_adopt(pager, &entry->made.pages, next);
	ts_mutex_lock(&ts_planned.lock);
	ts_planned.adopting = false;
	pthread_cond_broadcast(&ts_planned.adopted);
	if (!rc && ts_planned.crossed) {
		ts_enforce_end(pager);
		rc = -EINTR;
	}
	return rc;
}

/* An op of the step comes next, mostly its first. 0 or a negative errno. Lock
 * held, let go meanwhile. */
static int join(struct ts_pager *pager)
{
	struct ts_planned_entry *entry = ts_planned.now;
	uint32_t next = first_op(entry) + ts_planned.at;
	int rc;

	ts_planned.figures.joins++;
	/* What other work called, and moved, is none of the plan's. */
	ts_planned.vmm_calls = ts_vmm_calls();
	ts_enforce_work(pager, &ts_planned.work);
	if (ts_planned.in_force == entry &&
	        !ts_planned_is_disturbed(pager, entry)) {
		ts_enforce_resume(pager, next);
		return 0;
	}
	ts_planned_end_force();
	ts_planned.in_row = 0;
	ts_planned.joined = true;
	ts_planned.fresh = true;
	rc = adopt(pager, entry, next);
	if (!rc) {
		ts_planned.in_force = entry;
		ts_planned.other_bytes = ts_enforce_known_others(pager);
		ts_planned.others_known = false;
	}
	ts_planned.figures.adopted += !rc;
	if (rc)
		ts_log(TS_LOG_DEBUG, "plan: not taken up: %s", strerror(-rc));
	return rc;
}

/* Steps with the pager alone are timed first. True: go on so. Lock held. */
static bool time_pager(struct ts_planned_entry *entry)
{
	struct ts_planned_clock clock;

	if (ts_planned.stand != TS_PLANNED_TIMING)
		return false;
	if (ts_planned.timed <= TIMED_STEPS)
		return true;
	ts_planned_clock_read(&clock);
	entry->pager_ns = clock.shortest_ns;
	entry->doubt_ns = 0;
	ts_planned_clock_forget();
	if (entry->made.plan.predicted_step_ns >= entry->pager_ns) {
		ts_planned_decline(entry, 0);
		return true;
	}
	ts_planned.stand = TS_PLANNED_ON;
	ts_planned.to_join = true;
	ts_planned.timed = 0;
	return false;
}

/* What a step by the plan takes where that is longer after all than with the
 * pager alone; or 0. */
static uint64_t slower_ns(const struct ts_planned_entry *entry)
{
	struct ts_planned_clock clock;

	ts_planned_clock_read(&clock);
	return ts_planned.timed > TIMED_STEPS + 1 &&
	                       clock.shortest_ns > entry->pager_ns
	               ? clock.shortest_ns
	               : 0;
}

/* For who asks at the end what steps by the plan took. Lock held. */
static void note_lap(uint64_t took_ns)
{
	/* Ops that are timed take their own time. */
	if (took_ns && ts_planned.stand == TS_PLANNED_ON &&
	        !ts_recorder_is_timing())
		ts_planned_laps_note(ts_planned.now->number, took_ns);
}

/* Steps take longer or less than the plan says: it is old. Lock held. */
static void look_at_times(struct ts_planned_entry *entry)
{
	uint64_t expected_ns = entry->drift.expected_ns;
	struct ts_planned_clock clock;

	/* Ops that are timed, and steps that settle, take their own time. */
	if (ts_planned.stand != TS_PLANNED_ON || entry->stale ||
	        ts_planned.in_row <= SETTLING + 1 || ts_recorder_is_recording())
		return;
	ts_planned_clock_read(&clock);
	if (!ts_planned_drift_note(&entry->drift, &clock))
		return;
	ts_log(TS_LOG_INFO,
	        "plan: a step takes %.3f ms instead of %.3f: all is timed anew",
	        (double)clock.last_ns * 1e-6, (double)expected_ns * 1e-6);
	entry->stale = true;
	ts_profiler_remeasure();
}

/*
 * Others have taken memory, or given some back, since the plan came into force.
 * True: it was made anew. Lock held.
 */
static bool look_at_memory(
        struct ts_pager *pager, struct ts_planned_entry *entry)
{
	uint64_t limit_bytes = entry->made.plan.limit_bytes;
	uint64_t before = ts_planned.other_bytes;
	uint64_t others = ts_planned.others_now;
	bool more = others > before;

	if (!ts_planned.others_known)
		return false;
	ts_planned.others_known = false;
	if ((more ? others - before : before - others) <=
	        limit_bytes / MEMORY_PART)
		return false;
	if (!more && ts_planned.in_row < ts_planned.less_steps)
		return false;
	if (!more && ts_planned.less_steps < LESS_STEPS_MAX)
		ts_planned.less_steps =
		        4 * ts_planned.less_steps + MEMORY_STEPS;
	ts_log(TS_LOG_INFO, "plan: others have %s of memory by now, not %s",
	        ts_size(others).text, ts_size(before).text);
	/* Told once, whatever comes of it. */
	ts_planned.other_bytes = others;
	return ts_planned_remake(pager, entry, more);
}

/* As join(), for the plan that is to go on. False: without it. */
static bool take_up(struct ts_pager *pager)
{
	struct ts_planned_entry *entry = ts_planned.now;
	int rc = join(pager);

	/* After this step it may do. */
	if (rc == -EINTR ||
	        (rc == -EAGAIN && ++ts_planned.waits < WAITS_IN_VAIN_MAX)) {
		if (rc == -EINTR)
			back_off(entry);
		ts_planned_stand_off();
		ts_planned_cache_rewind(&ts_planned.cache, entry, 0);
		return false;
	}
	if (rc) {
		ts_planned_drop(entry);
		return false;
	}
	ts_planned.waits = 0;
	ts_planned.to_join = false;
	ts_planned.between = 0;
	atomic_store(&ts_planned.missed, 0);
	atomic_store(&ts_planned.doubted, 0);
	ts_enforce_astray(pager);
	ts_enforce_missed(pager);
	ts_planned_cache_touch(&ts_planned.cache, entry);
	ts_planned.told = entry;
	return true;
}

/* The step begins with the op that comes. Lock held. False: without plan. */
static bool begin_step(struct ts_pager *pager)
{
	struct ts_planned_entry *entry = ts_planned.now;
	uint64_t took_ns;

	/* Steps of another plan's are no measure. */
	if (ts_planned.clocked != entry->number) {
		ts_planned_clock_forget();
		ts_planned.clocked = entry->number;
		ts_planned.timed = 0;
	}
	if (ts_planned.between > BETWEEN_TIMED) {
		ts_planned_clock_stop();
		ts_planned.timed = 0;
		ts_planned.in_row = 0;
	}
	if (time_pager(entry))
		return ts_planned.stand == TS_PLANNED_TIMING;
	took_ns = slower_ns(entry);
	if (took_ns) {
		ts_planned_decline(entry, took_ns);
		return false;
	}
	if (ts_planned.stand == TS_PLANNED_ON && !ts_planned.to_join) {
		if (look_at_memory(pager, entry))
			ts_planned_found_step(entry);
		if (!ts_planned.now)
			return false;
		if (ts_planned.stand == TS_PLANNED_TIMING)
			return true;
	}
	if (!ts_planned.to_join && !ts_planned.between &&
	        !ts_planned_has_lost_chunks(pager))
		return true;
	return take_up(pager);
}

static void add_work(const struct ts_enforce_work *work)
{
	struct ts_enforce_work *sum = &ts_planned.figures.steady;
	const struct ts_enforce_work *before = &ts_planned.work;

	sum->pages += work->pages - before->pages;
	sum->copies += work->copies - before->copies;
	sum->copied_bytes += work->copied_bytes - before->copied_bytes;
	sum->batches += work->batches - before->batches;
	sum->departures += work->departures - before->departures;
	for (int kind = 0; kind < TS_CALL_KINDS; kind++)
		sum->calls.count[kind] +=
		        work->calls.count[kind] - before->calls.count[kind];
}

/* Lock held. */
static void count_step(struct ts_pager *pager)
{
	uint64_t calls = ts_vmm_calls();
	struct ts_enforce_work work;

	ts_enforce_work(pager, &work);
	if (ts_planned.in_row++ >= SETTLING) {
		ts_planned.figures.steady_steps++;
		ts_planned.figures.steady_vmm_calls +=
		        calls - ts_planned.vmm_calls;
		add_work(&work);
	}
	ts_planned.vmm_calls = calls;
	ts_planned.work = work;
	if (ts_planned.in_row % MEMORY_STEPS == MEMORY_STEPS - 1)
		atomic_store(&ts_planned.asks, true);
}

/*
 * Pages were not where the plan has them, @many or some. Chunks may have
 * changed hands: it comes into force anew. Else blocks lie elsewhere, which is
 * seen once steps are recorded again. Lock held.
 */
static void end_bad_step(struct ts_planned_entry *entry, bool many)
{
	bool fresh = ts_planned.fresh;

	entry->bad_steps++;
	/* What is to have left in the step before this one has not, yet. */
	if (fresh && entry->made.lets_go && entry->bad_steps < BAD_STEPS_MAX)
		return;
	if (many && (fresh || entry->bad_steps >= BAD_STEPS_MAX)) {
		ts_log(TS_LOG_DEBUG, "plan: blocks lie elsewhere");
		entry->misplaced = true;
		ts_planned_end_force();
		ts_planned_stand_off();
	} else if (entry->bad_steps >= GIVEN_UP) {
		ts_log(TS_LOG_DEBUG, "plan: does not hold, a new one follows");
		ts_planned_drop(entry);
		return;
	} else if (many || entry->bad_steps == BAD_STEPS_MAX) {
		ts_planned_end_force();
		ts_planned.to_join = true;
	}
	if (many || !ts_recorder_is_recording())
		ts_profiler_resume();
}

/* A step went by: did pages come and go as planned? Lock held. */
static void end_step(struct ts_pager *pager)
{
	struct ts_planned_entry *entry = ts_planned.now;
	uint64_t astray = ts_enforce_astray(pager);
	uint64_t certain = ts_enforce_missed(pager);
	unsigned int missed = atomic_exchange(&ts_planned.missed, 0);

	ts_planned.at = 0;
	if (ts_planned.mending) {
		entry->wanted /= 2;
	} else {
		ts_planned.mended = 0;
		entry->vain = 0;
	}
	ts_planned.mending = false;
	ts_phases_pass(&entry->phases);
	if (ts_planned.stand != TS_PLANNED_ON)
		return;
	ts_planned_cost_step(false);
	count_step(pager);
	ts_planned.figures.steps++;
	ts_planned.joined = false;
	ts_planned.restless = 0;
	ts_planned.last = entry;
	ts_planned.row = 1;
	ts_planned.apart = 0;
	/* Steps of another size get theirs, once they come again. */
	if (ts_planned_bucket_step(entry->bucket))
		ts_profiler_resume();
	ts_planned.figures.astray += astray;
	ts_planned.figures.missed += missed;
	ts_planned.figures.doubted += atomic_exchange(&ts_planned.doubted, 0);
	/*
	 * The pager helps out; that is dear only where it is often. Where
	 * doubtful words lead no other plan knows better.
	 */
	if (astray + certain <= ts_planned_few_ops(entry)) {
		entry->carried = true;
		entry->bad_steps = 0;
		ts_planned.fresh = false;
		count_whole(entry);
		return;
	}
	ts_log(TS_LOG_DEBUG,
	        "plan: %u ops found pages missing, %u pages astray",
	        (unsigned int)certain, (unsigned int)astray);
	end_bad_step(entry, astray + certain > entry->follow.n_ops / MANY_OF);
	ts_planned.fresh = false;
}

/* Between steps there may be anything, steps of other kinds too. Lock held. */
static void pass_between(
        const struct ts_follow_op *op, const struct ts_op *item)
{
	struct ts_planned_entry *found =
	        ts_planned_cache_push(&ts_planned.cache, op, item);

	ts_planned.between++;
	if (found && found != ts_planned.now) {
		ts_planned_stand_off();
		ts_planned_found_step(found);
	}
}

/*
 * Large blocks take turns in their places, so that steps alike are not all the
 * same: false where op @item is none of a step that the plan has. Lock held.
 */
static bool is_in_turn(struct ts_planned_entry *entry, const struct ts_op *item)
{
	if (ts_phases_see(&entry->phases, ts_planned.at, item))
		return true;
	/* The pager's steps are timed, whichever they are. */
	if (ts_planned.stand != TS_PLANNED_ON)
		return true;
	/* Other work has had it come to the turn of another. */
	ts_planned.to_join = true;
	return !ts_planned.at && entry->phases.possible;
}

/* The step that was left may go on after other work, which is not of it. */
static bool may_mend(const struct ts_planned_entry *entry)
{
	return entry && entry->used && !entry->declined &&
	       entry->number == ts_planned.torn_number;
}

/* The step of @entry goes on with op @at. Lock held. False: without plan. */
static bool go_on(
        struct ts_pager *pager, struct ts_planned_entry *entry, uint32_t at)
{
	ts_planned.torn = NULL;
	ts_planned.mending = true;
	ts_planned.now = entry;
	ts_planned.stand = TS_PLANNED_ON;
	ts_planned.at = at;
	return take_up(pager);
}

/*
 * Off the plan, with op @op next: true where it is taken up again in the
 * middle of the step, before this op. Lock held.
 */
static bool mend(struct ts_pager *pager, const struct ts_follow_op *op)
{
	struct ts_planned_entry *entry = ts_planned.torn;
	uint32_t at = ts_planned.torn_at;

	if (!may_mend(entry))
		return false;
	if (!ts_follow_is(&entry->follow, at + ts_planned.torn_ops, op)) {
		ts_planned.torn_ops = ts_follow_is(&entry->follow, at, op);
		return false;
	}
	at += ts_planned.torn_ops++;
	if (at + 1 == entry->follow.n_ops)
		ts_planned.torn = NULL;
	if (!ts_planned.torn || ts_planned.torn_ops < enough_ops(entry))
		return false;
	ts_planned.mended++;
	return go_on(pager, entry, at);
}

/*
 * The same where a step has begun anew: after work of other kinds, which may
 * begin like it, it is not waited for a whole one. Lock held.
 */
static bool take_part(struct ts_pager *pager, const struct ts_follow_op *op)
{
	struct ts_planned_entry *entry = ts_planned.in_force;
	uint32_t at = entry ? entry->follow.matched : 0;

	if (!entry || !entry->pager_ns || !entry->carried ||
	        at < enough_ops(entry) || at < entry->wanted ||
	        at >= entry->follow.n_ops ||
	        !ts_follow_is(&entry->follow, at, op) ||
	        !ts_phases_settle(&entry->phases))
		return false;
	return go_on(pager, entry, at);
}

/* Lock held. */
static void follow_op(struct ts_pager *pager, struct ts_op *item,
        const struct ts_follow_op *op, uint64_t begin_ns)
{
	struct ts_planned_entry *entry = ts_planned.now, *ended;

	ts_planned.apart++;
	if (!entry && !mend(pager, op) && !take_part(pager, op)) {
		ts_planned_found_step(
		        ts_planned_cache_push(&ts_planned.cache, op, item));
		return;
	}
	entry = ts_planned.now;
	if (!ts_follow_is(&entry->follow, ts_planned.at, op)) {
		if (ts_planned.at)
			leave(op, item);
		else
			pass_between(op, item);
		return;
	}
	if (!is_in_turn(entry, item)) {
		leave(op, item);
		return;
	}
	if (ts_planned.at ? ts_planned_has_lost_chunks(pager) && !take_up(pager)
	                  : !begin_step(pager)) {
		ts_planned_cache_push(&ts_planned.cache, op, item);
		return;
	}
	if (!ts_planned.at) {
		ts_planned_cache_rewind(&ts_planned.cache, entry, 0);
		note_lap(ts_planned_clock_step(
		        ts_agent.ops, (CUstream)op->stream));
		ts_planned.timed++;
		look_at_times(ts_planned.now);
	}
	if (ts_planned.stand == TS_PLANNED_ON) {
		/*
		 * The plan has no word that is taken for none. What else than
		 * unused slots is behind one stays, or comes by the pager all
		 * the same.
		 */
		item->doubted = ts_op_skip_unused(item);
		item->plan = entry->number;
		item->plan_at = ts_planned.at;
		ts_planned_cost_op(begin_ns,
		        ts_enforce_op(pager, first_op(entry) + ts_planned.at));
	}
	ended = NULL;
	if (ts_planned.mending) {
		/* What the plan goes by, not what else the ops might be. */
		struct ts_phases phases = entry->phases;

		ended = ts_planned_cache_push(&ts_planned.cache, op, item);
		entry->phases = phases;
	}
	if (++ts_planned.at == entry->follow.n_ops)
		end_step(pager);
	/* With what was in its middle it was a step of another kind. */
	if (ended && ended != entry) {
		ts_planned_stand_off();
		ts_planned_found_step(ended);
	}
}

/* The driver's clock stops, too, where the op is none of the plan's. */
static void follow_timed(struct ts_pager *pager, struct ts_op *item,
        const struct ts_follow_op *op)
{
	uint64_t begin_ns = ts_planned_cost_begin();

	follow_op(pager, item, op, begin_ns);
	ts_planned_cost_end(begin_ns);
}

void ts_planned_missed(const struct ts_op *op)
{
	atomic_fetch_add_explicit(&ts_planned.missed, 1, memory_order_relaxed);
	if (op->doubted)
		atomic_fetch_add_explicit(
		        &ts_planned.doubted, 1, memory_order_relaxed);
}

/* For the next step that begins. */
static void ask_others(void)
{
	struct ts_pager *pager;
	uint64_t others = 0;
	bool known;

	ts_mutex_lock(&ts_planned.lock);
	pager = ts_agent_pager(ts_planned.device);
	ts_mutex_unlock(&ts_planned.lock);
	known = pager && !ts_enforce_others(pager, &others);
	ts_mutex_lock(&ts_planned.lock);
	ts_planned.others_now = others;
	ts_planned.others_known = known;
	ts_mutex_unlock(&ts_planned.lock);
}

void ts_planned_op(struct ts_op *op)
{
	struct ts_follow_op at = {.stream = op->stream};
	struct ts_pager *pager;
	bool rewrite;

	if (!atomic_load_explicit(&ts_planned.has_plan, memory_order_acquire))
		return;
	at.signature = op->signature;
	if (atomic_load_explicit(&ts_planned.asks, memory_order_relaxed) &&
	        !atomic_load(&ts_agent.capturing) &&
	        atomic_exchange(&ts_planned.asks, false))
		ask_others();
	ts_mutex_lock(&ts_planned.lock);
	pager = ts_agent_pager(ts_planned.device);
	if (ts_planned.adopting) {
		ts_planned.crossed = true;
	} else if (ts_planned.cache.count && pager) {
		/* Shadow steps are the pager's. */
		if (!atomic_load(&ts_agent.capturing) && !ts_proof_is_pending())
			follow_timed(pager, op, &at);
		else if (ts_planned.now)
			leave(NULL, NULL);
	}
	rewrite = ts_planned.rewrite;
	ts_planned.rewrite = false;
	ts_mutex_unlock(&ts_planned.lock);
	if (rewrite)
		ts_planned_file_write(ts_planned_json());
}
