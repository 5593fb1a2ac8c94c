/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranges that the program reserved: its memory moves as placed memory does. */
#include "runtime/adopt.h"
#include "tests/unit/pager_fixture.h"

static CUdeviceptr reserved;

/* As the program does; the fake device does not align by itself. */
static uint64_t reserve(uint64_t bytes)
{
	ck_assert_int_eq(fake_gpu_ops.address_reserve(
	                         &reserved, bytes + PAGE, PAGE, 0, 0),
	        CUDA_SUCCESS);
	return (reserved + PAGE - 1) / PAGE * PAGE;
}

static void unreserve(uint64_t bytes)
{
	ck_assert_int_eq(fake_gpu_ops.address_free(reserved, bytes + PAGE),
	        CUDA_SUCCESS);
}

START_TEST(blocks_in_an_adopted_range_move_and_keep_their_content)
{
	uint64_t base;

	setup_with(4, 64);
	base = reserve(64 * PAGE);
	ck_assert(ts_pager_adopt(pager, base, 64 * PAGE));
	ck_assert(ts_pager_owns(pager, base + 63 * PAGE));
	ts_pager_live(pager, base, 3 * PAGE);
	ts_pager_live(pager, base + 40 * PAGE, 3 * PAGE);
	ck_assert_int_eq(write_op(base, 3 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(base + 40 * PAGE, 3 * PAGE, 2, STREAM_A), 0);
	expect_bytes(base, 3 * PAGE, 1);
	expect_bytes(base + 40 * PAGE, 3 * PAGE, 2);
	ck_assert_uint_gt(stats().out_bytes, 0);
	ck_assert_uint_gt(stats().in_bytes, 0);
	ck_assert_uint_le(fake_gpu.peak_bytes, CONTEXT + 4 * PAGE);
	ts_pager_dead(pager, base, 3 * PAGE);
	ts_pager_dead(pager, base + 40 * PAGE, 3 * PAGE);
	ck_assert_int_eq(ts_pager_abandon(pager, base), CUDA_SUCCESS);
	ck_assert(!ts_pager_owns(pager, base));
	/* The addresses are the program's to free. */
	ck_assert_uint_eq(fake_gpu.reservations, 1);
	unreserve(64 * PAGE);
	teardown();
}
END_TEST

START_TEST(what_is_unmapped_goes_back_and_its_neighbours_stay)
{
	uint64_t base;

	setup_with(16, 64);
	base = reserve(8 * PAGE);
	ck_assert(ts_pager_adopt(pager, base, 8 * PAGE));
	ts_pager_live(pager, base, 2 * PAGE);
	ck_assert_int_eq(write_op(base, 2 * PAGE, 3, STREAM_A), 0);
	ts_pager_live(pager, base + 4 * PAGE, 2 * PAGE);
	ck_assert_int_eq(write_op(base + 4 * PAGE, 2 * PAGE, 4, STREAM_B), 0);
	ck_assert_uint_eq(fake_gpu.used_bytes, CONTEXT + 4 * PAGE);
	ts_pager_dead(pager, base + 4 * PAGE, 2 * PAGE);
	ck_assert_int_eq(ts_pager_unmapped(pager, base + 4 * PAGE, 4 * PAGE,
	                         TS_BEGIN_BESIDE_CAPTURE),
	        CUDA_SUCCESS);
	ck_assert_uint_eq(fake_gpu.used_bytes, CONTEXT + 4 * PAGE);
	ck_assert_int_eq(ts_pager_unmapped(pager, base + 4 * PAGE, 4 * PAGE, 0),
	        CUDA_SUCCESS);
	ck_assert_uint_eq(fake_gpu.used_bytes, CONTEXT + 2 * PAGE);
	expect_bytes(base, 2 * PAGE, 3);
	/* Mapped again it is as new. */
	ts_pager_live(pager, base + 3 * PAGE, 3 * PAGE);
	ck_assert_int_eq(write_op(base + 3 * PAGE, 3 * PAGE, 5, STREAM_A), 0);
	expect_bytes(base + 3 * PAGE, 3 * PAGE, 5);
	ts_pager_dead(pager, base, 2 * PAGE);
	ts_pager_dead(pager, base + 3 * PAGE, 3 * PAGE);
	ck_assert_int_eq(ts_pager_abandon(pager, base), CUDA_SUCCESS);
	unreserve(8 * PAGE);
	teardown();
}
END_TEST

/* The addresses may be anybody's by then, or nobody's. */
START_TEST(op_finds_nothing_of_a_range_that_is_gone)
{
	struct ts_range one;
	uint64_t base;

	setup_with(4, 64);
	base = reserve(2 * PAGE);
	ck_assert(ts_pager_adopt(pager, base, 2 * PAGE));
	ts_pager_live(pager, base, 2 * PAGE);
	ck_assert_int_eq(write_op(base, 2 * PAGE, 1, STREAM_A), 0);
	ts_pager_dead(pager, base, 2 * PAGE);
	ck_assert_int_eq(ts_pager_abandon(pager, base), CUDA_SUCCESS);
	one = range(base, 2 * PAGE);
	ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
	ck_assert_uint_eq(pager->busy_count, 0);
	ts_pager_end(pager, &one, 1, STREAM_A, true);
	unreserve(2 * PAGE);
	teardown();
}
END_TEST

START_TEST(only_whole_units_are_adopted)
{
	setup_with(4, 64);
	ck_assert(!ts_pager_adopt(pager, 64 * PAGE + 512, 4 * PAGE));
	ck_assert(!ts_pager_adopt(pager, 64 * PAGE, 4 * PAGE + 512));
	ck_assert_int_eq(
	        ts_pager_abandon(pager, 64 * PAGE), CUDA_ERROR_INVALID_VALUE);
	teardown();
}
END_TEST

START_TEST(more_at_once_than_the_limit_is_refused)
{
	struct ts_shortage shortage;

	setup_with(4, 64);
	ck_assert(ts_pager_could_map(pager, 4 * PAGE, &shortage));
	ck_assert(!ts_pager_could_map(pager, 5 * PAGE, &shortage));
	ck_assert_int_eq(shortage.short_of, TS_SHORT_OF_DEVICE);
	ck_assert_uint_eq(shortage.least_limit_bytes, CONTEXT + 5 * PAGE);
	teardown();
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(
	        tests, blocks_in_an_adopted_range_move_and_keep_their_content);
	tcase_add_test(
	        tests, what_is_unmapped_goes_back_and_its_neighbours_stay);
	tcase_add_test(tests, op_finds_nothing_of_a_range_that_is_gone);
	tcase_add_test(tests, only_whole_units_are_adopted);
	tcase_add_test(tests, more_at_once_than_the_limit_is_refused);
}

int main(void)
{
	return run_suite("adopt", add_tests);
}
