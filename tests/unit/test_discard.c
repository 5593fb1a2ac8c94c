/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Content that need not be kept: it leaves without a copy, nothing else does.
 */
#include "tests/unit/pager_fixture.h"

START_TEST(discarded_pages_leave_without_a_copy)
{
	uint64_t a, b;

	setup_with(6, 64);
	a = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ts_pager_discard(pager, a, 4 * PAGE);
	b = alloc(6 * PAGE);
	ck_assert_int_eq(write_op(b, 6 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_eq(stats().out_bytes, 0);
	/* They come back for whoever makes them again, without one too. */
	ck_assert_int_eq(write_op(a, 4 * PAGE, 3, STREAM_A), 0);
	ck_assert_uint_eq(stats().in_bytes, 0);
	expect_bytes(a, 4 * PAGE, 3);
	expect_bytes(b, 6 * PAGE, 2);
	teardown();
}
END_TEST

START_TEST(what_was_saved_already_is_given_back)
{
	uint64_t a, b, in;

	setup_with(6, 64);
	a = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	b = alloc(6 * PAGE);
	ck_assert_int_eq(write_op(b, 6 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_gt(stats().out_bytes, 0);
	in = stats().in_bytes;
	ts_pager_discard(pager, a, 4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 3, STREAM_A), 0);
	ck_assert_uint_eq(stats().in_bytes, in);
	expect_bytes(a, 4 * PAGE, 3);
	teardown();
}
END_TEST

START_TEST(what_is_written_after_that_is_kept)
{
	uint64_t a, b;

	setup_with(6, 64);
	a = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ts_pager_discard(pager, a, 4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 4, STREAM_A), 0);
	b = alloc(6 * PAGE);
	ck_assert_int_eq(write_op(b, 6 * PAGE, 2, STREAM_A), 0);
	expect_bytes(a, 4 * PAGE, 4);
	expect_bytes(b, 6 * PAGE, 2);
	teardown();
}
END_TEST

START_TEST(what_lies_beside_it_is_kept)
{
	uint64_t a, b;

	setup_with(6, 64);
	a = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	/* Neither its first nor its last page is all of it. */
	ts_pager_discard(pager, a + 512, 3 * PAGE);
	b = alloc(6 * PAGE);
	ck_assert_int_eq(write_op(b, 6 * PAGE, 2, STREAM_A), 0);
	expect_bytes(a, 512, 1);
	expect_bytes(a + 3 * PAGE + 512, PAGE - 512, 1);
	teardown();
}
END_TEST

/* A block need not end where a page does. */
START_TEST(its_last_page_leaves_without_a_copy_too)
{
	uint64_t bytes = 3 * PAGE + 512, a, b;

	setup_with(6, 64);
	a = alloc(4 * PAGE);
	ts_pager_dead(pager, a, 4 * PAGE);
	ts_pager_live(pager, a, bytes);
	ck_assert_int_eq(write_op(a, bytes, 1, STREAM_A), 0);
	ts_pager_discard(pager, a, bytes);
	b = alloc(6 * PAGE);
	ck_assert_int_eq(write_op(b, 6 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_eq(stats().out_bytes, 0);
	/* With another block behind it, it does not. */
	ts_pager_live(pager, a + bytes, 512);
	ck_assert_int_eq(write_op(a, bytes + 512, 3, STREAM_A), 0);
	ts_pager_discard(pager, a, bytes);
	ck_assert_int_eq(write_op(b, 6 * PAGE, 4, STREAM_A), 0);
	expect_bytes(a + bytes, 512, 3);
	teardown();
}
END_TEST

START_TEST(block_that_dies_discarded_leaves_its_figures_right)
{
	uint64_t a;

	setup_with(6, 64);
	a = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ts_pager_discard(pager, a, 4 * PAGE);
	ts_pager_dead(pager, a, 4 * PAGE);
	ts_pager_live(pager, a, 2 * PAGE);
	ck_assert_int_eq(write_op(a, 2 * PAGE, 5, STREAM_A), 0);
	expect_bytes(a, 2 * PAGE, 5);
	ts_pager_dead(pager, a, 2 * PAGE);
	ck_assert_int_eq(ts_pager_free(pager, a, 4 * PAGE, 0), CUDA_SUCCESS);
	teardown();
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, discarded_pages_leave_without_a_copy);
	tcase_add_test(tests, what_was_saved_already_is_given_back);
	tcase_add_test(tests, what_is_written_after_that_is_kept);
	tcase_add_test(tests, what_lies_beside_it_is_kept);
	tcase_add_test(tests, its_last_page_leaves_without_a_copy_too);
	tcase_add_test(
	        tests, block_that_dies_discarded_leaves_its_figures_right);
}

int main(void)
{
	return run_suite("discard", add);
}
