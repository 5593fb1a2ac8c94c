/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When pages leave and come that share chunks. */
#include "agent/planned_pace.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/suite.h"

#define BYTES  (UINT64_C(8) << 20)
#define OP_NS  1000000
#define VALUES 3

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
	uint64_t step_ns;

	make_graph(ns, used, 3, &profile, &graph);
	ck_assert_uint_eq(graph.n_gaps, 3);
	for (uint32_t i = 0; i < VALUES; i++)
		handovers[i] = (struct ts_planned_handover){
		        .from = gap_of(&graph, i, i),
		        .to = gap_of(&graph, (i + 1) % 3, (i + 1) % 3)};
	ck_assert_int_eq(
	        ts_planned_pace(&(struct ts_planned_pace_input){.graph = &graph,
	                                .away = away,
	                                .ends = ends,
	                                .copies = copied,
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
		uint32_t gaps[2];

		used[2] = 1u << first;
		used[3] = 2u >> first;
		make_graph(ns, used, 4, &profile, &graph);
		gaps[0] = gap_of(&graph, 0, 0);
		gaps[1] = gap_of(&graph, 1, 0);
		away[gaps[0]] = away[gaps[1]] = 1;
		ck_assert_int_eq(
		        ts_planned_pace(
		                &(struct ts_planned_pace_input){.graph = &graph,
		                        .away = away,
		                        .ends = none,
		                        .copies = none},
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

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, who_comes_waits_for_whom_it_follows);
	tcase_add_test(tests, who_is_used_first_comes_first);
}

int main(void)
{
	return run_suite("planned_pace", add_tests);
}
