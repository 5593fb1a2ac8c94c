/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/policies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/planned_offline.h"
#include "planner/baselines/baseline.h"
#include "planner/bound.h"
#include "planner/pages.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/repair.h"

/* Longer tapes go without pages: placing them takes too long. */
#define MAX_PAGED_OBJECTS 50000
/* Evaluations of the genetic searches in the tables. */
#define GENETIC_EVALUATIONS 3000

uint64_t ts_cli_saved_bytes(const struct ts_graph *g)
{
	uint32_t turn = g->profile->n_turns ? g->profile->turns[0] : g->peak_op;
	uint64_t bytes = 0;

	for (uint32_t o = 0; o < g->n_objects; o++) {
		const struct ts_object *object = &g->objects[o];
		bool before =
		        object->first_op == TS_NONE || object->first_op < turn;

		if (before && !object->persistent &&
		        object->last_op != TS_NONE && object->last_op >= turn)
			bytes += object->size_bytes;
	}
	return bytes;
}

static void count_bytes(const struct ts_graph *g,
        const struct ts_choice *choice, struct ts_cli_result *result)
{
	uint32_t pivot = ts_baseline_pivot(g);

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (!ts_baseline_bridges(&g->gaps[i], pivot))
			continue;
		if (choice->action[i] == TS_SWAP)
			result->swap_bytes += g->gaps[i].size_bytes;
		else if (choice->action[i] == TS_REPLAY)
			result->replay_bytes += g->gaps[i].size_bytes;
	}
	result->keep_bytes = ts_cli_saved_bytes(g) - result->swap_bytes -
	                     result->replay_bytes;
}

/* The model holds the run of the best plan. */
static int count_pages(
        const struct ts_search *search, struct ts_cli_result *result)
{
	const struct ts_graph *g = search->graph;
	struct ts_pages_holds holds = {0};
	uint32_t chunks;
	int err = ts_pages_hold(g, &search->best.choice,
	        ts_model_left(search->model), ts_model_back(search->model),
	        &holds);

	if (!err)
		err = ts_pages_static(g, &holds, &chunks);
	free(holds.list);
	if (!err)
		result->run_bytes =
		        ts_pages_limit(g->profile->resident_bytes, chunks);
	/* No device has so many pages: nothing is known of runs, then. */
	return err == -E2BIG ? 0 : err;
}

static int run_planner(struct ts_search *search, uint32_t evaluations,
        struct ts_cli_result *result)
{
	struct ts_plan_options options = ts_plan_default_options();
	int err;

	options.search_evaluations = evaluations;
	options.quick = search->quick;
	options.baselines = evaluations > 0;
	err = ts_plan_search(search, &options);
	if (!err && search->quick && search->best.outcome.fits &&
	        search->graph->n_objects <= MAX_PAGED_OBJECTS) {
		err = ts_search_settle(search);
		if (!err)
			err = count_pages(search, result);
	}
	if (err)
		return err;
	result->outcome = search->best.outcome;
	count_bytes(search->graph, &search->best.choice, result);
	return 0;
}

static int run_genetic(
        struct ts_search *search, bool seeded, struct ts_cli_result *result)
{
	struct ts_baseline_result ga, checkpoint = {0};
	const struct ts_choice *seeds[2];
	uint32_t n = 0;
	int err = 0;

	if (seeded) {
		err = ts_search_two_pass(search, TS_NONE, TS_WINDOWS_TURN);
		seeds[n++] = &search->best.choice;
		if (!err)
			err = ts_baseline_run(
			        search, ts_baseline_checkpoint, &checkpoint);
		if (!err)
			seeds[n++] = &checkpoint.choice;
	}
	if (!err)
		err = ts_genetic(search, seeds, n, GENETIC_EVALUATIONS, &ga);
	ts_choice_finish(&checkpoint.choice);
	if (err)
		return err;
	result->outcome = ga.outcome;
	count_bytes(search->graph, &ga.choice, result);
	ts_choice_finish(&ga.choice);
	return 0;
}

static int run_baseline(struct ts_search *search, const char *policy,
        struct ts_cli_result *result)
{
	for (uint32_t i = 0; i < ts_n_baselines; i++) {
		struct ts_baseline_result run;
		int err;

		if (strcmp(ts_baselines[i].name, policy))
			continue;
		err = ts_baseline_run(search, ts_baselines[i].fn, &run);
		if (err)
			return err;
		result->outcome = run.outcome;
		count_bytes(search->graph, &run.choice, result);
		ts_choice_finish(&run.choice);
		return 0;
	}
	return -ENOENT;
}

static int run_policy(const struct ts_graph *graph, uint64_t limit_bytes,
        const char *policy, bool quick, struct ts_cli_result *ret_result)
{
	struct ts_search search;
	int err = ts_search_init(&search, graph, limit_bytes);

	if (err)
		return err;
	memset(ret_result, 0, sizeof(*ret_result));
	ret_result->outcome.step_ns = TS_NEVER;
	search.quick = quick;
	search.swap_only = !strcmp(policy, TS_POLICY_NO_REPLAY);
	if (search.swap_only || !strcmp(policy, TS_POLICY_PLANNER))
		err = run_planner(&search, TS_SEARCH_AUTO, ret_result);
	else if (!strcmp(policy, TS_POLICY_TWO_PASS))
		err = run_planner(&search, 0, ret_result);
	else if (!strcmp(policy, "ga-seeded"))
		err = run_genetic(&search, true, ret_result);
	else if (!strcmp(policy, "ga-random"))
		err = run_genetic(&search, false, ret_result);
	else
		err = run_baseline(&search, policy, ret_result);
	if (!err)
		err = ts_bound_step(graph, limit_bytes, &ret_result->bound_ns);
	ts_search_finish(&search);
	return err;
}

int ts_cli_policy_run(const struct ts_graph *graph, uint64_t limit_bytes,
        const char *policy, bool quick, struct ts_cli_result *ret_result)
{
	struct ts_graph plain;
	int err;

	if (strcmp(policy, TS_POLICY_NO_REPLAY))
		return run_policy(
		        graph, limit_bytes, policy, quick, ret_result);
	err = ts_graph_init(&plain, graph->profile,
	        &(struct ts_graph_options){.no_replays = true,
	                /* What has no pages of its own does not move. */
	                .min_gap_bytes = graph->dirties ? 1 : 0,
	                .dirties = graph->dirties});
	if (err)
		return err;
	err = run_policy(&plain, limit_bytes, policy, quick, ret_result);
	/* The bound is one for all plans, here too. */
	if (!err)
		err = ts_bound_step(graph, limit_bytes, &ret_result->bound_ns);
	ts_graph_finish(&plain);
	return err;
}

static int count_run_bytes(
        const struct ts_planned_plan *plan, struct ts_cli_result *result)
{
	struct ts_input_error error;
	struct ts_choice choice;
	struct ts_graph graph;
	int err = ts_graph_init(&graph, &plan->view.profile,
	        &(struct ts_graph_options){.no_replays = true,
	                .min_gap_bytes = 1,
	                .dirties = plan->view.dirties});

	if (err)
		return err;
	err = ts_choice_init(&choice, graph.n_gaps);
	if (!err) {
		err = ts_plan_to_choice(&plan->plan, &graph, &choice, &error);
		if (!err)
			count_bytes(&graph, &choice, result);
		ts_choice_finish(&choice);
	}
	ts_graph_finish(&graph);
	return err;
}

/* 0, or -ENOSPC with what it takes in run_bytes, or another negative errno. */
static int run_without_replays(const struct ts_profile *profile,
        uint64_t limit_bytes, struct ts_cli_result *ret)
{
	struct ts_planned_plan made;
	uint64_t takes;
	int err;

	memset(ret, 0, sizeof(*ret));
	ret->outcome.step_ns = TS_NEVER;
	err = ts_planned_offline(profile, limit_bytes, &made, &ret->run_bytes);
	if (err)
		return err;
	takes = ts_pages_limit(
	        made.view.profile.resident_bytes, made.pages.n_chunks);
	ret->outcome = (struct ts_outcome){.fits = true,
	        .step_ns = made.plan.predicted_step_ns,
	        .peak_bytes = made.plan.predicted_peak_bytes,
	        .d2h_bytes = made.plan.swap_bytes};
	ret->run_bytes = takes < limit_bytes ? takes : limit_bytes;
	err = count_run_bytes(&made, ret);
	ts_planned_plan_finish(&made);
	return err;
}

/* So often less is tried for what moves, that its pages fit. */
#define PAGES_TRIES 4

/* As above. What was proved only a run knows: what the profile says of it. */
static int run_with_replays(const struct ts_graph *run_graph,
        uint64_t limit_bytes, struct ts_cli_result *ret)
{
	uint64_t moving = limit_bytes, least = 0;

	for (int i = 0; i < PAGES_TRIES; i++) {
		int err = ts_cli_policy_run(
		        run_graph, moving, TS_POLICY_PLANNER, true, ret);

		if (err)
			return err;
		if (!ret->outcome.fits || !ret->run_bytes)
			break;
		if (ret->run_bytes <= limit_bytes)
			return 0;
		if (!least || ret->run_bytes < least)
			least = ret->run_bytes;
		if (moving <= ret->run_bytes - limit_bytes)
			break;
		moving -= ret->run_bytes - limit_bytes;
	}
	ret->outcome.fits = false;
	ret->run_bytes = least;
	return -ENOSPC;
}

int ts_cli_policy_of_run(const struct ts_profile *profile,
        const struct ts_graph *run_graph, uint64_t limit_bytes, bool replays,
        struct ts_cli_result *ret)
{
	struct ts_cli_result other;
	int err = run_without_replays(profile, limit_bytes, ret), other_err;

	if (err && err != -ENOSPC)
		return err;
	if (!replays)
		return 0;
	other_err = run_with_replays(run_graph, limit_bytes, &other);
	if (other_err && other_err != -ENOSPC)
		return other_err;
	if (other_err ? err && other.run_bytes &&
	                        (!ret->run_bytes ||
	                                other.run_bytes < ret->run_bytes)
	              : err || other.outcome.step_ns < ret->outcome.step_ns)
		*ret = other;
	return 0;
}
