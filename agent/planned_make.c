/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_make_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/planned_filler.h"
#include "agent/planned_hunt.h"
#include "agent/planned_offer.h"
#include "agent/planned_worth.h"
#include "planner/bound.h"
#include "planner/graph.h"
#include "planner/paged.h"

/* Of what the limit leaves, for what was not there when it was observed. */
#define MARGIN_PERCENT 2
#define TRIES_MAX      10
/*
 * The search ends where what fits and what does not are so close: one part in
 * so many; where only smaller ops have less that makes less of a difference.
 */
#define CLOSE       100
#define CLOSE_BELOW 16

void ts_planned_plan_finish(struct ts_planned_plan *plan)
{
	ts_plan_finish(&plan->plan);
	ts_page_plan_finish(&plan->pages);
	ts_page_view_finish(&plan->view);
	free(plan->replays);
	plan->replays = NULL;
	plan->n_replays = 0;
}

void ts_planned_work_finish(struct ts_planned_work *work)
{
	free(work->first_gap);
	free(work->gap_list);
	free(work->holds);
	free(work->moves);
	ts_plan_finish(&work->made);
}

static uint64_t chunks_there(const struct ts_planned_work *work)
{
	const struct ts_enforce_survey *survey = work->step->survey;
	uint64_t used =
	        survey->other_bytes + survey->fixed_pages * survey->page_bytes;
	uint64_t limit = survey->limit_bytes;

	used -= work->step->scratch_bytes;
	used += (work->scratch_bytes + survey->page_bytes - 1) /
	        survey->page_bytes * survey->page_bytes;
	if (used >= limit)
		return 0;
	limit -= (limit - survey->other_bytes) / 100 * MARGIN_PERCENT;
	return used < limit ? (limit - used) / survey->page_bytes : 0;
}

/*
 * The limit that leaves so many chunks; 0: not known. Under another limit
 * memory is laid out otherwise: with a little more than it takes here.
 */
static uint64_t limit_for(const struct ts_planned_work *work, uint64_t chunks)
{
	const struct ts_enforce_survey *survey = work->step->survey;
	uint64_t pages = survey->fixed_pages + chunks;

	if (!chunks)
		return 0;
	return survey->other_bytes +
	       pages * survey->page_bytes / 100 * (100 + 2 * MARGIN_PERCENT);
}

/* A plan by bytes, of which the last one is remembered. */
static int plan_bytes(struct ts_planned_work *work, const struct ts_graph *g,
        uint64_t limit_bytes, struct ts_plan *ret_plan)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_plan_stats stats;
	int rc;

	if (work->made_of == g && work->made.limit_bytes == limit_bytes)
		return ts_plan_copy(&work->made, ret_plan);
	options.pages = false;
	/* The program waits, and several limits may have to be tried. */
	options.quick = true;
	options.no_replay = !work->replays;
	options.dirties = g->dirties;
	/* What is less than a page does not move. */
	options.min_gap_bytes = work->step->survey->page_bytes;
	rc = ts_plan_make(g->profile, limit_bytes, &options, ret_plan, &stats);
	if (rc)
		return rc;
	ts_plan_finish(&work->made);
	work->made_of = g;
	rc = ts_plan_copy(ret_plan, &work->made);
	if (rc) {
		work->made_of = NULL;
		ts_plan_finish(ret_plan);
	}
	return rc;
}

static int plan_limit(struct ts_planned_work *work, const struct ts_graph *g,
        uint64_t limit_bytes, struct ts_planned_plan *made)
{
	int rc;

	memset(made, 0, sizeof(*made));
	rc = plan_bytes(work, g, limit_bytes, &made->plan);
	made->model_ns = made->plan.predicted_step_ns;
	made->moving_bytes = limit_bytes;
	if (!rc && made->model_ns > work->most_ns)
		rc = -ERANGE;
	if (!rc)
		rc = ts_planned_place(work, g, made);
	if (rc)
		ts_planned_plan_finish(made);
	return rc;
}

/* Where it is @below what the largest op needs, that op has what it needs, and
 * all others that can have @limit_bytes. */
static int try_limit(struct ts_planned_work *work, const struct ts_graph *g,
        uint64_t limit_bytes, bool below, struct ts_planned_plan *made)
{
	struct ts_planned_filler filler;
	int rc;

	if (!below || limit_bytes >= g->floor_bytes)
		return plan_limit(work, g, limit_bytes, made);
	rc = ts_planned_filler_make(g, limit_bytes, &filler);
	if (rc)
		return rc;
	rc = plan_limit(work, &filler.graph, g->floor_bytes, made);
	if (!rc) {
		/* It is told of the step as it is. */
		made->plan.n_values = g->profile->n_values;
		made->plan.unlimited_peak_bytes = g->peak_bytes;
	}
	ts_planned_filler_finish(&filler);
	return rc;
}

/* Where it takes too many chunks, with some away for others. */
static int place_offered(struct ts_planned_work *work, const struct ts_graph *g,
        struct ts_planned_plan *made, uint64_t chunks)
{
	struct ts_page_plan pages;
	int rc = ts_planned_place(work, g, made);

	if (rc || made->pages.n_chunks <= chunks)
		return rc;
	pages = made->pages;
	memset(&made->pages, 0, sizeof(made->pages));
	work->shares = true;
	rc = ts_planned_place(work, g, made);
	work->shares = false;
	/* It tells what it takes without. */
	if (rc)
		made->pages = pages;
	else
		ts_page_plan_finish(&pages);
	return 0;
}

/* 0 where the plan that was offered still fits: the planner is not asked. */
static int try_offered(struct ts_planned_work *work, const struct ts_graph *g,
        uint64_t chunks, struct ts_planned_plan *made, uint64_t *ret_chunks)
{
	const struct ts_plan *offered = work->step->offered;
	int rc;

	if (!offered)
		return -ENOENT;
	/* Nothing of it is proved in this run. */
	if (offered->n_replays)
		return -ENOTSUP;
	memset(made, 0, sizeof(*made));
	rc = ts_planned_offer_copy(
	        offered, g, !work->step->offered_bytes, &made->plan);
	if (rc)
		return rc;
	made->plan.limit_bytes = work->step->offered_bytes
	                                 ? work->step->offered_bytes
	                                 : work->chunks_bytes;
	rc = place_offered(work, g, made, chunks);
	*ret_chunks = made->pages.n_chunks;
	if (!rc && made->pages.n_chunks > chunks)
		rc = -ENOSPC;
	if (rc)
		ts_planned_plan_finish(made);
	return rc;
}

/* Steps so many times as long as without a limit: any pager does better. */
#define ABSURD_TIMES 20

/*
 * @plan needs more chunks than there are: as many at least, as far as known,
 * for one that is worth a higher limit.
 */
static void note_chunks(
        struct ts_planned_work *work, const struct ts_planned_plan *plan)
{
	if (plan->plan.predicted_step_ns / ABSURD_TIMES >
	        plan->plan.unlimited_step_ns)
		return;
	if (!work->least_chunks || plan->pages.n_chunks < work->least_chunks)
		work->least_chunks = plan->pages.n_chunks;
}

/*
 * There is less than the largest op needs: what a plan takes under which all
 * others have no more than half of that is near the least that any does.
 */
static void find_least(struct ts_planned_work *work, const struct ts_graph *g)
{
	struct ts_planned_plan made;

	if (try_limit(work, g, g->floor_bytes / 2, true, &made))
		return;
	note_chunks(work, &made);
	ts_planned_plan_finish(&made);
}

/* The most that the planner may have for its plan to find chunks for all. */
static int hunt_down(struct ts_planned_work *work, const struct ts_graph *g,
        uint64_t chunks, struct ts_planned_plan *ret)
{
	uint64_t page_bytes = work->step->survey->page_bytes;
	struct ts_planned_hunt hunt = {
	        .limit = work->chunks_bytes, .close = CLOSE};
	bool at_floor = false, below = false;

	for (unsigned int tries = 0; tries < TRIES_MAX; tries++) {
		struct ts_planned_plan made;
		uint64_t excess = 0;
		int rc = try_limit(work, g, hunt.limit, below, &made);

		/* Nor would one with less be. */
		if (rc == -ERANGE)
			break;
		/* One that needs more tells how much more. */
		if (rc == -ENOSPC && !hunt.fits && !at_floor) {
			at_floor = true;
			hunt.limit = g->floor_bytes;
			continue;
		}
		if (rc == -EAGAIN)
			excess = hunt.limit / 50;
		else if (rc == -ENOSPC && hunt.fails && !hunt.fits)
			hunt.low = hunt.limit;
		else if (rc)
			return hunt.fits ? 0 : rc;
		else if (made.pages.n_chunks > chunks)
			excess = (made.pages.n_chunks - chunks) * page_bytes;
		if (rc == -ENOSPC) {
			/* Nothing was made. */
		} else if (excess) {
			hunt.fails = hunt.limit;
			if (!rc) {
				note_chunks(work, &made);
				ts_planned_plan_finish(&made);
			}
			/* Then there is only to give the smaller ops less. */
			if (at_floor && !hunt.fits) {
				below = true;
				hunt.close = CLOSE_BELOW;
			}
			if (below && work->chunks_bytes < g->floor_bytes) {
				find_least(work, g);
				break;
			}
		} else {
			if (hunt.fits)
				ts_planned_plan_finish(ret);
			hunt.fits = hunt.limit;
			made.chunks_there = chunks;
			*ret = made;
		}
		if (!ts_planned_hunt_on(&hunt, excess, page_bytes))
			break;
	}
	return hunt.fits ? 0 : -ENOSPC;
}

/* There is little to gain by more for the planner's values. */
#define ALMOST_OF(bytes) ((bytes) / 100 * 98)

/*
 * Where no page waits for the one that had its chunk before, or where some do
 * if there are not chunks enough for that. Less for the planner's values, or
 * waits: what costs less is seen when both are there.
 */
static int hunt_alone(struct ts_planned_work *work, const struct ts_graph *g,
        uint64_t chunks, struct ts_planned_plan *ret)
{
	uint64_t least_chunks = work->least_chunks;
	struct ts_planned_plan other;
	int rc;

	work->apart = true;
	rc = hunt_down(work, g, chunks, ret);
	work->apart = false;
	if (!rc && ret->moving_bytes >= ALMOST_OF(work->chunks_bytes))
		return 0;
	work->least_chunks = least_chunks;
	if (rc)
		return hunt_down(work, g, chunks, ret);
	if (hunt_down(work, g, chunks, &other))
		return 0;
	if (other.plan.predicted_step_ns < ret->plan.predicted_step_ns) {
		ts_planned_plan_finish(ret);
		*ret = other;
	} else {
		ts_planned_plan_finish(&other);
	}
	return 0;
}

/* Pages add no more than that to what the model says of bytes. */
#define NEAR_OF(ns) ((ns) / 100 * 102)

/* True where the planner's values find chunks as they are, as good as free. */
static bool fits_at_once(struct ts_planned_work *work, const struct ts_graph *g,
        uint64_t chunks, struct ts_planned_plan *ret)
{
	int rc;

	work->apart = true;
	rc = plan_limit(work, g, work->chunks_bytes, ret);
	work->apart = false;
	if (rc)
		return false;
	ret->chunks_there = chunks;
	if (ret->pages.n_chunks <= chunks &&
	        ret->plan.predicted_step_ns <= NEAR_OF(ret->model_ns))
		return true;
	ts_planned_plan_finish(ret);
	return false;
}

/* Pages make a step so much shorter at most than the model says, and waits. */
#define AT_MOST_OF(ns) ((ns) / 100 * 110)

/*
 * All chunks for the planner's values, where those are away for which others
 * find no chunks; or less, so that all find some.
 */
static int hunt_both(struct ts_planned_work *work, const struct ts_graph *g,
        uint64_t chunks, struct ts_planned_plan *ret)
{
	struct ts_planned_plan shared;
	int shared_rc, rc;

	work->most_ns = UINT64_MAX;
	if (fits_at_once(work, g, chunks, ret))
		return 0;
	/* What leaves late takes chunks that are given to others by then. */
	work->shares = true;
	shared_rc = work->lets_go
	                    ? -ENOTSUP
	                    : plan_limit(work, g, work->chunks_bytes, &shared);
	work->shares = false;
	if (!shared_rc) {
		shared.chunks_there = chunks;
		/* What is made again is planned for once, and worth a look. */
		if (shared.plan.predicted_step_ns <=
		        (work->replays ? shared.model_ns
		                       : NEAR_OF(shared.model_ns))) {
			*ret = shared;
			return 0;
		}
		work->most_ns = AT_MOST_OF(shared.plan.predicted_step_ns);
	}
	rc = hunt_alone(work, g, chunks, ret);
	if (shared_rc)
		return rc;
	if (rc) {
		*ret = shared;
	} else if (shared.plan.predicted_step_ns <
	           ret->plan.predicted_step_ns) {
		ts_planned_plan_finish(ret);
		*ret = shared;
	} else {
		ts_planned_plan_finish(&shared);
	}
	return 0;
}

static int search(struct ts_planned_work *work, const struct ts_graph *g,
        struct ts_planned_plan *ret)
{
	const struct ts_enforce_survey *survey = work->step->survey;
	uint64_t chunks = chunks_there(work), offered_chunks = 0;
	int rc;

	work->chunks_bytes = chunks * survey->page_bytes;
	work->most_ns = UINT64_MAX;
	rc = work->replays ? -ENOENT
	                   : try_offered(work, g, chunks, ret, &offered_chunks);
	if (rc) {
		int offered_rc = rc;

		rc = hunt_both(work, g, chunks, ret);
		if (rc)
			return rc;
		/* Plans that had less for pages have the same bound. */
		rc = ts_bound_step(
		        g, work->chunks_bytes, &ret->plan.bound_step_ns);
		if (rc) {
			ts_planned_plan_finish(ret);
			return rc;
		}
		ret->offered_rc = offered_rc;
		ret->offered_chunks = offered_chunks;
		return 0;
	}
	ret->chunks_there = chunks;
	ret->moving_bytes = work->step->offered_bytes;
	ret->was_offered = true;
	return 0;
}

/* Where it is so much shorter a plan is worth what may go wrong with it. */
#define BETTER_OF(ns) ((ns) / 1000 * 995)
/* Scratch takes one part in so many of the limit at most. */
#define SCRATCH_PART 16

/* The most scratch that a candidate takes, of those with at most @most. */
static uint64_t next_scratch(
        const struct ts_replay_candidates *all, uint64_t most)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < all->count; i++)
		if (all->list[i].scratch_bytes > found &&
		        all->list[i].scratch_bytes <= most)
			found = all->list[i].scratch_bytes;
	return found;
}

/* @plan, whose search returned @rc, or one that has values made again. */
static int search_with(struct ts_planned_work *work, uint64_t scratch, int rc,
        struct ts_planned_plan *plan)
{
	struct ts_graph_options options = {.dirties = work->view->dirties};
	struct ts_planned_plan other;
	struct ts_graph graph;
	int more;

	ts_planned_allow_replays(work, scratch);
	more = ts_graph_init(&graph, &work->view->profile, &options);
	if (more)
		return rc;
	more = search(work, &graph, &other);
	work->made_of = NULL;
	ts_graph_finish(&graph);
	if (more)
		return rc;
	if (!other.n_replays ||
	        (!rc && other.plan.predicted_step_ns >=
	                        BETTER_OF(plan->plan.predicted_step_ns)) ||
	        ts_planned_tell_ops(work, &other.plan)) {
		ts_planned_plan_finish(&other);
		return rc;
	}
	if (!rc)
		ts_planned_plan_finish(plan);
	other.scratch_bytes = scratch;
	*plan = other;
	return 0;
}

/* So often it is tried with half as much in vain before it goes on faster. */
#define HALVES_IN_VAIN 2
#define SCRATCHES_MAX  8

/*
 * More scratch has more values made again, and leaves less memory for all of
 * them: as much as there may be is tried, and ever less down to none.
 */
static int search_more(
        struct ts_planned_work *work, int rc, struct ts_planned_plan *plan)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	uint64_t most = work->step->survey->limit_bytes / SCRATCH_PART;
	uint64_t kept_ns = rc ? 0 : plan->plan.predicted_step_ns;
	uint64_t best_ns = rc ? UINT64_MAX : kept_ns;
	unsigned int vain = 0, tries = 0;

	if (!all || !all->count)
		return rc;
	work->replays = true;
	for (bool last = false; !last;) {
		/* The program waits: the last one goes without. */
		uint64_t scratch =
		        ++tries < SCRATCHES_MAX ? next_scratch(all, most) : 0;

		rc = search_with(work, scratch, rc, plan);
		last = !scratch;
		if (!rc && plan->plan.predicted_step_ns < best_ns)
			vain = 0;
		else
			vain++;
		if (!rc)
			best_ns = plan->plan.predicted_step_ns;
		most /= vain > HALVES_IN_VAIN ? 8 : 2;
		/* Not the same once more. */
		if (scratch && scratch <= most)
			most = scratch - 1;
	}
	if (!rc)
		plan->kept_ns = kept_ns;
	return rc;
}

static int make_view(const struct ts_planned_step *step, bool lets_go,
        struct ts_page_view *ret_view)
{
	uint64_t limit_bytes = step->survey->limit_bytes;
	int rc;

	if (step->step)
		rc = ts_planned_view_make(step->step, step->profile,
		        step->values, step->survey, step->candidates, lets_go,
		        ret_view);
	else
		rc = ts_paged_make(step->profile, step->small_move,
		        lets_go ? limit_bytes : 0, ret_view);
	/* The survey has it among what others use. */
	ret_view->profile.resident_bytes = 0;
	return rc;
}

static int make(const struct ts_planned_step *step, bool lets_go,
        struct ts_planned_plan *ret_plan, uint64_t *ret_least_bytes)
{
	struct ts_planned_work work = {.step = step,
	        .n_ops = step->profile->n_ops,
	        .lets_go = lets_go};
	struct ts_graph_options options = {0};
	struct ts_page_view view;
	struct ts_graph graph;
	int rc;

	rc = make_view(step, lets_go, &view);
	if (rc)
		return rc;
	work.view = &view;
	options.dirties = view.dirties;
	rc = ts_planned_add_rebuilds(&work);
	ts_planned_allow_replays(&work, 0);
	if (!rc)
		rc = ts_graph_init(&graph, &view.profile, &options);
	if (!rc) {
		rc = search(&work, &graph, ret_plan);
		work.made_of = NULL;
		ts_graph_finish(&graph);
		rc = search_more(&work, rc, ret_plan);
	}
	*ret_least_bytes = limit_for(&work, work.least_chunks);
	if (rc) {
		ts_page_view_finish(&view);
	} else {
		ret_plan->view = view;
		ret_plan->lets_go = lets_go;
		ret_plan->is_open =
		        step->is_open && ts_planned_worth_proof(step, ret_plan);
	}
	ts_planned_work_finish(&work);
	return rc;
}

int ts_planned_make(const struct ts_planned_step *step,
        struct ts_planned_plan *ret_plan, uint64_t *ret_least_bytes)
{
	uint64_t least_bytes = 0, other_bytes = 0;
	int rc = make(step, false, ret_plan, &least_bytes);

	if (rc == -ENOSPC) {
		rc = make(step, true, ret_plan, &other_bytes);
		if (!least_bytes || (other_bytes && other_bytes < least_bytes))
			least_bytes = other_bytes;
	}
	if (ret_least_bytes)
		*ret_least_bytes = least_bytes;
	return rc;
}
