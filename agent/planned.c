/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/memline.h"
#include "agent/planned_clock.h"
#include "agent/planned_file.h"
#include "agent/planned_internal.h"
#include "agent/planned_say.h"
#include "agent/profiler.h"
#include "agent/proof.h"
#include "agent/proof_candidates.h"
#include "agent/remake.h"

/* Plans that never carried a step through; then the pager stays alone. */
#define PLANS_IN_VAIN_MAX 6
/* A step of the pager is timed where the plan's is not so much shorter. */
#define SURE_OF(ns) ((ns) / 5 * 4)
/* Without any swap it has to be a little shorter to be worth the change. */
#define WORTH_OF(ns) ((ns) / 100 * 99)

struct ts_planned ts_planned;

/* Nor is a plan being put into force. */
static void lock_unless_adopting(void)
{
	ts_mutex_lock(&ts_planned.lock);
	while (ts_planned.adopting)
		ts_cond_wait(&ts_planned.adopted, &ts_planned.lock);
}

/* ------------------------------------------------------------------- plans */

void ts_planned_end_force(void)
{
	struct ts_pager *pager = ts_agent_pager(ts_planned.device);

	if (pager && ts_planned.in_force)
		ts_enforce_end(pager);
	ts_planned.in_force = NULL;
	ts_planned.waits = 0;
}

/* The file's plan goes, and is not offered to the next run. Lock held. */
static void forget_told(void)
{
	json_decref(ts_planned.former);
	ts_planned.former = json_incref(ts_planned.told->json);
	ts_planned.rewrite |= ts_planned.former &&
	                      !json_object_del(ts_planned.former, "tape");
	ts_planned.told = NULL;
}

void ts_planned_drop(struct ts_planned_entry *entry)
{
	if (ts_planned.in_force == entry)
		ts_planned_end_force();
	if (ts_planned.now == entry)
		ts_planned_stand_off();
	if (ts_planned.told == entry)
		forget_told();
	ts_remake_end_plan(entry->number);
	/* The next one takes its place. */
	entry->bucket->plans--;
	entry->bucket->pager_ns = entry->pager_ns - entry->doubt_ns;
	ts_planned.in_vain = entry->carried ? 0 : ts_planned.in_vain + 1;
	ts_planned_cache_drop(&ts_planned.cache, entry);
	atomic_store(&ts_planned.has_plan, ts_planned.cache.count);
	if (ts_planned.in_vain < PLANS_IN_VAIN_MAX)
		ts_profiler_resume();
}

void ts_planned_decline(struct ts_planned_entry *entry, uint64_t took_ns)
{
	uint64_t plan_ns =
	        took_ns ? took_ns : entry->made.plan.predicted_step_ns;

	ts_log(TS_LOG_INFO,
	        "plan: the pager alone takes %.3f ms a step, the plan %s "
	        "%.3f: it goes on alone",
	        (double)entry->pager_ns * 1e-6, took_ns ? "took" : "would take",
	        (double)plan_ns * 1e-6);
	entry->declined = true;
	entry->carried = true;
	ts_planned.figures.declined++;
	if (ts_planned.in_force == entry)
		ts_planned_end_force();
	if (ts_planned.now == entry)
		ts_planned_stand_off();
	ts_remake_end_plan(entry->number);
}

/* ------------------------------------------------------------------ making */

/* The ops since the step, as far as the tape has them. Lock held. */
static void catch_up(
        struct ts_planned_entry *entry, const struct ts_recording *step)
{
	struct ts_tape *tape = &ts_agent.tape;
	uint64_t at = step->first_op + step->op_count;
	bool ends = false;

	ts_planned_cache_rewind(&ts_planned.cache, entry, entry->follow.n_ops);
	ts_mutex_lock(&tape->lock);
	for (; at < tape->op_count; at++) {
		const struct ts_tape_op *op;

		if (at < tape->oldest_op)
			continue;
		op = ts_tape_op(tape, at);
		ends = ts_planned_cache_push(&ts_planned.cache,
		               &(struct ts_follow_op){
		                       op->signature, op->stream},
		               NULL) == entry;
	}
	ts_mutex_unlock(&tape->lock);
	/* So far none but the first of the plan's steps can go on. */
	entry->phases.possible = ends ? entry->phases.possible : 1;
	if (ends)
		ts_planned_found_step(entry);
}

/* The planner knew of pages that move, and of all steps of a cycle; people
 * know the whole device, and a step. */
static void tell_all(struct ts_planned_plan *made,
        const struct ts_enforce_survey *survey, unsigned int steps)
{
	struct ts_plan *plan = &made->plan;
	uint64_t others =
	        survey->other_bytes + survey->fixed_pages * survey->page_bytes;

	plan->limit_bytes = survey->limit_bytes;
	plan->predicted_peak_bytes += others;
	plan->predicted_step_ns /= steps;
	plan->swap_bytes /= steps;
	/* One that was read has the others in these. */
	if (made->was_offered)
		return;
	plan->bound_step_ns /= steps;
	plan->unlimited_step_ns /= steps;
	plan->unlimited_peak_bytes += others;
	plan->smallest_feasible_limit_bytes += others;
}

/* What there is to plan with. @tight: no plan fits otherwise. */
static int survey_pages(struct ts_pager *pager, bool tight,
        struct ts_enforce_survey *ret_survey)
{
	int rc = ts_enforce_survey(pager, tight, ret_survey);
	uint64_t left_bytes = 0;

	if (rc || tight)
		return rc;
	if (ret_survey->other_bytes < ret_survey->limit_bytes)
		left_bytes = ret_survey->limit_bytes - ret_survey->other_bytes;
	if (!ts_planned_small_moves(
	            ret_survey->small_pages * ret_survey->page_bytes,
	            left_bytes))
		return 0;
	free(ret_survey->segments);
	return ts_enforce_survey(pager, true, ret_survey);
}

/* Lock held. */
static int make_plan(struct ts_pager *pager, const struct ts_observed *observed,
        const struct ts_replay_candidates *candidates,
        struct ts_planned_entry *entry)
{
	const struct ts_observed_cycle *cycle = observed->cycle;
	const struct ts_observed_device *device =
	        cycle ? &cycle->device : &observed->devices[0];
	struct ts_planned_step input = {
	        .step = cycle ? &cycle->step : &observed->step,
	        .profile = &device->profile,
	        .values = &device->values};
	struct ts_enforce_survey survey;
	struct ts_plan offered;
	uint64_t least_bytes = 0;
	int rc;

	/* What may be made again is known of single steps only. */
	if (candidates->count && !cycle)
		input.candidates = candidates;
	input.is_open = !cycle && ts_proof_is_open(observed);
	input.scratch_bytes = ts_remake_reserved();
	rc = survey_pages(pager, false, &survey);
	if (rc)
		return rc;
	input.survey = &survey;
	if (ts_planned_file_offer(
	            observed, &survey, &offered, &input.offered_bytes))
		input.offered = &offered;
	rc = ts_planned_make(&input, &entry->made, &least_bytes);
	free(survey.segments);
	if (rc == -ENOSPC && survey.small_stay) {
		rc = survey_pages(pager, true, &survey);
		if (rc)
			goto out;
		rc = ts_planned_make(&input, &entry->made, &least_bytes);
		free(survey.segments);
	}
out:
	if (input.offered) {
		ts_plan_finish(&offered);
		if (!rc)
			ts_planned_file_say(&entry->made);
	}
	if (rc == -ENOSPC)
		ts_planned_say_none(least_bytes);
	if (rc)
		return rc;
	tell_all(&entry->made, &survey, cycle ? cycle->rounds : 1);
	entry->json = ts_planned_file_json(&entry->made, observed);
	entry->observed = observed;
	entry->drift.expected_ns = entry->made.plan.predicted_step_ns;
	ts_page_view_finish(&entry->made.view);
	return ts_planned_cache_follow(entry, observed);
}

/* What is known of the pager's own steps: are they to be timed first? */
static void compare_first(
        struct ts_planned_entry *entry, const struct ts_observed *observed)
{
	const struct ts_plan *plan = &entry->made.plan;
	uint64_t pager_ns = observed->cycle ? observed->cycle->step.duration_ns
	                                    : observed->step.duration_ns;

	/* By then steps by a plan may have been what was timed. */
	if (entry->bucket->steps)
		pager_ns = entry->bucket->pager_ns;
	if (!pager_ns || pager_ns == TS_UNKNOWN_NS)
		return;
	if (!plan->swap_bytes &&
	        plan->predicted_step_ns >= WORTH_OF(pager_ns)) {
		entry->pager_ns = pager_ns;
		ts_planned_decline(entry, 0);
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
	struct ts_planned_bucket *bucket;
	struct ts_planned_entry *entry;
	int rc;

	if (ts_planned.in_vain >= PLANS_IN_VAIN_MAX ||
	        ts_planned_cache_find(&ts_planned.cache, observed))
		return false;
	/* Steps that take turns with others are planned for together. */
	if (observed->in_turn && !observed->cycle)
		return false;
	/* Plans are for one device: that of the first. */
	if (!ts_planned.cache.count)
		ts_planned.device = observed->devices[0].device;
	else if (ts_planned.device != observed->devices[0].device)
		return false;
	bucket = ts_planned_bucket_of(&ts_planned.buckets, &observed->step,
	        ts_memline_peak(&observed->step));
	if (!ts_planned_bucket_wants_plan(bucket)) {
		ts_log(TS_LOG_DEBUG, "plan: steps of about this size have one");
		return false;
	}
	entry = ts_planned_cache_oldest(&ts_planned.cache, ts_planned.in_force);
	if (ts_planned.told == entry && entry->used)
		forget_told();
	if (ts_planned.now == entry && entry->used)
		ts_planned_stand_off();
	if (entry->used)
		entry->bucket->plans--;
	ts_planned_cache_drop(&ts_planned.cache, entry);
	rc = make_plan(pager, observed, candidates, entry);
	if (rc) {
		ts_planned_cache_drop(&ts_planned.cache, entry);
		ts_planned.in_vain++;
		ts_log(TS_LOG_DEBUG, "plan: none made: %s", strerror(-rc));
		return false;
	}
	ts_planned_cache_add(&ts_planned.cache, entry);
	entry->bucket = bucket;
	bucket->plans++;
	entry->number = ++ts_planned.figures.plans;
	start_replays(entry);
	ts_planned_say_plan(&entry->made.plan);
	if (!ts_planned.told)
		ts_planned.told = entry;
	compare_first(entry, observed);
	if (!ts_planned.now)
		catch_up(entry, &observed->step);
	atomic_store(&ts_planned.has_plan, true);
	return true;
}

/* @made, or nothing, takes the place of @old. Lock held. */
static void replace(
        struct ts_planned_entry *old, const struct ts_planned_entry *made)
{
	struct ts_planned_bucket *bucket = old->bucket;
	uint64_t pager_ns = old->pager_ns, doubt_ns = old->doubt_ns;

	if (ts_planned.in_force == old)
		ts_planned_end_force();
	if (ts_planned.now == old)
		ts_planned_stand_off();
	if (ts_planned.told == old && !made)
		forget_told();
	if (pager_ns)
		bucket->pager_ns = pager_ns - doubt_ns;
	ts_planned_cache_drop(&ts_planned.cache, old);
	if (!made) {
		/* The next one takes its place. */
		bucket->plans--;
		return;
	}
	*old = *made;
	old->pager_ns = pager_ns;
	old->doubt_ns = doubt_ns;
	old->bucket = bucket;
	ts_planned_cache_add(&ts_planned.cache, old);
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

	ts_planned.figures.weighed++;
	if (rc || !made.made.n_replays ||
	        made.made.plan.predicted_step_ns >= old_ns) {
		ts_log(TS_LOG_DEBUG,
		        "plan: none better with values made again, of %u that "
		        "may be: %.3f ms with %u, %.3f without%s%s",
		        candidates->count,
		        (double)made.made.plan.predicted_step_ns * 1e-6,
		        made.made.n_replays, (double)old_ns * 1e-6,
		        rc ? ": " : "", rc ? strerror(-rc) : "");
		ts_planned_cache_drop(&ts_planned.cache, &made);
		return false;
	}
	replace(old, &made);
	old->number = ++ts_planned.figures.plans;
	ts_planned.figures.replays++;
	ts_planned_clock_forget();
	if (!old->pager_ns)
		compare_first(old, observed);
	start_replays(old);
	catch_up(old, &observed->step);
	return true;
}

/*
 * What the plan of @old was made for is not what it was: the one for what there
 * is now takes its place, if its steps take less than @most_ns. Lock held.
 */
static bool remake(struct ts_pager *pager, const struct ts_observed *observed,
        const struct ts_replay_candidates *candidates,
        struct ts_planned_entry *old, uint64_t most_ns)
{
	struct ts_planned_entry made = {
	        .drift = {.again = true, .times = old->drift.times}};
	uint64_t number = old->number;
	int rc = make_plan(pager, observed, candidates, &made);

	old->stale = false;
	if (rc || made.made.plan.predicted_step_ns > most_ns) {
		ts_log(TS_LOG_DEBUG,
		        "plan: none better as things are now: %.3f ms with %u "
		        "made again, of %u that may be%s%s",
		        (double)made.made.plan.predicted_step_ns * 1e-6,
		        made.made.n_replays, candidates->count, rc ? ": " : "",
		        rc ? strerror(-rc) : "");
		ts_planned_cache_drop(&ts_planned.cache, &made);
		/* Nor may this one have what it has. */
		if (rc == -ENOSPC && most_ns == UINT64_MAX)
			ts_planned_drop(old);
		return false;
	}
	replace(old, &made);
	if (!old->made.n_replays)
		ts_remake_end_plan(number);
	old->number = ++ts_planned.figures.plans;
	ts_planned.figures.remade++;
	ts_planned_clock_forget();
	start_replays(old);
	ts_log(TS_LOG_INFO, "plan: made anew: step %.1f ms",
	        (double)old->made.plan.predicted_step_ns * 1e-6);
	return true;
}

/*
 * The pager's steps were timed before things changed. What makes the plan's so
 * much slower does no less to the pager's, which hide fewer of their copies;
 * where things got better (0) its steps are timed again.
 */
static void doubt_pager(struct ts_planned_entry *entry, uint64_t slower_ns)
{
	if (entry->pager_ns) {
		entry->pager_ns += slower_ns;
		entry->doubt_ns += slower_ns;
	}
	if (!slower_ns ||
	        entry->made.plan.predicted_step_ns > SURE_OF(entry->pager_ns)) {
		entry->pager_ns = 0;
		entry->doubt_ns = 0;
	}
}

bool ts_planned_remake(
        struct ts_pager *pager, struct ts_planned_entry *entry, bool more)
{
	struct ts_replay_candidates candidates;
	uint64_t before_ns = entry->made.plan.predicted_step_ns, now_ns;
	bool made;

	if (ts_proof_candidates(entry->observed, &candidates))
		return false;
	made = remake(pager, entry->observed, &candidates, entry,
	        more ? UINT64_MAX : before_ns);
	ts_proof_candidates_finish(&candidates);
	if (!made)
		return false;
	now_ns = entry->made.plan.predicted_step_ns;
	doubt_pager(entry, now_ns > before_ns ? now_ns - before_ns : 0);
	ts_planned.rewrite = true;
	return true;
}

/* Steps like those of @old were timed anew. Lock held. */
static bool remake_timed(struct ts_pager *pager,
        const struct ts_observed *observed,
        const struct ts_replay_candidates *candidates,
        struct ts_planned_entry *old)
{
	uint64_t slower_ns = old->drift.slower_ns;

	if (!remake(pager, observed, candidates, old, old->drift.expected_ns))
		return false;
	doubt_pager(old, slower_ns);
	catch_up(old, &observed->step);
	return true;
}

/* Steps by the plan of @entry find their pages where it has them. Lock held. */
static bool holds(const struct ts_planned_entry *entry)
{
	return ts_planned.now == entry && ts_planned.stand == TS_PLANNED_ON &&
	       ts_planned.in_row && !entry->bad_steps;
}

/*
 * Large blocks of steps like those of @old lie elsewhere by now: what comes
 * between steps, or once, moves them for good. Lock held.
 */
static bool remake_moved(struct ts_pager *pager,
        const struct ts_observed *observed,
        const struct ts_replay_candidates *candidates,
        struct ts_planned_entry *old)
{
	unsigned int in_vain = old->carried ? 0 : ts_planned.in_vain + 1;

	if (in_vain >= PLANS_IN_VAIN_MAX) {
		/* No step may go by it any more. */
		if (old->misplaced)
			ts_planned_drop(old);
		return false;
	}
	if (!remake(pager, observed, candidates, old,
	            old->declined ? old->pager_ns : UINT64_MAX))
		return false;
	ts_planned.in_vain = in_vain;
	ts_planned.restless = 0;
	catch_up(old, &observed->step);
	return true;
}

void ts_planned_proved(const struct ts_observed *observed, bool demoted)
{
	struct ts_replay_candidates candidates;
	struct ts_planned_entry *old;
	struct ts_pager *pager;
	bool made = false;

	if (!ts_planned.on || !observed->device_count ||
	        ts_proof_candidates(observed, &candidates))
		return;
	pager = ts_agent_pager(observed->devices[0].device);
	lock_unless_adopting();
	old = ts_planned_cache_find(&ts_planned.cache, observed);
	if (old && demoted && old->made.n_replays) {
		replace(old, NULL);
		ts_remake_by_plan(0, NULL, 0);
		old = NULL;
	}
	/* What may be made again is known of single steps only. */
	if (candidates.count && observed->cycle)
		ts_planned.figures.in_turns++;
	if (pager && old && candidates.count && !observed->cycle)
		made = replace_plan(pager, observed, &candidates, old);
	else if (pager && !old && (candidates.count || demoted))
		made = plan_for(pager, observed, &candidates);
	ts_mutex_unlock(&ts_planned.lock);
	ts_proof_candidates_finish(&candidates);
	if (made)
		ts_planned_file_write(ts_planned_json());
}

/* On the thread that issues ops, without any lock of the agent's. */
static void ready(const struct ts_observed *observed, void *data)
{
	struct ts_replay_candidates candidates;
	struct ts_planned_entry *old;
	struct ts_pager *pager;
	bool made;

	(void)data;
	/* What repeats without a backward may be preparation. */
	if (!observed->turn_count || !observed->device_count)
		return;
	pager = ts_agent_pager(observed->devices[0].device);
	if (!pager || ts_proof_candidates(observed, &candidates))
		return;
	lock_unless_adopting();
	old = ts_planned_cache_find(&ts_planned.cache, observed);
	if (old && old->stale)
		made = remake_timed(pager, observed, &candidates, old);
	else if (old &&
	         (old->misplaced || (!holds(old) && !ts_planned_cache_lies(
	                                                    old, observed))))
		made = remake_moved(pager, observed, &candidates, old);
	else
		made = plan_for(pager, observed, &candidates);
	made |= ts_planned.rewrite;
	ts_planned.rewrite = false;
	ts_mutex_unlock(&ts_planned.lock);
	ts_proof_candidates_finish(&candidates);
	if (made)
		ts_planned_file_write(ts_planned_json());
}

static const uint64_t *times(uint64_t hash, size_t count, const char *device,
        uint64_t *ret_step_ns, void *data)
{
	(void)data;
	return ts_planned_file_times(hash, count, device, ret_step_ns);
}

void ts_planned_init(void)
{
	static const struct ts_watch watch = {.ready = ready, .times = times};

	ts_planned.on =
	        ts_agent.config.mode == TS_MODE_PLAN && ts_agent_places();
	if (!ts_planned.on)
		return;
	ts_mutex_init(&ts_planned.lock, TS_RANK_PLAN);
	pthread_cond_init(&ts_planned.adopted, NULL);
	ts_profiler_watch(&watch);
}
