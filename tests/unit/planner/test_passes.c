/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The segment tree and the two passes. */
#include "tests/unit/planner/suite.h"

#include <string.h>

#include "planner/passes.h"
#include "planner/segtree.h"
#include "planner/workloads.h"
#include "tests/unit/planner/random_tape.h"

START_TEST(segment_tree_agrees_with_an_array)
{
	struct ts_random random;

	ts_random_seed(&random, 11);
	for (uint32_t n = 1; n < 40; n++) {
		uint64_t values[40];
		int64_t plain[40];
		struct ts_segtree tree;

		for (uint32_t i = 0; i < n; i++)
			plain[i] = (int64_t)(values[i] = ts_random_below(
			                             &random, 100));
		ck_assert_int_eq(ts_segtree_init(&tree, values, n), 0);
		for (int step = 0; step < 200; step++) {
			uint32_t from = ts_random_below(&random, n + 1);
			uint32_t to = ts_random_below(&random, n + 1);
			int64_t delta =
			        (int64_t)ts_random_below(&random, 50) - 25;
			int64_t level = ts_random_below(&random, 100), most;
			uint32_t first = n, at = ts_random_below(&random, n);
			uint32_t end =
			        at + 1 + ts_random_below(&random, n - at);
			uint32_t last = n, highest = at, found;

			ts_segtree_add(&tree, from, to, delta);
			for (uint32_t i = from; i < to; i++)
				plain[i] += delta;
			most = plain[0];
			for (uint32_t i = 0; i < n; i++)
				most = plain[i] > most ? plain[i] : most;
			for (uint32_t i = n; i-- > at;)
				first = plain[i] > level ? i : first;
			for (uint32_t i = 0; i < end; i++)
				last = plain[i] > level ? i : last;
			for (uint32_t i = at; i < end; i++)
				highest =
				        plain[i] > plain[highest] ? i : highest;
			ck_assert_int_eq(ts_segtree_max(&tree), most);
			ck_assert_int_eq(ts_segtree_get(&tree, at), plain[at]);
			ck_assert_uint_eq(
			        ts_segtree_first_above(&tree, at, level),
			        first);
			ck_assert_uint_eq(
			        ts_segtree_last_above(&tree, end, level), last);
			ck_assert_int_eq(
			        ts_segtree_range_max(&tree, at, end, &found),
			        plain[highest]);
			ck_assert_uint_eq(found, highest);
		}
		ts_segtree_finish(&tree);
	}
}
END_TEST

struct fixture {
	struct ts_profile profile;
	struct ts_graph graph;
	struct ts_pass pass;
	struct ts_choice choice;
};

static void setup(struct fixture *f, const char *name, double limit_percent)
{
	ck_assert_int_eq(
	        ts_workload(name, ts_machine_find("a100"), &f->profile), 0);
	ck_assert_int_eq(ts_graph_init(&f->graph, &f->profile,
	                         &(struct ts_graph_options){0}),
	        0);
	ck_assert_int_eq(ts_pass_init(&f->pass, &f->graph), 0);
	ck_assert_int_eq(ts_choice_init(&f->choice, f->graph.n_gaps), 0);
	f->pass.limit_bytes =
	        (uint64_t)((double)f->graph.peak_bytes * limit_percent / 100);
}

static void teardown(struct fixture *f)
{
	ts_choice_finish(&f->choice);
	ts_pass_finish(&f->pass);
	ts_graph_finish(&f->graph);
	ts_profile_finish(&f->profile);
}

static double gb(const struct fixture *f, enum ts_action action)
{
	double bytes = 0;

	for (uint32_t i = 0; i < f->graph.n_gaps; i++) {
		if (f->choice.action[i] == action)
			bytes += (double)f->graph.gaps[i].size_bytes;
	}
	return bytes * 1e-9;
}

/* Figure 3: 3.3 GB swapped, 12.9 recomputed at 30 %. */
START_TEST(passes_fill_the_link_and_replay_the_rest)
{
	struct fixture f;

	setup(&f, "gpt2-xl", 30);
	ck_assert_int_eq(ts_pass_swap(&f.pass, &f.choice), 0);
	ck_assert_double_eq_tol(gb(&f, TS_SWAP), 3.3, 0.05);
	/* Block inputs first: nothing else can bring them back. */
	for (uint32_t i = 0; i < f.graph.n_gaps; i++) {
		const struct ts_gap *gap = &f.graph.gaps[i];

		if (gap->from_op < f.profile.turns[0] &&
		        gap->to_op > f.profile.turns[0] + 100 &&
		        f.profile.values[gap->version].no_replay)
			ck_assert_int_eq(f.choice.action[i], TS_SWAP);
	}
	ck_assert_int_eq(ts_pass_squeeze(&f.pass, &f.choice), 0);
	ck_assert_double_eq_tol(gb(&f, TS_REPLAY), 12.9, 0.2);
	teardown(&f);
}
END_TEST

START_TEST(pass_one_stops_at_the_deficit)
{
	struct fixture f;

	setup(&f, "llama-7b", 90);
	ck_assert_int_eq(ts_pass_swap(&f.pass, &f.choice), 0);
	ck_assert_double_ge(gb(&f, TS_SWAP), 3.57);
	ck_assert_double_le(gb(&f, TS_SWAP), 3.57 + 0.21);
	teardown(&f);
}
END_TEST

START_TEST(nothing_is_done_where_everything_fits)
{
	struct fixture f;

	setup(&f, "bert-large", 100);
	ck_assert_int_eq(ts_pass_swap(&f.pass, &f.choice), 0);
	ck_assert_int_eq(ts_pass_squeeze(&f.pass, &f.choice), 0);
	ck_assert_double_eq(gb(&f, TS_SWAP), 0);
	ck_assert_double_eq(gb(&f, TS_REPLAY), 0);
	teardown(&f);
}
END_TEST

START_TEST(verdicts_are_obeyed)
{
	struct fixture f;
	uint32_t banned = TS_NONE, forced = TS_NONE;

	setup(&f, "bert-large", 50);
	ck_assert_int_eq(ts_pass_swap(&f.pass, &f.choice), 0);
	for (uint32_t i = 0; i < f.graph.n_gaps; i++) {
		if (f.choice.action[i] == TS_SWAP)
			banned = i;
		else if (f.graph.gaps[i].replay_ns != TS_NEVER)
			forced = i;
	}
	memset(f.choice.action, TS_KEEP, f.graph.n_gaps);
	f.pass.verdict[banned] = TS_NEVER_SWAP;
	f.pass.verdict[forced] = TS_MUST_REPLAY;
	ck_assert_int_eq(ts_pass_swap(&f.pass, &f.choice), 0);
	ck_assert_int_eq(ts_pass_squeeze(&f.pass, &f.choice), 0);
	ck_assert_int_ne(f.choice.action[banned], TS_SWAP);
	ck_assert_int_eq(f.choice.action[forced], TS_REPLAY);
	teardown(&f);
}
END_TEST

START_TEST(windows_lie_inside_their_gaps)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct ts_profile p;
		struct ts_graph g;
		struct ts_choice choice;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		ck_assert_int_eq(ts_choice_init(&choice, g.n_gaps), 0);
		memset(choice.action, TS_SWAP, g.n_gaps);
		for (uint32_t w = 0; w < TS_WINDOW_MODES; w++) {
			ts_windows_set(&g, &choice, (enum ts_window_mode)w);
			for (uint32_t i = 0; i < g.n_gaps; i++) {
				ck_assert_uint_gt(
				        choice.window[i], g.gaps[i].from_op);
				ck_assert_uint_le(
				        choice.window[i], g.gaps[i].to_op);
			}
		}
		ts_choice_finish(&choice);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {segment_tree_agrees_with_an_array,
	        passes_fill_the_link_and_replay_the_rest,
	        pass_one_stops_at_the_deficit,
	        nothing_is_done_where_everything_fits, verdicts_are_obeyed,
	        windows_lie_inside_their_gaps};

	return ts_run_suite(
	        "planner passes", tests, sizeof(tests) / sizeof(tests[0]), 120);
}
