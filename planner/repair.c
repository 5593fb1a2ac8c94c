/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/repair.h"
#include "planner/frontier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 6
/* A run takes as long for a swap as for so many ops; what counts as long. */
#define SWAP_OPS 8
#define LONG_OPS 20000
/* Steps that a run takes where one leans on another. */
#define RUN_STEPS 3
/* What it takes to fit windows, in looks an op. */
#define WINDOW_LOOKS UINT64_C(8)
/* Runs that it takes to settle a plan. */
#define SETTLING_RUNS 3
/* Steps by which blocks that set the peak keep more, at one capacity. */
#define MOST_RAISED 6
/* Halvings of the capacity that the frontier's knapsack gets. */
#define CAPACITY_TURNS 7

int ts_search_init(
        struct ts_search *s, const struct ts_graph *graph, uint64_t limit_bytes)
{
	int err;

	memset(s, 0, sizeof(*s));
	s->graph = graph;
	s->limit_bytes = limit_bytes;
	s->rounds = ROUNDS;
	s->first_share = 1;
	s->budget = UINT64_MAX;
	s->best.outcome.step_ns = s->settled.outcome.step_ns = TS_NEVER;
	s->wait_ns = calloc(graph->n_gaps + UINT64_C(1), sizeof(*s->wait_ns));
	err = s->wait_ns ? 0 : -ENOMEM;
	if (!err)
		err = ts_model_create(graph, limit_bytes, &s->model);
	if (!err)
		err = ts_pass_init(&s->pass, graph);
	if (!err)
		err = ts_choice_init(&s->trial, graph->n_gaps);
	if (!err)
		err = ts_choice_init(&s->best.choice, graph->n_gaps);
	if (!err)
		err = ts_choice_init(&s->settled.choice, graph->n_gaps);
	if (err)
		ts_search_finish(s);
	return err;
}

void ts_search_finish(struct ts_search *s)
{
	ts_choice_finish(&s->best.choice);
	ts_choice_finish(&s->settled.choice);
	ts_choice_finish(&s->trial);
	ts_program_finish(&s->program);
	ts_cover_finish(&s->cover);
	ts_pass_finish(&s->pass);
	ts_model_destroy(s->model);
	free(s->wait_ns);
	memset(s, 0, sizeof(*s));
}

uint64_t ts_search_work(const struct ts_search *s)
{
	/* To compile a choice takes about half as long as to run it. */
	return s->work_before + s->pass.looks / TS_LOOKS +
	       ts_model_instrs(s->model) +
	       ts_model_runs(s->model) * s->graph->n_ops / 2;
}

uint64_t ts_search_run_work(const struct ts_search *s)
{
	uint64_t n = s->graph->n_ops + UINT64_C(1);

	return n / 2 + n * (ts_graph_wraps(s->graph) ? RUN_STEPS : 1);
}

bool ts_search_may(const struct ts_search *s, uint64_t work)
{
	uint64_t done = ts_search_work(s);

	return done < s->budget && work <= s->budget - done;
}

void ts_search_count(struct ts_search *s, const struct ts_search *other)
{
	s->runs_before += other->runs_before + ts_model_runs(other->model);
	s->instrs_before +=
	        other->instrs_before + ts_model_instrs(other->model);
	s->work_before += ts_search_work(other);
}

uint32_t ts_search_effort(const struct ts_search *s, uint32_t most)
{
	uint64_t ops = s->graph->n_ops;

	for (uint32_t i = 0; i < s->graph->n_gaps; i++) {
		if (s->best.choice.action[i] == TS_SWAP)
			ops += SWAP_OPS;
	}
	if (ops <= LONG_OPS)
		return most;
	return (uint32_t)((most * (uint64_t)LONG_OPS + ops - 1) / ops);
}

int ts_search_windows(struct ts_search *s, enum ts_window_mode windows)
{
	int err = 0;

	if (windows != TS_WINDOWS_ROOM) {
		ts_windows_set(s->graph, &s->trial, windows);
		return 0;
	}
	s->pass.looks += WINDOW_LOOKS * s->graph->n_ops;
	if (!s->program.graph)
		err = ts_program_init(&s->program, s->graph);
	if (!err)
		err = ts_program_compile(&s->program, &s->trial);
	return err ? err
	           : ts_windows_fit(&s->program, &s->trial, s->limit_bytes,
	                     NULL, NULL);
}

/* Keeps the trial, which just ran with @outcome, where it is the best. */
static void consider(struct ts_search *s, enum ts_window_mode windows,
        const struct ts_outcome *outcome)
{
	if (!outcome->fits || outcome->step_ns >= s->best.outcome.step_ns)
		return;
	s->best_run = ts_model_runs(s->model);
	ts_choice_copy(&s->best.choice, &s->trial);
	s->best.outcome = *outcome;
	s->best.windows = windows;
}

int ts_search_offer(struct ts_search *s, enum ts_window_mode windows,
        struct ts_outcome *ret_outcome)
{
	int err = ts_search_windows(s, windows);

	memset(ret_outcome, 0, sizeof(*ret_outcome));
	if (err)
		return err == -EINVAL ? 0 : err;
	return ts_search_offer_as_is(s, windows, ret_outcome);
}

int ts_search_offer_as_is(struct ts_search *s, enum ts_window_mode windows,
        struct ts_outcome *ret_outcome)
{
	int err = ts_model_run(s->model, &s->trial, ret_outcome, s->wait_ns);

	if (!err)
		consider(s, windows, ret_outcome);
	return err;
}

static void clear(struct ts_choice *choice)
{
	memset(choice->action, TS_KEEP, choice->n_gaps);
	memset(choice->window, 0, choice->n_gaps * sizeof(*choice->window));
	memset(choice->late, 0, choice->n_gaps * sizeof(*choice->late));
}

int ts_search_emergency(struct ts_search *s)
{
	struct ts_outcome outcome;

	clear(&s->trial);
	memset(s->trial.action, TS_SWAP, s->trial.n_gaps);
	return ts_search_offer(s, TS_WINDOWS_NEED, &outcome);
}

/*
 * A prefetch that held up compute: replay the value where that is cheaper
 * than the wait, else leave it alone. True where a verdict changed.
 */
static bool blame(struct ts_search *s)
{
	bool changed = false;

	for (uint32_t gap = 0; gap < s->graph->n_gaps; gap++) {
		uint64_t price = s->pass.price_ns[gap];

		if (!s->wait_ns[gap] || s->pass.verdict[gap] != TS_MAY)
			continue;
		s->pass.verdict[gap] = price < s->wait_ns[gap] ? TS_MUST_REPLAY
		                                               : TS_NEVER_SWAP;
		changed = true;
	}
	return changed;
}

int ts_search_refit(struct ts_search *s, uint32_t rounds)
{
	struct ts_outcome outcome;
	int err;

	/* The first run is that of the plan as it is. */
	if (!ts_search_may(s, 2 * ts_search_run_work(s)))
		return 0;
	ts_choice_copy(&s->trial, &s->best.choice);
	err = ts_model_run(s->model, &s->trial, &outcome, s->wait_ns);
	for (uint32_t i = 0; !err && outcome.fits && i < rounds; i++) {
		if (!ts_search_may(s, ts_search_run_work(s)))
			break;
		s->pass.looks += WINDOW_LOOKS * s->graph->n_ops;
		err = ts_windows_fit(ts_model_program(s->model), &s->trial,
		        s->limit_bytes, ts_model_op_times(s->model),
		        ts_model_left(s->model));
		if (!err)
			err = ts_model_run(
			        s->model, &s->trial, &outcome, s->wait_ns);
		if (!err)
			consider(s, TS_WINDOWS_ROOM, &outcome);
	}
	return err;
}

int ts_search_two_pass(
        struct ts_search *s, uint32_t pivot_op, enum ts_window_mode windows)
{
	struct ts_pass *pass = &s->pass;
	double share = s->first_share, cut = 0.01;
	uint64_t begun = ts_search_work(s), work = 0;
	int err = 0;

	pass->pivot_op = pivot_op;
	pass->guard = 0.02;
	pass->order = s->order;
	memset(pass->verdict, TS_MAY, s->graph->n_gaps);
	for (uint32_t round = 0; !err && round < s->rounds; round++) {
		struct ts_outcome outcome;
		bool again = false;

		/* One more takes no longer than those before it. */
		if (round && !ts_search_may(s, work))
			break;
		clear(&s->trial);
		pass->limit_bytes = (uint64_t)((double)s->limit_bytes * share);
		if (!s->no_swaps)
			err = ts_pass_swap(pass, &s->trial);
		if (!err)
			err = ts_pass_squeeze(pass, &s->trial);
		if (err)
			return err;
		err = ts_search_offer(s, windows, &outcome);
		work = (ts_search_work(s) - begun) / (round + 1);
		if (!outcome.fits) {
			share -= cut;
			cut *= 2;
			continue;
		}
		again = blame(s);
		if (outcome.wait_memory_ns) {
			pass->guard += 0.02;
			again = true;
		}
		if (!again)
			break;
	}
	return err;
}

int ts_search_ablation(struct ts_search *s, enum ts_swap_order order,
        bool no_swaps, struct ts_choice *ret_choice,
        struct ts_outcome *ret_outcome, bool *ret_plain)
{
	struct ts_best best = s->best;
	struct ts_choice empty;
	int err = ts_choice_init(&empty, s->graph->n_gaps);

	if (err)
		return err;
	memset(&s->best, 0, sizeof(s->best));
	s->best.choice = empty;
	s->best.outcome.step_ns = TS_NEVER;
	s->order = order;
	s->no_swaps = no_swaps;
	err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_TURN);
	s->order = TS_ORDER_COST;
	s->no_swaps = false;
	ts_choice_copy(ret_choice, &s->best.choice);
	*ret_outcome = s->best.outcome;
	*ret_plain = true;
	ts_choice_finish(&s->best.choice);
	s->best = best;
	s->best_run = 0;
	return err;
}

int ts_search_begin_apart(struct ts_search *s, struct ts_best *ret_before)
{
	struct ts_choice own;
	int err = ts_choice_init(&own, s->graph->n_gaps);

	if (err)
		return err;
	*ret_before = s->best;
	memset(&s->best, 0, sizeof(s->best));
	s->best.choice = own;
	s->best.outcome.step_ns = TS_NEVER;
	return 0;
}

void ts_search_end_apart(struct ts_search *s, struct ts_best *before)
{
	if (before->outcome.step_ns <= s->best.outcome.step_ns) {
		ts_choice_finish(&s->best.choice);
		s->best = *before;
		s->best_run = 0;
	} else {
		ts_choice_finish(&before->choice);
	}
}

int ts_search_note_settled(struct ts_search *s)
{
	const uint32_t *back = ts_model_back(s->model);
	const struct ts_graph *g = s->graph;
	struct ts_outcome outcome;
	int err;

	if (!s->best.outcome.fits)
		return 0;
	ts_choice_copy(&s->trial, &s->best.choice);
	err = ts_model_run(s->model, &s->trial, &outcome, s->wait_ns);
	for (uint32_t i = 0; !err && i < g->n_gaps; i++) {
		uint32_t op = back[i];

		if (s->trial.action[i] != TS_SWAP || op == TS_NONE)
			continue;
		if (op <= g->gaps[i].from_op)
			op += g->n_ops;
		if (op <= g->gaps[i].to_op)
			s->trial.window[i] = op;
	}
	if (!err)
		err = ts_model_run(s->model, &s->trial, &outcome, s->wait_ns);
	if (err || !outcome.fits ||
	        outcome.step_ns >= s->settled.outcome.step_ns)
		return err;
	ts_choice_copy(&s->settled.choice, &s->trial);
	s->settled.outcome = outcome;
	s->settled.windows = s->best.windows;
	return 0;
}

int ts_search_settle(struct ts_search *s)
{
	struct ts_outcome outcome;
	int err;

	if (!ts_search_may(s, SETTLING_RUNS * ts_search_run_work(s)))
		return s->best_run == ts_model_runs(s->model)
		               ? 0
		               : ts_model_run(s->model, &s->best.choice,
		                         &outcome, s->wait_ns);
	err = ts_search_note_settled(s);
	if (err)
		return err;
	if (s->settled.outcome.step_ns <= s->best.outcome.step_ns) {
		ts_choice_copy(&s->best.choice, &s->settled.choice);
		s->best.outcome = s->settled.outcome;
		s->best.windows = s->settled.windows;
	}
	return ts_model_run(s->model, &s->best.choice, &outcome, s->wait_ns);
}

/* The trial: points for so many bytes, with the swaps of the best plan. */
static int choose_points(struct ts_search *s,
        const struct ts_frontiers *frontiers, uint64_t capacity_bytes)
{
	int err;

	ts_choice_copy(&s->trial, &s->best.choice);
	err = ts_frontiers_choose(frontiers, capacity_bytes, &s->trial);
	for (uint32_t i = 0; !err && i < s->graph->n_gaps; i++) {
		if (s->best.choice.action[i] == TS_SWAP)
			s->trial.action[i] = TS_SWAP;
	}
	return err;
}

/* Where the compiled trial takes most memory; TS_NONE: within the limit. */
static int find_peak(struct ts_search *s, uint64_t *bytes, uint32_t *ret_op)
{
	uint32_t most = 0;
	int err = ts_program_compile(&s->program, &s->trial);

	*ret_op = TS_NONE;
	if (err)
		return err == -EINVAL ? 0 : err;
	ts_program_memory(&s->program, &s->trial, bytes);
	for (uint32_t i = 0; i < s->graph->n_ops; i++)
		most = bytes[i] > bytes[most] ? i : most;
	if (bytes[most] > s->limit_bytes)
		*ret_op = most;
	return 0;
}

/*
 * A capacity that did not fit may do so where the block that sets the peak in
 * its backward keeps more and so makes less there again.
 */
static int try_raised(struct ts_search *s, struct ts_frontiers *frontiers,
        uint64_t capacity_bytes, uint64_t *bytes)
{
	struct ts_outcome outcome;
	bool raised = false;
	uint32_t op = TS_NONE;
	int err = 0;

	for (uint32_t i = 0; !err && i <= MOST_RAISED; i++) {
		err = choose_points(s, frontiers, capacity_bytes);
		if (!err)
			err = find_peak(s, bytes, &op);
		if (err || op == TS_NONE || i == MOST_RAISED ||
		        !ts_frontiers_raise(frontiers, op))
			break;
		raised = true;
	}
	ts_frontiers_lower(frontiers);
	if (err || !raised || op != TS_NONE)
		return err;
	return ts_search_offer(s, s->best.windows, &outcome);
}

int ts_search_frontier(struct ts_search *s)
{
	uint64_t low = 0, high = s->limit_bytes;
	uint64_t *bytes = calloc(s->graph->n_ops + UINT64_C(1), sizeof(*bytes));
	struct ts_frontiers *frontiers = NULL;
	int err = bytes ? 0 : -ENOMEM;

	if (!err && !s->program.graph)
		err = ts_program_init(&s->program, s->graph);
	if (!err)
		err = ts_frontiers_create(s->graph, &frontiers);
	for (uint32_t turn = 0; !err && turn < CAPACITY_TURNS; turn++) {
		uint64_t mid = low + (high - low) / 2;
		struct ts_outcome outcome;

		err = choose_points(s, frontiers, mid);
		if (!err)
			err = ts_search_offer(s, s->best.windows, &outcome);
		if (!err && outcome.fits) {
			low = mid;
			continue;
		}
		high = mid;
		if (!err)
			err = try_raised(s, frontiers, mid, bytes);
	}
	ts_frontiers_destroy(frontiers);
	free(bytes);
	return err == -ENOENT ? 0 : err;
}
