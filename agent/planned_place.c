/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "agent/planned_make_internal.h"
#include "planner/graph.h"
#include "planner/plan_json.h"

/* From when to when a hold has its chunks. */
struct ticks {
	uint32_t from, free;
};

static int add_hold(struct ts_planned_work *work,
        const struct ts_page_range *range, uint32_t take_op,
        uint32_t release_op, const struct ticks *ticks)
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
        const struct ts_planned_work *work, uint32_t range)
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
bool ts_planned_is_last(const struct ts_planned_work *work,
        const struct ts_gap *gap, uint32_t range)
{
	return gap->to_op < work->n_ops &&
	       ts_page_range_lingers(&work->view->ranges[range], gap->to_op);
}

/* The holds of one range: its life without the gaps in which it is away. */
static int hold_range(
        struct ts_planned_work *work, const struct ts_graph *g, uint32_t index)
{
	const struct ts_page_range *range = &work->view->ranges[index];
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
		if (ts_planned_is_last(
		            work, &g->gaps[work->gap_list[k]], index))
			return rc;
		take = gap->take_op;
		at.from = gap->come_tick;
	}
	at.free = free_tick;
	return rc ? rc : add_hold(work, range, take, end, &at);
}

/* Gaps in which a range is away, by range; they ascend already. */
static int list_gaps(struct ts_planned_work *work, const struct ts_graph *g,
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

static int hold_all(struct ts_planned_work *work, const struct ts_graph *g)
{
	int rc = 0;

	work->n_holds = 0;
	for (uint32_t i = 0; i < work->view->n_ranges && !rc; i++) {
		const struct ts_page_range *range = &work->view->ranges[i];

		/* What comes untouched and untouched goes takes no memory;
		 * some were freed between the last step and this one. */
		if (range->bytes && (range->used || range->before) &&
		        range->end > range->first)
			rc = hold_range(work, g, i);
	}
	return rc;
}

/* It went when it was used last, by the plan. */
static bool has_gone(const struct ts_planned_work *work,
        const struct ts_graph *g, uint32_t range)
{
	for (uint32_t k = work->first_gap[range];
	        k < work->first_gap[range + 1]; k++) {
		uint32_t gap = work->gap_list[k];

		if (work->run.gaps[gap].away &&
		        ts_planned_is_last(work, &g->gaps[gap], range))
			return true;
	}
	return false;
}

/* What leaves at its end whatever the plan says. */
static void list_leaving(struct ts_planned_work *work, const struct ts_graph *g,
        struct ts_planned_plan *to)
{
	const struct ts_planned_run *run = &work->run;

	for (uint32_t i = 0; i < work->view->n_ranges; i++) {
		const struct ts_page_range *range = &work->view->ranges[i];

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
static int list_moves(struct ts_planned_work *work, const struct ts_graph *g,
        struct ts_planned_plan *to)
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
		if (ts_planned_is_last(work, &g->gaps[i], range))
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
	return 0;
}

/* How long a step takes with these moves, and what is made again. */
static int predict(struct ts_planned_work *work, struct ts_planned_plan *to)
{
	uint32_t count = to->plan.n_replays;
	struct ts_replay *replays =
	        ts_recording_copy(to->plan.replays, count, sizeof(*replays));
	int rc = replays ? ts_planned_time_replays(work, replays, count)
	                 : -ENOMEM;

	if (!rc)
		rc = ts_planned_predict(work->view, &to->pages,
		        &(struct ts_planned_extras){.moves = work->moves,
		                .n_moves = work->n_moves,
		                .replays = replays,
		                .n_replays = count},
		        &to->plan.predicted_step_ns);
	free(replays);
	return rc;
}

static int find_pages(const struct ts_planned_work *work,
        const struct ts_planned_sharing *sharing, struct ts_page_plan *ret)
{
	const struct ts_enforce_survey *survey = work->step->survey;
	struct ts_page_plan_input input = {.segments = survey->segments,
	        .n_segments = survey->n_segments,
	        .holds = work->holds,
	        .n_holds = work->n_holds,
	        .page_bytes = survey->page_bytes,
	        .n_ops = work->n_ops,
	        .n_ticks = work->run.n_ticks,
	        .places = sharing->places,
	        .n_places = sharing->n_places,
	        .n_chunks = sharing->n_chunks};

	if (!work->apart)
		input.most_chunks = work->chunks_bytes / survey->page_bytes;
	return ts_page_plan_find(&input, ret);
}

/* ------------------------------------------------------------------- whole */

/* Which pages @plan needs when, and which chunks for that. */
int ts_planned_place(struct ts_planned_work *work, const struct ts_graph *g,
        struct ts_planned_plan *made)
{
	struct ts_planned_sharing sharing = {0};
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
	if (work->shares)
		rc = ts_planned_share(work, g, &choice, &made->plan, &sharing);
	if (rc)
		goto out;
	made->plan.predicted_peak_bytes = work->run.peak_bytes;
	made->plan.swap_bytes = work->run.out_bytes;
	rc = list_gaps(work, g, &choice);
	if (!rc)
		rc = hold_all(work, g);
	if (!rc)
		rc = find_pages(work, &sharing, &made->pages);
	if (!rc && work->shares)
		made->plan.predicted_peak_bytes =
		        made->pages.peak_pages * made->pages.page_bytes;
	if (!rc)
		rc = list_moves(work, g, made);
	if (!rc)
		rc = predict(work, made);
	if (!rc && made->plan.n_replays)
		rc = ts_planned_list_replays(work, g, made);
	ts_planned_run_finish(&work->run);
out:
	ts_planned_sharing_finish(&sharing);
	ts_choice_finish(&choice);
	return rc;
}
