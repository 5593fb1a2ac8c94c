/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/plan.h"
#include "planner/bound.h"
#include "planner/pages.h"
#include "planner/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PAGED_OBJECTS 50000

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

static void *copy_list(const void *items, uint64_t count, size_t item_bytes)
{
	void *made = malloc((count + 1) * item_bytes);

	if (made && count)
		memcpy(made, items, count * item_bytes);
	return made;
}

int ts_plan_copy(const struct ts_plan *plan, struct ts_plan *ret_plan)
{
	struct ts_plan made = *plan;

	made.profile_name = strdup(plan->profile_name);
	made.decisions = copy_list(
	        plan->decisions, plan->n_decisions, sizeof(*made.decisions));
	made.replays = copy_list(
	        plan->replays, plan->n_replays, sizeof(*made.replays));
	if (!made.profile_name || !made.decisions || !made.replays) {
		ts_plan_finish(&made);
		return -ENOMEM;
	}
	*ret_plan = made;
	return 0;
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

int ts_plan_tell_replays(struct ts_plan *plan, const struct ts_program *program)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < program->n_instrs; i++)
		n += program->instrs[i].value != TS_NONE;
	free(plan->replays);
	plan->n_replays = 0;
	plan->replay_ns = program->replay_ns;
	plan->replays = calloc(n + UINT64_C(1), sizeof(*plan->replays));
	if (!plan->replays)
		return -ENOMEM;
	for (uint32_t i = 0; i < program->n_instrs; i++) {
		const struct ts_instr *instr = &program->instrs[i];
		struct ts_producer producer;

		if (instr->value == TS_NONE ||
		        !ts_graph_producer(
		                program->graph, instr->value, &producer))
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

int ts_plan_tell(struct ts_plan *plan, const struct ts_graph *g,
        const struct ts_choice *choice, const struct ts_program *program,
        const uint64_t *wait_ns)
{
	free(plan->decisions);
	plan->n_decisions = 0;
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
		d->cost_ns = wait_ns ? wait_ns[i] : 0;
	}
	return ts_plan_tell_replays(plan, program);
}

static int fill_pages(struct ts_plan *plan, const struct ts_search *search)
{
	struct ts_pages_holds holds = {0};
	struct ts_pages pages;
	int err = ts_pages_hold(search->graph, &search->best.choice,
	        ts_model_left(search->model), ts_model_back(search->model),
	        &holds);

	if (!err)
		err = ts_pages_assign(
		        search->graph, &holds, plan->limit_bytes, &pages);
	free(holds.list);
	/* No device has so many pages: the plan goes without. */
	if (err)
		return err == -E2BIG ? 0 : err;
	plan->page_bytes = TS_PAGE_BYTES;
	plan->page_chunks = pages.chunks;
	plan->page_peak = pages.peak;
	plan->page_remaps = pages.remaps;
	plan->page_static_chunks = pages.static_chunks;
	return 0;
}

static int plan_graph(const struct ts_graph *g, uint64_t limit_bytes,
        const struct ts_plan_options *options, struct ts_plan *plan,
        struct ts_plan_stats *stats)
{
	struct ts_search search;
	int err = ts_search_init(&search, g, limit_bytes);

	if (err)
		return err;
	search.swap_only = options->no_replay;
	search.no_enumeration = options->no_enumeration;
	search.quick = options->quick;
	err = ts_plan_search(&search, options);
	if (!err && !search.best.outcome.fits)
		err = -ENOSPC;
	if (!err)
		err = ts_search_settle(&search);
	if (!err)
		err = ts_bound_step(g, limit_bytes, &plan->bound_step_ns);
	if (!err)
		err = ts_plan_tell(plan, g, &search.best.choice,
		        ts_model_program(search.model), search.wait_ns);
	/* Placing pages is quadratic; the longest tapes go without. */
	if (!err && options->pages && g->n_objects <= MAX_PAGED_OBJECTS)
		err = fill_pages(plan, &search);
	if (!err) {
		plan->predicted_step_ns = search.best.outcome.step_ns;
		plan->predicted_peak_bytes = search.best.outcome.peak_bytes;
		plan->swap_bytes = search.best.outcome.d2h_bytes;
	}
	if (stats) {
		stats->evaluations =
		        search.runs_before + ts_model_runs(search.model);
		stats->simulated_instrs =
		        search.instrs_before + ts_model_instrs(search.model);
		stats->work = ts_search_work(&search);
	}
	ts_search_finish(&search);
	return err;
}

int ts_plan_make(const struct ts_profile *profile, uint64_t limit_bytes,
        const struct ts_plan_options *options, struct ts_plan *ret_plan,
        struct ts_plan_stats *ret_stats)
{
	struct ts_plan plan = {.limit_bytes = limit_bytes,
	        .n_ops = profile->n_ops,
	        .n_values = profile->n_values};
	struct ts_graph g;
	int err = ts_graph_init(&g, profile,
	        &(struct ts_graph_options){
	                .min_gap_bytes = options->min_gap_bytes,
	                .no_replays = options->no_replay,
	                .dirties = options->dirties});

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
	if (!err)
		err = plan_graph(&g, limit_bytes, options, &plan, ret_stats);
	ts_graph_finish(&g);
	if (err && err != -ENOSPC)
		ts_plan_finish(&plan);
	else
		*ret_plan = plan;
	return err;
}
