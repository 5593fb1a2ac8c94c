/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a line about an op that cannot run has to be made from. */
#include "runtime/pager_internal.h"
#include "tests/unit/pager_fixture.h"

static struct ts_shortage shortage;

static int try_op(uint64_t address, uint64_t bytes)
{
	struct ts_range one = range(address, bytes);
	uint64_t in = 0, out = 0;
	int rc = ts_pager_begin(
	        pager, &one, 1, 0, STREAM_A, &in, &out, &shortage);

	if (!rc)
		ts_pager_end(pager, &one, 1, STREAM_A, false);
	return rc;
}

static void pin(uint64_t address, uint64_t bytes)
{
	struct ts_range one = range(address, bytes);

	ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
	ts_pager_pin(pager, &one, TS_PIN_CAPTURED);
	ts_pager_end(pager, &one, 1, 0, false);
}

START_TEST(least_limit_counts_what_stays)
{
	uint64_t a, b;

	setup_with(12, 64);
	a = alloc(4 * PAGE);
	b = alloc(9 * PAGE);
	pin(a, 4 * PAGE);
	ck_assert_int_eq(try_op(b, 9 * PAGE), -ENOMEM);
	ck_assert_uint_eq(shortage.need_bytes, 9 * PAGE);
	ck_assert_uint_eq(shortage.least_limit_bytes, CONTEXT + 13 * PAGE);
	/* What the op has of it counts once. */
	ck_assert_int_eq(try_op(a, 4 * PAGE), 0);
	ts_pager_unpin_captured(pager);
	ck_assert_int_eq(try_op(b, 9 * PAGE), 0);
	teardown();
}
END_TEST

START_TEST(least_limit_does_for_earlier_ops_too)
{
	uint64_t a, b, c, d;

	setup_with(12, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	c = alloc(6 * PAGE);
	d = alloc(5 * PAGE);
	ck_assert_int_eq(try_op(c, 6 * PAGE), 0);
	pin(a, 4 * PAGE);
	pin(b, 4 * PAGE);
	ck_assert_int_eq(try_op(d, 5 * PAGE), -ENOMEM);
	ck_assert_uint_eq(shortage.least_limit_bytes, CONTEXT + 14 * PAGE);
	ck_assert(!shortage.whole_step);
	/* What others allocate stays beside them. */
	ck_assert_int_eq(
	        ts_pager_make_room(pager, 5 * PAGE, 0, &shortage), -ENOMEM);
	ck_assert_uint_eq(shortage.least_limit_bytes, CONTEXT + 19 * PAGE);
	teardown();
}
END_TEST

/* Pages of one unit are all that the smallest limit has to hold. */
START_TEST(least_limit_is_not_rounded_up_to_pages)
{
	uint64_t a, b;

	setup_with(16, 64);
	b = alloc(16 * PAGE);
	a = alloc(16 * PAGE);
	ck_assert_int_eq(write_op(b, 16 * PAGE, 1, STREAM_A), 0);
	pager->most_bytes = 0;
	ck_assert_int_eq(try_op(a + 3 * PAGE - 1, 2), 0);
	ck_assert_uint_eq(pager->most_bytes, 2 * PAGE);
	teardown();
}
END_TEST

START_TEST(whole_steps_are_told_from_first_ops)
{
	uint64_t a, address;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	ts_pager_tell_time(pager, 5, 2);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(write_op(a, 4 * PAGE, i, STREAM_A), 0);
	ck_assert_int_eq(
	        ts_pager_alloc(pager, 1000 * PAGE, 0, &address, &shortage),
	        -ENOMEM);
	ck_assert(shortage.whole_step);
	teardown();
}
END_TEST

/* Another thread may be at the gate, with pages that it has marked. */
START_TEST(allocation_that_never_fits_leaves_marks_alone)
{
	uint64_t number, address;

	setup_with(8, 64);
	alloc(4 * PAGE);
	number = pager->slow_number;
	ck_assert_int_eq(
	        ts_pager_alloc(pager, 1000 * PAGE, 0, &address, &shortage),
	        -ENOMEM);
	ck_assert_uint_eq(pager->slow_number, number);
	teardown();
}
END_TEST

START_TEST(what_could_be_there_at_once_is_told)
{
	struct ts_range both[2];
	uint64_t a, b;

	setup_with(8, 64);
	a = alloc(6 * PAGE);
	b = alloc(6 * PAGE);
	both[0] = range(a, 4 * PAGE);
	both[1] = range(b, 4 * PAGE);
	ck_assert(ts_pager_could_hold(pager, both, 2));
	both[1] = range(b, 5 * PAGE);
	ck_assert(!ts_pager_could_hold(pager, both, 2));
	/* Beside what stays. */
	pin(b, 6 * PAGE);
	both[0] = range(a, 2 * PAGE);
	ck_assert(ts_pager_could_hold(pager, both, 1));
	both[0] = range(a, 3 * PAGE);
	ck_assert(!ts_pager_could_hold(pager, both, 1));
	teardown();
}
END_TEST

START_TEST(call_that_the_driver_refused_is_told)
{
	uint64_t a, b;

	setup_with(8, 64);
	a = alloc(8 * PAGE);
	b = alloc(8 * PAGE);
	ck_assert_int_eq(write_op(a, 8 * PAGE, 1, STREAM_A), 0);
	fake_gpu.fail_with = CUDA_ERROR_ILLEGAL_ADDRESS;
	fake_gpu.fail_at = fake_gpu.calls + 1;
	ck_assert_int_ne(try_op(b, 8 * PAGE), 0);
	ck_assert_int_eq(shortage.short_of, TS_SHORT_DRIVER);
	ck_assert_int_eq(shortage.result, CUDA_ERROR_ILLEGAL_ADDRESS);
	ck_assert_ptr_nonnull(shortage.call);
	fake_gpu.fail_at = 0;
	teardown();
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, least_limit_counts_what_stays);
	tcase_add_test(tests, least_limit_does_for_earlier_ops_too);
	tcase_add_test(tests, least_limit_is_not_rounded_up_to_pages);
	tcase_add_test(tests, allocation_that_never_fits_leaves_marks_alone);
	tcase_add_test(tests, whole_steps_are_told_from_first_ops);
	tcase_add_test(tests, what_could_be_there_at_once_is_told);
	tcase_add_test(tests, call_that_the_driver_refused_is_told);
}

int main(void)
{
	return run_suite("pager_tells", add);
}
