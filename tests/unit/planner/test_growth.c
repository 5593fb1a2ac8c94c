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
#include "planner/workloads.h"

/* A tape grows by so much at a time. */
#define TIMES 2
/* Work beside n log n, and from one length to the next. */
#define GROWTH_FACTOR 1.5
#define STEP_UP       3
#define STEP_DOWN     0.8

typedef int (*make_fn)(uint32_t ops, struct ts_profile *ret_profile);

/* Layers of activations alone; forward and backward of one are 26 ops. */
static int make_transformer(uint32_t ops, struct ts_profile *p)
{
	struct ts_transformer shape = *ts_transformer_find("gpt2-xl");

	shape.layers = ops / 26;
	shape.vocabulary = 1000;
	return ts_workload_transformer(&shape, ts_machine_find("a100"), p);
}

/* Layers whose parameters live on from step to step. */
static int make_wide(uint32_t ops, struct ts_profile *p)
{
	uint32_t layers = ops / 3, signature, gradient, *x, *w;
	struct ts_profile_builder b;

	x = calloc(layers + 1, sizeof(*x));
	w = calloc(layers, sizeof(*w));
	ck_assert(x && w);
	ts_builder_init(&b);
	signature = ts_builder_signature(&b, "op", TS_CLASS_GEMM, true);
	x[0] = ts_builder_value(&b, 4 << 20, TS_KIND_INPUT);
	for (uint32_t i = 0; i < layers; i++) {
		w[i] = ts_builder_value(
		        &b, (12 + i % 5) << 20, TS_KIND_PARAMETER);
		b.profile.values[w[i]].persistent = true;
	}
	for (uint32_t i = 0; i < layers; i++) {
		x[i + 1] = ts_builder_value(
		        &b, (4 + i % 7) << 20, TS_KIND_ACTIVATION);
		ts_builder_op(&b, signature, 200000 + i % 11 * 10000,
		        (uint32_t[]){x[i], w[i]}, 2, &x[i + 1], 1);
	}
	gradient = x[layers];
	for (uint32_t i = layers; i-- > 0;) {
		uint32_t reads[] = {gradient, x[i], w[i]};

		gradient = ts_builder_value(
		        &b, (4 + i % 7) << 20, TS_KIND_GRADIENT);
		ts_builder_op(&b, signature, 400000 + i % 11 * 20000, reads, 3,
		        &gradient, 1);
	}
	for (uint32_t i = 0; i < layers; i++) {
		uint32_t updated = ts_builder_value(
		        &b, (12 + i % 5) << 20, TS_KIND_PARAMETER);

		b.profile.values[updated].in_place_of = w[i];
		ts_builder_op(&b, signature, 30000,
		        (uint32_t[]){w[i], gradient}, 2, &updated, 1);
	}
	ts_builder_turn(&b, layers);
	b.profile.device = (struct ts_device){.d2h_bytes_per_s = 25000000000,
	        .h2d_bytes_per_s = 25000000000,
	        .d2h_both_bytes_per_s = 21000000000,
	        .h2d_both_bytes_per_s = 21000000000,
	        .copy_latency_ns = 10000};
	free(x);
	free(w);
	return ts_builder_take(&b, p);
}

static double work_of(make_fn make, uint32_t ops,
        const struct ts_plan_options *options, uint32_t *ret_ops)
{
	struct ts_plan_stats stats;
	struct ts_profile p;
	struct ts_graph g;
	struct ts_plan plan;

	ck_assert_int_eq(make(ops, &p), 0);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(
	        ts_plan_make(&p, g.peak_bytes / 2, options, &plan, &stats), 0);
	*ret_ops = p.n_ops;
	ts_plan_finish(&plan);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
	return (double)stats.work;
}

static void check_growth(const char *name, make_fn make, uint32_t from,
        uint32_t to, uint32_t evaluations)
{
	struct ts_plan_options options = ts_plan_default_options();
	double before = 0, first = 0;

	options.search_evaluations = evaluations;
	options.baselines = evaluations > 0;
	options.pages = false;
	for (double ops = from; ops < to; ops *= TIMES) {
		uint32_t n;
		double work = work_of(make, (uint32_t)ops, &options, &n), share;

		share = work / (n * log2(n));
		printf("%-12s %8u ops, work %10.0f, by n log n %.2f\n", name, n,
		        work, share);
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
	check_growth("transformer", make_transformer, 1000, 20000, 0);
	check_growth("wide", make_wide, 1000, 10000, 0);
}
END_TEST

START_TEST(local_search_grows_evenly)
{
	check_growth(
	        "transformer", make_transformer, 1000, 20000, TS_SEARCH_AUTO);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
	        passes_grow_evenly, local_search_grows_evenly};

	return ts_run_suite(
	        "planner growth", tests, sizeof(tests) / sizeof(tests[0]), 600);
}
