/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Liveness, gaps, closures and the floor on tapes done by hand. */
#include "tests/unit/planner/suite.h"

#include "planner/bound.h"
#include "planner/graph.h"
#include "planner/workloads.h"

#define MIB (UINT64_C(1) << 20)

/*
 * a -> b -> c, then the backward reads c, b, a: ops 0..5.
 *   0 makes a; 1 reads a, makes b; 2 reads b, makes c; 3 reads c; 4 reads b;
 *   5 reads a
 */
static void make_chain(struct ts_profile *profile, bool in_place)
{
	struct ts_profile_builder b;
	uint32_t f, v[3];

	ts_builder_init(&b);
	f = ts_builder_signature(&b, "f", TS_CLASS_GEMM, true);
	for (int i = 0; i < 3; i++)
		v[i] = ts_builder_value(&b, 10 * MIB, TS_KIND_ACTIVATION);
	if (in_place)
		b.profile.values[v[2]].in_place_of = v[1];
	ts_builder_op(&b, f, 100, NULL, 0, &v[0], 1);
	ts_builder_op(&b, f, 200, &v[0], 1, &v[1], 1);
	ts_builder_op(&b, f, 300, &v[1], 1, &v[2], 1);
	ts_builder_op(&b, f, 400, &v[2], 1, NULL, 0);
	ts_builder_op(&b, f, 500, in_place ? &v[2] : &v[1], 1, NULL, 0);
	ts_builder_op(&b, f, 600, &v[0], 1, NULL, 0);
	ts_builder_turn(&b, 3);
	b.profile.device.d2h_bytes_per_s = b.profile.device.h2d_bytes_per_s =
	        b.profile.device.d2h_both_bytes_per_s =
	                b.profile.device.h2d_both_bytes_per_s = 1000000000;
	ck_assert_int_eq(ts_builder_take(&b, profile), 0);
}

static void init(struct ts_graph *g, const struct ts_profile *p)
{
	struct ts_input_error error;

	ck_assert_int_eq(ts_profile_check(p, &error), 0);
	ck_assert_int_eq(ts_graph_init(g, p, &(struct ts_graph_options){0}), 0);
}

START_TEST(memory_follows_first_and_last_use)
{
	static const uint64_t mib[] = {10, 20, 30, 30, 20, 10};
	struct ts_profile p;
	struct ts_graph g;

	make_chain(&p, false);
	init(&g, &p);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(g.mem_bytes[i], mib[i] * MIB);
	ck_assert_uint_eq(g.peak_bytes, 30 * MIB);
	/* Ops 1 and 2 each touch two values. */
	ck_assert_uint_eq(g.floor_bytes, 20 * MIB);
	ck_assert_uint_eq(g.start_ns[6], 2100);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

START_TEST(gaps_have_their_closures_priced)
{
	struct ts_profile p;
	struct ts_graph g;

	make_chain(&p, false);
	init(&g, &p);
	ck_assert_uint_eq(g.n_gaps, 2);
	/* a from op 1 to 5: op 0 again. */
	ck_assert_uint_eq(g.gaps[0].from_op, 1);
	ck_assert_uint_eq(g.gaps[0].to_op, 5);
	ck_assert_uint_eq(g.gaps[0].replay_ns, 100);
	ck_assert_uint_eq(g.gaps[0].idle_ns, 300 + 400 + 500);
	/* b from op 2 to 4: op 1 again, a is alive. */
	ck_assert_uint_eq(g.gaps[1].from_op, 2);
	ck_assert_uint_eq(g.gaps[1].to_op, 4);
	ck_assert_uint_eq(g.gaps[1].replay_ns, 200);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

START_TEST(versions_in_place_share_one_storage)
{
	struct ts_profile p;
	struct ts_graph g;

	make_chain(&p, true);
	init(&g, &p);
	ck_assert_uint_eq(g.peak_bytes, 20 * MIB);
	ck_assert_uint_eq(g.object_of[1], g.object_of[2]);
	ck_assert(ts_graph_alive(&g, 1, 2));
	ck_assert(!ts_graph_alive(&g, 1, 3));
	ck_assert(ts_graph_alive(&g, 2, 3));
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

START_TEST(parameters_have_a_gap_that_wraps)
{
	struct ts_profile_builder b;
	struct ts_profile p;
	struct ts_graph g;
	uint32_t f, param, updated;

	ts_builder_init(&b);
	f = ts_builder_signature(&b, "f", TS_CLASS_GEMM, false);
	param = ts_builder_value(&b, 10 * MIB, TS_KIND_PARAMETER);
	updated = ts_builder_value(&b, 10 * MIB, TS_KIND_PARAMETER);
	b.profile.values[param].persistent = true;
	b.profile.values[updated].in_place_of = param;
	ts_builder_op(&b, f, 10, NULL, 0, NULL, 0);
	ts_builder_op(&b, f, 10, &param, 1, NULL, 0);
	ts_builder_op(&b, f, 10, &param, 1, &updated, 1);
	ts_builder_op(&b, f, 10, NULL, 0, NULL, 0);
	b.profile.device.d2h_bytes_per_s = b.profile.device.h2d_bytes_per_s =
	        b.profile.device.d2h_both_bytes_per_s =
	                b.profile.device.h2d_both_bytes_per_s = 1000000000;
	ck_assert_int_eq(ts_builder_take(&b, &p), 0);
	init(&g, &p);
	ck_assert_uint_eq(g.n_gaps, 1);
	ck_assert_uint_eq(g.gaps[0].from_op, 2);
	ck_assert_uint_eq(g.gaps[0].to_op, 4 + 1);
	ck_assert_uint_eq(g.gaps[0].version, updated);
	/* What an optimizer overwrote is gone: nothing can replay it. */
	ck_assert_uint_eq(g.gaps[0].replay_ns, TS_NEVER);
	ck_assert_uint_eq(g.mem_bytes[0], 10 * MIB);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

/* Figures of the reference workloads, to the rounding of the paper. */
START_TEST(workloads_have_the_papers_size)
{
	static const struct {
		const char *name;
		double saved_gb, step_ms, intensity, hideable, peak_gb;
	} rows[] = {
	        {"bert-large", 13.9, 173, 782, 11, 14.05},
	        {"gpt2-xl", 22.3, 399, 1200, 15, 23.13},
	        {"llama-7b", 35.2, 1635, 3326, 38, 35.71},
	        {"vgg-16", 3.9, 82, 1015, 17, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ts_profile p;
		struct ts_graph g;
		double saved = 0, forward;

		ck_assert_int_eq(
		        ts_workload(rows[i].name, ts_machine_find("a100"), &p),
		        0);
		init(&g, &p);
		for (uint32_t o = 0; o < g.n_objects; o++) {
			const struct ts_object *object = &g.objects[o];

			if ((object->first_op == TS_NONE ||
			            object->first_op < p.turns[0]) &&
			        object->last_op != TS_NONE &&
			        object->last_op >= p.turns[0])
				saved += (double)object->size_bytes;
		}
		forward = (double)g.start_ns[p.turns[0]] * 1e-9;
		ck_assert_double_eq_tol(saved * 1e-9, rows[i].saved_gb, 0.05);
		ck_assert_double_eq_tol((double)g.start_ns[g.n_ops] * 1e-6,
		        rows[i].step_ms, 0.5);
		ck_assert_double_eq_tol((double)p.forward_flops / saved,
		        rows[i].intensity, 0.5);
		ck_assert_double_eq_tol(
		        100 * 25e9 * forward / saved, rows[i].hideable, 0.5);
		if (rows[i].peak_gb > 0)
			ck_assert_double_eq_tol((double)g.peak_bytes * 1e-9,
			        rows[i].peak_gb, 0.005);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
}
END_TEST

/* The bound's own table, in % of the unlimited step. */
START_TEST(bound_is_what_it_was_computed_to_be)
{
	static const double limits[] = {70, 50, 40, 30, 20, 10};
	static const struct {
		const char *name;
		double percent[6];
	} rows[] = {
	        {"bert-large", {98.30, 96.37, 93.31, 90.29, 87.46, 84.79}},
	        {"gpt2-xl", {99.02, 97.61, 95.24, 91.75, 88.51, 85.48}},
	        {"llama-7b", {100, 99.66, 99.28, 97.47, 93.96, 90.70}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ts_profile p;
		struct ts_graph g;

		ck_assert_int_eq(
		        ts_workload(rows[i].name, ts_machine_find("a100"), &p),
		        0);
		init(&g, &p);
		for (size_t k = 0; k < 6; k++) {
			uint64_t limit = (uint64_t)((double)g.peak_bytes *
			                            limits[k] / 100);
			uint64_t bound;

			ck_assert_int_eq(ts_bound_step(&g, limit, &bound), 0);
			ck_assert_double_eq_tol(
			        100 * (double)g.start_ns[g.n_ops] /
			                (double)bound,
			        rows[i].percent[k], 0.011);
		}
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {memory_follows_first_and_last_use,
	        gaps_have_their_closures_priced,
	        versions_in_place_share_one_storage,
	        parameters_have_a_gap_that_wraps,
	        workloads_have_the_papers_size,
	        bound_is_what_it_was_computed_to_be};

	return ts_run_suite(
	        "planner graph", tests, sizeof(tests) / sizeof(tests[0]), 120);
}
