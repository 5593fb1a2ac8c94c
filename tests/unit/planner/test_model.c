/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The event model against times worked out by hand. */
#include "tests/unit/planner/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/model.h"
#include "tests/unit/planner/random_tape.h"

#define MB UINT64_C(1000000)

/*
 * Link 1 GB/s each way: 1 MB takes 1 ms. Ops of 10 ms:
 *   0 makes a (5 MB); 1 reads a, makes b (5 MB); 2 reads b; 3 reads b;
 *   4 makes c (5 MB); 5 reads a, c
 */
struct fixture {
	struct ts_profile profile;
	struct ts_graph graph;
	struct ts_model *model;
	struct ts_choice choice;
	struct ts_outcome outcome;
};

static void setup(struct fixture *f, uint64_t limit)
{
	static const uint32_t a = 0, b = 1, c = 2, both[] = {0, 2};
	struct ts_profile_builder builder;
	struct ts_device *device = &builder.profile.device;
	uint32_t sig;

	ts_builder_init(&builder);
	sig = ts_builder_signature(&builder, "f", TS_CLASS_GEMM, true);
	for (int i = 0; i < 3; i++)
		ts_builder_value(&builder, 5 * MB, TS_KIND_ACTIVATION);
	ts_builder_op(&builder, sig, 10000000, NULL, 0, &a, 1);
	ts_builder_op(&builder, sig, 10000000, &a, 1, &b, 1);
	ts_builder_op(&builder, sig, 10000000, &b, 1, NULL, 0);
	ts_builder_op(&builder, sig, 10000000, &b, 1, NULL, 0);
	ts_builder_op(&builder, sig, 10000000, NULL, 0, &c, 1);
	ts_builder_op(&builder, sig, 10000000, both, 2, NULL, 0);
	ts_builder_turn(&builder, 4);
	device->d2h_bytes_per_s = device->h2d_bytes_per_s = 1000 * MB;
	device->d2h_both_bytes_per_s = device->h2d_both_bytes_per_s = 500 * MB;
	ck_assert_int_eq(ts_builder_take(&builder, &f->profile), 0);
	ck_assert_int_eq(ts_graph_init(&f->graph, &f->profile,
	                         &(struct ts_graph_options){0}),
	        0);
	ck_assert_uint_eq(f->graph.n_gaps, 1);
	ck_assert_int_eq(ts_model_create(&f->graph, limit, &f->model), 0);
	ck_assert_int_eq(ts_choice_init(&f->choice, 1), 0);
}

static void run(struct fixture *f, enum ts_action action, uint32_t window)
{
	f->choice.action[0] = (uint8_t)action;
	f->choice.window[0] = window;
	ck_assert_int_eq(
	        ts_model_run(f->model, &f->choice, &f->outcome, NULL), 0);
}

static void teardown(struct fixture *f)
{
	ts_choice_finish(&f->choice);
	ts_model_destroy(f->model);
	ts_graph_finish(&f->graph);
	ts_profile_finish(&f->profile);
}

START_TEST(kept_values_cost_nothing_and_may_not_fit)
{
	struct fixture f;

	setup(&f, 10 * MB);
	run(&f, TS_KEEP, 0);
	ck_assert(f.outcome.fits);
	ck_assert_uint_eq(f.outcome.step_ns, 60000000);
	ck_assert_uint_eq(f.outcome.peak_bytes, 10 * MB);
	ts_model_set_limit(f.model, 10 * MB - 1);
	run(&f, TS_KEEP, 0);
	ck_assert(!f.outcome.fits);
	ck_assert_uint_eq(f.outcome.stuck_op, 1);
	teardown(&f);
}
END_TEST

START_TEST(swap_hides_behind_compute)
{
	struct fixture f;

	/* Out from 10 to 15 ms, back from 40 to 45 ms: nobody waits. */
	setup(&f, 10 * MB);
	run(&f, TS_SWAP, 4);
	ck_assert_uint_eq(f.outcome.step_ns, 60000000);
	ck_assert_uint_eq(f.outcome.d2h_bytes, 5 * MB);
	ck_assert_uint_eq(f.outcome.h2d_bytes, 5 * MB);
	ck_assert_uint_eq(f.outcome.wait_in_ns, 0);
	teardown(&f);
}
END_TEST

/*
 * a is made, and read 1 ms later by an op that the runtime does not know to
 * leave it as it is: the copy on its way then is old, and made once more.
 */
START_TEST(what_changes_while_it_is_copied_is_copied_again)
{
	static const uint32_t a = 0;
	static const uint8_t dirties[] = {1, 1, 1, 1};
	struct ts_profile_builder builder;
	struct ts_device *device = &builder.profile.device;
	struct fixture f;
	uint32_t sig;

	ts_builder_init(&builder);
	sig = ts_builder_signature(&builder, "f", TS_CLASS_GEMM, true);
	ts_builder_value(&builder, 5 * MB, TS_KIND_ACTIVATION);
	ts_builder_op(&builder, sig, 10000000, NULL, 0, &a, 1);
	ts_builder_op(&builder, sig, 1000000, NULL, 0, NULL, 0);
	ts_builder_op(&builder, sig, 1000000, &a, 1, NULL, 0);
	ts_builder_op(&builder, sig, 30000000, NULL, 0, NULL, 0);
	ts_builder_op(&builder, sig, 10000000, &a, 1, NULL, 0);
	ts_builder_turn(&builder, 3);
	device->d2h_bytes_per_s = device->h2d_bytes_per_s = 1000 * MB;
	device->d2h_both_bytes_per_s = device->h2d_both_bytes_per_s = 500 * MB;
	ck_assert_int_eq(ts_builder_take(&builder, &f.profile), 0);
	ck_assert_int_eq(
	        ts_graph_init(&f.graph, &f.profile,
	                &(struct ts_graph_options){.dirties = dirties}),
	        0);
	ck_assert_uint_eq(f.graph.n_gaps, 2);
	ck_assert_int_eq(ts_model_create(&f.graph, 10 * MB, &f.model), 0);
	ck_assert_int_eq(ts_choice_init(&f.choice, 2), 0);
	ts_model_set_options(
	        f.model, &(struct ts_model_options){.late_copies = true});
	f.choice.action[0] = f.choice.action[1] = TS_SWAP;
	ck_assert_int_eq(ts_model_run(f.model, &f.choice, &f.outcome, NULL), 0);
	ck_assert_uint_eq(f.outcome.d2h_bytes, 2 * 5 * MB);
	ck_assert_uint_eq(f.outcome.h2d_bytes, 5 * MB);
	teardown(&f);
}
END_TEST

START_TEST(late_prefetch_is_waited_for)
{
	struct fixture f;

	setup(&f, 10 * MB);
	run(&f, TS_SWAP, 5);
	ck_assert_uint_eq(f.outcome.step_ns, 65000000);
	ck_assert_uint_eq(f.outcome.wait_in_ns, 5000000);
	teardown(&f);
}
END_TEST

START_TEST(replay_runs_before_its_reader)
{
	struct fixture f;

	setup(&f, 10 * MB);
	run(&f, TS_REPLAY, 0);
	ck_assert_uint_eq(f.outcome.step_ns, 70000000);
	ck_assert_uint_eq(f.outcome.replay_ns, 10000000);
	ck_assert_uint_eq(f.outcome.d2h_bytes, 0);
	ck_assert_uint_eq(f.outcome.peak_bytes, 10 * MB);
	teardown(&f);
}
END_TEST

START_TEST(both_ways_at_once_are_slower)
{
	struct fixture f;
	struct ts_profile *p = &f.profile;

	/*
	 * b is as long away: out while a comes back. Ops 2 and 3 read a
	 * instead of b, op 5 reads b and c: a second gap appears.
	 */
	setup(&f, 20 * MB);
	p->uses[p->ops[2].first_read] = 0;
	p->uses[p->ops[3].first_read] = 0;
	p->uses[p->ops[5].first_read] = 1;
	ts_model_destroy(f.model);
	ts_graph_finish(&f.graph);
	ts_choice_finish(&f.choice);
	ck_assert_int_eq(
	        ts_graph_init(&f.graph, p, &(struct ts_graph_options){0}), 0);
	ck_assert_uint_eq(f.graph.n_gaps, 1);
	ck_assert_int_eq(ts_choice_init(&f.choice, 1), 0);
	ck_assert_int_eq(ts_model_create(&f.graph, 20 * MB, &f.model), 0);
	/* b: written at 20 ms, out until 25; asked for at 50, back at 55. */
	run(&f, TS_SWAP, 5);
	ck_assert_uint_eq(f.outcome.step_ns, 65000000);
	teardown(&f);
}
END_TEST

/* Whatever a try says has to be what a run from the start says. */
START_TEST(incremental_evaluation_agrees_with_full_runs)
{
	struct ts_random random;
	uint32_t compared = 0;

	ts_random_seed(&random, 7);
	for (uint64_t seed = 0; seed < 400; seed++) {
		struct ts_profile p;
		struct ts_graph g;
		struct ts_model *tried, *run;
		struct ts_choice choice;
		struct ts_outcome a, b;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		ck_assert_int_eq(ts_model_create(&g, g.peak_bytes, &tried), 0);
		ck_assert_int_eq(ts_model_create(&g, g.peak_bytes, &run), 0);
		ck_assert_int_eq(ts_choice_init(&choice, g.n_gaps), 0);
		for (uint32_t i = 0; i < 20 && g.n_gaps; i++) {
			uint32_t gap = ts_random_below(&random, g.n_gaps);

			choice.action[gap] = (uint8_t)ts_random_below(&random,
			        g.gaps[gap].replay_ns == TS_NEVER ? 2 : 3);
			choice.window[gap] =
			        g.gaps[gap].from_op + 1 +
			        ts_random_below(
			                &random, g.gaps[gap].to_op -
			                                 g.gaps[gap].from_op);
			ck_assert_int_eq(ts_model_try(tried, &choice, &a), 0);
			ck_assert_int_eq(
			        ts_model_run(run, &choice, &b, NULL), 0);
			ck_assert_int_eq(a.fits, b.fits);
			ck_assert_uint_eq(a.step_ns, b.step_ns);
			if (a.fits)
				ck_assert_uint_eq(a.peak_bytes, b.peak_bytes);
			if (i % 5 == 0)
				ck_assert_int_eq(
				        ts_model_anchor(tried, &choice, &a), 0);
			compared++;
		}
		ts_choice_finish(&choice);
		ts_model_destroy(tried);
		ts_model_destroy(run);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
	ck_assert_uint_gt(compared, 5000);
}
END_TEST

/* Most tell what a whole run would; none tells of a step that is too long. */
START_TEST(guesses_are_near_full_runs)
{
	uint32_t compared = 0, near = 0;

	for (uint64_t seed = 0; seed < 60; seed++) {
		struct ts_random random = {seed + 1};
		struct ts_outcome anchor, guess, run;
		struct ts_choice choice;
		struct ts_model *m;
		struct ts_profile p;
		struct ts_graph g;
		uint64_t limit;

		ck_assert_int_eq(ts_random_wide_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		limit = g.floor_bytes + (g.peak_bytes - g.floor_bytes) / 3 * 2;
		ck_assert_int_eq(ts_model_create(&g, limit, &m), 0);
		ck_assert_int_eq(ts_choice_init(&choice, g.n_gaps), 0);
		for (uint32_t i = 0; i < g.n_gaps; i++) {
			choice.action[i] =
			        ts_random_below(&random, 3) ? TS_SWAP : TS_KEEP;
			choice.window[i] = g.gaps[i].to_op;
		}
		for (uint32_t i = 0; i < 20; i++) {
			uint32_t gap = ts_random_below(&random, g.n_gaps);

			ck_assert_int_eq(
			        ts_model_anchor(m, &choice, &anchor), 0);
			if (!anchor.fits)
				break;
			ck_assert_int_eq(ts_model_guess(m, &choice,
			                         anchor.step_ns, &guess),
			        0);
			ck_assert(guess.fits);
			ck_assert_uint_eq(guess.step_ns, anchor.step_ns);
			choice.action[gap] = choice.action[gap] == TS_SWAP
			                             ? TS_KEEP
			                             : TS_SWAP;
			ck_assert_int_eq(ts_model_guess(m, &choice,
			                         anchor.step_ns, &guess),
			        0);
			ck_assert(
			        !guess.fits || guess.step_ns <= anchor.step_ns);
			ck_assert_int_eq(ts_model_guess(m, &choice,
			                         TS_NEVER / 4, &guess),
			        0);
			ck_assert_int_eq(
			        ts_model_run(m, &choice, &run, NULL), 0);
			compared++;
			near += guess.fits == run.fits &&
			        (!run.fits ||
			                fabs((double)guess.step_ns -
			                        (double)run.step_ns) <
			                        0.02 * (double)run.step_ns);
		}
		ts_choice_finish(&choice);
		ts_model_destroy(m);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
	printf("%u of %u guesses near\n", near, compared);
	ck_assert_uint_gt(compared, 200);
	ck_assert_uint_ge(near * 20, compared * 19);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {kept_values_cost_nothing_and_may_not_fit,
	        swap_hides_behind_compute,
	        what_changes_while_it_is_copied_is_copied_again,
	        late_prefetch_is_waited_for, replay_runs_before_its_reader,
	        both_ways_at_once_are_slower,
	        incremental_evaluation_agrees_with_full_runs,
	        guesses_are_near_full_runs};

	return ts_run_suite(
	        "planner model", tests, sizeof(tests) / sizeof(tests[0]), 120);
}
