/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Trouble by setting: a slow link, slow kernels, an error that stays, less
 * memory than the device says, random addresses. Check runs each test in a
 * process of its own, which makes its setting before the first call.
 */
#include "ctl_client.h"

#include "kernel_client.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

/* Virtual microseconds of a copy to the device. */
static double copy_us(void *host, CUdeviceptr device)
{
	CUevent before = client_mark(NULL), after;

	OK(cuMemcpyHtoDAsync_v2(device, host, COPY_BYTES, NULL));
	after = client_mark(NULL);
	return client_us(before, after);
}

START_TEST(slow_link_stretches_copies_from_an_operation_on)
{
	CUdeviceptr device;
	double first, second;
	void *host;

	setenv("SIMGPU_SLOW_LINK", "0.5@4", 1);
	client_start("a100-80g-pcie4");
	host = client_pinned(COPY_BYTES);
	device = client_device(COPY_BYTES);
	first = copy_us(host, device); /* operations 1 to 3 */
	second = copy_us(host, device);
	ck_assert_double_gt(second, 1.9 * first);
	ck_assert_double_lt(second, 2.1 * first);
}
END_TEST

/* Virtual microseconds of a kernel that no table knows, over so many bytes. */
static double kernel_us(CUfunction kernel, CUdeviceptr device)
{
	CUevent before = client_mark(NULL), after;
	void *params[] = {&device};

	OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	after = client_mark(NULL);
	return client_us(before, after);
}

START_TEST(slow_kernels_leave_copies_alone)
{
	CUfunction kernel;
	CUdeviceptr device;
	double first, second, copy;
	void *host;

	setenv("SIMGPU_SLOW_KERNEL", "0.25@4", 1);
	client_start("a100-80g-pcie4");
	kernel = client_kernel("unheard_of", 1);
	host = client_pinned(COPY_BYTES);
	device = client_device(COPY_BYTES);
	first = kernel_us(kernel, device); /* operations 1 to 3 */
	second = kernel_us(kernel, device);
	ck_assert_double_gt(second, 3.5 * first);
	ck_assert_double_lt(second, 4.5 * first);
	copy = copy_us(host, device);
	ck_assert_double_gt(copy, 1900); /* 50 MB at 25 GB/s */
	ck_assert_double_lt(copy, 2500);
}
END_TEST

START_TEST(sticky_error_comes_at_its_operation_and_stays)
{
	CUdeviceptr device;

	setenv("SIMGPU_STICKY_ERROR", "CUDA_ERROR_ECC_UNCORRECTABLE@3", 1);
	client_start("a100-80g-pcie4");
	device = client_device(MIB);
	OK(cuMemsetD8Async(device, 0, MIB, NULL));
	OK(cuMemsetD8Async(device, 0, MIB, NULL));
	FAILS(cuMemsetD8Async(device, 0, MIB, NULL),
	        CUDA_ERROR_ECC_UNCORRECTABLE);
	FAILS(cuMemsetD8Async(device, 0, MIB, NULL),
	        CUDA_ERROR_ECC_UNCORRECTABLE);
	FAILS(cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
}
END_TEST

START_TEST(memory_ends_earlier_than_the_device_says)
{
	CUdeviceptr device;
	size_t left, total;

	setenv("SIMGPU_OOM_BYTES", "200MiB", 1);
	client_start("tiny-1g"); /* 64 MiB of it the context's */
	OK(cuMemGetInfo_v2(&left, &total));
	ck_assert_uint_eq(total, 1024 * MIB);
	OK(cuMemAlloc_v2(&device, 100 * MIB));
	FAILS(cuMemAlloc_v2(&device, 100 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&device, 30 * MIB));
}
END_TEST

START_TEST(random_addresses_are_apart_and_usable)
{
	CUdeviceptr a, b;

	setenv("SIMGPU_RANDOM_ADDRESS", _i ? "1" : "77", 1);
	client_start("tiny-1g");
	a = client_device(4 * MIB);
	b = client_device(4 * MIB);
	ck_assert(b != a + 4 * MIB && a != b + 4 * MIB);
	OK(cuMemsetD8_v2(a, 1, 4 * MIB));
	OK(cuMemsetD8_v2(b, 1, 4 * MIB));
	OK(cuCtxSynchronize());
	for (int i = 0; i < 200; i++) {
		CUdeviceptr more = client_device(2 * MIB);

		ck_assert_uint_eq(more % 512, 0);
		ck_assert(more < a || more >= a + 4 * MIB);
	}
}
END_TEST

static const char *const slow[] = {"0.25@heard:2", "0.25@herd:1"};

START_TEST(slow_kernels_may_be_those_of_a_name)
{
	CUfunction kernel;
	CUdeviceptr device;
	double first, second;

	setenv("SIMGPU_SLOW_KERNEL", slow[_i], 1);
	client_start("a100-80g-pcie4");
	kernel = client_kernel("unheard_of", 1);
	device = client_device(COPY_BYTES);
	first = kernel_us(kernel, device);
	second = kernel_us(kernel, device);
	ck_assert_double_gt(second, (_i ? 0.9 : 3.5) * first);
	ck_assert_double_lt(second, (_i ? 1.1 : 4.5) * first);
}
END_TEST

static const char *const bad[][2] = {
        {"SIMGPU_SLOW_LINK", "2"},
        {"SIMGPU_SLOW_LINK", "0.5@gemm:"},
        {"SIMGPU_SLOW_KERNEL", "0.5@:3"},
        {"SIMGPU_SLOW_LINK", "0.5@x"},
        {"SIMGPU_SLOW_KERNEL", "0"},
        {"SIMGPU_STICKY_ERROR", "CUDA_SUCCESS"},
        {"SIMGPU_STICKY_ERROR", "no such error"},
        {"SIMGPU_OOM_BYTES", "12GB"},
        {"SIMGPU_RANDOM_ADDRESS", "-1"},
        {"SIMGPU_RACES", "yes"},
        {"SIMGPU_FOUND_INF", "1"},
};

START_TEST(unreadable_settings_stop_the_driver)
{
	setenv(bad[_i][0], bad[_i][1], 1);
	FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_trouble");
	TCase *tests = tcase_create("trouble");

	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, slow_link_stretches_copies_from_an_operation_on);
	tcase_add_test(tests, slow_kernels_leave_copies_alone);
	tcase_add_loop_test(tests, slow_kernels_may_be_those_of_a_name, 0, 2);
	tcase_add_test(tests, sticky_error_comes_at_its_operation_and_stays);
	tcase_add_test(tests, memory_ends_earlier_than_the_device_says);
	tcase_add_loop_test(tests, random_addresses_are_apart_and_usable, 0, 2);
	tcase_add_loop_test(tests, unreadable_settings_stop_the_driver, 0,
	        (int)(sizeof(bad) / sizeof(bad[0])));
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
