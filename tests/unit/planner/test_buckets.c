/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Token buckets: their edges, profiles at other lengths, plans for a bucket. */
#include "tests/unit/planner/suite.h"

#include <errno.h>
#include <inttypes.h>

#include "planner/buckets.h"
#include "planner/plan.h"
#include "planner/repair.h"
#include "planner/workloads.h"
#include "tests/unit/planner/random_tape.h"

#define VERSIONS 300000
/* Sanitizers make everything some ten times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TAPES 20
#else
#define TAPES 300
#endif

/* Buckets that the counts from @low to twice that fall into. */
static uint32_t buckets_from(uint64_t low, uint32_t percent)
{
	uint64_t edge = 0;
	uint32_t n = 0;

	for (uint64_t tokens = low; tokens < 2 * low; tokens++) {
		uint64_t of = ts_bucket_edge(tokens, percent);

		ck_assert_uint_ge(of, tokens);
		/* Edges are their own. */
		ck_assert_uint_eq(ts_bucket_edge(of, percent), of);
		ck_assert_uint_ge(of, edge);
		n += of != edge;
		edge = of;
	}
	return n;
}

START_TEST(edges_are_geometric)
{
	static const uint64_t lows[] = {1, 2, 5, 30, 100, 1000, 4096, 100000};

	for (size_t i = 0; i < sizeof(lows) / sizeof(lows[0]); i++) {
		/* A count inside a bucket begins with the rest of it. */
		ck_assert_uint_le(buckets_from(lows[i], 110), 9);
		ck_assert_uint_le(buckets_from(lows[i], 125), 5);
	}
	ck_assert_uint_ge(buckets_from(100000, 110), 8);
	ck_assert_uint_ge(buckets_from(100000, 125), 4);
	ck_assert_uint_eq(ts_bucket_edge(0, 110), 0);
	ck_assert_uint_eq(ts_bucket_edge(1, 110), 1);
	ck_assert_uint_eq(ts_bucket_edge(UINT64_MAX, 110), UINT64_MAX);
	/* A plan is made for a tenth more than it needs at most. */
	for (uint64_t tokens = 1000; tokens < 50000; tokens += 7)
		ck_assert_double_le(
		        (double)ts_bucket_edge(tokens, 110) / (double)tokens,
		        1.102);
}
END_TEST

START_TEST(a_secondary_region_keeps_its_largest_bucket)
{
	uint64_t largest = 0, edge;

	edge = ts_bucket_secondary_edge(1000, &largest);
	ck_assert_uint_eq(edge, ts_bucket_edge(1000, 125));
	ck_assert_uint_eq(ts_bucket_secondary_edge(300, &largest), edge);
	ck_assert_uint_gt(ts_bucket_secondary_edge(4000, &largest), edge);
	ck_assert_uint_eq(largest, 4000);
}
END_TEST

START_TEST(what_was_seen_serves_so_far_and_no_further)
{
	static const struct ts_bucket_sample samples[] = {
	        {1000, 5000}, {2000, 9000}, {4000, 8000}};
	bool again;

	ck_assert(!ts_bucket_wants_profile(1000, 2000));
	ck_assert(ts_bucket_wants_profile(1000, 2001));
	ck_assert(!ts_bucket_wants_profile(1000, 10));
	ck_assert(ts_bucket_wants_profile(0, 10));

	ck_assert_uint_eq(ts_bucket_memory(samples, 3, 1000, &again), 5000);
	ck_assert(!again);
	ck_assert_uint_eq(ts_bucket_memory(samples, 3, 1500, &again), 7000);
	ck_assert(again);
	ck_assert_uint_eq(ts_bucket_memory(samples, 3, 1150, &again), 5600);
	ck_assert(!again);
	ts_bucket_memory(samples, 3, 1151, &again);
	ck_assert(again);
	/* Never less than at fewer tokens; beyond, in proportion. */
	ck_assert_uint_eq(ts_bucket_memory(samples, 3, 3000, NULL), 9000);
	ck_assert_uint_eq(ts_bucket_memory(samples, 3, 8000, NULL), 16000);
	ck_assert_uint_eq(ts_bucket_memory(samples, 3, 500, NULL), 2500);
	ck_assert_uint_eq(ts_bucket_memory(samples, 0, 500, &again), 0);
	ck_assert(again);
}
END_TEST

/* A layer forward and backward, and an update of its parameter. */
START_TEST(what_has_no_tokens_stays_as_it_is)
{
	struct ts_profile_builder b;
	struct ts_profile p, q;
	uint32_t f, x, y, w, g, d, w2;

	ts_builder_init(&b);
	f = ts_builder_signature(&b, "f", TS_CLASS_GEMM, true);
	x = ts_builder_value(&b, 1001, TS_KIND_INPUT);
	w = ts_builder_value(&b, 500, TS_KIND_PARAMETER);
	y = ts_builder_value(&b, 3000, TS_KIND_ACTIVATION);
	g = ts_builder_value(&b, 500, TS_KIND_GRADIENT);
	d = ts_builder_value(&b, 3000, TS_KIND_GRADIENT);
	w2 = ts_builder_value(&b, 500, TS_KIND_PARAMETER);
	b.profile.values[w].persistent = true;
	b.profile.values[w2].in_place_of = w;
	ts_builder_op(&b, f, 100, (uint32_t[]){x, w}, 2, &y, 1);
	ts_builder_op(&b, f, 200, &y, 1, (uint32_t[]){g, d}, 2);
	ts_builder_op(&b, f, 300, (uint32_t[]){g, w}, 2, &w2, 1);
	ts_builder_turn(&b, 1);
	b.profile.tokens = 100;
	b.profile.device.d2h_bytes_per_s = b.profile.device.h2d_bytes_per_s =
	        b.profile.device.d2h_both_bytes_per_s =
	                b.profile.device.h2d_both_bytes_per_s = 1000000000;
	ck_assert_int_eq(ts_builder_take(&b, &p), 0);
	ck_assert_int_eq(ts_bucket_scale(&p, 110, &q), 0);
	ck_assert_uint_eq(q.tokens, 110);
	ck_assert_uint_eq(q.values[x].size_bytes, 1102);
	ck_assert_uint_eq(q.values[y].size_bytes, 3300);
	ck_assert_uint_eq(q.values[d].size_bytes, 3300);
	ck_assert_uint_eq(q.values[w].size_bytes, 500);
	ck_assert_uint_eq(q.values[w2].size_bytes, 500);
	ck_assert_uint_eq(q.values[g].size_bytes, 500);
	ck_assert_uint_eq(q.ops[0].duration_ns, 110);
	ck_assert_uint_eq(q.ops[1].duration_ns, 220);
	ck_assert_uint_eq(q.ops[2].duration_ns, 300);
	ts_profile_finish(&q);
	ck_assert_int_eq(ts_bucket_scale(&p, 0, &q), -EINVAL);
	ck_assert_int_eq(ts_bucket_scale(&p, UINT64_MAX, &q), -EINVAL);
	p.tokens = 0;
	ck_assert_int_eq(ts_bucket_scale(&p, 110, &q), -EINVAL);
	ts_profile_finish(&p);
}
END_TEST

/*
 * A parameter and its gradient of VERSIONS versions each, the parameter's
 * listed newest first: what is done for one version by way of all others would
 * take minutes.
 */
START_TEST(chains_are_as_long_and_listed_as_they_like)
{
	struct ts_profile_builder b;
	struct ts_profile p, q;
	uint32_t f, x, w, g;

	ts_builder_init(&b);
	f = ts_builder_signature(&b, "f", TS_CLASS_GEMM, true);
	x = ts_builder_value(&b, 1000, TS_KIND_INPUT);
	for (uint32_t i = 0; i < VERSIONS; i++) {
		w = ts_builder_value(&b, 500, TS_KIND_OTHER);
		if (i)
			b.profile.values[w - 1].in_place_of = w;
	}
	b.profile.values[w].persistent = true;
	g = ts_builder_value(&b, 500, TS_KIND_GRADIENT);
	ts_builder_op(&b, f, 100, &x, 1, &g, 1);
	for (uint32_t i = 1; i < VERSIONS; i++) {
		uint32_t newer = ts_builder_value(&b, 500, TS_KIND_GRADIENT);

		b.profile.values[newer].in_place_of = g;
		ts_builder_op(&b, f, 200, &g, 1, &newer, 1);
		g = newer;
		w--;
		ts_builder_op(&b, f, 300, &g, 1, &w, 1);
	}
	b.profile.tokens = 100;
	b.profile.device.d2h_bytes_per_s = b.profile.device.h2d_bytes_per_s =
	        b.profile.device.d2h_both_bytes_per_s =
	                b.profile.device.h2d_both_bytes_per_s = 1000000000;
	ck_assert_int_eq(ts_builder_take(&b, &p), 0);
	ck_assert_int_eq(ts_bucket_scale(&p, 200, &q), 0);
	ck_assert_uint_eq(q.n_values, 2 * VERSIONS + 1);
	ck_assert_uint_eq(q.values[x].size_bytes, 2000);
	for (uint32_t v = x + 1; v < q.n_values; v++)
		if (q.values[v].size_bytes != 500)
			ck_abort_msg("value %u grows with tokens", v);
	ck_assert_uint_eq(q.ops[0].duration_ns, 200);
	for (uint32_t i = 1; i < q.n_ops; i++)
		if (q.ops[i].duration_ns != p.ops[i].duration_ns)
			ck_abort_msg("op %u takes longer", i);
	ts_profile_finish(&q);
	ts_profile_finish(&p);
}
END_TEST

/*
 * @choice, made for the bucket's edge, at @tokens of the same bucket. Returns
 * its step in parts of that at the edge.
 */
static double check_inside(const struct ts_profile *p, uint64_t tokens,
        const struct ts_choice *choice, uint64_t limit_bytes, uint64_t step_ns,
        uint64_t seed)
{
	struct ts_profile q;
	struct ts_graph g;
	struct ts_model *model;
	struct ts_outcome o;

	ck_assert_int_eq(ts_bucket_scale(p, tokens, &q), 0);
	ck_assert_int_eq(
	        ts_graph_init(&g, &q, &(struct ts_graph_options){0}), 0);
	ck_assert_uint_eq(g.n_gaps, choice->n_gaps);
	ck_assert_int_eq(ts_model_create(&g, limit_bytes, &model), 0);
	ck_assert_int_eq(ts_model_run(model, choice, &o, NULL), 0);
	ck_assert_msg(o.fits && o.peak_bytes <= limit_bytes,
	        "seed %" PRIu64 ": the plan does not hold at %" PRIu64
	        " tokens",
	        seed, tokens);
	ts_model_destroy(model);
	ts_graph_finish(&g);
	ts_profile_finish(&q);
	return (double)o.step_ns / (double)step_ns;
}

START_TEST(a_plan_for_the_edge_holds_in_all_of_the_bucket)
{
	struct ts_plan_options options = ts_plan_default_options();
	double steps = 0;
	uint32_t n = 0;

	options.search_evaluations = 100;
	for (uint64_t seed = 0; seed < TAPES; seed++) {
		uint64_t tokens = 1000 + 37 * seed, edge, low, limit;
		struct ts_profile p, q;
		struct ts_search s;
		struct ts_graph g;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		p.tokens = tokens;
		edge = ts_bucket_edge(tokens, TS_BUCKET_PERCENT);
		ck_assert_int_eq(ts_bucket_scale(&p, edge, &q), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &q, &(struct ts_graph_options){0}),
		        0);
		limit = g.floor_bytes +
		        (g.peak_bytes - g.floor_bytes) / 10 * (seed % 10);
		ck_assert_int_eq(ts_search_init(&s, &g, limit), 0);
		ck_assert_int_eq(ts_plan_search(&s, &options), 0);
		ck_assert(s.best.outcome.fits);
		/* The first count of the bucket, the last, those between. */
		low = edge;
		while (ts_bucket_edge(low - 1, TS_BUCKET_PERCENT) == edge)
			low--;
		for (uint64_t at = low; at < edge; at += (edge - low) / 4 + 1) {
			steps += check_inside(&p, at, &s.best.choice, limit,
			        s.best.outcome.step_ns, seed);
			n++;
		}
		ck_assert_double_eq_tol(
		        check_inside(&p, edge, &s.best.choice, limit,
		                s.best.outcome.step_ns, seed),
		        1, 1e-12);
		ts_search_finish(&s);
		ts_graph_finish(&g);
		ts_profile_finish(&q);
		ts_profile_finish(&p);
	}
	/* Parameters take as long to move at any length: not always shorter. */
	ck_assert_double_lt(steps / n, 0.99);
	printf("steps inside of a bucket: %.3f of the one at its edge\n",
	        steps / n);
}
END_TEST

START_TEST(a_workload_grows_with_its_tokens)
{
	struct ts_profile p, q;
	struct ts_graph g, h;

	ck_assert_int_eq(
	        ts_workload("llama-7b", ts_machine_find("a100"), &p), 0);
	ck_assert_uint_gt(p.tokens, 0);
	ck_assert_int_eq(ts_bucket_scale(&p, 2 * p.tokens, &q), 0);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(
	        ts_graph_init(&h, &q, &(struct ts_graph_options){0}), 0);
	ck_assert_double_eq_tol(
	        (double)h.peak_bytes / (double)g.peak_bytes, 2, 0.01);
	ck_assert_double_eq_tol(
	        (double)h.start_ns[h.n_ops] / (double)g.start_ns[g.n_ops], 2,
	        0.01);
	ts_graph_finish(&h);
	ts_graph_finish(&g);
	ts_profile_finish(&q);
	ts_profile_finish(&p);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {edges_are_geometric,
	        a_secondary_region_keeps_its_largest_bucket,
	        what_was_seen_serves_so_far_and_no_further,
	        what_has_no_tokens_stays_as_it_is,
	        chains_are_as_long_and_listed_as_they_like,
	        a_plan_for_the_edge_holds_in_all_of_the_bucket,
	        a_workload_grows_with_its_tokens};

	return ts_run_suite("planner buckets", tests,
	        sizeof(tests) / sizeof(tests[0]), 600);
}
