/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What planning takes as tapes get longer, by what it does and not by time: no
 * more than n log n, and nowhere a step up or down. What it takes in time is
 * told by tests/bench.
 */
#include "tests/unit/planner/suite.h"

#include <math.h>

#include "planner/graph.h"
#include "planner/plan.h"
#include "tests/unit/planner/long_tape.h"

/* A tape grows by so much at a time. */
#define TIMES 2
/* Work beside n log n, and from one length to the next. */
#define GROWTH_FACTOR 1.5
#define STEP_UP       3
#define STEP_DOWN     0.8

/* A tape with no time for two plans, and what one may take by op. */
#define LONG_OPS       650000
#define MOST_LONG_WORK 14
/* Limits in % of the peak. */
static const uint32_t limits[] = {50, 30, 20};
#define N_LIMITS (sizeof(limits) / sizeof(limits[0]))

typedef int (*make_fn)(uint32_t ops, struct ts_profile *ret_profile);

/* At @percent of the peak. */
static double work_of(make_fn make, uint32_t ops, uint32_t percent,
        const struct ts_plan_options *options, uint32_t *ret_ops)
{
	struct ts_plan_stats stats;
	struct ts_profile p;
	struct ts_graph g;
	struct ts_plan plan;

	ck_assert_int_eq(make(ops, &p), 0);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(ts_plan_make(&p, g.peak_bytes / 100 * percent, options,
	                         &plan, &stats),
	        0);
	*ret_ops = p.n_ops;
	ts_plan_finish(&plan);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
	return (double)stats.work;
}

static void check_growth(const char *name, make_fn make, uint32_t percent,
        uint32_t from, uint32_t to, uint32_t evaluations)
{
	struct ts_plan_options options = ts_plan_default_options();
	double before = 0, first = 0;

	options.search_evaluations = evaluations;
	options.baselines = evaluations > 0;
	options.pages = false;
	for (double ops = from; ops < to; ops *= TIMES) {
		uint32_t n;
		double work =
		        work_of(make, (uint32_t)ops, percent, &options, &n);
		double share;

		share = work / (n * log2(n));
		printf("%-12s %2u %% %8u ops, work %10.0f, by n log n %.2f\n",
		        name, percent, n, work, share);
		if (!first)
			first = share;
		ck_assert_double_le(share, GROWTH_FACTOR * first);
		ck_assert(!before || (work <= STEP_UP * before &&
		                             work >= STEP_DOWN * before));
		before = work;
	}
}

START_TEST(passes_grow_evenly)
{
	for (size_t i = 0; i < N_LIMITS; i++) {
		check_growth("transformer", ts_long_transformer, limits[i],
		        1000, 20000, 0);
		check_growth("chain", ts_long_chain, limits[i], 1000, 10000, 0);
	}
}
END_TEST

START_TEST(local_search_grows_evenly)
{
	check_growth("transformer", ts_long_transformer, 50, 1000, 20000,
	        TS_SEARCH_AUTO);
}
END_TEST

/* Where there is time for one way of planning, others are not begun. */
START_TEST(longest_get_one_plan)
{
	struct ts_plan_options options = ts_plan_default_options();

	options.search_evaluations = 0;
	options.baselines = options.pages = false;
	for (size_t i = 1; i < N_LIMITS; i++) {
		uint32_t n;
		double work = work_of(
		        ts_long_chain, LONG_OPS, limits[i], &options, &n);

		printf("%-12s %2u %% %8u ops, work by op %.2f\n", "chain",
		        limits[i], n, work / n);
		ck_assert_double_le(work, MOST_LONG_WORK * n);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {passes_grow_evenly,
	        local_search_grows_evenly, longest_get_one_plan};

	return ts_run_suite(
	        "planner growth", tests, sizeof(tests) / sizeof(tests[0]), 600);
}
