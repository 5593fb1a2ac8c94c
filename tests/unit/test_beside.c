/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which copies have no place among the ops of a step. What is known of threads
 * and streams is the process's for good: each test has one of its own, which
 * CK_FORK=no would take away.
 */
#include "agent/beside.h"

#include <pthread.h>

#include "tests/unit/suite.h"

#define MAIN   1 /* streams: that of kernels, one of copies, a thread's own */
#define COPIES 0x1000
#define OTHER  0x2000

static bool is_beside(enum ts_op_kind kind, ts_stream_key stream)
{
	const struct ts_op op = {.kind = kind, .stream = stream};

	return ts_beside_op(&op);
}

static void *copies(void *data)
{
	bool *beside = data;

	beside[0] = is_beside(TS_OP_COPY, MAIN);
	beside[1] = is_beside(TS_OP_COPY, OTHER);
	return NULL;
}

static void *launches(void *data)
{
	bool *beside = data;

	beside[0] = is_beside(TS_OP_LAUNCH, OTHER);
	beside[1] = is_beside(TS_OP_COPY, OTHER);
	return NULL;
}

static void on_a_thread(void *(*work)(void *data), bool *ret_beside)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, work, ret_beside), 0);
	pthread_join(thread, NULL);
}

START_TEST(one_thread_copies_in_order)
{
	ck_assert(!is_beside(TS_OP_COPY, MAIN));
	ck_assert(!is_beside(TS_OP_COPY, COPIES));
	ck_assert(!is_beside(TS_OP_LAUNCH, MAIN));
	ck_assert(!is_beside(TS_OP_COPY, MAIN));
	ck_assert(!is_beside(TS_OP_COPY, COPIES));
	ck_assert(!is_beside(TS_OP_SET, COPIES));
}
END_TEST

START_TEST(before_any_launch_nothing_is_beside)
{
	bool beside[2];

	on_a_thread(copies, beside);
	ck_assert(!beside[0] && !beside[1]);
	ck_assert(!is_beside(TS_OP_LAUNCH, MAIN));
	ck_assert(!is_beside(TS_OP_COPY, COPIES));
}
END_TEST

START_TEST(a_thread_that_only_copies_is_beside)
{
	bool beside[2];

	is_beside(TS_OP_LAUNCH, MAIN);
	on_a_thread(copies, beside);
	/* Not on a stream of kernels: that is where it has its place. */
	ck_assert(!beside[0] && beside[1]);
	/* Who fetches what it brings is from then on, too. */
	ck_assert(is_beside(TS_OP_COPY, COPIES));
	ck_assert(!is_beside(TS_OP_COPY, MAIN));
	ck_assert(!is_beside(TS_OP_SET, COPIES));
	ck_assert(!is_beside(TS_OP_LAUNCH, COPIES));
	ck_assert(!is_beside(TS_OP_COPY, COPIES));
}
END_TEST

START_TEST(a_thread_that_launches_is_not)
{
	bool beside[2];

	is_beside(TS_OP_LAUNCH, MAIN);
	on_a_thread(launches, beside);
	ck_assert(!beside[0] && !beside[1]);
	ck_assert(!is_beside(TS_OP_COPY, COPIES));
}
END_TEST

START_TEST(of_too_many_streams_none_is_told_apart)
{
	bool beside[2];

	for (ts_stream_key stream = 0; stream < 1000; stream++)
		is_beside(TS_OP_LAUNCH, 64 * stream + 3);
	on_a_thread(copies, beside);
	ck_assert(!beside[0] && !beside[1]);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, one_thread_copies_in_order);
	tcase_add_test(tests, before_any_launch_nothing_is_beside);
	tcase_add_test(tests, a_thread_that_only_copies_is_beside);
	tcase_add_test(tests, a_thread_that_launches_is_not);
	tcase_add_test(tests, of_too_many_streams_none_is_told_apart);
}

int main(void)
{
	return run_suite("beside", add_tests);
}
