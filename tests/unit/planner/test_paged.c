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
	ck_assert_int_eq(ts_paged_make(&profile, false, 0, &paged), 0);
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
	ck_assert_int_eq(ts_paged_make(&profile, false, 0, &paged), 0);
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
	ck_assert_int_eq(ts_paged_make(&profile, false, 0, &paged), 0);
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
	ck_assert_int_eq(ts_paged_make(&profile, false, 0, &paged), 0);
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

/* By value: what @op reads, and whether the host's copy is old after it. */
static int reads_value(
        const struct ts_page_view *view, uint32_t op, uint32_t value)
{
	const struct ts_profile_op *at = &view->profile.ops[op];

	for (uint32_t k = at->first_read; k < at->first_read + at->n_reads; k++)
		if (view->profile.uses[k] == value)
			return 1 + view->dirties[k];
	return 0;
}

/* The last op, which reads b, may use the first block, too. */
START_TEST(what_an_op_may_use_is_there_for_it)
{
	const uint32_t block_of[] = {0, 1};
	const uint8_t only_read[8] = {0};
	const struct ts_page_doubt doubt = {.op = 3, .block = 0};
	struct ts_profile profile;
	struct ts_page_view view;
	struct step step;

	step_begin(&step, 3 * MIB, 3 * MIB);
	step_end(&step, &profile);
	ck_assert_uint_le(profile.n_uses, 8);
	for (int doubtful = 0; doubtful < 2; doubtful++) {
		ck_assert_int_eq(ts_page_view_init(&view, 2), 0);
		for (uint32_t i = 0; i < 2; i++)
			view.ranges[i] = (struct ts_page_range){
			        .address = BASE + 3 * MIB * i,
			        .bytes = 3 * MIB,
			        .first = i,
			        .end = 4,
			        .idle = 3 + i,
			        .used = true};
		/* Else it is there to the end for another reason. */
		view.ranges[0].idle = view.ranges[0].end;
		ck_assert_int_eq(
		        ts_page_view_cut(&view, TS_PAGE_BYTES, NULL, 0), 0);
		ck_assert_int_eq(
		        ts_page_view_fill(&view,
		                &(struct ts_page_contents){.profile = &profile,
		                        .block_of = block_of,
		                        .n_valued = 2,
		                        .only_read = only_read,
		                        .doubts = &doubt,
		                        .n_doubts = (uint32_t)doubtful}),
		        0);
		ck_assert_int_eq(
		        reads_value(&view, 3, step.a), doubtful ? 2 : 0);
		ck_assert_int_eq(reads_value(&view, 3, step.b), 2);
		ck_assert_int_eq(reads_value(&view, 2, step.b), 0);
		ck_assert_uint_eq(view.profile.ops[3].n_reads, 2 + doubtful);
		ts_page_view_finish(&view);
	}
	ts_profile_finish(&profile);
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
	        what_an_op_may_use_is_there_for_it,
	        nothing_is_known_without_addresses};

	return ts_run_suite(
	        "planner paged", tests, sizeof(tests) / sizeof(tests[0]), 60);
}
