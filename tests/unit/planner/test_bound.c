/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tapes on which the bound would be above the best plan, were it not for one
 * of the parts that price replays (bound_replays.h). On all of them a state
 * that nothing replays has to leave over a slow link before the peak: replays
 * before the peak pass while it does, those after it do not.
 */
#include "tests/unit/planner/suite.h"

#include <inttypes.h>
#include <string.h>

#include "planner/bound.h"
#include "planner/profile.h"
#include "tests/unit/planner/optimum.h"

#define MB         UINT64_C(1000000)
#define MS         UINT64_C(1000000)
#define MAX_VALUES 8
#define MAX_OPS    12

/* One op: what it reads and writes are indices into the tape's values. */
struct step {
	bool replayable;
	uint32_t ms;
	uint32_t reads[2], n_reads;
	uint32_t writes[2], n_writes;
};

struct tape {
	uint32_t mb[MAX_VALUES], n_values; /* the first one is an input */
	uint32_t rebuilt, rebuild_ms; /* a value that has a rebuild; 0: none */
	struct step steps[MAX_OPS];
	uint32_t n_steps;
};

static void make(const struct tape *tape, struct ts_profile *p)
{
	struct ts_profile_builder b;
	uint32_t signatures[2];

	ts_builder_init(&b);
	for (int i = 0; i < 2; i++)
		signatures[i] = ts_builder_signature(
		        &b, i ? "made" : "once", TS_CLASS_GEMM, i);
	for (uint32_t i = 0; i < tape->n_values; i++)
		ts_builder_value(&b, tape->mb[i] * MB,
		        i ? TS_KIND_ACTIVATION : TS_KIND_INPUT);
	for (uint32_t i = 0; i < tape->n_steps; i++) {
		const struct step *s = &tape->steps[i];

		ts_builder_op(&b, signatures[s->replayable], s->ms * MS,
		        s->reads, s->n_reads, s->writes, s->n_writes);
	}
	if (tape->rebuilt)
		ts_builder_rebuild(
		        &b, tape->rebuilt, tape->rebuild_ms * MS, NULL, 0);
	b.profile.name = strdup("bound");
	b.profile.device = (struct ts_device){.name = strdup("slow out"),
	        .d2h_bytes_per_s = 200 * MB,
	        .h2d_bytes_per_s = 100000 * MB,
	        .d2h_both_bytes_per_s = 200 * MB,
	        .h2d_both_bytes_per_s = 100000 * MB};
	ck_assert_int_eq(ts_builder_take(&b, p), 0);
}

/*
 * At every limit the bound is no higher than the best of all plans. Where
 * both are above the ideal step: the least distance, in per cent.
 */
static double check(const struct tape *tape)
{
	struct ts_profile p;
	struct ts_graph g;
	double closest = 100;

	make(tape, &p);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	for (uint64_t limit = g.floor_bytes; limit < g.peak_bytes;
	        limit += MB) {
		struct ts_search s;
		uint64_t best, bound;

		ck_assert_int_eq(ts_search_init(&s, &g, limit), 0);
		best = ts_optimum(&s, ts_combinations(&g, 10000));
		ck_assert_int_eq(ts_bound_step(&g, limit, &bound), 0);
		ck_assert_msg(bound <= best + 1,
		        "limit %" PRIu64 ": bound %" PRIu64
		        ", the best plan %" PRIu64,
		        limit, bound, best);
		if (bound > g.start_ns[g.n_ops] &&
		        100 * (double)best / (double)bound - 100 < closest)
			closest = 100 * (double)best / (double)bound - 100;
		ts_search_finish(&s);
	}
	ts_graph_finish(&g);
	ts_profile_finish(&p);
	return closest;
}

/*
 * The replay of 5 for its use before the peak reads 3, which is open over the
 * peak: that is made again as well, and 2 for its sake. Over the peak 2 stays,
 * and 4, which reads it, is made after the peak from there.
 */
START_TEST(what_was_made_for_an_open_value_serves_another)
{
	static const struct tape tape = {.mb = {1, 100, 1, 1, 30, 20, 200},
	        .n_values = 7,
	        .steps = {{false, 1, {0}, 1, {1}, 1},
	                {true, 60, {0}, 1, {2}, 1}, {true, 1, {2}, 1, {4}, 1},
	                {true, 1, {2}, 1, {3}, 1}, {true, 1, {3}, 1, {5}, 1},
	                {false, 1, {0}, 1, {0}, 0}, {false, 1, {5}, 1, {0}, 0},
	                {false, 1, {0}, 1, {6}, 1}, {false, 1, {1}, 1, {0}, 0},
	                {false, 1, {4}, 1, {0}, 0},
	                {false, 1, {3, 0}, 2, {0}, 0}},
	        .n_steps = 11};

	ck_assert_double_le(check(&tape), 5);
}
END_TEST

/*
 * 2 and 3 come from one launch; the replay of 4 before the peak wants 2, and
 * 3 comes beside: over the peak that stays, and 5 is made from it.
 */
START_TEST(what_came_beside_another_output_serves)
{
	static const struct tape tape = {.mb = {1, 100, 1, 1, 20, 30, 200},
	        .n_values = 7,
	        .steps = {{false, 1, {0}, 1, {1}, 1},
	                {true, 60, {0}, 1, {2, 3}, 2},
	                {true, 1, {3}, 1, {5}, 1}, {true, 1, {2}, 1, {4}, 1},
	                {false, 1, {0}, 1, {0}, 0}, {false, 1, {4}, 1, {0}, 0},
	                {false, 1, {0}, 1, {6}, 1}, {false, 1, {1}, 1, {0}, 0},
	                {false, 1, {5, 0}, 2, {0}, 0}},
	        .n_steps = 9};

	ck_assert_double_le(check(&tape), 5);
}
END_TEST

/*
 * 2 has a rebuild, but comes without it where its launch makes 3 again: the
 * two together cost no more than that.
 */
START_TEST(a_launch_for_another_output_saves_a_rebuild)
{
	static const struct tape tape = {.mb = {1, 10, 20, 20, 200},
	        .n_values = 5,
	        .rebuilt = 2,
	        .rebuild_ms = 30,
	        .steps = {{false, 1, {0}, 1, {1}, 1},
	                {true, 40, {0}, 1, {2, 3}, 2},
	                {false, 1, {0}, 1, {4}, 1}, {false, 1, {3}, 1, {0}, 0},
	                {false, 1, {2}, 1, {0}, 0},
	                {false, 1, {1, 0}, 2, {0}, 0}},
	        .n_steps = 6};

	ck_assert_double_le(check(&tape), 50);
}
END_TEST

/*
 * 2 is larger than 4 or 5, which are made from it, and smaller than both: it
 * takes less to hold it over the peak than the two give back.
 */
START_TEST(scratch_is_held_by_all_that_it_serves)
{
	static const struct tape tape = {.mb = {1, 200, 22, 5, 20, 20, 300},
	        .n_values = 7,
	        .steps = {{false, 1, {0}, 1, {1}, 1},
	                {true, 400, {0}, 1, {2}, 1}, {true, 1, {2}, 1, {3}, 1},
	                {true, 1, {2}, 1, {4}, 1}, {true, 1, {2}, 1, {5}, 1},
	                {false, 1, {0}, 1, {0}, 0}, {false, 1, {3}, 1, {0}, 0},
	                {false, 1, {0}, 1, {6}, 1}, {false, 1, {1}, 1, {0}, 0},
	                {false, 1, {4}, 1, {0}, 0},
	                {false, 1, {5, 0}, 2, {0}, 0}},
	        .n_steps = 11};

	ck_assert_double_le(check(&tape), 15);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
	        what_was_made_for_an_open_value_serves_another,
	        what_came_beside_another_output_serves,
	        a_launch_for_another_output_saves_a_rebuild,
	        scratch_is_held_by_all_that_it_serves};

	return ts_run_suite(
	        "planner bound", tests, sizeof(tests) / sizeof(tests[0]), 120);
}
