/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Order between streams in virtual time: the null stream, per-thread default
 * streams, non-blocking streams, events.
 */
#include "ctl_client.h"

#include <pthread.h>

static CUdeviceptr device;
static void *pinned;

static void start(void)
{
	client_start("a100-80g-pcie4");
	device = client_device(COPY_BYTES);
	pinned = client_pinned(COPY_BYTES);
}

/* 2 ms of work that leaves the compute engine free. */
static void long_copy(CUstream stream)
{
	OK(cuMemcpyHtoDAsync_v2(device, pinned, COPY_BYTES, stream));
}

static void small_set(CUstream stream)
{
	OK(cuMemsetD8Async(device, 0, 256, stream));
}

START_TEST(null_stream_waits_for_blocking_streams)
{
	CUstream blocking, other;
	CUevent copied, set, later;

	start();
	blocking = client_stream(CU_STREAM_DEFAULT);
	other = client_stream(CU_STREAM_DEFAULT);
	long_copy(blocking);
	copied = client_mark(blocking);
	small_set(NULL);
	set = client_mark(NULL);
	small_set(other);
	later = client_mark(other);
	ck_assert_double_gt(client_us(copied, set), 0);
	ck_assert_double_gt(client_us(set, later), 0);
}
END_TEST

START_TEST(blocking_streams_do_not_wait_for_each_other)
{
	CUstream one, two;
	CUevent copied, set;

	start();
	one = client_stream(CU_STREAM_DEFAULT);
	two = client_stream(CU_STREAM_DEFAULT);
	long_copy(one);
	copied = client_mark(one);
	small_set(two);
	set = client_mark(two);
	ck_assert_double_gt(client_us(set, copied), 1000);
}
END_TEST

START_TEST(non_blocking_stream_ignores_the_null_stream)
{
	CUevent copied, set, null_set;
	CUstream free_stream;

	start();
	free_stream = client_stream(CU_STREAM_NON_BLOCKING);
	long_copy(NULL);
	copied = client_mark(NULL);
	small_set(free_stream);
	set = client_mark(free_stream);
	ck_assert_double_gt(client_us(set, copied), 1000);
	long_copy(free_stream);
	copied = client_mark(free_stream);
	small_set(NULL);
	null_set = client_mark(NULL);
	ck_assert_double_gt(client_us(null_set, copied), 1000);
}
END_TEST

START_TEST(legacy_handle_is_the_null_stream)
{
	unsigned long long by_null, by_handle, by_ptsz;

	start();
	OK(cuStreamGetId(NULL, &by_null));
	OK(cuStreamGetId(CU_STREAM_LEGACY, &by_handle));
	ck_assert_uint_eq(by_null, by_handle);
	OK(cuStreamGetId_ptsz(NULL, &by_ptsz));
	ck_assert_uint_ne(by_null, by_ptsz);
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &by_handle));
	ck_assert_uint_eq(by_ptsz, by_handle);
}
END_TEST

START_TEST(per_thread_stream_keeps_step_with_the_null_stream)
{
	CUevent copied, set, event;

	start();
	OK(cuMemcpyHtoDAsync_v2_ptsz(device, pinned, COPY_BYTES, NULL));
	copied = client_mark(CU_STREAM_PER_THREAD);
	small_set(NULL);
	set = client_mark(NULL);
	ck_assert_double_gt(client_us(copied, set), 0);
	long_copy(NULL);
	set = client_mark(NULL);
	event = client_event();
	OK(cuMemsetD8Async_ptsz(device, 0, 256, NULL));
	OK(cuEventRecord_ptsz(event, NULL));
	ck_assert_double_gt(client_us(set, event), 0);
}
END_TEST

struct other_thread {
	CUcontext ctx;
	unsigned long long id;
	CUevent set;
};

static void *in_thread(void *arg)
{
	struct other_thread *other = arg;

	if (cuCtxSetCurrent(other->ctx) ||
	        cuStreamGetId_ptsz(NULL, &other->id) ||
	        cuMemsetD8Async_ptsz(device, 0, 256, NULL) ||
	        cuEventRecord_ptsz(other->set, NULL))
		return arg;
	return NULL;
}

START_TEST(threads_have_streams_of_their_own)
{
	struct other_thread other = {0};
	unsigned long long mine;
	CUevent copied;
	pthread_t thread;
	void *failed;

	start();
	OK(cuCtxGetCurrent(&other.ctx));
	other.set = client_event();
	OK(cuStreamGetId_ptsz(NULL, &mine));
	OK(cuMemcpyHtoDAsync_v2_ptsz(device, pinned, COPY_BYTES, NULL));
	copied = client_mark(CU_STREAM_PER_THREAD);
	ck_assert_int_eq(pthread_create(&thread, NULL, in_thread, &other), 0);
	ck_assert_int_eq(pthread_join(thread, &failed), 0);
	ck_assert_ptr_null(failed);
	ck_assert_uint_ne(other.id, mine);
	ck_assert_double_gt(client_us(other.set, copied), 1000);
}
END_TEST

START_TEST(event_wait_orders_streams)
{
	CUstream first, second;
	CUevent copied, set;

	start();
	first = client_stream(CU_STREAM_NON_BLOCKING);
	second = client_stream(CU_STREAM_NON_BLOCKING);
	long_copy(first);
	copied = client_mark(first);
	OK(cuStreamWaitEvent(second, copied, 0));
	small_set(second);
	set = client_mark(second);
	ck_assert_double_gt(client_us(copied, set), 0);
	ck_assert_double_lt(client_us(copied, set), 10);
}
END_TEST

/* A wait binds to what the event stood for when the wait was made. */
START_TEST(event_recorded_again_does_not_move_the_wait)
{
	CUstream first, second;
	CUevent event, set;

	start();
	first = client_stream(CU_STREAM_NON_BLOCKING);
	second = client_stream(CU_STREAM_NON_BLOCKING);
	event = client_mark(first);
	OK(cuStreamWaitEvent(second, event, 0));
	long_copy(first);
	OK(cuEventRecord(event, first));
	small_set(second);
	set = client_mark(second);
	ck_assert_double_gt(client_us(set, event), 1000);
}
END_TEST

START_TEST(pending_wait_counts_as_work)
{
	CUstream first, second;

	start();
	first = client_stream(CU_STREAM_NON_BLOCKING);
	second = client_stream(CU_STREAM_NON_BLOCKING);
	long_copy(first);
	OK(cuStreamWaitEvent(second, client_mark(first), 0));
	FAILS(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	OK(cuStreamSynchronize(second));
	OK(cuStreamQuery(first));
}
END_TEST

START_TEST(work_of_a_destroyed_stream_goes_on)
{
	CUstream stream;
	CUevent copied;

	start();
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	long_copy(stream);
	copied = client_mark(stream);
	OK(cuStreamDestroy_v2(stream));
	FAILS(cuEventQuery(copied), CUDA_ERROR_NOT_READY);
	OK(cuCtxSynchronize());
	OK(cuEventQuery(copied));
	FAILS(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_order");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, null_stream_waits_for_blocking_streams);
	tcase_add_test(tests, blocking_streams_do_not_wait_for_each_other);
	tcase_add_test(tests, non_blocking_stream_ignores_the_null_stream);
	tcase_add_test(tests, legacy_handle_is_the_null_stream);
	tcase_add_test(
	        tests, per_thread_stream_keeps_step_with_the_null_stream);
	tcase_add_test(tests, threads_have_streams_of_their_own);
	tcase_add_test(tests, event_wait_orders_streams);
	tcase_add_test(tests, event_recorded_again_does_not_move_the_wait);
	tcase_add_test(tests, pending_wait_counts_as_work);
	tcase_add_test(tests, work_of_a_destroyed_stream_goes_on);
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
