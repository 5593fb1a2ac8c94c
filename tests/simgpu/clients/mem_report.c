/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the device's report counts of memory. Each test runs a scenario in a
 * child, which writes its report at its end, and reads that.
 */
#include "mem_client.h"

#include "tests/simgpu/driver/simgpu_private.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first device's entry of the report that scenario leaves behind. */
static json_t *report_of(void (*scenario)(void))
{
	char path[] = "/tmp/mem_report_XXXXXX";
	json_t *report, *devices, *device;
	json_error_t error;
	int fd = mkstemp(path), status;
	pid_t pid;

	ck_assert_int_ge(fd, 0);
	close(fd);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		setenv("SIMGPU_REPORT", path, 1);
		scenario();
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	report = json_load_file(path, 0, &error);
	unlink(path);
	ck_assert_msg(report, "%s", error.text);
	devices = json_object_get(report, "devices");
	ck_assert_msg(json_array_size(devices) == 1, "devices of the report");
	device = json_incref(json_array_get(devices, 0));
	json_decref(report);
	return device;
}

static json_int_t number(json_t *device, const char *name)
{
	json_t *value = json_object_get(device, name);

	ck_assert_msg(json_is_integer(value), "no number %s", name);
	return json_integer_value(value);
}

static void peaks(void)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr a, b;

	client_start();
	OK(cuMemAlloc(&a, 3 * MIB));
	OK(cuMemAlloc(&b, 1000));
	chunk = client_chunk(10 * MIB);
	OK(cuMemRelease(chunk));
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	OK(cuMemAlloc(&a, 5 * MIB));
	OK(cuMemFree(a));
}

START_TEST(peaks_are_counted_with_and_without_rounding)
{
	json_t *device = report_of(peaks);

	ck_assert_int_eq(number(device, "context_bytes"), 64 * MIB);
	/* Whole pages: 4 MiB, a slab of 2 MiB, a chunk of 10 MiB. */
	ck_assert_int_eq(
	        number(device, "physical_peak_bytes"), (64 + 4 + 2 + 10) * MIB);
	ck_assert_int_eq(number(device, "allocated_peak_bytes"),
	        3 * MIB + 1000 + 10 * MIB);
	ck_assert_int_eq(number(device, "memory_errors"), 0);
	json_decref(device);
}
END_TEST

static void pool_peak(void)
{
	CUdeviceptr a, b;

	client_start();
	OK(cuMemAllocAsync(&a, 5 * MIB, NULL));
	OK(cuMemFreeAsync(a, NULL));
	OK(cuMemAllocAsync(&b, 3 * MIB, NULL)); /* in the same memory */
	OK(cuMemFreeAsync(b, NULL));
	OK(cuCtxSynchronize());
}

START_TEST(pools_count_what_they_hold)
{
	json_t *device = report_of(pool_peak);

	ck_assert_int_eq(number(device, "allocated_peak_bytes"), 6 * MIB);
	ck_assert_int_eq(number(device, "physical_peak_bytes"), (64 + 6) * MIB);
	json_decref(device);
}
END_TEST

static void vmm_calls(void)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;

	client_start();
	va = client_reserve(PAGE);
	chunk = client_chunk(PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(client_access(va, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(cuMemUnmap(va, PAGE));
	OK(cuMemRelease(chunk));
	OK(cuMemAddressFree(va, PAGE));
}

START_TEST(calls_and_bytes_are_counted)
{
	json_t *device = report_of(vmm_calls);

	ck_assert_int_eq(number(device, "vmm_calls"), 7);
	ck_assert_int_eq(number(device, "copies"), 0);
	json_decref(device);
}
END_TEST

static void copies(void)
{
	static unsigned char host[MIB];
	CUdeviceptr d;

	client_start();
	OK(cuMemAlloc(&d, 2 * MIB));
	OK(cuMemcpyHtoD(d, host, MIB));
	OK(cuMemcpyDtoH(host, d, 1000));
	OK(cuMemcpyDtoD(d, d + MIB, MIB));
	OK(cuMemcpyDtoD(d, d + MIB, 0));
	OK(cuMemFree(d));
}

START_TEST(copies_are_counted_by_direction)
{
	json_t *device = report_of(copies);

	ck_assert_int_eq(number(device, "copies"), 3);
	ck_assert_int_eq(number(device, "bytes_h2d"), MIB);
	ck_assert_int_eq(number(device, "bytes_d2h"), 1000);
	json_decref(device);
}
END_TEST

static void errors(void)
{
	CUdeviceptr va, p;

	client_start();
	OK(cuMemAlloc(&p, 1000));
	OK(cuMemFree(p));
	INVALID(cuMemFree(p));        /* 1 */
	INVALID(cuMemsetD8(p, 0, 1)); /* 2 */
	va = client_reserve(PAGE);
	FAILS(cuMemsetD8(va, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS); /* 3 */
}

START_TEST(errors_of_the_program_are_counted)
{
	json_t *device = report_of(errors);

	ck_assert_int_eq(number(device, "memory_errors"), 3);
	json_decref(device);
}
END_TEST

/* The framework's blocks come and go in a reservation of which only parts are
 * mapped; copies within mapped blocks are no errors. */
static void blocks(void)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;

	client_start();
	va = client_reserve(4 * PAGE);
	chunk = client_chunk(PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(client_access(va, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	simgpu_block(0, va, PAGE);
	simgpu_block(0, va + PAGE, PAGE);
	simgpu_block(0, va + PAGE, -(int64_t)PAGE);
	OK(cuMemsetD8(va, 0, PAGE));
	OK(cuCtxSynchronize());
	simgpu_block(0, va, -(int64_t)PAGE);
	OK(cuMemUnmap(va, PAGE));
	OK(cuMemRelease(chunk));
	OK(cuMemAddressFree(va, 4 * PAGE));
}

START_TEST(pages_of_free_blocks_may_be_unmapped)
{
	json_t *device = report_of(blocks);

	ck_assert_int_eq(number(device, "memory_errors"), 0);
	json_decref(device);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("report");

	tcase_add_test(tests, peaks_are_counted_with_and_without_rounding);
	tcase_add_test(tests, pools_count_what_they_hold);
	tcase_add_test(tests, calls_and_bytes_are_counted);
	tcase_add_test(tests, copies_are_counted_by_direction);
	tcase_add_test(tests, errors_of_the_program_are_counted);
	tcase_add_test(tests, pages_of_free_blocks_may_be_unmapped);
	return client_run(tests, "mem_report");
}
