/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Race detection between streams: what is reported, and what the program's
 * order, in all its forms, keeps from being reported.
 */
#include "race_client.h"

#define BYTES        (4 * MIB)
#define NON_BLOCKING CU_STREAM_NON_BLOCKING
#define KNOWN_KERNEL "x::DeviceRadixSortExclusiveSumKernel<>" /* writes 0 */
#define READWRITE    CU_MEM_ACCESS_FLAGS_PROT_READWRITE

/* Runs a scenario that must give so many races and possible ones. */
static json_t *expect(void (*scenario)(void), int races, int possible)
{
	json_t *report = race_report(scenario, NULL, NULL);

	ck_assert_int_eq(race_number(report, "races"), races);
	ck_assert_int_eq(race_number(report, "possible_races"), possible);
	ck_assert_int_eq(race_number(report, "memory_errors"), 0);
	ck_assert_uint_eq(
	        json_array_size(json_object_get(report, "race_texts")),
	        (size_t)(races + possible));
	return report;
}

static void quiet(void (*scenario)(void))
{
	json_decref(expect(scenario, 0, 0));
}

/* ---------------------------------------------------------- a missing wait */

static bool waits;

static void writer_and_reader(void)
{
	CUstream a, b;
	CUdeviceptr p, q;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	q = race_device(BYTES);
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	if (waits)
		race_order(b, a);
	OK(cuMemcpyDtoDAsync(q, p, BYTES, b));
}

START_TEST(missing_event_wait_is_a_race)
{
	json_t *report = expect(writer_and_reader, 1, 0);
	const char *text = json_string_value(
	        json_array_get(json_object_get(report, "race_texts"), 0));

	ck_assert_ptr_nonnull(strstr(text, "memset"));
	ck_assert_ptr_nonnull(strstr(text, "writes"));
	ck_assert_ptr_nonnull(strstr(text, "device-to-device copy"));
	ck_assert_ptr_nonnull(strstr(text, "reads"));
	ck_assert_ptr_nonnull(strstr(text, "0x"));
	json_decref(report);
	waits = true;
	quiet(writer_and_reader);
}
END_TEST

static void two_readers(void)
{
	CUstream a, b;
	CUdeviceptr p, q, r;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	q = race_device(BYTES);
	r = race_device(BYTES);
	OK(cuMemcpyDtoDAsync(q, p, BYTES, a));
	OK(cuMemcpyDtoDAsync(r, p, BYTES, b));
	if (waits)
		race_order(a, b);
	OK(cuMemsetD8Async(p, 0, BYTES, a)); /* b may still read */
}

START_TEST(readers_race_only_with_the_next_writer)
{
	json_decref(expect(two_readers, 1, 0));
	waits = true;
	quiet(two_readers);
}
END_TEST

static void neighbours(void)
{
	CUstream a, b;
	CUdeviceptr p;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	OK(cuMemsetD8Async(p, 1, BYTES / 2, a));
	OK(cuMemsetD8Async(p + BYTES / 2, 1, BYTES / 2, b));
	if (!waits)
		OK(cuMemsetD8Async(p + BYTES / 2 - 1, 1, 1, b));
}

START_TEST(bytes_beside_each_other_are_no_race)
{
	json_decref(expect(neighbours, 1, 0));
	waits = true;
	quiet(neighbours);
}
END_TEST

/* ------------------------------------------------------- copies and kernels */

static const char *kernel_name;

static void copy_beside_kernel(void)
{
	CUstream a, b;
	CUdeviceptr p, q;
	CUfunction kernel;
	void *host;

	client_start();
	kernel = client_kernel(kernel_name, 2);
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	q = race_device(BYTES);
	host = race_pinned(BYTES);
	race_launch(kernel, p, q, a);
	if (waits)
		race_order(b, a);
	OK(cuMemcpyHtoDAsync(p, host, BYTES, b));
	OK(cuStreamSynchronize(b));
}

START_TEST(copy_racing_a_kernel_is_reported)
{
	kernel_name = KNOWN_KERNEL;
	json_decref(expect(copy_beside_kernel, 1, 0));
	waits = true;
	quiet(copy_beside_kernel);
}
END_TEST

START_TEST(guessed_accesses_make_possible_races)
{
	kernel_name = "unheard_of";
	json_decref(expect(copy_beside_kernel, 0, 1));
	waits = true;
	quiet(copy_beside_kernel);
}
END_TEST

/* --------------------------------------------------------- forms of order */

static int form;

static void ordered(void)
{
	CUstream a, b;
	CUdeviceptr p;
	CUevent event;

	client_start();
	a = race_stream(form == 4 ? CU_STREAM_DEFAULT : NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	OK(cuEventRecord(event, a));
	switch (form) {
	case 0:
		OK(cuStreamSynchronize(a));
		break;
	case 1:
		OK(cuCtxSynchronize());
		break;
	case 2:
		OK(cuEventSynchronize(event));
		break;
	case 3:
		while (cuStreamQuery(a) != CUDA_SUCCESS)
			;
		break;
	case 4: /* the null stream waits for a */
		b = NULL;
		break;
	case 5:
		while (cuEventQuery(event) != CUDA_SUCCESS)
			;
		break;
	case 6: /* freeing memory waits for the device */
		OK(cuMemFree(race_device(100)));
		break;
	case 7: /* one wait hands on what another stream waited for */
		race_order(race_stream(NON_BLOCKING), a);
		OK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, event, 0));
		race_order(b, CU_STREAM_PER_THREAD);
		break;
	}
	OK(cuMemsetD8Async(p, 2, BYTES, b));
}

START_TEST(every_form_of_order_counts)
{
	form = _i;
	quiet(ordered);
}
END_TEST

static void null_stream_and_non_blocking(void)
{
	CUstream b;
	CUdeviceptr p;

	client_start();
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	OK(cuMemsetD8Async(p, 1, BYTES, NULL));
	OK(cuMemsetD8Async(p, 2, BYTES, b));
}

START_TEST(non_blocking_streams_do_not_wait_for_the_null_stream)
{
	json_decref(expect(null_stream_and_non_blocking, 1, 0));
}
END_TEST

static void finished_in_virtual_time(void)
{
	CUstream a, b;
	CUdeviceptr p;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	/* Long enough for the set to be over, but nobody has looked. */
	OK(cuStreamSynchronize(b));
	for (int i = 0; i < 1000; i++) {
		CUdeviceptr other = 0;

		OK(cuMemAddressReserve(&other, PAGE, 0, 0, 0));
		OK(cuMemAddressFree(other, PAGE));
	}
	OK(cuMemsetD8Async(p, 2, BYTES, b));
}

START_TEST(luck_is_no_order)
{
	json_decref(expect(finished_in_virtual_time, 1, 0));
}
END_TEST

/* -------------------------------------------------------- physical memory */

static void aliases(void)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;
	CUstream a, b;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	chunk = client_chunk(PAGE);
	va = client_reserve(2 * PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(cuMemMap(va + PAGE, PAGE, 0, chunk, 0));
	OK(client_access(va, 2 * PAGE, READWRITE));
	OK(cuMemsetD8Async(va, 1, PAGE, a));
	if (waits)
		race_order(b, a);
	OK(cuMemsetD8Async(va + PAGE, 1, PAGE, b));
}

START_TEST(two_addresses_of_one_chunk_race)
{
	json_decref(expect(aliases, 1, 0));
	waits = true;
	quiet(aliases);
}
END_TEST

static void pinned_between_streams(void)
{
	CUstream a, b;
	CUdeviceptr p, q;
	void *host;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	q = race_device(BYTES);
	host = race_pinned(BYTES);
	OK(cuMemcpyDtoHAsync(host, p, BYTES, a));
	if (waits)
		race_order(b, a);
	OK(cuMemcpyHtoDAsync(q, host, BYTES, b));
}

START_TEST(copies_out_and_in_through_pinned_memory_need_order)
{
	json_decref(expect(pinned_between_streams, 1, 0));
	waits = true;
	quiet(pinned_between_streams);
}
END_TEST

/* Blocks come and go over one another, on streams that come and go. */
static void churn(void)
{
	CUdeviceptr p;
	CUstream before = NULL;
	size_t at = 0;

	client_start();
	p = race_device(BYTES);
	for (int i = 0; i < 20000; i++) {
		CUstream stream = race_stream(NON_BLOCKING);

		race_order(stream, before);
		at = (at + 7919 * 16) % (BYTES / 2);
		OK(cuMemsetD8Async(
		        p + at, 1, 4096 + 32 * (size_t)(i % 900), stream));
		if (before)
			OK(cuStreamDestroy(before));
		before = stream;
		if (i % 50 == 0)
			OK(cuStreamSynchronize(stream));
	}
}

START_TEST(long_runs_stay_quick_and_quiet)
{
	quiet(churn);
}
END_TEST

START_TEST(switched_off_nothing_is_reported)
{
	json_t *report = race_report(writer_and_reader, "SIMGPU_RACES", "off");

	ck_assert_int_eq(race_number(report, "races"), 0);
	json_decref(report);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("race_streams");

	tcase_add_test(tests, missing_event_wait_is_a_race);
	tcase_add_test(tests, readers_race_only_with_the_next_writer);
	tcase_add_test(tests, bytes_beside_each_other_are_no_race);
	tcase_add_test(tests, copy_racing_a_kernel_is_reported);
	tcase_add_test(tests, guessed_accesses_make_possible_races);
	tcase_add_loop_test(tests, every_form_of_order_counts, 0, 8);
	tcase_add_test(
	        tests, non_blocking_streams_do_not_wait_for_the_null_stream);
	tcase_add_test(tests, luck_is_no_order);
	tcase_add_test(tests, two_addresses_of_one_chunk_race);
	tcase_add_test(
	        tests, copies_out_and_in_through_pinned_memory_need_order);
	tcase_add_test(tests, long_runs_stay_quick_and_quiet);
	tcase_add_test(tests, switched_off_nothing_is_reported);
	return client_run(tests, "race_streams");
}
