/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random small tapes: every plan fits, the bound is one, and plans are near
 * the best that all combinations give. TS_TEST_TAPES: how many.
 */
#include "tests/unit/planner/suite.h"

#include <inttypes.h>
#include <string.h>

#include "planner/baselines/baseline.h"
#include "planner/bound.h"
#include "planner/plan.h"
#include "tests/unit/planner/optimum.h"
#include "tests/unit/planner/random_tape.h"

/* Sanitizers make everything some ten times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAPES      500
#define WIDE_TAPES 20
#else
#define TAPES      10000
#define WIDE_TAPES 300
#endif

/*
 * Up to so many combinations the planner tries them all, which says nothing
 * of its search: so it has to find them without. Some longer ones beside.
 */
#define MAX_COMBINATIONS  3000
#define LONG_COMBINATIONS 20000
#define LONG_EVERY        40

struct totals {
	uint32_t plans;
	uint32_t compared;
	uint32_t longer; /* compared, with more combinations */
	double gap_sum;
	double longer_sum;
	double worst;
	uint64_t worst_seed;
	/* Of plans as users get them, enumeration included. */
	double given_sum;
	double given_worst;
};

static uint32_t n_tapes(void)
{
	const char *text = getenv("TS_TEST_TAPES");

	return text ? (uint32_t)strtoul(text, NULL, 10) : TAPES;
}

static void check_baselines(
        struct ts_search *s, const struct ts_plan *plan, uint64_t seed)
{
	for (uint32_t i = 0; i < ts_n_baselines; i++) {
		struct ts_baseline_result result;

		ck_assert_int_eq(
		        ts_baseline_run(s, ts_baselines[i].fn, &result), 0);
		/* Barriers are timed without their memory. */
		if (result.outcome.fits &&
		        ts_baselines[i].fn != ts_baseline_barriers)
			ck_assert_msg(plan->predicted_step_ns <=
			                      result.outcome.step_ns,
			        "seed %" PRIu64 ": %s takes %" PRIu64
			        ", the plan %" PRIu64,
			        seed, ts_baselines[i].name,
			        result.outcome.step_ns,
			        plan->predicted_step_ns);
		ts_choice_finish(&result.choice);
	}
}

static double gap_to(const struct ts_plan *plan, uint64_t best)
{
	return 100 * (double)plan->predicted_step_ns / (double)best - 100;
}

/* What the search reaches alone, and what users get, beside the best. */
static void compare(struct ts_search *s, const struct ts_profile *p,
        const struct ts_plan *given, uint64_t n, uint64_t seed,
        struct totals *totals)
{
	struct ts_plan_options options = ts_plan_default_options();
	uint64_t best = ts_optimum(s, n);
	struct ts_plan plan;
	double gap;

	ck_assert_msg(given->bound_step_ns <= best + 1,
	        "seed %" PRIu64 ": bound %" PRIu64 " above %" PRIu64, seed,
	        given->bound_step_ns, best);
	options.min_gap_bytes = 1;
	options.no_enumeration = true;
	ck_assert_int_eq(
	        ts_plan_make(p, s->limit_bytes, &options, &plan, NULL), 0);
	/* Points of a settled plan may be none of those tried here. */
	if (given->predicted_step_ns < best)
		best = given->predicted_step_ns;
	if (plan.predicted_step_ns < best)
		best = plan.predicted_step_ns;
	gap = gap_to(given, best);
	totals->given_sum += gap;
	if (gap > totals->given_worst)
		totals->given_worst = gap;
	gap = gap_to(&plan, best);
	totals->compared++;
	totals->gap_sum += gap;
	if (n > MAX_COMBINATIONS) {
		totals->longer++;
		totals->longer_sum += gap;
	}
	if (gap > totals->worst) {
		totals->worst = gap;
		totals->worst_seed = seed;
	}
	ts_plan_finish(&plan);
}

/*
 * Between the floor and the peak; @tight: for every other tape just so much
 * that some of what is idle at the peak has to be off, where bounds come close
 * to plans.
 */
static uint64_t draw_limit(const struct ts_graph *g, uint64_t seed, bool tight)
{
	struct ts_random random;
	uint64_t limit = g->peak_bytes;

	ts_random_seed(&random, seed ^ 777);
	if (!tight || ts_random_below(&random, 2))
		return g->floor_bytes + (g->peak_bytes - g->floor_bytes) *
		                                ts_random_below(&random, 100) /
		                                100;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (g->gaps[i].from_op < g->peak_op &&
		        g->gaps[i].to_op > g->peak_op &&
		        ts_random_below(&random, 4))
			limit -= g->gaps[i].size_bytes;
	}
	limit += ts_random_below(&random, 2 << 20);
	if (limit < g->floor_bytes)
		return g->floor_bytes;
	return limit < g->peak_bytes ? limit : g->peak_bytes;
}

/*
 * Every other ordinary tape has a link that is faster one way than the other,
 * where limits are tight as well.
 */
static int make_tape(uint64_t seed, bool woven, struct ts_profile *p)
{
	if (woven)
		return ts_random_woven_tape(seed, p);
	return seed % 2 ? ts_random_tape_apart(seed, p)
	                : ts_random_tape(seed, p);
}

static void check_tape(uint64_t seed, bool woven, struct totals *totals)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_input_error error;
	struct ts_search search;
	struct ts_profile p;
	struct ts_graph g;
	struct ts_plan plan;
	uint64_t limit, n;

	ck_assert_int_eq(make_tape(seed, woven, &p), 0);
	ck_assert_msg(!ts_profile_check(&p, &error), "seed %" PRIu64 ": %s %s",
	        seed, error.path, error.message);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	limit = draw_limit(&g, seed, woven || seed % 2);
	options.min_gap_bytes = 1;
	ck_assert_msg(!ts_plan_make(&p, limit, &options, &plan, NULL),
	        "seed %" PRIu64 ": no plan for a limit above the floor", seed);
	totals->plans++;
	ck_assert_msg(plan.predicted_peak_bytes <= limit,
	        "seed %" PRIu64 ": peak above the limit", seed);
	ck_assert_msg(plan.bound_step_ns <= plan.predicted_step_ns + 1,
	        "seed %" PRIu64 ": the plan is faster than the bound", seed);
	ck_assert_int_eq(ts_search_init(&search, &g, limit), 0);
	check_baselines(&search, &plan, seed);
	n = ts_combinations(&g, LONG_COMBINATIONS);
	if (n <= MAX_COMBINATIONS ||
	        (n <= LONG_COMBINATIONS && seed % LONG_EVERY == 0))
		compare(&search, &p, &plan, n, seed, totals);
	ts_search_finish(&search);
	ts_plan_finish(&plan);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}

START_TEST(plans_of_random_tapes_fit_and_are_near_the_best)
{
	struct totals t = {0};

	for (uint32_t seed = 0; seed < n_tapes(); seed++)
		check_tape(seed, false, &t);
	printf("%u tapes, %u compared with all combinations: search alone, "
	       "mean gap %.4f %%, worst %.2f %% (seed %" PRIu64 "); %u of them "
	       "with more than %d: mean %.3f %%; with the planner's own "
	       "enumeration mean %.4f %%, worst %.2f %%\n",
	        t.plans, t.compared, t.gap_sum / t.compared, t.worst,
	        t.worst_seed, t.longer, MAX_COMBINATIONS,
	        t.longer ? t.longer_sum / t.longer : 0,
	        t.given_sum / t.compared, t.given_worst);
	ck_assert_uint_eq(t.plans, n_tapes());
	ck_assert_uint_gt(t.compared, t.plans / 3);
	ck_assert_double_le(t.gap_sum / t.compared, 1);
	ck_assert_double_le(t.worst, 10);
}
END_TEST

/* What replays share, in time and in memory, is where bounds go wrong. */
START_TEST(bounds_of_woven_tapes_are_below_all_combinations)
{
	struct totals t = {0};

	for (uint32_t seed = 0; seed < n_tapes() / 2; seed++)
		check_tape(seed, true, &t);
	printf("%u woven tapes, %u compared with all combinations: search "
	       "alone, mean gap %.4f %%, worst %.2f %% (seed %" PRIu64
	       "); with the planner's own enumeration worst %.2f %%\n",
	        t.plans, t.compared, t.gap_sum / t.compared, t.worst,
	        t.worst_seed, t.given_worst);
	ck_assert_uint_gt(t.compared, t.plans / 2);
	ck_assert_double_le(t.gap_sum / t.compared, 1);
}
END_TEST

/* Waits that the decisions answer for are part of the step. */
static void check_costs(const struct ts_plan *plan, uint64_t seed)
{
	uint64_t waits = 0, slower;

	slower = plan->predicted_step_ns - plan->unlimited_step_ns;
	for (uint32_t i = 0; i < plan->n_decisions; i++) {
		if (plan->decisions[i].action == TS_SWAP)
			waits += plan->decisions[i].cost_ns;
	}
	ck_assert_msg(waits <= slower + plan->n_ops,
	        "seed %" PRIu64 ": swaps cost %" PRIu64
	        " of a step that is %" PRIu64 " slower",
	        seed, waits, slower);
}

static void check_wide_tape(uint64_t seed, double *gap_sum)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_input_error error;
	struct ts_random random;
	struct ts_search search;
	struct ts_profile p;
	struct ts_graph g;
	struct ts_plan plan;
	uint64_t limit;

	ck_assert_int_eq(ts_random_wide_tape(seed, &p), 0);
	ck_assert_msg(!ts_profile_check(&p, &error), "seed %" PRIu64 ": %s %s",
	        seed, error.path, error.message);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_uint_gt(g.n_gaps, 64);
	ts_random_seed(&random, seed ^ 777);
	limit = g.floor_bytes + (g.peak_bytes - g.floor_bytes) *
	                                ts_random_below(&random, 100) / 100;
	options.search_evaluations = 50;
	ck_assert_msg(!ts_plan_make(&p, limit, &options, &plan, NULL),
	        "seed %" PRIu64 ": no plan for a limit above the floor", seed);
	ck_assert_msg(plan.predicted_peak_bytes <= limit,
	        "seed %" PRIu64 ": peak above the limit", seed);
	ck_assert_msg(plan.bound_step_ns <= plan.predicted_step_ns + 1,
	        "seed %" PRIu64 ": the plan is faster than the bound", seed);
	check_costs(&plan, seed);
	ck_assert_int_eq(ts_search_init(&search, &g, limit), 0);
	check_baselines(&search, &plan, seed);
	*gap_sum +=
	        (double)plan.predicted_step_ns / (double)plan.bound_step_ns - 1;
	ts_search_finish(&search);
	ts_plan_finish(&plan);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}

START_TEST(plans_of_wide_tapes_fit_and_are_no_slower_than_any_policy)
{
	double gap_sum = 0;

	for (uint32_t seed = 0; seed < WIDE_TAPES; seed++)
		check_wide_tape(seed, &gap_sum);
	printf("%u wide tapes: mean gap to the bound %.1f %%\n", WIDE_TAPES,
	        100 * gap_sum / WIDE_TAPES);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
	        plans_of_random_tapes_fit_and_are_near_the_best,
	        bounds_of_woven_tapes_are_below_all_combinations,
	        plans_of_wide_tapes_fit_and_are_no_slower_than_any_policy};

	return ts_run_suite("planner properties", tests,
	        sizeof(tests) / sizeof(tests[0]), 3000);
}
