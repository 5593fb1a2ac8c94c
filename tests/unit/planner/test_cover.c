/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pass over all gaps and what it stands on: slots, queries, windows. */
#include "tests/unit/planner/suite.h"

#include <errno.h>
#include <string.h>

#include "planner/bound.h"
#include "planner/plan.h"
#include "planner/repair.h"
#include "tests/unit/planner/random_tape.h"

#define SECOND 1000000000

/* Free time of the whole slots in [from, to), from the array. */
static double plain_free(const struct ts_slots *s, uint32_t from, uint32_t to)
{
	double sum = 0;

	for (uint32_t i = from; i < to; i++)
		sum += s->free_ns[i % s->n];
	return sum;
}

START_TEST(slots_give_each_ns_once)
{
	struct ts_random random;
	struct ts_slots s;
	double taken = 0;

	ts_random_seed(&random, 6);
	ck_assert_int_eq(ts_slots_init(&s), 0);
	ts_slots_clear(&s, 100.0 * s.n);
	for (int step = 0; step < 400; step++) {
		uint32_t from = ts_random_below(&random, s.n);
		uint32_t to = from + ts_random_below(&random, s.n);
		double need = ts_random_below(&random, 3000), at = -1, left;
		double free_ns = plain_free(&s, from, to);
		bool early = ts_random_below(&random, 2);

		ck_assert_double_eq_tol(
		        ts_slots_free(&s, 100.0 * from, 100.0 * to), free_ns,
		        1e-3);
		left = early ? ts_slots_take_early(
		                       &s, 100.0 * from, 100.0 * to, need, &at)
		             : ts_slots_take_late(
		                       &s, 100.0 * from, 100.0 * to, need, &at);
		taken += need - left;
		ck_assert_double_eq_tol(
		        plain_free(&s, from, to), free_ns - need + left, 1e-3);
		/* All there was, but for slots as good as full. */
		if (left > 0)
			ck_assert_double_le(
			        plain_free(&s, from, to), 0.11 * (to - from));
		if (at < 0 || left > 0)
			continue;
		/* Nothing is free on the side that was to be taken. */
		if (early)
			ck_assert_double_le(
			        plain_free(&s, from, (uint32_t)(at / 100) - 1),
			        0.11 * s.n);
		else
			ck_assert_double_le(
			        plain_free(&s, (uint32_t)(at / 100) + 1, to),
			        0.11 * s.n);
	}
	ck_assert_double_gt(taken, 50.0 * s.n);
	ck_assert_double_eq_tol(
	        plain_free(&s, 0, s.n), 100.0 * s.n - taken, 1e-2);
	ts_slots_finish(&s);
}
END_TEST

START_TEST(plans_of_the_pass_stay_within_the_limit)
{
	uint32_t found = 0, swapped = 0, replayed = 0;

	for (uint64_t seed = 0; seed < 400; seed++) {
		struct ts_search s;
		struct ts_profile p;
		struct ts_graph g;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		ck_assert_int_eq(
		        ts_search_init(
		                &s, &g, (g.floor_bytes + 2 * g.peak_bytes) / 3),
		        0);
		ck_assert_int_eq(ts_search_cover(&s), 0);
		if (s.best.outcome.fits) {
			found++;
			ck_assert_uint_le(
			        s.best.outcome.peak_bytes, s.limit_bytes);
			ck_assert_uint_ge(
			        s.best.outcome.step_ns, g.start_ns[g.n_ops]);
			for (uint32_t i = 0; i < g.n_gaps; i++) {
				uint8_t action = s.best.choice.action[i];

				swapped += action == TS_SWAP;
				replayed += action == TS_REPLAY;
				ck_assert(action != TS_REPLAY ||
				          g.gaps[i].replay_ns != TS_NEVER);
			}
		}
		ts_search_finish(&s);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
	ck_assert_uint_gt(found, 300);
	ck_assert_uint_gt(swapped, 300);
	ck_assert_uint_gt(replayed, 100);
}
END_TEST

START_TEST(fitted_windows_lie_inside_their_gaps)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct ts_profile p;
		struct ts_graph g;
		struct ts_choice choice;
		struct ts_program program;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		ck_assert_int_eq(ts_choice_init(&choice, g.n_gaps), 0);
		ck_assert_int_eq(ts_program_init(&program, &g), 0);
		memset(choice.action, TS_SWAP, g.n_gaps);
		ck_assert_int_eq(ts_program_compile(&program, &choice), 0);
		for (uint32_t share = 1; share <= 4; share++) {
			ck_assert_int_eq(
			        ts_windows_fit(&program, &choice,
			                g.peak_bytes / 4 * share, NULL, NULL),
			        0);
			for (uint32_t i = 0; i < g.n_gaps; i++) {
				ck_assert_uint_gt(
				        choice.window[i], g.gaps[i].from_op);
				ck_assert_uint_le(
				        choice.window[i], g.gaps[i].to_op);
			}
		}
		ts_program_finish(&program);
		ts_choice_finish(&choice);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
}
END_TEST

/* @passes over @n parameters of 100 MB, 1 ms each; the link moves 1 GB/s. */
static void scan(struct ts_profile *p, uint32_t n, uint32_t passes)
{
	struct ts_profile_builder b;
	uint32_t signature;

	ts_builder_init(&b);
	signature = ts_builder_signature(&b, "scan", TS_CLASS_OTHER, false);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = ts_builder_value(&b, 100000000, TS_KIND_PARAMETER);

		b.profile.values[v].persistent = true;
	}
	for (uint32_t i = 0; i < n * passes; i++) {
		uint32_t v = i % n;

		ts_builder_op(&b, signature, SECOND / 1000, &v, 1, NULL, 0);
	}
	b.profile.name = strdup("scan");
	b.profile.device = (struct ts_device){.name = strdup("1 GB/s"),
	        .d2h_bytes_per_s = SECOND,
	        .h2d_bytes_per_s = SECOND,
	        .d2h_both_bytes_per_s = SECOND,
	        .h2d_both_bytes_per_s = SECOND};
	ck_assert_int_eq(ts_builder_take(&b, p), 0);
}

/* Of 400 MB 200 stay: each pass brings in the other 200, at least. */
START_TEST(bound_adds_up_what_passes_read)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_profile p;
	struct ts_graph g;
	struct ts_bound_windows windows;
	struct ts_plan plan;

	scan(&p, 4, 3);
	ck_assert_int_eq(
	        ts_graph_init(&g, &p, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(ts_bound_windows(&g, 200000000, &windows), 0);
	ck_assert_double_ge(ts_bound_before_ns(&windows, g.n_ops) +
	                            (double)g.start_ns[g.n_ops],
	        0.6 * SECOND - 10);
	ck_assert_double_eq_tol(ts_bound_before_ns(&windows, g.n_ops),
	        ts_bound_after_ns(&windows, 0), 10);
	ck_assert_double_eq(ts_bound_before_ns(&windows, 0), 0);
	ck_assert_double_eq(ts_bound_after_ns(&windows, g.n_ops), 0);
	ck_assert_int_eq(ts_plan_make(&p, 200000000, &options, &plan, NULL), 0);
	ck_assert_uint_ge(plan.bound_step_ns, 600000000 - 10);
	ck_assert_uint_ge(plan.predicted_step_ns, plan.bound_step_ns);
	ts_plan_finish(&plan);
	/* All of it fits: nothing has to be read. */
	ck_assert_int_eq(ts_bound_windows(&g, 400000000, &windows), 0);
	ck_assert_double_eq(ts_bound_before_ns(&windows, g.n_ops), 0);
	ts_graph_finish(&g);
	ts_profile_finish(&p);
}
END_TEST

/*
 * 1 GB of state that the last op changes, 1 GB that takes 0.1 s to make and is
 * read before that, and a third GB in between, which is read for @rest_ns; as
 * long goes by before the first of them is made.
 */
static void small_step(struct ts_profile *p, uint64_t rest_ns)
{
	struct ts_profile_builder b;
	uint32_t make, other, state, kept, large, after[2];

	ts_builder_init(&b);
	make = ts_builder_signature(&b, "make", TS_CLASS_GEMM, true);
	other = ts_builder_signature(&b, "other", TS_CLASS_OTHER, false);
	state = ts_builder_value(&b, SECOND, TS_KIND_OPTIMIZER);
	kept = ts_builder_value(&b, SECOND, TS_KIND_ACTIVATION);
	large = ts_builder_value(&b, SECOND, TS_KIND_SCRATCH);
	after[0] = ts_builder_value(&b, SECOND, TS_KIND_OPTIMIZER);
	b.profile.values[state].persistent = true;
	b.profile.values[after[0]].in_place_of = state;
	ts_builder_op(&b, other, rest_ns, NULL, 0, NULL, 0);
	ts_builder_op(&b, make, SECOND / 10, NULL, 0, &kept, 1);
	ts_builder_op(&b, other, SECOND / 1000, NULL, 0, &large, 1);
	ts_builder_op(&b, other, rest_ns, &large, 1, NULL, 0);
	ts_builder_op(&b, other, SECOND / 1000, &kept, 1, NULL, 0);
	ts_builder_op(&b, other, SECOND / 1000, &state, 1, after, 1);
	b.profile.device = (struct ts_device){.name = strdup("1 GB/s"),
	        .d2h_bytes_per_s = SECOND,
	        .h2d_bytes_per_s = SECOND,
	        .d2h_both_bytes_per_s = SECOND,
	        .h2d_both_bytes_per_s = SECOND};
	ck_assert_int_eq(ts_builder_take(&b, p), 0);
}

/*
 * Under 1.5 GB half of the state has to leave between its change and the third
 * GB: the replay of what was made before comes on top of that.
 */
START_TEST(bound_adds_replays_to_copies_of_the_last_step)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_profile p;
	struct ts_plan plan;

	small_step(&p, SECOND / 1000);
	ck_assert_int_eq(
	        ts_plan_make(&p, 1500000000, &options, &plan, NULL), 0);
	ck_assert_uint_ge(plan.bound_step_ns, 602000000);
	ck_assert_uint_le(plan.bound_step_ns, 604000000);
	ck_assert_uint_ge(plan.predicted_step_ns, plan.bound_step_ns);
	ts_plan_finish(&plan);
	ts_profile_finish(&p);
}
END_TEST

/* What is cheap to replay goes before a copy that the link would hide. */
START_TEST(cheap_replays_over_the_peak_come_first)
{
	for (int first = 0; first < 2; first++) {
		struct ts_cover_options options = {.limit_bytes = 2000000000,
		        .pull_ns = 1e12,
		        .link_share = 1,
		        .peak_price = first ? 0.25 : 0};
		struct ts_search s;
		struct ts_profile p;
		struct ts_graph g;

		small_step(&p, 3 * (uint64_t)SECOND);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		ck_assert_int_eq(
		        ts_search_init(&s, &g, options.limit_bytes), 0);
		ck_assert_int_eq(ts_cover_init(&s.cover, &s.pass), 0);
		ck_assert_int_eq(ts_program_init(&s.program, &g), 0);
		ts_cover_reset(&s.cover);
		ck_assert_int_eq(ts_cover_run(&s.cover, &options,
		                         s.program.share_until, &s.trial),
		        0);
		ck_assert_uint_eq(g.n_gaps, 2);
		for (uint32_t i = 0; i < g.n_gaps; i++) {
			bool state = g.objects[g.gaps[i].object].persistent;

			ck_assert_int_eq(s.trial.action[i], state == first
			                                            ? TS_KEEP
			                                    : first ? TS_REPLAY
			                                            : TS_SWAP);
		}
		ts_search_finish(&s);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
}
END_TEST

/*
 * One long op makes what two others read, whose outputs are used before the
 * peak and after it, and 200 MB that nothing can replay leave at 0.2 GB/s
 * from the first op on. Ops take 1 ms.
 */
static void shared_scratch(struct ts_profile *p)
{
	enum { INPUT, STATE, SHARED, LATE, EARLY, OTHER, NEXT, PEAK, VALUES };
	static const uint64_t mb[VALUES] = {1, 200, 1, 100, 100, 50, 1, 300};
	static const struct {
		bool replayable;
		uint64_t ms;
		uint32_t n_reads, reads[2], n_writes, writes[1];
	} ops[] = {{false, 1, 1, {INPUT}, 1, {STATE}},
	        {true, 100, 1, {INPUT}, 1, {SHARED}},
	        {true, 1, 1, {SHARED}, 1, {LATE}},
	        {true, 1, 1, {SHARED}, 1, {EARLY}},
	        {false, 1, 0, {0}, 1, {OTHER}}, {false, 1, 1, {OTHER}, 0, {0}},
	        {false, 1, 1, {EARLY}, 1, {NEXT}},
	        {false, 1, 0, {0}, 1, {PEAK}}, {false, 1, 1, {PEAK}, 0, {0}},
	        {false, 1, 2, {LATE, NEXT}, 0, {0}},
	        {false, 1, 2, {STATE, INPUT}, 0, {0}}};
	struct ts_profile_builder b;
	uint32_t signatures[2];

	ts_builder_init(&b);
	for (int i = 0; i < 2; i++)
		signatures[i] = ts_builder_signature(
		        &b, i ? "made" : "once", TS_CLASS_GEMM, i);
	for (uint32_t i = 0; i < VALUES; i++)
		ts_builder_value(&b, mb[i] * 1000000,
		        i == INPUT ? TS_KIND_INPUT : TS_KIND_ACTIVATION);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		ts_builder_op(&b, signatures[ops[i].replayable],
		        ops[i].ms * SECOND / 1000, ops[i].reads, ops[i].n_reads,
		        ops[i].writes, ops[i].n_writes);
	b.profile.name = strdup("shared scratch");
	b.profile.device = (struct ts_device){.name = strdup("slow out"),
	        .d2h_bytes_per_s = SECOND / 5,
	        .h2d_bytes_per_s = UINT64_C(100) * SECOND,
	        .d2h_both_bytes_per_s = SECOND / 5,
	        .h2d_both_bytes_per_s = UINT64_C(100) * SECOND};
	ck_assert_int_eq(ts_builder_take(&b, p), 0);
}

/*
 * What the early reader's replay made stays in scratch over the peak, where
 * the late one's finds it: its 100 ms pass while the state is copied out. The
 * bound may not charge them after the peak.
 */
START_TEST(bound_knows_of_scratch_that_earlier_replays_left)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_profile p;

	shared_scratch(&p);
	for (uint64_t mb = 303; mb < 325; mb++) {
		struct ts_plan plan;

		ck_assert_int_eq(
		        ts_plan_make(&p, mb * 1000000, &options, &plan, NULL),
		        0);
		ck_assert_uint_le(plan.predicted_step_ns, 1006000000);
		ck_assert_uint_le(plan.bound_step_ns, plan.predicted_step_ns);
		/* All of the state but what the limit leaves room for. */
		ck_assert_uint_ge(
		        plan.bound_step_ns, 994000000 - (mb - 303) * 5000000);
		ts_plan_finish(&plan);
	}
	ts_profile_finish(&p);
}
END_TEST

static uint32_t operand(const struct ts_graph *g, uint32_t op, uint32_t index)
{
	const struct ts_profile_op *info = &g->profile->ops[op % g->n_ops];
	uint32_t use = index < info->n_reads
	                       ? info->first_read + index
	                       : info->first_write + index - info->n_reads;

	ck_assert_uint_lt(index, info->n_reads + info->n_writes);
	return g->object_of[g->profile->uses[use]];
}

START_TEST(swap_only_plans_replay_nothing)
{
	struct ts_plan_options options = ts_plan_default_options();
	uint32_t swaps = 0;

	options.no_replay = true;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct ts_profile p;
		struct ts_graph g;
		struct ts_plan plan;
		int err;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		err = ts_plan_make(&p, (g.floor_bytes + g.peak_bytes) / 2,
		        &options, &plan, NULL);
		ck_assert(!err || err == -ENOSPC);
		ck_assert_uint_eq(plan.n_replays, 0);
		for (uint32_t i = 0; i < plan.n_decisions; i++) {
			const struct ts_decision *d = &plan.decisions[i];

			ck_assert_int_ne(d->action, TS_REPLAY);
			ck_assert_uint_eq(
			        operand(&g, d->from_op, d->from_operand),
			        g.object_of[d->value]);
			ck_assert_uint_eq(operand(&g, d->to_op, d->to_operand),
			        g.object_of[d->value]);
			swaps += d->action == TS_SWAP;
		}
		ts_plan_finish(&plan);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
	ck_assert_uint_gt(swaps, 200);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {slots_give_each_ns_once,
	        plans_of_the_pass_stay_within_the_limit,
	        fitted_windows_lie_inside_their_gaps,
	        bound_adds_up_what_passes_read,
	        bound_adds_replays_to_copies_of_the_last_step,
	        bound_knows_of_scratch_that_earlier_replays_left,
	        cheap_replays_over_the_peak_come_first,
	        swap_only_plans_replay_nothing};

	return ts_run_suite(
	        "planner cover", tests, sizeof(tests) / sizeof(tests[0]), 300);
}
