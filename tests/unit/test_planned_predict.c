/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long a step by a page plan takes, where chunks have to be waited for. */
#include "agent/planned_predict.h"

#include "tests/unit/suite.h"

#define PAGE  (UINT64_C(2) << 20)
#define BASE  (UINT64_C(1) << 40)
#define PAGES 2
#define BYTES (PAGES * PAGE)
/* Of a copy, at a byte a ns, and of an op. */
#define COPY_NS BYTES
#define OP_NS   1000000

/*
 * Two ops use a range each: the first one's lives for that op alone, the
 * second one's stays on, and is away while the first runs, in whose chunks or
 * in others of its own.
 */
static uint64_t predict(bool shares)
{
	uint32_t uses[] = {0, 1}, range_of[] = {0, 1};
	struct ts_profile_op ops[] = {
	        {.duration_ns = OP_NS, .first_read = 0, .n_reads = 1},
	        {.duration_ns = OP_NS, .first_read = 1, .n_reads = 1}};
	struct ts_page_range ranges[] = {{.address = BASE,
	                                         .bytes = BYTES,
	                                         .first = 0,
	                                         .end = 1,
	                                         .idle = 1,
	                                         .used = true},
	        {.address = BASE + BYTES,
	                .bytes = BYTES,
	                .first = 0,
	                .end = 2,
	                .idle = 2,
	                .used = true,
	                .before = true}};
	struct ts_page_view view = {.ranges = ranges,
	        .n_ranges = 2,
	        .range_of = range_of,
	        .profile = {.device = {.d2h_bytes_per_s = 1000000000,
	                            .h2d_bytes_per_s = 1000000000,
	                            .d2h_both_bytes_per_s = 1000000000,
	                            .h2d_both_bytes_per_s = 1000000000},
	                .ops = ops,
	                .n_ops = 2,
	                .uses = uses,
	                .n_uses = 2}};
	struct ts_plan_strip strips[] = {
	        {.address = BASE, .pages = PAGES, .first_page = 0},
	        {.address = BASE + BYTES, .pages = PAGES, .first_page = PAGES}};
	uint32_t chunk_of[] = {0, 1, 2, 3};
	struct ts_page_plan pages = {.n_ops = 2,
	        .page_bytes = PAGE,
	        .strips = strips,
	        .n_strips = 2,
	        .chunk_of = chunk_of,
	        .n_pages = 2 * PAGES,
	        .n_chunks = shares ? PAGES : 2 * PAGES};
	struct ts_planned_move moves[] = {{.op = 0, .range = 1, .copies = true},
	        {.op = 1, .range = 1, .take = true, .copies = true}};
	struct ts_planned_extras extras = {.moves = moves, .n_moves = 2};
	uint64_t step_ns = 0;

	for (uint32_t i = PAGES; shares && i < 2 * PAGES; i++)
		chunk_of[i] = i - PAGES;
	ck_assert_int_eq(
	        ts_planned_predict(&view, &pages, &extras, &step_ns), 0);
	return step_ns;
}

START_TEST(what_comes_waits_for_what_died_in_its_chunks)
{
	ck_assert_uint_eq(predict(true), 2 * OP_NS + 2 * COPY_NS);
}
END_TEST

START_TEST(what_has_chunks_of_its_own_waits_for_none)
{
	/* The first op runs while the second one's range leaves. */
	ck_assert_uint_eq(predict(false), OP_NS + 2 * COPY_NS);
}
END_TEST

/*
 * Two ops and two blocks that stay, each made again once a step, the first one
 * before op @before. The last page is away in the meantime, and comes before
 * the second op, which has no use for it. @shares: it is the second block's.
 */
static uint64_t predict_replays(bool shares, uint32_t before)
{
	uint32_t uses[] = {0, 1}, range_of[] = {0, 1};
	uint32_t shared[2][2] = {{TS_NONE, TS_NONE}, {TS_NONE, TS_NONE}};
	struct ts_profile_op ops[] = {{.duration_ns = OP_NS},
	        {.duration_ns = OP_NS, .first_read = 0, .n_reads = 2}};
	struct ts_page_range ranges[3];
	struct ts_value values[] = {{.rebuild = 0}, {.rebuild = 1}};
	struct ts_rebuild rebuilds[] = {
	        {.duration_ns = OP_NS}, {.duration_ns = OP_NS}};
	struct ts_page_view view = {.ranges = ranges,
	        .n_ranges = 3,
	        .shared = shared,
	        .n_blocks = 2,
	        .range_of = range_of,
	        .profile = {.device = {.d2h_bytes_per_s = 1000000000,
	                            .h2d_bytes_per_s = 1000000000,
	                            .d2h_both_bytes_per_s = 1000000000,
	                            .h2d_both_bytes_per_s = 1000000000},
	                .ops = ops,
	                .n_ops = 2,
	                .values = values,
	                .n_values = 2,
	                .rebuilds = rebuilds,
	                .n_rebuilds = 2,
	                .uses = uses,
	                .n_uses = 2}};
	struct ts_plan_strip strip = {.address = BASE, .pages = 3 * PAGES};
	uint32_t chunk_of[] = {0, 1, 2, 3, 4, 5};
	struct ts_page_plan pages = {.n_ops = 2,
	        .page_bytes = PAGE,
	        .strips = &strip,
	        .n_strips = 1,
	        .chunk_of = chunk_of,
	        .n_pages = 3 * PAGES,
	        .n_chunks = 3 * PAGES};
	struct ts_planned_move moves[] = {{.op = 0, .range = 2, .copies = true},
	        {.op = 1, .range = 2, .take = true, .copies = true}};
	struct ts_replay replays[] = {
	        {.before_op = before, .value = 0, .duration_ns = OP_NS},
	        {.before_op = 1, .value = 1, .duration_ns = OP_NS}};
	struct ts_planned_extras extras = {.moves = moves,
	        .n_moves = 2,
	        .replays = replays,
	        .n_replays = 2};
	uint64_t step_ns = 0;

	for (uint32_t i = 0; i < 3; i++)
		ranges[i] = (struct ts_page_range){.address = BASE + i * BYTES,
		        .bytes = BYTES,
		        .end = 2,
		        .idle = 2,
		        .used = true,
		        .before = true};
	if (shares)
		shared[1][0] = 2;
	ck_assert_int_eq(
	        ts_planned_predict(&view, &pages, &extras, &step_ns), 0);
	return step_ns;
}

START_TEST(what_is_made_again_waits_for_pages_that_it_shares)
{
	ck_assert_uint_eq(predict_replays(false, 1), 4 * OP_NS);
	/* All else goes on while the page leaves and comes back. */
	ck_assert_uint_eq(predict_replays(true, 0), 2 * COPY_NS + OP_NS);
}
END_TEST

START_TEST(what_is_made_together_waits_together)
{
	ck_assert_uint_eq(predict_replays(true, 1), 2 * COPY_NS + 2 * OP_NS);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(
	        tests, what_is_made_again_waits_for_pages_that_it_shares);
	tcase_add_test(tests, what_is_made_together_waits_together);
	tcase_add_test(tests, what_comes_waits_for_what_died_in_its_chunks);
	tcase_add_test(tests, what_has_chunks_of_its_own_waits_for_none);
}

int main(void)
{
	return run_suite("planned_predict", add_tests);
}
