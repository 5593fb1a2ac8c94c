/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conformance: streams, events, and what waits for what. */
#include "gpu.h"

#define BYTES (64 * MIB)

START_TEST(event_wait_orders_streams)
{
	CUdeviceptr p, q;
	CUstream a, b;

	gpu_start();
	p = gpu_alloc(BYTES);
	q = gpu_alloc(BYTES);
	OK(gpu.cuMemsetD8(p, 0, BYTES));
	OK(gpu.cuCtxSynchronize());
	a = gpu_stream(CU_STREAM_NON_BLOCKING);
	b = gpu_stream(CU_STREAM_NON_BLOCKING);
	for (unsigned char i = 1; i < 8; i++) {
		OK(gpu.cuMemsetD8Async(p, i, BYTES, a));
		OK(gpu.cuStreamWaitEvent(b, gpu_mark(a), 0));
		OK(gpu.cuMemcpyDtoDAsync(q, p, BYTES, b));
		OK(gpu.cuStreamWaitEvent(a, gpu_mark(b), 0));
	}
	ck_assert(gpu_holds(q + BYTES - MIB, MIB, 7));
}
END_TEST

START_TEST(null_stream_waits_for_blocking_streams)
{
	CUdeviceptr p, q;
	CUstream a;

	gpu_start();
	p = gpu_alloc(BYTES);
	q = gpu_alloc(BYTES);
	a = gpu_stream(CU_STREAM_DEFAULT);
	OK(gpu.cuMemsetD8Async(p, 3, BYTES, a));
	OK(gpu.cuMemcpyDtoDAsync(q, p, BYTES, NULL));
	OK(gpu.cuMemsetD8Async(q, 4, 100, a));
	ck_assert(gpu_holds(q, 100, 4));
	ck_assert(gpu_holds(q + BYTES - MIB, MIB, 3));
}
END_TEST

START_TEST(synchronous_download_has_arrived)
{
	unsigned char *host;
	CUdeviceptr p;

	gpu_start();
	host = gpu_pinned(BYTES);
	p = gpu_alloc(BYTES);
	OK(gpu.cuMemsetD8Async(p, 5, BYTES, NULL));
	OK(gpu.cuMemcpyDtoH(host, p, BYTES));
	ck_assert_int_eq(host[0], 5);
	ck_assert_int_eq(host[BYTES - 1], 5);
	OK(gpu.cuMemsetD8Async(p, 6, BYTES, NULL));
	OK(gpu.cuMemcpyDtoHAsync(host, p, BYTES, NULL));
	OK(gpu.cuStreamSynchronize(NULL));
	ck_assert_int_eq(host[BYTES - 1], 6);
}
END_TEST

START_TEST(events_are_done_in_order)
{
	CUevent first, last;
	CUdeviceptr p;
	CUstream a;
	float ms = -1;

	gpu_start();
	p = gpu_alloc(BYTES);
	a = gpu_stream(CU_STREAM_NON_BLOCKING);
	first = gpu_mark(a);
	OK(gpu.cuMemsetD8Async(p, 1, BYTES, a));
	last = gpu_mark(a);
	OK(gpu.cuEventSynchronize(last));
	OK(gpu.cuEventQuery(first));
	OK(gpu.cuEventQuery(last));
	OK(gpu.cuStreamQuery(a));
	OK(gpu.cuEventElapsedTime(&ms, first, last));
	ck_assert_float_gt(ms, 0);
	OK(gpu.cuStreamDestroy(a));
}
END_TEST

START_TEST(freeing_waits_for_work)
{
	CUdeviceptr p, q;
	CUevent event;
	CUstream a;

	gpu_start();
	p = gpu_alloc(BYTES);
	q = gpu_alloc(BYTES);
	a = gpu_stream(CU_STREAM_NON_BLOCKING);
	OK(gpu.cuMemsetD8Async(p, 1, BYTES, a));
	OK(gpu.cuMemcpyDtoDAsync(q, p, BYTES, a));
	event = gpu_mark(a);
	OK(gpu.cuMemFree(p));
	OK(gpu.cuEventQuery(event));
	ck_assert(gpu_holds(q, MIB, 1));
}
END_TEST

START_TEST(event_without_a_record_is_done)
{
	CUevent event;

	gpu_start();
	OK(gpu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(gpu.cuEventQuery(event));
	OK(gpu.cuEventSynchronize(event));
	OK(gpu.cuStreamWaitEvent(NULL, event, 0));
	OK(gpu.cuCtxSynchronize());
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("gpu_order");

	tcase_add_test(tests, event_wait_orders_streams);
	tcase_add_test(tests, null_stream_waits_for_blocking_streams);
	tcase_add_test(tests, synchronous_download_has_arrived);
	tcase_add_test(tests, events_are_done_in_order);
	tcase_add_test(tests, freeing_waits_for_work);
	tcase_add_test(tests, event_without_a_record_is_done);
	return gpu_run(tests, "gpu_order");
}
