/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events, host functions and callbacks, values written by a stream.
 */
#include "ctl_client.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static CUdeviceptr device;
static void *pinned;

static void start(void)
{
	client_start("a100-80g-pcie4");
	device = client_device(COPY_BYTES);
	pinned = client_pinned(COPY_BYTES);
}

START_TEST(an_event_follows_its_stream)
{
	CUstream stream;
	CUevent event;

	start();
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	event = client_event();
	OK(cuEventQuery(event)); /* never recorded */
	OK(cuEventSynchronize(event));
	OK(cuMemcpyHtoDAsync_v2(device, pinned, COPY_BYTES, stream));
	OK(cuEventRecord(event, stream));
	FAILS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	OK(cuEventSynchronize(event));
	OK(cuEventQuery(event));
	OK(cuEventDestroy_v2(event));
	FAILS(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(elapsed_time_needs_two_finished_timed_records)
{
	CUevent first, second, untimed;
	CUstream stream;
	float ms;

	start();
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	first = client_event();
	second = client_event();
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	FAILS(cuEventElapsedTime_v2(&ms, first, second),
	        CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventRecord(first, stream));
	OK(cuMemcpyHtoDAsync_v2(device, pinned, COPY_BYTES, stream));
	OK(cuEventRecord(second, stream));
	FAILS(cuEventElapsedTime_v2(&ms, first, second), CUDA_ERROR_NOT_READY);
	FAILS(cuEventElapsedTime_v2(NULL, first, second),
	        CUDA_ERROR_INVALID_VALUE);
	OK(cuEventRecord(untimed, stream));
	OK(cuStreamSynchronize(stream));
	FAILS(cuEventElapsedTime_v2(&ms, first, untimed),
	        CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventElapsedTime_v2(&ms, first, second));
	ck_assert_float_gt(ms, 2);
	OK(cuEventElapsedTime(&ms, second, first));
	ck_assert_float_lt(ms, -2);
}
END_TEST

/* Times come from the device model alone, however long the host really takes.
 */
START_TEST(real_time_does_not_count)
{
	CUstream stream;
	CUevent first, second;

	start();
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	first = client_mark(stream);
	usleep(20000);
	second = client_mark(stream);
	ck_assert_double_lt(client_us(first, second), 100);
}
END_TEST

START_TEST(bad_flags_are_refused)
{
	CUstream stream;
	CUevent event;

	start();
	FAILS(cuEventCreate(&event, 0x100), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuEventCreate(&event, CU_EVENT_INTERPROCESS),
	        CUDA_ERROR_INVALID_VALUE);
	FAILS(cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuStreamCreate(&stream, 4), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuStreamWaitEvent(NULL, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* Thousands of destroyed events are told from live ones, and used again. */
START_TEST(events_come_and_go)
{
	CUevent first, event;

	start();
	first = client_event();
	OK(cuEventDestroy_v2(first));
	for (int i = 0; i < 3000; i++) {
		event = client_event();
		ck_assert_ptr_ne(event, first);
		OK(cuEventRecord(event, NULL));
		OK(cuEventDestroy_v2(event));
	}
	FAILS(cuEventRecord(first, NULL), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* ---------------------------------------------------------- host functions */

struct trace {
	atomic_uint n;
	int order[8];
};
struct step {
	struct trace *trace;
	int number;
};

static void take_step(void *arg)
{
	struct step *step = arg;

	usleep(2000);
	step->trace->order[step->trace->n] = step->number;
	step->trace->n++;
}

static void step_back(CUstream stream, CUresult status, void *arg)
{
	if (status == CUDA_SUCCESS)
		take_step(arg);
}

static void wait_for_flag(void *arg)
{
	const atomic_int *flag = arg;

	while (!*flag)
		usleep(100);
}

START_TEST(host_functions_run_in_order_and_are_waited_for)
{
	struct trace trace = {0};
	struct step steps[] = {{&trace, 1}, {&trace, 2}, {&trace, 3}};
	atomic_int flag = 0;
	CUstream stream;

	start();
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	OK(cuLaunchHostFunc(stream, wait_for_flag, &flag));
	OK(cuLaunchHostFunc(stream, take_step, &steps[0]));
	OK(cuStreamAddCallback(stream, step_back, &steps[1], 0));
	OK(cuLaunchHostFunc_ptsz(stream, take_step, &steps[2]));
	FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	flag = 1;
	OK(cuStreamSynchronize(stream));
	ck_assert_uint_eq(trace.n, 3);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(trace.order[i], i + 1);
	FAILS(cuLaunchHostFunc(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* The function waits for this thread: calls that do not wait go on. */
START_TEST(a_function_may_wait_for_the_program)
{
	CUstream stream, other;
	atomic_int flag = 0;
	CUevent behind;

	start();
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	other = client_stream(CU_STREAM_NON_BLOCKING);
	OK(cuLaunchHostFunc(stream, wait_for_flag, &flag));
	behind = client_mark(stream);
	OK(cuStreamWaitEvent(other, behind, 0));
	OK(cuMemsetD8Async(device, 0, 256, other));
	FAILS(cuEventQuery(behind), CUDA_ERROR_NOT_READY);
	FAILS(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	flag = 1;
	OK(cuStreamSynchronize(other));
	OK(cuEventQuery(behind));
}
END_TEST

/* ------------------------------------------------------------------ values */

START_TEST(values_are_written_to_host_memory)
{
	CUdeviceptr address;
	uint32_t word;
	CUstream stream;

	start();
	address = (CUdeviceptr)(uintptr_t)pinned;
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	OK(cuStreamWriteValue32_v2(stream, address, 42, 0));
	OK(cuStreamWaitValue32_v2(
	        stream, address, 42, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamSynchronize(stream));
	memcpy(&word, pinned, sizeof(word));
	ck_assert_uint_eq(word, 42);
	FAILS(cuStreamWaitValue32_v2(
	              stream, address, 43, CU_STREAM_WAIT_VALUE_GEQ),
	        CUDA_ERROR_NOT_SUPPORTED);
	OK(cuStreamWriteValue64_v2(stream, device, 1, 0));
	FAILS(cuStreamWriteValue32_v2(stream, 12345, 1, 0),
	        CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_event");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, an_event_follows_its_stream);
	tcase_add_test(tests, elapsed_time_needs_two_finished_timed_records);
	tcase_add_test(tests, real_time_does_not_count);
	tcase_add_test(tests, bad_flags_are_refused);
	tcase_add_test(tests, events_come_and_go);
	tcase_add_test(tests, host_functions_run_in_order_and_are_waited_for);
	tcase_add_test(tests, a_function_may_wait_for_the_program);
	tcase_add_test(tests, values_are_written_to_host_memory);
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
