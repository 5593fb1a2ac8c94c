/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When pages leave and come that share chunks. */
#include "agent/planned_pace.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/suite.h"

#define BYTES    (UINT64_C(8) << 20)
#define OP_NS    1000000
#define VALUES   3
#define GAPS_MAX 16

static const uint64_t no_replays[GAPS_MAX];

/* A step whose op i takes @ns[i] and uses the values of the bits @used[i]. */
static void make_graph(const uint64_t *ns, const unsigned int *used,
        uint32_t n_ops, struct ts_profile *profile, struct ts_graph *graph)
{
	struct ts_profile_builder builder;
	uint32_t values[VALUES];

	ts_builder_init(&builder);
	for (int v = 0; v < VALUES; v++) {
		values[v] =
		        ts_builder_value(&builder, BYTES, TS_KIND_PARAMETER);
		builder.profile.values[values[v]].persistent = true;
	}
	for (uint32_t i = 0; i < n_ops; i++) {
		uint32_t reads[VALUES], n = 0;

		for (int v = 0; v < VALUES; v++)
			if (used[i] >> v & 1)
				reads[n++] = values[v];
		ts_builder_op(&builder,
		        ts_builder_signature(
		                &builder, "op", TS_CLASS_OTHER, false),
		        ns[i], reads, n, NULL, 0);
	}
	ck_assert_int_eq(ts_builder_take(&builder, profile), 0);
	ts_builder_finish(&builder);
	/* A byte a ns. */
	profile->device.d2h_bytes_per_s = 1000000000;
	profile->device.h2d_bytes_per_s = 1000000000;
	profile->device.d2h_both_bytes_per_s = 1000000000;
	profile->device.h2d_both_bytes_per_s = 1000000000;
	ck_assert_int_eq(
	        ts_graph_init(graph, profile, &(struct ts_graph_options){0}),
	        0);
}

/* The gap of @value that begins after @op. */
static uint32_t gap_of(
        const struct ts_graph *graph, uint32_t value, uint32_t op)
{
	uint32_t gap = ts_graph_gap_at(graph, value, (op + 1) % graph->n_ops);

	ck_assert_uint_ne(gap, TS_NONE);
	ck_assert_uint_eq(graph->gaps[gap].from_op, op);
	return gap;
}

/* Everything is needed where its gap ends. */
static void find_needs(const struct ts_graph *graph, uint32_t *ret_need_op)
{
	ck_assert_uint_le(graph->n_gaps, GAPS_MAX);
	for (uint32_t i = 0; i < graph->n_gaps; i++)
		ret_need_op[i] = graph->gaps[i].to_op;
}

/* Three in one chunk, one after the other: all wait for all. */
static uint64_t step_of_one_chunk(bool copies)
{
	const uint64_t ns[] = {OP_NS, OP_NS, OP_NS};
	const unsigned int used[] = {1, 2, 4};
	uint8_t away[] = {1, 1, 1}, ends[] = {0, 0, 0};
	uint8_t copied[] = {copies, copies, copies};
	struct ts_planned_handover handovers[VALUES];
	struct ts_planned_run run;
	struct ts_profile profile;
	struct ts_graph graph;
	uint32_t need_op[GAPS_MAX];
	uint64_t step_ns;

	make_graph(ns, used, 3, &profile, &graph);
	ck_assert_uint_eq(graph.n_gaps, 3);
	find_needs(&graph, need_op);
	for (uint32_t i = 0; i < VALUES; i++)
		handovers[i] = (struct ts_planned_handover){
		        .from = gap_of(&graph, i, i),
		        .to = gap_of(&graph, (i + 1) % 3, (i + 1) % 3)};
	ck_assert_int_eq(
	        ts_planned_pace(&(struct ts_planned_pace_input){.graph = &graph,
	                                .action = away,
	                                .ends = ends,
	                                .copies = copied,
	                                .need_op = need_op,
	                                .replay_ns = no_replays,
	                                .handovers = handovers,
	                                .n_handovers = 3},
	                &run),
	        0);
	/* Not before who was there is gone. */
	ck_assert_uint_eq(run.gaps[gap_of(&graph, 1, 1)].take_op, 1);
	ck_assert(run.gaps[gap_of(&graph, 1, 1)].wraps);
	step_ns = run.step_ns;
	ts_planned_run_finish(&run);
	ts_graph_finish(&graph);
	ts_profile_finish(&profile);
	return step_ns;
}

START_TEST(who_comes_waits_for_whom_it_follows)
{
	ck_assert_uint_eq(step_of_one_chunk(true), 3 * (OP_NS + 2 * BYTES));
	ck_assert_uint_eq(step_of_one_chunk(false), 3 * (OP_NS + BYTES));
}
END_TEST

/* Two come back within one long op, in the order in which they are used. */
START_TEST(who_is_used_first_comes_first)
{
	const uint64_t ns[] = {OP_NS, 10 * BYTES, OP_NS, OP_NS};
	unsigned int used[] = {3, 4, 0, 0};

	for (int first = 0; first < 2; first++) {
		uint8_t away[16] = {0}, none[16] = {0};
		struct ts_planned_run run;
		struct ts_profile profile;
		struct ts_graph graph;
		uint32_t gaps[2], need_op[GAPS_MAX];

		used[2] = 1u << first;
		used[3] = 2u >> first;
		make_graph(ns, used, 4, &profile, &graph);
		find_needs(&graph, need_op);
		gaps[0] = gap_of(&graph, 0, 0);
		gaps[1] = gap_of(&graph, 1, 0);
		away[gaps[0]] = away[gaps[1]] = 1;
		ck_assert_int_eq(
		        ts_planned_pace(
		                &(struct ts_planned_pace_input){.graph = &graph,
		                        .action = away,
		                        .ends = none,
		                        .copies = none,
		                        .need_op = need_op,
		                        .replay_ns = no_replays},
		                &run),
		        0);
		ck_assert_uint_lt(run.gaps[gaps[first]].come_tick,
		        run.gaps[gaps[!first]].come_tick);
		/* Nothing waits: both came while the long one ran. */
		ck_assert_uint_eq(run.step_ns, 3 * OP_NS + 10 * BYTES);
		ts_planned_run_finish(&run);
		ts_graph_finish(&graph);
		ts_profile_finish(&profile);
	}
}
END_TEST

/*
 * Value 0 is made again before op 3, and takes the chunk that value 1 had up to
 * then; value 2 is what it is made from, and there in time. @copies: value 1 is
 * copied out first.
 */
static void step_with_one_made_again(bool copies)
{
	const uint64_t ns[] = {OP_NS, OP_NS, OP_NS, OP_NS};
	const unsigned int used[] = {5, 0, 2, 1};
	const uint64_t replay_ns[GAPS_MAX] = {[3] = 3 * OP_NS};
	uint8_t action[GAPS_MAX] = {0}, none[GAPS_MAX] = {0};
	uint8_t copied[GAPS_MAX] = {0};
	uint32_t need_op[GAPS_MAX], made, other, from;
	struct ts_planned_run run;
	struct ts_profile profile;
	struct ts_graph graph;

	make_graph(ns, used, 4, &profile, &graph);
	find_needs(&graph, need_op);
	made = gap_of(&graph, 0, 0);
	other = gap_of(&graph, 1, 2);
	from = gap_of(&graph, 2, 0);
	action[made] = TS_REPLAY;
	action[other] = action[from] = TS_SWAP;
	copied[other] = copies;
	need_op[from] = 3;
	ck_assert_int_eq(
	        ts_planned_pace(
	                &(struct ts_planned_pace_input){.graph = &graph,
	                        .action = action,
	                        .ends = none,
	                        .copies = copied,
	                        .need_op = need_op,
	                        .replay_ns = replay_ns,
	                        .handovers =
	                                &(struct ts_planned_handover){
	                                        .from = other, .to = made},
	                        .n_handovers = 1},
	                &run),
	        0);
	ck_assert(run.gaps[made].replayed && run.gaps[made].away);
	ck_assert(!run.gaps[made].copies && !run.gaps[made].wraps);
	ck_assert_uint_eq(run.gaps[made].take_op, 3);
	/* It is made as op 3 begins, once the other one is gone. */
	ck_assert_uint_eq(run.gaps[made].come_tick, run.begin_tick[3]);
	ck_assert_uint_ge(run.begin_tick[3], run.gaps[other].gone_tick);
	ck_assert_uint_eq(
	        run.end_tick[3] - run.begin_tick[3], 3 * OP_NS + OP_NS);
	ck_assert_uint_le(run.gaps[from].take_op, 3);
	ck_assert(!run.gaps[from].wraps);
	if (copies)
		ck_assert_uint_ge(run.begin_tick[3] - run.end_tick[2], BYTES);
	ts_planned_run_finish(&run);
	ts_graph_finish(&graph);
	ts_profile_finish(&profile);
}

START_TEST(what_is_made_again_waits_for_its_chunk)
{
	step_with_one_made_again(false);
	step_with_one_made_again(true);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, who_comes_waits_for_whom_it_follows);
	tcase_add_test(tests, who_is_used_first_comes_first);
	tcase_add_test(tests, what_is_made_again_waits_for_its_chunk);
}

int main(void)
{
	return run_suite("planned_pace", add_tests);
}
