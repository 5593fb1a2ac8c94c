/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Joint pricing, frontiers and the knapsack. */
#include "tests/unit/planner/suite.h"

#include <string.h>

#include "planner/frontier.h"
#include "planner/knapsack.h"
#include "planner/workloads.h"
#include "tests/unit/planner/random_tape.h"

#define MIB (UINT64_C(1) << 20)

/*
 * The joint effect of TapeSAC's Figure 3: one GEMM makes two values, copies
 * of both are what the backward reads; the GEMM is dead only if both copies
 * are saved.
 */
static void make_fork(struct ts_profile *profile)
{
	struct ts_profile_builder b;
	struct ts_region region = {0, 0, 3, 4, 6};
	uint32_t f, in, pair[2], copies[2], both[2];

	ts_builder_init(&b);
	f = ts_builder_signature(&b, "f", TS_CLASS_GEMM, true);
	in = ts_builder_value(&b, MIB, TS_KIND_INPUT);
	for (int i = 0; i < 2; i++) {
		pair[i] = ts_builder_value(&b, MIB, TS_KIND_ACTIVATION);
		copies[i] = ts_builder_value(&b, MIB, TS_KIND_ACTIVATION);
	}
	ts_builder_op(&b, f, 2900, &in, 1, pair, 2);
	ts_builder_op(&b, f, 1100, &pair[0], 1, &copies[0], 1);
	ts_builder_op(&b, f, 2000, &pair[1], 1, &copies[1], 1);
	ts_builder_op(&b, f, 100, NULL, 0, NULL, 0);
	both[0] = copies[1];
	both[1] = in;
	ts_builder_op(&b, f, 100, both, 2, NULL, 0);
	both[0] = copies[0];
	ts_builder_op(&b, f, 100, both, 2, NULL, 0);
	ts_builder_turn(&b, 4);
	ts_builder_region(&b, &region);
	b.profile.device.d2h_bytes_per_s = b.profile.device.h2d_bytes_per_s =
	        b.profile.device.d2h_both_bytes_per_s =
	                b.profile.device.h2d_both_bytes_per_s = 1000000000;
	ck_assert_int_eq(ts_builder_take(&b, profile), 0);
}

START_TEST(what_closures_share_is_paid_once)
{
	struct ts_profile p;
	struct ts_graph g;
	uint8_t kept[16] = {0};
	uint32_t first = TS_NONE, second = TS_NONE, dead;

	make_fork(&p);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	for (uint32_t i = 0; i < g.n_gaps; i++) {
		if (g.gaps[i].born_op == 1)
			first = i;
		if (g.gaps[i].born_op == 2)
			second = i;
	}
	ck_assert_uint_ne(first, TS_NONE);
	ck_assert_uint_ne(second, TS_NONE);
	ck_assert_uint_eq(ts_region_replay_ns(&g, 0, kept, &dead), 6000);
	ck_assert_uint_eq(dead, 0);
	kept[first] = 1;
	ck_assert_uint_eq(ts_region_replay_ns(&g, 0, kept, &dead), 4900);
	kept[first] = 0;
	kept[second] = 1;
	ck_assert_uint_eq(ts_region_replay_ns(&g, 0, kept, &dead), 4000);
	/* Together they save more than one by one: 6.0 against 1.1 + 2.0. */
	kept[first] = 1;
	ck_assert_uint_eq(ts_region_replay_ns(&g, 0, kept, &dead), 0);
	ck_assert_uint_eq(dead, 3);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

START_TEST(frontier_has_the_joint_point)
{
	struct ts_frontier f;
	struct ts_profile p;
	struct ts_graph g;

	make_fork(&p);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(ts_frontier_make(&g, 0, &f), 0);
	ck_assert_uint_eq(f.must_only_ns, 6000);
	ck_assert_uint_eq(f.n_points, 3);
	ck_assert_uint_eq(f.points[0].saved_ns, 0);
	ck_assert_uint_eq(f.points[1].bytes, MIB);
	ck_assert_uint_eq(f.points[1].saved_ns, 2000);
	ck_assert_uint_eq(f.points[2].bytes, 2 * MIB);
	ck_assert_uint_eq(f.points[2].saved_ns, 6000);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

/* Dead nodes: FC2 and the last dropout and addition run no more. */
START_TEST(replay_of_a_block_skips_dead_nodes)
{
	struct ts_frontier f;
	struct ts_profile p;
	struct ts_graph g;

	ck_assert_int_eq(
	        ts_workload("gpt2-xl", ts_machine_find("a100"), &p), 0);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(ts_frontier_make(&g, 10, &f), 0);
	ck_assert_uint_eq(f.dead_ops, 3);
	ck_assert_uint_gt(f.n_points, 8);
	for (uint32_t i = 1; i < f.n_points; i++) {
		ck_assert_uint_gt(f.points[i].bytes, f.points[i - 1].bytes);
		ck_assert_uint_gt(
		        f.points[i].saved_ns, f.points[i - 1].saved_ns);
	}
	/* The last point saves nearly all that a replay costs. */
	ck_assert_uint_ge(
	        f.points[f.n_points - 1].saved_ns * 10, f.must_only_ns * 9);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

START_TEST(blocks_fill_the_capacity_they_get)
{
	struct ts_frontiers *frontiers;
	struct ts_choice choice;
	struct ts_profile p;
	struct ts_graph g;
	uint64_t before = 0;

	ck_assert_int_eq(
	        ts_workload("gpt2-xl", ts_machine_find("a100"), &p), 0);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(ts_choice_init(&choice, g.n_gaps), 0);
	ck_assert_int_eq(ts_frontiers_create(&g, &frontiers), 0);
	for (uint64_t gb = 0; gb <= 16; gb += 4) {
		uint64_t kept = 0, saveable = 0;

		memset(choice.action, TS_KEEP, g.n_gaps);
		ck_assert_int_eq(ts_frontiers_choose(
		                         frontiers, gb * 1000000000, &choice),
		        0);
		for (uint32_t i = 0; i < g.n_gaps; i++) {
			const struct ts_gap *gap = &g.gaps[i];

			if (gap->replay_ns == TS_NEVER ||
			        gap->from_op >= p.turns[0] ||
			        gap->to_op < p.turns[0] ||
			        gap->born_op >= p.regions[47].end_op)
				continue;
			saveable += gap->size_bytes;
			if (choice.action[i] == TS_KEEP)
				kept += gap->size_bytes;
		}
		ck_assert_uint_le(kept, gb * 1000000000);
		ck_assert_uint_ge(kept, before);
		ck_assert_uint_gt(saveable, UINT64_C(18000000000));
		/* Rounding up costs at most a cell a block. */
		ck_assert_uint_ge(
		        kept + (gb * 1000000000) / 5, gb * 1000000000);
		before = kept;
	}
	ts_frontiers_destroy(frontiers);
	ts_choice_finish(&choice);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

/* Bytes of @region that @choice keeps for its backward. */
static uint64_t kept_of(const struct ts_graph *g,
        const struct ts_region *region, const struct ts_choice *choice)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		if (gap->born_op != TS_NONE &&
		        gap->born_op >= region->first_op &&
		        gap->born_op < region->end_op &&
		        gap->to_op >= region->backward_first_op &&
		        gap->to_op < region->backward_end_op &&
		        choice->action[i] == TS_KEEP)
			bytes += gap->size_bytes;
	}
	return bytes;
}

START_TEST(the_block_that_sets_the_peak_keeps_more)
{
	struct ts_frontiers *frontiers;
	struct ts_choice choice;
	struct ts_profile p;
	struct ts_graph g;
	uint64_t before[48];
	uint32_t steps = 0;

	ck_assert_int_eq(
	        ts_workload("gpt2-xl", ts_machine_find("a100"), &p), 0);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(ts_choice_init(&choice, g.n_gaps), 0);
	ck_assert_int_eq(ts_frontiers_create(&g, &frontiers), 0);
	ck_assert_int_eq(ts_frontiers_choose(frontiers, 0, &choice), 0);
	for (uint32_t r = 0; r < 48; r++)
		before[r] = kept_of(&g, &p.regions[r], &choice);
	/* No block is at work in the forward. */
	ck_assert(!ts_frontiers_raise(frontiers, p.regions[10].first_op));
	while (ts_frontiers_raise(
	        frontiers, p.regions[10].backward_end_op - 1)) {
		uint64_t kept = before[10];

		ck_assert_int_eq(ts_frontiers_choose(frontiers, 0, &choice), 0);
		before[10] = kept_of(&g, &p.regions[10], &choice);
		ck_assert_uint_gt(before[10], kept);
		for (uint32_t r = 0; r < 48; r++)
			ck_assert_uint_eq(
			        kept_of(&g, &p.regions[r], &choice), before[r]);
		steps++;
	}
	ck_assert_uint_gt(steps, 5);
	ts_frontiers_lower(frontiers);
	ck_assert_int_eq(ts_frontiers_choose(frontiers, 0, &choice), 0);
	ck_assert_uint_eq(kept_of(&g, &p.regions[10], &choice), before[9]);
	ts_frontiers_destroy(frontiers);
	ts_choice_finish(&choice);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

START_TEST(knapsack_agrees_with_trying_everything)
{
	struct ts_random random;

	ts_random_seed(&random, 3);
	for (int round = 0; round < 500; round++) {
		struct ts_knapsack_item items[4][3] = {{{0, 0}}};
		struct ts_knapsack_class classes[4];
		uint32_t taken[4], capacity = ts_random_below(&random, 300);
		uint64_t best = 0, bytes = 0, gain = 0;

		for (uint32_t i = 0; i < 4; i++) {
			for (uint32_t k = 1; k < 3; k++)
				items[i][k] = (struct ts_knapsack_item){
				        ts_random_below(&random, 120),
				        ts_random_below(&random, 100)};
			classes[i] = (struct ts_knapsack_class){items[i], 3};
		}
		for (uint32_t c = 0; c < 81; c++) {
			uint32_t rest = c;
			uint64_t b = 0, v = 0;

			for (uint32_t i = 0; i < 4; i++, rest /= 3) {
				b += items[i][rest % 3].bytes;
				v += items[i][rest % 3].gain;
			}
			if (b <= capacity && v > best)
				best = v;
		}
		ck_assert_int_eq(
		        ts_knapsack_solve(classes, 4, capacity, taken), 0);
		for (uint32_t i = 0; i < 4; i++) {
			bytes += items[i][taken[i]].bytes;
			gain += items[i][taken[i]].gain;
		}
		ck_assert_uint_le(bytes, capacity);
		ck_assert_uint_eq(gain, best);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {what_closures_share_is_paid_once,
	        frontier_has_the_joint_point,
	        replay_of_a_block_skips_dead_nodes,
	        blocks_fill_the_capacity_they_get,
	        the_block_that_sets_the_peak_keeps_more,
	        knapsack_agrees_with_trying_everything};

	return ts_run_suite("planner frontier", tests,
	        sizeof(tests) / sizeof(tests[0]), 120);
}
