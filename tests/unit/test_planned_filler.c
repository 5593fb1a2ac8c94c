/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What fills the memory beside ops that can do with less than the largest. */
#include "agent/planned_filler.h"

#include "tests/unit/suite.h"

#define OPS 4

/*
 * A value each that the op after it reads: ops need one, two, two and two of
 * them, in bytes 10, 40, 90 and 80.
 */
static const uint64_t sizes[OPS] = {10, 30, 60, 20};
static const uint64_t needs[OPS] = {10, 40, 90, 80};

static void make_graph(struct ts_profile *profile, struct ts_graph *ret_graph)
{
	static struct ts_profile_op ops[OPS];
	static struct ts_value values[OPS];
	static uint32_t uses[2 * OPS];

	for (uint32_t i = 0; i < OPS; i++) {
		/* The value before, then its own. */
		ops[i] = (struct ts_profile_op){.duration_ns = 100,
		        .signature = TS_NONE,
		        .first_read = 2 * i,
		        .n_reads = i > 0,
		        .first_write = 2 * i + 1,
		        .n_writes = 1};
		uses[2 * i] = i ? i - 1 : 0;
		uses[2 * i + 1] = i;
		values[i] = (struct ts_value){.size_bytes = sizes[i],
		        .signature = TS_NONE,
		        .kind = TS_KIND_OTHER,
		        .in_place_of = TS_NONE,
		        .rebuild = TS_NONE};
	}
	*profile = (struct ts_profile){.ops = ops,
	        .n_ops = OPS,
	        .values = values,
	        .n_values = OPS,
	        .uses = uses,
	        .n_uses = 2 * OPS};
	ck_assert_int_eq(
	        ts_graph_init(ret_graph, profile, &(struct ts_graph_options){}),
	        0);
	for (uint32_t i = 0; i < OPS; i++)
		ck_assert_uint_eq(ret_graph->need_bytes[i], needs[i]);
	ck_assert_uint_eq(ret_graph->floor_bytes, 90);
}

/* With @low_bytes: what of the largest op's need each op then has. */
static void expect_filled(uint64_t low_bytes, const uint64_t *filled)
{
	struct ts_planned_filler filler;
	struct ts_profile profile;
	struct ts_graph graph;

	make_graph(&profile, &graph);
	ck_assert_int_eq(ts_planned_filler_make(&graph, low_bytes, &filler), 0);
	ck_assert_uint_eq(filler.graph.floor_bytes, graph.floor_bytes);
	for (uint32_t i = 0; i < OPS; i++)
		ck_assert_uint_eq(filler.graph.need_bytes[i], filled[i]);
	for (uint32_t v = profile.n_values; v < filler.profile.n_values; v++)
		ck_assert(filler.profile.values[v].pinned &&
		          filler.profile.values[v].no_replay);
	ts_planned_filler_finish(&filler);
	ts_graph_finish(&graph);
}

START_TEST(ops_that_need_less_have_what_they_may)
{
	/* Of 50 the first two have 40 and 10 left, the others nothing. */
	expect_filled(50, (const uint64_t[]){50, 80, 90, 90});
}
END_TEST

START_TEST(with_what_the_largest_needs_nothing_fills)
{
	expect_filled(90, needs);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, ops_that_need_less_have_what_they_may);
	tcase_add_test(tests, with_what_the_largest_needs_nothing_fills);
}

int main(void)
{
	return run_suite("planned_filler", add_tests);
}
