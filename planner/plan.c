/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/plan.h"
#include "planner/baselines/baseline.h"
#include "planner/bound.h"
#include "planner/pages.h"
#include "planner/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Values below share pages with others. */
#define SMALL_PAGE_BYTES (UINT64_C(2) << 20)
/* Evaluations of the search: so many ops in all, and never more than that. */
#define SEARCH_OPS      800000
#define MAX_EVALUATIONS 3000
/* The same where parameters may leave: a run takes three steps to settle. */
#define WIDE_SEARCH_OPS 60000
/* Rounds of repair there, where the two passes are not what counts. */
#define WIDE_ROUNDS       2
#define MAX_PAGED_OBJECTS 50000
/* A plan for a long tape that is so many times slower than the ideal. */
#define POOR 1.25
/* From so many ops on only the cheapest parts of the planner run. */
#define LONG_TAPE 200000
/* Up to so many gaps the local search alone finds what there is. */
#define FEW_GAPS 64

struct ts_plan_options ts_plan_default_options(void)
{
	return (struct ts_plan_options){
	        .search_evaluations = TS_SEARCH_AUTO,
	        .baselines = true,
	        .pages = true,
	};
}

void ts_plan_finish(struct ts_plan *plan)
{
	free(plan->profile_name);
	free(plan->decisions);
	free(plan->replays);
	memset(plan, 0, sizeof(*plan));
}

/* Which operand of @op the object is. */
static uint32_t operand_of(
        const struct ts_graph *g, uint32_t op, uint32_t object)
{
	const struct ts_profile_op *info = &g->profile->ops[op];
	const uint32_t *uses = g->profile->uses;

	for (uint32_t k = 0; k < info->n_reads; k++) {
		if (g->object_of[uses[info->first_read + k]] == object)
			return k;
	}
	for (uint32_t k = 0; k < info->n_writes; k++) {
		if (g->object_of[uses[info->first_write + k]] == object)
			return info->n_reads + k;
	}
	return TS_NONE;
}

static int fill_decisions(struct ts_plan *plan, struct ts_search *search)
{
	const struct ts_graph *g = search->graph;
	const struct ts_choice *choice = &search->best.choice;
	const struct ts_program *program = ts_model_program(search->model);

	plan->decisions =
	        calloc(g->n_gaps + UINT64_C(1), sizeof(*plan->decisions));
	if (!plan->decisions)
		return -ENOMEM;
	plan->n_decisions = g->n_gaps;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];
		struct ts_decision *d = &plan->decisions[i];

		*d = (struct ts_decision){
		        .value = gap->version,
		        .action = (enum ts_action)choice->action[i],
		        .from_op = gap->from_op,
		        .to_op = gap->to_op,
		        .from_operand =
		                operand_of(g, gap->from_op, gap->object),
		        .to_operand = operand_of(
		                g, gap->to_op % g->n_ops, gap->object),
		        .offload_op = TS_NONE,
		        .prefetch_op = TS_NONE,
		        .due_op = TS_NONE,
		};
		if (d->action == TS_KEEP)
			continue;
		d->due_op = program->need_op[i];
		if (d->action == TS_REPLAY) {
			d->cost_ns = gap->replay_ns;
			continue;
		}
		d->offload_op = program->copy_op[i];
		d->prefetch_op = choice->window[i] > gap->from_op
		                         ? choice->window[i]
		                         : gap->from_op + 1;
		if (d->prefetch_op > d->due_op)
			d->prefetch_op = d->due_op;
		d->cost_ns = search->wait_ns[i];
	}
	return 0;
}

static int fill_pages(struct ts_plan *plan, const struct ts_search *search)
{
	struct ts_pages pages;
	int err = ts_pages_assign(search->graph, &search->best.choice,
	        ts_model_left(search->model), ts_model_back(search->model),
	        plan->limit_bytes, &pages);

	/* No device has so many pages: the plan goes without. */
	if (err)
		return err == -E2BIG ? 0 : err;
	plan->page_bytes = TS_PAGE_BYTES;
	plan->page_chunks = pages.n_chunks;
	plan->page_peak = pages.peak_pages;
	plan->page_remaps = pages.remaps;
	ts_pages_finish(&pages);
	return 0;
}

static int fill_replays(struct ts_plan *plan, const struct ts_search *search)
{
	const struct ts_graph *g = search->graph;
	const struct ts_program *program = ts_model_program(search->model);
	uint32_t n = 0;

	for (uint32_t i = 0; i < program->n_instrs; i++)
		n += program->instrs[i].value != TS_NONE;
	plan->replays = calloc(n + UINT64_C(1), sizeof(*plan->replays));
	if (!plan->replays)
		return -ENOMEM;
	for (uint32_t i = 0; i < program->n_instrs; i++) {
		const struct ts_instr *instr = &program->instrs[i];
		struct ts_producer producer;

		if (instr->value == TS_NONE ||
		        !ts_graph_producer(g, instr->value, &producer))
			continue;
		plan->replays[plan->n_replays++] = (struct ts_replay){
		        .before_op = instr->op,
		        .value = instr->value,
		        .op = producer.op,
		        .duration_ns = instr->duration_ns,
		};
	}
	return 0;
}

static bool any_replay(const struct ts_choice *choice)
{
	return memchr(choice->action, TS_REPLAY, choice->n_gaps) != NULL;
}

/* What other policies would do, under this planner's runtime rules. */
static int try_baselines(struct ts_search *s)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < ts_n_baselines; i++) {
		struct ts_baseline_result result;
		struct ts_outcome outcome;

		if (ts_baselines[i].dominated)
			continue;
		err = ts_baseline_run(s, ts_baselines[i].fn, &result);
		if (err)
			break;
		if (s->swap_only && any_replay(&result.choice)) {
			ts_choice_finish(&result.choice);
			continue;
		}
		memset(s->trial.late, 0, s->trial.n_gaps);
		memcpy(s->trial.action, result.choice.action, s->trial.n_gaps);
		if (!result.plain ||
		        result.outcome.step_ns < s->best.outcome.step_ns)
			err = ts_search_offer(s, TS_WINDOWS_TURN, &outcome);
		/* Reactive policies move only what turned out to be in the way.
		 */
		if (!err && result.reactive) {
			ts_choice_copy(&s->trial, &result.choice);
			for (uint32_t w = 0; !err && w < 2 * TS_WINDOW_MODES;
			        w++) {
				memset(s->trial.late, w >= TS_WINDOW_MODES,
				        s->trial.n_gaps);
				err = ts_search_offer(s,
				        (enum ts_window_mode)(
				                w % TS_WINDOW_MODES),
				        &outcome);
			}
		}
		ts_choice_finish(&result.choice);
	}
	return err;
}

/* About as long for every tape: long ones get fewer evaluations. */
static uint32_t evaluations(const struct ts_graph *g,
        const struct ts_plan_options *options, uint32_t ops)
{
	uint32_t n = ops / (g->n_ops + 1);

	if (options->search_evaluations != TS_SEARCH_AUTO)
		return options->search_evaluations;
	return n < MAX_EVALUATIONS ? n : MAX_EVALUATIONS;
}

/* A long tape: one round of the two passes, else Belady's rule. */
static int search_long(struct ts_search *s)
{
	double ideal = (double)s->graph->start_ns[s->graph->n_ops];
	struct ts_outcome outcome;
	int err;

	s->rounds = 1;
	err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_TURN);
	/* Where that went badly. */
	if (!err && (double)s->best.outcome.step_ns > POOR * ideal) {
		err = ts_baseline_choose_swapadvisor(s, &s->trial);
		if (!err)
			err = ts_search_offer(s, TS_WINDOWS_TURN, &outcome);
	}
	if (!err && !s->best.outcome.fits)
		err = ts_search_emergency(s);
	return err;
}

/* Parameters, optimizer state: more than activations may have to leave. */
static bool has_wrapping_gaps(const struct ts_graph *g)
{
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (g->gaps[i].to_op > g->n_ops)
			return true;
	}
	return false;
}

/* Tapes of activations alone: all variants of the two passes. */
static int search_narrow(
        struct ts_search *s, const struct ts_plan_options *options)
{
	const struct ts_graph *g = s->graph;
	uint32_t n = evaluations(g, options, SEARCH_OPS);
	int err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_TURN);

	if (!err &&
	        (!g->profile->n_turns || g->peak_op != g->profile->turns[0])) {
		err = ts_search_two_pass(s, g->peak_op, TS_WINDOWS_TURN);
		if (!err)
			err = ts_search_two_pass(
			        s, g->peak_op, TS_WINDOWS_LATE);
	}
	if (!err) {
		s->no_swaps = true;
		err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_LATE);
		s->no_swaps = false;
	}
	if (!err && g->n_gaps > FEW_GAPS && !s->best.outcome.fits)
		err = ts_search_cover(s);
	if (!err)
		err = ts_search_emergency(s);
	if (!err && options->baselines)
		err = try_baselines(s);
	if (!err && s->best.outcome.fits && !s->swap_only && n)
		err = ts_search_frontier(s);
	if (!err && s->best.outcome.fits)
		err = ts_search_improve(s, n);
	return err;
}

/* Tapes whose parameters and optimizer state may have to leave as well. */
static int search_wide(
        struct ts_search *s, const struct ts_plan_options *options)
{
	int err;

	s->rounds = WIDE_ROUNDS;
	err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_TURN);
	if (!err)
		err = ts_search_cover(s);
	if (!err && !s->best.outcome.fits)
		err = ts_search_emergency(s);
	if (!err && options->baselines)
		err = try_baselines(s);
	if (!err && s->best.outcome.fits)
		err = ts_search_improve(
		        s, evaluations(s->graph, options, WIDE_SEARCH_OPS));
	return err;
}

int ts_plan_search(struct ts_search *s, const struct ts_plan_options *options)
{
	struct ts_outcome outcome;

	if (s->graph->peak_bytes <= s->limit_bytes) {
		memset(s->trial.action, TS_KEEP, s->trial.n_gaps);
		return ts_search_offer(s, TS_WINDOWS_TURN, &outcome);
	}
	if (s->graph->n_ops >= LONG_TAPE)
		return search_long(s);
	if (s->graph->n_gaps > FEW_GAPS && has_wrapping_gaps(s->graph))
		return search_wide(s, options);
	return search_narrow(s, options);
}

static int plan_graph(const struct ts_graph *g, uint64_t limit_bytes,
        const struct ts_plan_options *options, struct ts_plan *plan,
        struct ts_plan_stats *stats)
{
	struct ts_search search;
	struct ts_outcome outcome;
	int err = ts_search_init(&search, g, limit_bytes);

	if (err)
		return err;
	search.swap_only = options->no_replay;
	err = ts_plan_search(&search, options);
	if (!err && !search.best.outcome.fits)
		err = -ENOSPC;
	/* The model has to hold the best plan's run; settling takes two more.
	 */
	if (!err)
		err = g->n_ops < LONG_TAPE
		              ? ts_search_settle(&search)
		              : ts_model_run(search.model, &search.best.choice,
		                        &outcome, search.wait_ns);
	if (!err)
		err = ts_bound_step(g, limit_bytes, &plan->bound_step_ns);
	if (!err)
		err = fill_decisions(plan, &search);
	if (!err)
		err = fill_replays(plan, &search);
	/* Placing pages is quadratic; the longest tapes go without. */
	if (!err && options->pages && g->n_objects <= MAX_PAGED_OBJECTS)
		err = fill_pages(plan, &search);
	if (!err) {
		plan->predicted_step_ns = search.best.outcome.step_ns;
		plan->predicted_peak_bytes = search.best.outcome.peak_bytes;
		plan->swap_bytes = search.best.outcome.d2h_bytes;
		plan->replay_ns = search.best.outcome.replay_ns;
	}
	if (stats) {
		stats->evaluations = ts_model_runs(search.model);
		stats->simulated_instrs = ts_model_instrs(search.model);
	}
	ts_search_finish(&search);
	return err;
}

/*
 * Size from which on values are worth moving: the power of two below which
 * all of them together are less than 0.5 % of the peak, and at most 2 MiB of
 * address range (smaller ones share pages).
 */
static uint64_t worth_moving(const struct ts_graph *g)
{
	uint64_t by_log[64] = {0}, sum = 0, size = 1;
	uint32_t dropped = 0;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		if (gap->size_bytes && gap->from_op < g->peak_op &&
		        gap->to_op > g->peak_op)
			by_log[63 - __builtin_clzll(gap->size_bytes)] +=
			        gap->size_bytes;
	}
	for (uint32_t log = 0; size < SMALL_PAGE_BYTES; log++, size *= 2) {
		sum += by_log[log];
		if (sum * 200 > g->peak_bytes)
			break;
	}
	for (uint32_t i = 0; i < g->n_gaps; i++)
		dropped += g->gaps[i].size_bytes < size;
	/* Too few to be worth a second graph. */
	return dropped > g->n_gaps / 10 ? size : 1;
}

int ts_plan_make(const struct ts_profile *profile, uint64_t limit_bytes,
        const struct ts_plan_options *options, struct ts_plan *ret_plan,
        struct ts_plan_stats *ret_stats)
{
	struct ts_graph_options graph_options = {
	        .min_gap_bytes = options->min_gap_bytes,
	        .no_replays = options->no_replay};
	struct ts_plan plan = {.limit_bytes = limit_bytes,
	        .n_ops = profile->n_ops,
	        .n_values = profile->n_values};
	struct ts_graph g;
	bool done = false;
	int err = ts_graph_init(&g, profile,
	        &(struct ts_graph_options){.no_replays = options->no_replay});

	if (err)
		return err;
	plan.smallest_feasible_limit_bytes = g.floor_bytes;
	plan.unlimited_step_ns = g.start_ns[g.n_ops];
	plan.unlimited_peak_bytes = g.peak_bytes;
	plan.profile_name = strdup(profile->name ? profile->name : "");
	if (!plan.profile_name)
		err = -ENOMEM;
	else if (limit_bytes < g.floor_bytes)
		err = -ENOSPC;
	if (!graph_options.min_gap_bytes)
		graph_options.min_gap_bytes = worth_moving(&g);
	if (!err && graph_options.min_gap_bytes > 1) {
		struct ts_graph coarse;

		err = ts_graph_init(&coarse, profile, &graph_options);
		done = !err && coarse.floor_bytes <= limit_bytes;
		if (done)
			err = plan_graph(&coarse, limit_bytes, options, &plan,
			        ret_stats);
		ts_graph_finish(&coarse);
	}
	if (!err && !done)
		err = plan_graph(&g, limit_bytes, options, &plan, ret_stats);
	ts_graph_finish(&g);
	if (err && err != -ENOSPC)
		ts_plan_finish(&plan);
	else
		*ret_plan = plan;
	return err;
}
