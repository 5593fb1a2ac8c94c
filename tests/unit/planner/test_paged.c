/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <check.h>
#include <stdlib.h>

#include "planner/graph.h"
#include "planner/paged.h"
#include "planner/pages.h"
#include "suite.h"

#define MIB  (UINT64_C(1) << 20)
#define BASE (UINT64_C(1) << 40)

/* Four ops: @a and @b are written, then read, and freed after that. */
struct step {
	struct ts_profile_builder builder;
	uint32_t a, b;
};

static void step_begin(struct step *step, uint64_t a_bytes, uint64_t b_bytes)
{
	struct ts_profile_builder *b = &step->builder;

	ts_builder_init(b);
	step->a = ts_builder_value(b, a_bytes, TS_KIND_ACTIVATION);
	step->b = ts_builder_value(b, b_bytes, TS_KIND_ACTIVATION);
	b->profile.values[step->a].address = BASE;
	b->profile.values[step->b].address = BASE + a_bytes;
	b->profile.values[step->a].died = 3;
	b->profile.values[step->b].died = 4;
}

static void step_end(struct step *step, struct ts_profile *ret_profile)
{
	struct ts_profile_builder *b = &step->builder;
	uint32_t kernel =
	        ts_builder_signature(b, "kernel", TS_CLASS_OTHER, false);

	ts_builder_op(b, kernel, 1000, NULL, 0, &step->a, 1);
	ts_builder_op(b, kernel, 1000, NULL, 0, &step->b, 1);
	ts_builder_op(b, kernel, 1000, &step->a, 1, NULL, 0);
	ts_builder_op(b, kernel, 1000, &step->b, 1, NULL, 0);
	ck_assert_int_eq(ts_builder_take(b, ret_profile), 0);
}

static const uint32_t *reads_of(const struct ts_page_view *paged, uint32_t op)
{
	return paged->profile.uses + paged->profile.ops[op].first_read;
}

START_TEST(page_of_two_moves_with_both)
{
	struct ts_profile profile;
	struct ts_page_view paged;
	struct step step;

	step_begin(&step, 3 * MIB, 3 * MIB);
	step_end(&step, &profile);
	ck_assert(ts_paged_known(&profile));
	ck_assert_int_eq(ts_paged_make(&profile, &paged), 0);
	ck_assert_uint_eq(paged.profile.values[step.a].size_bytes, 2 * MIB);
	ck_assert_uint_eq(paged.profile.values[step.b].size_bytes, 2 * MIB);
	ck_assert_uint_eq(paged.profile.values[step.b].address, BASE + 4 * MIB);
	/* Who writes its part of the page between keeps the other's. */
	for (uint32_t op = 0; op < 4; op++) {
		const struct ts_profile_op *at = &paged.profile.ops[op];

		ck_assert_uint_eq(at->n_reads, op == 0 ? 0 : op == 1 ? 1 : 2);
		ck_assert_uint_eq(at->n_writes, op < 2 ? 2 : 0);
	}
	ck_assert_uint_eq(paged.profile.n_values, 4);
	ck_assert_uint_eq(paged.profile.values[2].address, BASE + 2 * MIB);
	ck_assert_uint_eq(paged.profile.values[3].in_place_of, 2);
	ck_assert_uint_eq(reads_of(&paged, 2)[1], 3);
	ts_page_view_finish(&paged);
	ts_profile_finish(&profile);
}
END_TEST

START_TEST(small_value_keeps_its_page)
{
	struct ts_profile profile;
	struct ts_page_view paged;
	struct step step;

	step_begin(&step, 4 * MIB, 512);
	step_end(&step, &profile);
	ck_assert_int_eq(ts_paged_make(&profile, &paged), 0);
	ck_assert_uint_eq(paged.profile.values[step.a].size_bytes, 4 * MIB);
	ck_assert_uint_eq(paged.profile.values[step.b].size_bytes, 0);
	ck_assert_uint_eq(paged.profile.resident_bytes,
	        ts_pages_limit(profile.resident_bytes, 1));
	ck_assert_uint_eq(paged.profile.n_values, 2);
	ts_page_view_finish(&paged);
	ts_profile_finish(&profile);
}
END_TEST

/* It is there for the op after its last use, too. */
START_TEST(value_stays_until_it_is_freed)
{
	struct ts_profile profile;
	struct ts_page_view paged;
	struct step step;

	step_begin(&step, 4 * MIB, 4 * MIB);
	step.builder.profile.values[step.a].died = 4;
	step_end(&step, &profile);
	ck_assert_int_eq(ts_paged_make(&profile, &paged), 0);
	ck_assert_uint_eq(paged.profile.ops[3].n_reads, 2);
	ck_assert_uint_eq(reads_of(&paged, 3)[1], step.a);
	ck_assert(!paged.dirties[paged.profile.ops[3].first_read + 1]);
	/* A kernel may write what it is said to read. */
	ck_assert(paged.dirties[paged.profile.ops[2].first_read]);
	ts_page_view_finish(&paged);
	ts_profile_finish(&profile);
}
END_TEST

static uint64_t peak_with_idle(uint64_t bytes, uint32_t died)
{
	struct ts_profile profile;
	struct ts_page_view paged;
	struct ts_graph graph;
	struct step step;
	uint64_t peak;

	step_begin(&step, 4 * MIB, 4 * MIB);
	step_end(&step, &profile);
	profile.idle = calloc(1, sizeof(*profile.idle));
	ck_assert_ptr_nonnull(profile.idle);
	profile.n_idle = 1;
	profile.idle[0] = (struct ts_idle){bytes, BASE + 64 * MIB, died};
	ck_assert_int_eq(ts_paged_make(&profile, &paged), 0);
	ck_assert_int_eq(
	        ts_graph_init(&graph, &paged.profile,
	                &(struct ts_graph_options){.dirties = paged.dirties}),
	        0);
	peak = graph.peak_bytes;
	ts_graph_finish(&graph);
	ts_page_view_finish(&paged);
	ts_profile_finish(&profile);
	return peak;
}

START_TEST(idle_memory_counts_until_it_is_freed)
{
	ck_assert_uint_eq(peak_with_idle(0, TS_NONE), 8 * MIB);
	/* Both values are there for the ops 1 and 2. */
	ck_assert_uint_eq(peak_with_idle(3 * MIB, 1), 8 * MIB);
	ck_assert_uint_eq(peak_with_idle(3 * MIB, 2), 12 * MIB);
	ck_assert_uint_eq(peak_with_idle(3 * MIB, TS_NONE), 12 * MIB);
}
END_TEST

START_TEST(nothing_is_known_without_addresses)
{
	struct ts_profile profile;
	struct step step;

	step_begin(&step, 4 * MIB, 4 * MIB);
	step.builder.profile.values[step.a].address = 0;
	step.builder.profile.values[step.b].address = 0;
	step_end(&step, &profile);
	ck_assert(!ts_paged_known(&profile));
	ts_profile_finish(&profile);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {page_of_two_moves_with_both,
	        small_value_keeps_its_page, value_stays_until_it_is_freed,
	        idle_memory_counts_until_it_is_freed,
	        nothing_is_known_without_addresses};

	return ts_run_suite(
	        "planner paged", tests, sizeof(tests) / sizeof(tests[0]), 60);
}
