/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/planned_filler.h"
#include "agent/planned_hunt.h"
#include "agent/planned_offer.h"
#include "agent/planned_predict.h"
#include "agent/planned_run.h"
#include "agent/planned_worth.h"
#include "planner/bound.h"
#include "planner/graph.h"
#include "planner/plan_json.h"

/* Of what the limit leaves, for what was not there when it was observed. */
#define MARGIN_PERCENT 2
#define TRIES_MAX      10
/*
 * The search ends where what fits and what does not are so close: one part in
 * so many; where only smaller ops have less that makes less of a difference.
 */
#define CLOSE       100
#define CLOSE_BELOW 16

struct work {
	const struct ts_planned_step *step;
	uint32_t n_ops;
	struct ts_planned_view *view;
	uint32_t *first_gap; /* by range: offsets into gap_list */
	uint32_t *gap_list;  /* gaps that are not kept, ascending */
	struct ts_plan_hold *holds;
	uint32_t n_holds, holds_room;
	struct ts_planned_run run; /* of the plan at hand */
	bool replays;              /* it may have values made again */
	uint64_t scratch_bytes;    /* for these */
	uint64_t chunks_bytes;     /* of all chunks there are */
	uint64_t least_chunks;     /* of plans that need more than these */
	struct ts_planned_move *moves;
	uint32_t n_moves;
};

void ts_planned_plan_finish(struct ts_planned_plan *plan)
{
	ts_plan_finish(&plan->plan);
	ts_page_plan_finish(&plan->pages);
	ts_planned_view_finish(&plan->view);
	free(plan->replays);
	plan->replays = NULL;
	plan->n_replays = 0;
}

/* From when to when a hold has its chunks. */
struct ticks {
	uint32_t from, free;
};

static int add_hold(struct work *work, const struct ts_planned_range *range,
        uint32_t take_op, uint32_t release_op, const struct ticks *ticks)
{
	struct ts_plan_hold hold = {.address = range->address,
	        .bytes = range->bytes,
	        .take_op = take_op,
	        .release_op = release_op,
	        .from_tick = ticks->from,
	        .free_tick = ticks->free};

	if (take_op >= release_op)
		return 0;
	if (work->n_holds == work->holds_room) {
		uint32_t room = 2 * work->holds_room + 1024;
		void *more = realloc(work->holds, room * sizeof(*work->holds));

		if (!more)
			return -ENOMEM;
		work->holds = more;
		work->holds_room = room;
	}
	/* Ops may be shorter than a tick. */
	if (hold.from_tick >= work->run.n_ticks)
		hold.from_tick = work->run.n_ticks - 1;
	if (hold.free_tick <= hold.from_tick)
		hold.free_tick = hold.from_tick + 1;
	work->holds[work->n_holds++] = hold;
	return 0;
}

/* Of a gap that reaches into the next step; at most one a range. */
static const struct ts_planned_gap *wrapping(
        const struct work *work, uint32_t range)
{
	for (uint32_t k = work->first_gap[range];
	        k < work->first_gap[range + 1]; k++) {
		const struct ts_planned_gap *gap =
		        &work->run.gaps[work->gap_list[k]];

		if (gap->away && gap->wraps)
			return gap;
	}
	return NULL;
}

/* The gap ends with the range's life: nothing comes back. */
static bool is_last(
        const struct work *work, const struct ts_gap *gap, uint32_t range)
{
	return gap->to_op < work->n_ops &&
	       ts_planned_range_lingers(&work->view->ranges[range], gap->to_op);
}

/* The holds of one range: its life without the gaps in which it is away. */
static int hold_range(
        struct work *work, const struct ts_graph *g, uint32_t index)
{
	const struct ts_planned_range *range = &work->view->ranges[index];
	const struct ts_planned_run *run = &work->run;
	const struct ts_planned_gap *last = NULL;
	uint32_t take = range->first, end = range->end;
	struct ticks at = {0, run->n_ticks};
	uint32_t free_tick = run->n_ticks;
	int rc = 0;

	if (!range->before)
		at.from = run->begin_tick[take];
	if (end < run->n_ops)
		free_tick = run->end_tick[end - 1];
	if (range->before && range->end == run->n_ops)
		last = wrapping(work, index);
	if (last) {
		take = last->take_op;
		at.from = last->come_tick - run->n_ticks;
		end = last->release_op;
		free_tick = last->gone_tick;
	}
	for (uint32_t k = work->first_gap[index];
	        !rc && k < work->first_gap[index + 1]; k++) {
		const struct ts_planned_gap *gap =
		        &run->gaps[work->gap_list[k]];

		if (!gap->away || gap->wraps || gap->release_op <= take ||
		        gap->take_op >= end)
			continue;
		at.free = gap->gone_tick;
		rc = add_hold(work, range, take, gap->release_op, &at);
		if (is_last(work, &g->gaps[work->gap_list[k]], index))
			return rc;
		take = gap->take_op;
		at.from = gap->come_tick;
	}
	at.free = free_tick;
	return rc ? rc : add_hold(work, range, take, end, &at);
}

/* Gaps in which a range is away, by range; they ascend already. */
static int list_gaps(struct work *work, const struct ts_graph *g,
        const struct ts_choice *choice)
{
	size_t ranges = work->view->n_ranges;
	const uint32_t *range_of = work->view->range_of;
	uint32_t total = 0;

	free(work->first_gap);
	free(work->gap_list);
	work->first_gap = calloc(ranges + 2, sizeof(*work->first_gap));
	work->gap_list = malloc((g->n_gaps + 1ull) * sizeof(*work->gap_list));
	if (!work->first_gap || !work->gap_list)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gaps; i++)
		if (choice->action[i] != TS_KEEP)
			work->first_gap[range_of[g->gaps[i].version] + 1]++;
	for (size_t i = 0; i <= ranges; i++) {
		uint32_t count = work->first_gap[i];

		work->first_gap[i] = total;
		total += count;
	}
	work->first_gap[ranges + 1] = total;
	/* Each range's entry is the place of its next gap, then its end. */
	for (uint32_t i = 0; i < g->n_gaps; i++)
		if (choice->action[i] != TS_KEEP)
			work->gap_list
			        [work->first_gap[range_of[g->gaps[i].version] +
			                         1]++] = i;
	return 0;
}

static int hold_all(struct work *work, const struct ts_graph *g)
{
	int rc = 0;

	work->n_holds = 0;
	for (uint32_t i = 0; i < work->view->n_ranges && !rc; i++) {
		const struct ts_planned_range *range = &work->view->ranges[i];

		/* What comes untouched and untouched goes takes no memory;
		 * some were freed between the last step and this one. */
		if (range->bytes && (range->used || range->before) &&
		        range->end > range->first)
			rc = hold_range(work, g, i);
	}
	return rc;
}

/* It went when it was used last, by the plan. */
static bool has_gone(
        const struct work *work, const struct ts_graph *g, uint32_t range)
{
	for (uint32_t k = work->first_gap[range];
	        k < work->first_gap[range + 1]; k++) {
		uint32_t gap = work->gap_list[k];

		if (work->run.gaps[gap].away &&
		        is_last(work, &g->gaps[gap], range))
			return true;
	}
	return false;
}

/* What leaves at its end whatever the plan says. */
static void list_leaving(
        struct work *work, const struct ts_graph *g, struct ts_planned_plan *to)
{
	const struct ts_planned_run *run = &work->run;

	for (uint32_t i = 0; i < work->view->n_ranges; i++) {
		const struct ts_planned_range *range = &work->view->ranges[i];

		if (!range->leaves || has_gone(work, g, i))
			continue;
		work->moves[work->n_moves++] =
		        (struct ts_planned_move){.op = range->end % run->n_ops,
		                .range = i,
		                .tick = run->end_tick[range->end - 1],
		                .copies = true};
		to->plan.swap_bytes += range->bytes;
	}
}

/* What leaves by the plan, and comes again. */
static int list_moves(
        struct work *work, const struct ts_graph *g, struct ts_planned_plan *to)
{
	const struct ts_planned_run *run = &work->run;

	free(work->moves);
	work->moves = malloc((2ull * g->n_gaps + work->view->n_ranges + 1) *
	                     sizeof(*work->moves));
	if (!work->moves)
		return -ENOMEM;
	work->n_moves = 0;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_planned_gap *gap = &run->gaps[i];
		uint32_t range = work->view->range_of[g->gaps[i].version];

		if (!gap->away)
			continue;
		work->moves[work->n_moves++] = (struct ts_planned_move){
		        .op = gap->release_op % run->n_ops,
		        .range = range,
		        .tick = gap->gone_tick,
		        .copies = gap->copies};
		if (is_last(work, &g->gaps[i], range))
			continue;
		work->moves[work->n_moves++] = (struct ts_planned_move){
		        .op = gap->take_op % run->n_ops,
		        .range = range,
		        .tick = gap->wraps ? gap->come_tick - run->n_ticks
		                           : gap->come_tick,
		        .take = true,
		        .copies = !gap->replayed};
	}
	list_leaving(work, g, to);
	return ts_planned_predict(work->view, &to->pages,
	        &(struct ts_planned_extras){.moves = work->moves,
	                .n_moves = work->n_moves,
	                .replays = to->plan.replays,
	                .n_replays = to->plan.n_replays},
	        &to->plan.predicted_step_ns);
}

/* ----------------------------------------------------------------- replays */

static const struct ts_replay_candidate *candidate_of(
        const struct work *work, uint32_t value)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	uint32_t low = 0, high = all ? all->count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (all->list[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return all && low < all->count && all->list[low].value == value
	               ? &all->list[low]
	               : NULL;
}

/* What is given up by the plan, and when it is made again. */
static int list_replays(
        struct work *work, const struct ts_graph *g, struct ts_planned_plan *to)
{
	to->replays =
	        malloc((to->plan.n_replays + 1ull) * sizeof(*to->replays));
	if (!to->replays)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_planned_gap *gap = &work->run.gaps[i];
		const struct ts_replay_candidate *candidate =
		        candidate_of(work, g->gaps[i].version);

		if (!gap->away || !gap->replayed)
			continue;
		if (!candidate || to->n_replays == to->plan.n_replays)
			return -EINVAL;
		to->replays[to->n_replays++] =
		        (struct ts_replay_choice){.closure = candidate->closure,
		                .from_op = g->gaps[i].from_op,
		                .make_op = gap->take_op};
		to->replayed_bytes += g->gaps[i].size_bytes;
	}
	return 0;
}

/* Values can be made again with so much scratch, where that was proved. */
static void allow_replays(struct work *work, uint64_t scratch_bytes)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	struct ts_value *values = work->view->profile.values;

	for (uint32_t v = 0; v < work->view->profile.n_values; v++)
		values[v].no_replay = true;
	for (uint32_t i = 0; all && i < all->count; i++)
		values[all->list[i].value].no_replay =
		        all->list[i].scratch_bytes > scratch_bytes;
	work->scratch_bytes = scratch_bytes;
}

/* How the profile's values are made again. */
static int add_rebuilds(struct work *work)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	struct ts_profile *profile = &work->view->profile;
	uint32_t count = all ? all->count : 0;
	uint32_t uses = all ? all->pool_count : 0;
	void *more;

	more = realloc(profile->rebuilds, (profile->n_rebuilds + count + 1ull) *
	                                          sizeof(*profile->rebuilds));
	if (!more)
		return -ENOMEM;
	profile->rebuilds = more;
	more = realloc(profile->uses,
	        (profile->n_uses + uses + 1ull) * sizeof(*profile->uses));
	if (!more)
		return -ENOMEM;
	profile->uses = more;
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_replay_candidate *from = &all->list[i];

		profile->values[from->value].rebuild = profile->n_rebuilds;
		profile->rebuilds[profile->n_rebuilds++] =
		        (struct ts_rebuild){.duration_ns = from->duration_ns,
		                .first_read = profile->n_uses,
		                .n_reads = from->n_reads};
		for (uint32_t k = 0; k < from->n_reads; k++)
			profile->uses[profile->n_uses++] =
			        all->pool[from->first_read + k];
	}
	return 0;
}

/* A plan tells of the ops that are launched, not of what was priced as one. */
static int tell_ops(const struct work *work, struct ts_plan *plan)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	const struct ts_profile *profile = &work->view->profile;
	struct ts_replay *told;
	uint64_t room = 1;
	uint32_t count = 0;

	for (uint32_t i = 0; i < plan->n_replays; i++) {
		const struct ts_replay_candidate *from =
		        candidate_of(work, plan->replays[i].value);

		if (!from)
			return -EINVAL;
		room += from->n_ops;
	}
	told = calloc(room, sizeof(*told));
	if (!told)
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->n_replays; i++) {
		const struct ts_replay *replay = &plan->replays[i];
		const struct ts_replay_candidate *from =
		        candidate_of(work, replay->value);

		for (uint32_t k = 0; k < from->n_ops; k++) {
			uint32_t op = all->pool[from->first_op + k];
			const struct ts_profile_op *made = &profile->ops[op];
			uint32_t value =
			        made->n_writes
			                ? profile->uses[made->first_write]
			                : replay->value;

			if (k + 1 == from->n_ops)
				value = replay->value;
			told[count++] = (struct ts_replay){
			        .before_op = replay->before_op,
			        .value = value,
			        .op = op,
			        .duration_ns = made->duration_ns};
		}
	}
	free(plan->replays);
	plan->replays = told;
	plan->n_replays = count;
	return 0;
}

/* ------------------------------------------------------------------- whole */

/* Which pages @plan needs when, and which chunks for that. */
static int place(struct work *work, const struct ts_graph *g,
        struct ts_planned_plan *made)
{
	const struct ts_enforce_survey *survey = work->step->survey;
	struct ts_input_error error;
	struct ts_choice choice;
	int rc = ts_choice_init(&choice, g->n_gaps);

	if (rc)
		return rc;
	rc = ts_plan_to_choice(&made->plan, g, &choice, &error);
	if (!rc)
		rc = ts_planned_run_make(
		        g, &choice, made->plan.limit_bytes, &work->run);
	/* Copies after the last use need more than the planner reckons. */
	if (rc == -EAGAIN)
		rc = ts_planned_run_make(
		        g, &choice, work->chunks_bytes, &work->run);
	if (rc)
		goto out;
	made->plan.predicted_peak_bytes = work->run.peak_bytes;
	made->plan.swap_bytes = work->run.out_bytes;
	rc = list_gaps(work, g, &choice);
	if (!rc)
		rc = hold_all(work, g);
	if (!rc)
		rc = ts_page_plan_make(survey->segments, survey->n_segments,
		        work->holds, work->n_holds, survey->page_bytes,
		        work->n_ops, work->run.n_ticks, &made->pages);
	if (!rc)
		rc = list_moves(work, g, made);
	if (!rc && made->plan.n_replays)
		rc = list_replays(work, g, made);
	ts_planned_run_finish(&work->run);
out:
	ts_choice_finish(&choice);
	return rc;
}

static uint64_t chunks_there(const struct work *work)
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
static uint64_t limit_for(const struct work *work, uint64_t chunks)
{
	const struct ts_enforce_survey *survey = work->step->survey;
	uint64_t pages = survey->fixed_pages + chunks;

	if (!chunks)
		return 0;
	return survey->other_bytes +
	       pages * survey->page_bytes / 100 * (100 + 2 * MARGIN_PERCENT);
}

static int plan_limit(struct work *work, const struct ts_graph *g,
        uint64_t limit_bytes, struct ts_planned_plan *made)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_plan_stats stats;
	int rc;

	memset(made, 0, sizeof(*made));
	options.pages = false;
	/* The program waits, and several limits may have to be tried. */
	options.quick = true;
	options.no_replay = !work->replays;
	options.dirties = g->dirties;
	/* What is less than a page does not move. */
	options.min_gap_bytes = work->step->survey->page_bytes;
	rc = ts_plan_make(
	        g->profile, limit_bytes, &options, &made->plan, &stats);
	made->model_ns = made->plan.predicted_step_ns;
	made->moving_bytes = limit_bytes;
	if (!rc)
		rc = place(work, g, made);
	if (rc)
		ts_planned_plan_finish(made);
	return rc;
}

/* Where it is @below what the largest op needs, that op has what it needs, and
 * all others that can have @limit_bytes. */
static int try_limit(struct work *work, const struct ts_graph *g,
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

/* 0 where the plan that was offered still fits: the planner is not asked. */
static int try_offered(struct work *work, const struct ts_graph *g,
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
	rc = place(work, g, made);
	if (!rc)
		*ret_chunks = made->pages.n_chunks;
	if (!rc && made->pages.n_chunks > chunks)
		rc = -ENOSPC;
	if (rc)
		ts_planned_plan_finish(made);
	return rc;
}

/* The most that the planner may have for its plan to find chunks for all. */
static int hunt_down(struct work *work, const struct ts_graph *g,
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
			if (!rc && (!work->least_chunks ||
			                   made.pages.n_chunks <
			                           work->least_chunks))
				work->least_chunks = made.pages.n_chunks;
			if (!rc)
				ts_planned_plan_finish(&made);
			/* Then there is only to give the smaller ops less. */
			if (at_floor && !hunt.fits) {
				below = true;
				hunt.close = CLOSE_BELOW;
			}
			if (below && work->chunks_bytes < g->floor_bytes)
				break;
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

static int search(struct work *work, const struct ts_graph *g,
        struct ts_planned_plan *ret)
{
	const struct ts_enforce_survey *survey = work->step->survey;
	uint64_t chunks = chunks_there(work), offered_chunks = 0;
	int rc;

	work->chunks_bytes = chunks * survey->page_bytes;
	rc = work->replays ? -ENOENT
	                   : try_offered(work, g, chunks, ret, &offered_chunks);
	if (rc) {
		int offered_rc = rc;

		rc = hunt_down(work, g, chunks, ret);
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
static int search_with(struct work *work, uint64_t scratch, int rc,
        struct ts_planned_plan *plan)
{
	struct ts_graph_options options = {.dirties = work->view->dirties};
	struct ts_planned_plan other;
	struct ts_graph graph;
	int more;

	allow_replays(work, scratch);
	more = ts_graph_init(&graph, &work->view->profile, &options);
	if (more)
		return rc;
	more = search(work, &graph, &other);
	ts_graph_finish(&graph);
	if (more)
		return rc;
	if (!other.n_replays ||
	        (!rc && other.plan.predicted_step_ns >=
	                        BETTER_OF(plan->plan.predicted_step_ns)) ||
	        tell_ops(work, &other.plan)) {
		ts_planned_plan_finish(&other);
		return rc;
	}
	if (!rc)
		ts_planned_plan_finish(plan);
	other.scratch_bytes = scratch;
	*plan = other;
	return 0;
}

/*
 * More scratch has more values made again, and leaves less memory for all of
 * them: as much as there may be is tried, and ever less down to none.
 */
static int search_more(struct work *work, int rc, struct ts_planned_plan *plan)
{
	const struct ts_replay_candidates *all = work->step->candidates;
	uint64_t most = work->step->survey->limit_bytes / SCRATCH_PART;
	uint64_t kept_ns = rc ? 0 : plan->plan.predicted_step_ns;

	if (!all || !all->count)
		return rc;
	work->replays = true;
	for (bool last = false; !last;) {
		uint64_t scratch = next_scratch(all, most);

		rc = search_with(work, scratch, rc, plan);
		last = !scratch;
		/* Not the same once more. */
		most = scratch && scratch <= most / 8 ? scratch - 1 : most / 8;
	}
	if (!rc)
		plan->kept_ns = kept_ns;
	return rc;
}

static int make(const struct ts_planned_step *step, bool lets_go,
        struct ts_planned_plan *ret_plan, uint64_t *ret_least_bytes)
{
	struct work work = {
	        .step = step, .n_ops = (uint32_t)step->step->op_count};
	struct ts_graph_options options = {0};
	struct ts_planned_view view;
	struct ts_graph graph;
	int rc;

	rc = ts_planned_view_make(step->step, step->profile, step->values,
	        step->survey, lets_go, &view);
	if (rc)
		return rc;
	work.view = &view;
	options.dirties = view.dirties;
	rc = add_rebuilds(&work);
	allow_replays(&work, 0);
	if (!rc)
		rc = ts_graph_init(&graph, &view.profile, &options);
	if (!rc) {
		rc = search(&work, &graph, ret_plan);
		ts_graph_finish(&graph);
		rc = search_more(&work, rc, ret_plan);
	}
	*ret_least_bytes = limit_for(&work, work.least_chunks);
	if (rc) {
		ts_planned_view_finish(&view);
	} else {
		ret_plan->view = view;
		ret_plan->is_open =
		        step->is_open && ts_planned_worth_proof(step, ret_plan);
	}
	free(work.first_gap);
	free(work.gap_list);
	free(work.holds);
	free(work.moves);
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
