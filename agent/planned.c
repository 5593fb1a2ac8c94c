/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/observed.h"
#include "agent/planned_cache.h"
#include "agent/planned_clock.h"
#include "agent/planned_cost.h"
#include "agent/planned_file.h"
#include "agent/planned_say.h"
#include "agent/profiler.h"
#include "agent/proof.h"
#include "agent/proof_candidates.h"
#include "agent/remake.h"
#include "planner/plan_json.h"
#include "runtime/vmm_calls.h"

/*
 * After so many steps in a row in which pages were not where the plan has them
 * it is put into force anew; after one more it is made anew.
 */
#define BAD_STEPS_MAX 2
/* So many ops of a step, and one in so many, may need the pager's help. */
#define FEW    2
#define FEW_OF 256
/* Of the pages so many may have lost their chunks before it is, likewise. */
#define DISTURBED_MAX 8
/* Steps are timed over so many ops between them. */
#define BETWEEN_TIMED 64
/* After so many the program may have gone over to other steps. */
#define BETWEEN_OTHER 1000
/* Plans that never carried a step through; then the pager stays alone. */
#define PLANS_IN_VAIN_MAX 6
/* So often in a row the device may not be done when a plan is taken up. */
#define WAITS_IN_VAIN_MAX 3
/* Whole steps that pass at most before a plan that was left is tried again. */
#define WAIT_MAX 15
/* A step of the pager is timed where the plan's is not so much shorter. */
#define SURE_OF(ns) ((ns) / 5 * 4)
/* Steps by the plan before one is taken for the same as all that follow. */
#define SETTLING 2
/* So many steps of either are timed before they are compared. */
#define TIMED_STEPS 2
/* Without any swap it has to be a little shorter to be worth the change. */
#define WORTH_OF(ns) ((ns) / 100 * 99)
/* Who wants the plan's file waits for other threads a second at most. */
#define LOCK_TRIES   1000
#define LOCK_WAIT_US 1000

/* Where the program's ops stand. */
enum stand {
	OFF,    /* no plan: the pager alone */
	TIMING, /* steps like the plan's go by with the pager, and are timed */
	ON,     /* by the plan */
};

static struct {
	bool on; /* constant after start */
	atomic_bool has_plan;
	atomic_uint missed;  /* ops the pager had to help, on the step */
	atomic_uint doubted; /* of these, with doubtful uses */

	struct ts_mutex lock;
	/* Guarded by lock. */
	int device;
	struct ts_planned_cache cache;
	struct ts_planned_entry *now;      /* op `at` of its step comes next */
	struct ts_planned_entry *in_force; /* pages are as it wants them */
	struct ts_planned_entry *told;     /* its plan is the file's */
	json_t *former;                    /* what was, where there is none */
	enum stand stand;
	bool to_join; /* at the step's start the plan has to come into force */
	uint32_t at;
	uint64_t between;     /* ops since the last step ended */
	unsigned int in_vain; /* plans without a good step, in a row */
	unsigned int waits;   /* for the device, in vain, in a row */
	unsigned int timed;   /* steps in a row that the clock saw */
	unsigned int in_row;  /* steps by the plan since it was taken up */
	uint64_t vmm_calls;   /* when the last of these ended */
	bool rewrite;         /* the file offers what was dropped */
	struct ts_planned_figures figures;
} planned;

/* ------------------------------------------------------------------- plans */

/* Nothing is done ahead of the pager any more. Lock held. */
static void end_force(void)
{
	struct ts_pager *pager = ts_agent_pager(planned.device);

	if (pager && planned.in_force)
		ts_enforce_end(pager);
	planned.in_force = NULL;
	planned.waits = 0;
}

/* Lock held. */
static void stand_off(void)
{
	ts_planned_clock_stop();
	planned.timed = 0;
	planned.in_row = 0;
	planned.now = NULL;
	planned.stand = OFF;
}

/* The file's plan goes, and is not offered to the next run. Lock held. */
static void forget_told(void)
{
	json_decref(planned.former);
	planned.former = json_incref(planned.told->json);
	planned.rewrite |=
	        planned.former && !json_object_del(planned.former, "tape");
	planned.told = NULL;
}

/* Lock held. */
static void drop_plan(struct ts_planned_entry *entry)
{
	if (planned.in_force == entry)
		end_force();
	if (planned.now == entry)
		stand_off();
	if (planned.told == entry)
		forget_told();
	ts_remake_end_plan(entry->number);
	planned.in_vain = entry->carried ? 0 : planned.in_vain + 1;
	ts_planned_cache_drop(&planned.cache, entry);
	atomic_store(&planned.has_plan, planned.cache.count);
	if (planned.in_vain < PLANS_IN_VAIN_MAX)
		ts_profiler_resume();
}

/* The pager alone is as fast: it goes on alone with steps like these. */
static void decline(struct ts_planned_entry *entry)
{
	ts_log(TS_LOG_DEBUG, "plan: the pager alone is as fast: %.3f ms a step",
	        (double)entry->pager_ns * 1e-6);
	entry->declined = true;
	entry->carried = true;
	planned.figures.declined++;
	if (planned.in_force == entry)
		end_force();
	if (planned.now == entry)
		stand_off();
	ts_remake_end_plan(entry->number);
}

/* ------------------------------------------------------------------- steps */

/* A whole step of @entry has just passed: may the next one go by it? */
static void found_step(struct ts_planned_entry *entry)
{
	if (!entry || entry->declined)
		return;
	if (entry->wait) {
		entry->wait--;
		return;
	}
	planned.now = entry;
	planned.stand = entry->pager_ns ? ON : TIMING;
	planned.to_join = true;
	planned.between = 0;
	planned.at = 0;
}

/*
 * Op @op is not what comes next in the step: off it. What went by of it may
 * yet be the start of another one. Lock held.
 */
static void leave(const struct ts_follow_op *op)
{
	struct ts_planned_entry *entry = planned.now;
	uint32_t at = planned.at;

	planned.figures.left += planned.stand == ON && at;
	ts_planned_cost_step(true);
	/* Begun in vain, and again in vain: ever more rarely. */
	if (at) {
		entry->vain = 2 * entry->vain + 1;
		if (entry->vain > WAIT_MAX)
			entry->vain = WAIT_MAX;
		entry->wait = entry->vain / 2;
	}
	stand_off();
	ts_planned_cache_rewind(&planned.cache, entry, op ? at : 0);
	if (op)
		found_step(ts_planned_cache_push(&planned.cache, op));
}

/* The first op of the step comes next. 0 or a negative errno. Lock held. */
static int join(struct ts_pager *pager)
{
	struct ts_planned_entry *entry = planned.now;
	int rc;

	planned.figures.joins++;
	if (planned.in_force == entry &&
	        ts_enforce_disturbed(pager) <= DISTURBED_MAX) {
		ts_enforce_resume(pager);
		return 0;
	}
	end_force();
	planned.in_row = 0;
	rc = ts_enforce_adopt(pager, &entry->made.pages);
	if (!rc)
		planned.in_force = entry;
	planned.figures.adopted += !rc;
	if (rc)
		ts_log(TS_LOG_DEBUG, "plan: not taken up: %s", strerror(-rc));
	return rc;
}

/* Steps with the pager alone are timed first. True: go on so. Lock held. */
static bool time_pager(struct ts_planned_entry *entry)
{
	struct ts_planned_clock clock;

	if (planned.stand != TIMING)
		return false;
	if (planned.timed <= TIMED_STEPS)
		return true;
	ts_planned_clock_read(&clock);
	entry->pager_ns = clock.shortest_ns;
	ts_planned_clock_forget();
	if (entry->made.plan.predicted_step_ns >= entry->pager_ns) {
		decline(entry);
		return true;
	}
	planned.stand = ON;
	planned.to_join = true;
	planned.timed = 0;
	return false;
}

/* Steps by the plan take longer after all than with the pager alone. */
static bool is_slower(const struct ts_planned_entry *entry)
{
	struct ts_planned_clock clock;

	ts_planned_clock_read(&clock);
	return planned.timed > TIMED_STEPS + 1 &&
	       clock.shortest_ns > entry->pager_ns;
}

/* The step begins with the op that comes. Lock held. False: without plan. */
static bool begin_step(struct ts_pager *pager)
{
	struct ts_planned_entry *entry = planned.now;
	int rc;

	if (planned.between > BETWEEN_TIMED) {
		ts_planned_clock_stop();
		planned.timed = 0;
	}
	if (time_pager(entry))
		return planned.stand == TIMING;
	if (is_slower(entry)) {
		decline(entry);
		return false;
	}
	if (!planned.to_join && !planned.between)
		return true;
	rc = join(pager);
	/* After this step it may do. */
	if (rc == -EAGAIN && ++planned.waits < WAITS_IN_VAIN_MAX) {
		stand_off();
		ts_planned_cache_rewind(&planned.cache, entry, 0);
		return false;
	}
	if (rc) {
		drop_plan(entry);
		return false;
	}
	planned.waits = 0;
	planned.to_join = false;
	planned.between = 0;
	atomic_store(&planned.missed, 0);
	atomic_store(&planned.doubted, 0);
	ts_enforce_astray(pager);
	ts_planned_cache_touch(&planned.cache, entry);
	planned.told = entry;
	return true;
}

/* Lock held. */
static void count_vmm_calls(void)
{
	uint64_t calls = ts_vmm_calls();

	if (planned.in_row++ >= SETTLING) {
		planned.figures.steady_steps++;
		planned.figures.steady_vmm_calls += calls - planned.vmm_calls;
	}
	planned.vmm_calls = calls;
}

/* A step went by: did pages come and go as planned? Lock held. */
static void end_step(struct ts_pager *pager)
{
	struct ts_planned_entry *entry = planned.now;
	uint64_t astray = ts_enforce_astray(pager);
	unsigned int missed = atomic_exchange(&planned.missed, 0);

	planned.at = 0;
	entry->vain = 0;
	if (planned.stand != ON)
		return;
	ts_planned_cost_step(false);
	count_vmm_calls();
	planned.figures.steps++;
	planned.figures.astray += astray;
	planned.figures.missed += missed;
	planned.figures.doubted += atomic_exchange(&planned.doubted, 0);
	/* The pager helps out; that is dear only where it is often. */
	if (astray + missed <= entry->follow.n_ops / FEW_OF + FEW) {
		entry->carried = true;
		entry->bad_steps = 0;
		return;
	}
	entry->bad_steps++;
	ts_log(TS_LOG_DEBUG,
	        "plan: %u ops found pages missing, %u pages astray", missed,
	        (unsigned int)astray);
	if (entry->bad_steps < BAD_STEPS_MAX)
		return;
	/* Chunks may have changed hands; then addresses may have moved. */
	if (entry->bad_steps == BAD_STEPS_MAX) {
		end_force();
		planned.to_join = true;
		return;
	}
	ts_log(TS_LOG_DEBUG, "plan: does not hold, a new one follows");
	drop_plan(entry);
}

/* Between steps there may be anything, steps of other kinds too. Lock held. */
static void pass_between(const struct ts_follow_op *op)
{
	struct ts_planned_entry *found =
	        ts_planned_cache_push(&planned.cache, op);

	planned.between++;
	if (found && found != planned.now) {
		stand_off();
		found_step(found);
	}
}

/* Lock held. */
static void follow_op(struct ts_pager *pager, struct ts_op *item,
        const struct ts_follow_op *op)
{
	const struct ts_planned_entry *entry = planned.now;
	uint64_t begin_ns = ts_planned_cost_begin();

	if (!entry) {
		found_step(ts_planned_cache_push(&planned.cache, op));
		return;
	}
	if (!ts_follow_is(&entry->follow, planned.at, op)) {
		if (planned.at)
			leave(op);
		else
			pass_between(op);
		return;
	}
	if (!planned.at && !begin_step(pager)) {
		ts_planned_cache_push(&planned.cache, op);
		return;
	}
	if (!planned.at) {
		ts_planned_cache_rewind(&planned.cache, entry, 0);
		ts_planned_clock_step(ts_agent.ops, (CUstream)op->stream);
		planned.timed++;
	}
	if (planned.stand == ON) {
		/*
		 * The plan has no word that is taken for none. What else than
		 * unused slots is behind one stays, or comes by the pager all
		 * the same.
		 */
		item->doubted = ts_op_skip_unused(item);
		item->plan = entry->number;
		item->plan_at = planned.at;
		ts_planned_cost_op(begin_ns, ts_enforce_op(pager, planned.at));
	}
	if (++planned.at == entry->follow.n_ops)
		end_step(pager);
}

void ts_planned_missed(const struct ts_op *op)
{
	atomic_fetch_add_explicit(&planned.missed, 1, memory_order_relaxed);
	if (op->doubted)
		atomic_fetch_add_explicit(
		        &planned.doubted, 1, memory_order_relaxed);
}

void ts_planned_op(struct ts_op *op)
{
	struct ts_follow_op at = {.stream = op->stream};
	struct ts_pager *pager;
	bool rewrite;

	if (!atomic_load_explicit(&planned.has_plan, memory_order_acquire))
		return;
	at.signature = op->signature;
	ts_mutex_lock(&planned.lock);
	pager = ts_agent_pager(planned.device);
	if (planned.cache.count && pager) {
		/* Shadow steps are the pager's. */
		if (!atomic_load(&ts_agent.capturing) && !ts_proof_is_pending())
			follow_op(pager, op, &at);
		else if (planned.now)
			leave(NULL);
	}
	rewrite = planned.rewrite;
	planned.rewrite = false;
	ts_mutex_unlock(&planned.lock);
	if (rewrite)
		ts_planned_file_write(ts_planned_json());
}

/* ------------------------------------------------------------------ making */

/* The ops since the step, as far as the tape has them. Lock held. */
static void catch_up(
        struct ts_planned_entry *entry, const struct ts_recording *step)
{
	struct ts_tape *tape = &ts_agent.tape;
	uint64_t at = step->first_op + step->op_count;
	bool ends = false;

	ts_planned_cache_rewind(&planned.cache, entry, entry->follow.n_ops);
	ts_mutex_lock(&tape->lock);
	for (; at < tape->op_count; at++) {
		const struct ts_tape_op *op;

		if (at < tape->oldest_op)
			continue;
		op = ts_tape_op(tape, at);
		ends = ts_planned_cache_push(&planned.cache,
		               &(struct ts_follow_op){
		                       op->signature, op->stream}) == entry;
	}
	ts_mutex_unlock(&tape->lock);
	if (ends)
		found_step(entry);
}

/* The planner knew of pages that move; people know the whole device. */
static void tell_all(
        struct ts_planned_plan *made, const struct ts_enforce_survey *survey)
{
	struct ts_plan *plan = &made->plan;
	uint64_t others =
	        survey->other_bytes + survey->fixed_pages * survey->page_bytes;

	plan->limit_bytes = survey->limit_bytes;
	plan->predicted_peak_bytes += others;
	/* One that was read has the others in these. */
	if (made->was_offered)
		return;
	plan->unlimited_peak_bytes += others;
	plan->smallest_feasible_limit_bytes += others;
}

/* Lock held. */
static int make_plan(struct ts_pager *pager, const struct ts_observed *observed,
        const struct ts_replay_candidates *candidates,
        struct ts_planned_entry *entry)
{
	const struct ts_observed_device *device = &observed->devices[0];
	struct ts_planned_step input = {.step = &observed->step,
	        .profile = &device->profile,
	        .values = &device->values};
	struct ts_enforce_survey survey;
	struct ts_plan offered;
	uint64_t least_bytes = 0;
	int rc;

	if (candidates->count)
		input.candidates = candidates;
	input.scratch_bytes = ts_remake_reserved();
	rc = ts_enforce_survey(pager, &survey);
	if (rc)
		return rc;
	input.survey = &survey;
	if (ts_planned_file_offer(
	            observed, &survey, &offered, &input.offered_bytes))
		input.offered = &offered;
	rc = ts_planned_make(&input, &entry->made, &least_bytes);
	free(survey.segments);
	if (input.offered) {
		ts_plan_finish(&offered);
		if (!rc)
			ts_planned_file_say(entry->made.was_offered);
	}
	if (rc == -ENOSPC)
		ts_planned_say_none(least_bytes);
	if (rc)
		return rc;
	tell_all(&entry->made, &survey);
	entry->json = ts_planned_file_json(&entry->made, observed);
	ts_planned_view_finish(&entry->made.view);
	return ts_planned_cache_follow(entry, &observed->step);
}

/* What is known of the pager's own steps: are they to be timed first? */
static void compare_first(
        struct ts_planned_entry *entry, const struct ts_recording *step)
{
	const struct ts_plan *plan = &entry->made.plan;
	uint64_t pager_ns = step->duration_ns;

	if (pager_ns == TS_UNKNOWN_NS)
		return;
	if (!plan->swap_bytes &&
	        plan->predicted_step_ns >= WORTH_OF(pager_ns)) {
		entry->pager_ns = pager_ns;
		decline(entry);
	} else if (plan->predicted_step_ns <= SURE_OF(pager_ns)) {
		entry->pager_ns = pager_ns;
	}
}

/* Steps by the plan of @entry give up what it says. Lock held. */
static void start_replays(struct ts_planned_entry *entry)
{
	const struct ts_planned_plan *made = &entry->made;

	int rc;

	if (!made->n_replays)
		return;
	rc = ts_remake_reserve(made->scratch_bytes);
	if (!rc)
		rc = ts_remake_by_plan(
		        entry->number, made->replays, made->n_replays);
	if (rc) {
		ts_log(TS_LOG_DEBUG,
		        "plan: nothing is made again after all: %s",
		        strerror(-rc));
		ts_remake_reserve(0);
		return;
	}
	ts_log(TS_LOG_INFO, "plan: %s are made again a step, in %.1f ms",
	        ts_size(made->replayed_bytes).text,
	        (double)made->plan.replay_ns * 1e-6);
}

/* Lock held. True where a plan was made. */
static bool plan_for(struct ts_pager *pager, const struct ts_observed *observed,
        const struct ts_replay_candidates *candidates)
{
	struct ts_planned_entry *entry;
	int rc;

	if (planned.in_vain >= PLANS_IN_VAIN_MAX ||
	        ts_planned_cache_find(&planned.cache, &observed->step))
		return false;
	/* Plans are for one device: that of the first. */
	if (!planned.cache.count)
		planned.device = observed->devices[0].device;
	else if (planned.device != observed->devices[0].device)
		return false;
	entry = ts_planned_cache_oldest(&planned.cache, planned.in_force);
	if (planned.told == entry && entry->used)
		forget_told();
	if (planned.now == entry && entry->used)
		stand_off();
	ts_planned_cache_drop(&planned.cache, entry);
	rc = make_plan(pager, observed, candidates, entry);
	if (rc) {
		ts_planned_cache_drop(&planned.cache, entry);
		planned.in_vain++;
		ts_log(TS_LOG_DEBUG, "plan: none made: %s", strerror(-rc));
		return false;
	}
	ts_planned_cache_add(&planned.cache, entry);
	entry->number = ++planned.figures.plans;
	start_replays(entry);
	ts_planned_say_plan(&entry->made.plan);
	if (!planned.told)
		planned.told = entry;
	compare_first(entry, &observed->step);
	if (!planned.now)
		catch_up(entry, &observed->step);
	atomic_store(&planned.has_plan, true);
	return true;
}

/* @made, or nothing, takes the place of @old. Lock held. */
static void replace(
        struct ts_planned_entry *old, const struct ts_planned_entry *made)
{
	uint64_t pager_ns = old->pager_ns;

	if (planned.in_force == old)
		end_force();
	if (planned.now == old)
		stand_off();
	if (planned.told == old && !made)
		forget_told();
	ts_planned_cache_drop(&planned.cache, old);
	if (!made)
		return;
	*old = *made;
	old->pager_ns = pager_ns;
	ts_planned_cache_add(&planned.cache, old);
}

/*
 * What is proved of the step of @old makes a plan for it that is shorter; it
 * takes the place of that one. Lock held. False: it does not.
 */
static bool replace_plan(struct ts_pager *pager,
        const struct ts_observed *observed,
        const struct ts_replay_candidates *candidates,
        struct ts_planned_entry *old)
{
	struct ts_planned_entry made = {0};
	uint64_t old_ns = old->declined ? old->pager_ns
	                                : old->made.plan.predicted_step_ns;
	int rc = make_plan(pager, observed, candidates, &made);

	if (rc || !made.made.n_replays ||
	        made.made.plan.predicted_step_ns >= old_ns) {
		ts_log(TS_LOG_DEBUG,
		        "plan: none better with values made again");
		ts_planned_cache_drop(&planned.cache, &made);
		return false;
	}
	replace(old, &made);
	old->number = ++planned.figures.plans;
	ts_planned_clock_forget();
	if (!old->pager_ns)
		compare_first(old, &observed->step);
	start_replays(old);
	catch_up(old, &observed->step);
	return true;
}

void ts_planned_proved(const struct ts_observed *observed, bool demoted)
{
	struct ts_replay_candidates candidates;
	struct ts_planned_entry *old;
	struct ts_pager *pager;
	bool made = false;

	if (!planned.on || !observed->device_count ||
	        ts_proof_candidates(observed, &candidates))
		return;
	pager = ts_agent_pager(observed->devices[0].device);
	ts_mutex_lock(&planned.lock);
	old = ts_planned_cache_find(&planned.cache, &observed->step);
	if (old && demoted && old->made.n_replays) {
		replace(old, NULL);
		ts_remake_by_plan(0, NULL, 0);
		old = NULL;
	}
	if (pager && old && candidates.count)
		made = replace_plan(pager, observed, &candidates, old);
	else if (pager && !old && (candidates.count || demoted))
		made = plan_for(pager, observed, &candidates);
	ts_mutex_unlock(&planned.lock);
	ts_proof_candidates_finish(&candidates);
	if (made)
		ts_planned_file_write(ts_planned_json());
}

/* On the thread that issues ops, without any lock of the agent's. */
static void ready(const struct ts_observed *observed, void *data)
{
	struct ts_replay_candidates candidates;
	struct ts_pager *pager;
	bool made;

	(void)data;
	/* What repeats without a backward may be preparation. */
	if (!observed->turn_count || !observed->device_count)
		return;
	pager = ts_agent_pager(observed->devices[0].device);
	if (!pager || ts_proof_candidates(observed, &candidates))
		return;
	ts_mutex_lock(&planned.lock);
	made = plan_for(pager, observed, &candidates) || planned.rewrite;
	planned.rewrite = false;
	ts_mutex_unlock(&planned.lock);
	ts_proof_candidates_finish(&candidates);
	if (made)
		ts_planned_file_write(ts_planned_json());
}

void ts_planned_init(void)
{
	static const struct ts_watch watch = {.ready = ready};

	planned.on = ts_agent.config.mode == TS_MODE_PLAN && ts_agent_places();
	if (!planned.on)
		return;
	ts_mutex_init(&planned.lock, TS_RANK_PLAN);
	ts_profiler_watch(&watch);
}

json_t *ts_planned_status(void)
{
	const struct ts_planned_figures *figures = &planned.figures;
	const struct {
		const char *name;
		uint64_t value;
	} named[] = {
	        {"plans", figures->plans},
	        {"declined", figures->declined},
	        {"adopted", figures->adopted},
	        {"joins", figures->joins},
	        {"left", figures->left},
	        {"steps", figures->steps},
	        {"missed", figures->missed},
	        {"doubted", figures->doubted},
	        {"astray", figures->astray},
	        {"steady_steps", figures->steady_steps},
	        {"steady_vmm_calls", figures->steady_vmm_calls},
	};
	struct ts_planned_cost cost;
	json_t *json;

	if (!planned.on || !figures->plans)
		return NULL;
	json = json_object();
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		json_object_set_new(json, named[i].name,
		        json_integer((json_int_t)named[i].value));
	ts_planned_cost_read(&cost);
	if (json && cost.idle_ns) {
		json_object_set_new(json, "idle_op_ns",
		        json_integer((json_int_t)cost.idle_ns));
		json_object_set_new(json, "mean_op_ns",
		        json_integer((json_int_t)cost.mean_ns));
	}
	return json;
}

/* Lock held. */
static json_t *plan_json(void)
{
	const struct ts_planned_entry *entry = planned.told;
	json_t *root = json_deep_copy(entry ? entry->json : planned.former),
	       *part;
	struct ts_planned_clock clock;

	if (!root)
		return NULL;
	json_object_set_new(root, "tool_version", json_string(TS_VERSION));
	part = ts_planned_status();
	ts_planned_clock_read(&clock);
	if (part) {
		json_object_set_new(part, "timed_steps",
		        json_integer((json_int_t)clock.steps));
		if (clock.steps) {
			json_object_set_new(part, "step_ns",
			        json_integer((json_int_t)clock.last_ns));
			json_object_set_new(part, "shortest_step_ns",
			        json_integer((json_int_t)clock.shortest_ns));
		}
		json_object_set_new(root, "measured", part);
	}
	return root;
}

json_t *ts_planned_json(void)
{
	bool locked = false;
	json_t *json;

	/* At exit a thread may hold it that never comes back. */
	for (int i = 0; planned.on && !locked && i < LOCK_TRIES; i++) {
		locked = ts_mutex_try_lock(&planned.lock);
		if (!locked)
			usleep(LOCK_WAIT_US);
	}
	if (!locked)
		return NULL;
	json = plan_json();
	ts_mutex_unlock(&planned.lock);
	return json;
}
