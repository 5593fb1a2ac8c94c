/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runtime when a driver call fails once: the error comes out at the call
 * that needed it and as last error, and the same work succeeds afterwards.
 * SIMGPU_FAIL makes the simulated driver fail.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/simgpu/runtime/registry.h"

static const char image[] = ".version 8.0\n"
                            ".target sm_75\n"
                            ".address_size 64\n"
                            ".visible .global .align 4 .b8 table[64];\n"
                            ".visible .entry touch(.param .u64 touch_0)\n"
                            "{\n"
                            "	ret;\n"
                            "}\n";

static const struct {
	int magic, version;
	const void *data;
	const void *linked;
} wrapper = {0x466243b1, 1, image, NULL};

static char touch_stub, table_host[64];

static void register_all(void)
{
	void **handle = __cudaRegisterFatBinary((void *)&wrapper);

	__cudaRegisterFunction(handle, &touch_stub, NULL, "touch", -1, NULL,
	        NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, table_host, table_host, "table", 0,
	        sizeof(table_host), 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
}

static cudaError_t launch(void)
{
	dim3 grid = {1, 1, 1}, block = {32, 1, 1};
	void *data = NULL;
	void *args[] = {&data};

	return cudaLaunchKernel(&touch_stub, grid, block, args, 0, NULL);
}

static cudaError_t symbol(void)
{
	void *ptr;

	return cudaGetSymbolAddress(&ptr, table_host);
}

static cudaError_t attributes(void)
{
	struct cudaFuncAttributes attr;

	return cudaFuncGetAttributes(&attr, &touch_stub);
}

static cudaError_t properties(void)
{
	struct cudaDeviceProp prop;

	return cudaGetDeviceProperties(&prop, 0);
}

static cudaError_t allocate(void)
{
	void *ptr;
	cudaError_t err = cudaMalloc(&ptr, 4096);

	return err ? err : cudaFree(ptr);
}

static cudaError_t set_device(void)
{
	return cudaSetDevice(0);
}

static const struct {
	const char *symbol;
	cudaError_t (*work)(void);
} cases[] = {
        {"cuDevicePrimaryCtxRetain", set_device},
        {"cuDevicePrimaryCtxRetain", allocate},
        {"cuCtxSetCurrent", set_device},
        {"cuCtxGetCurrent", allocate},
        {"cuDeviceGetCount", set_device},
        {"cuMemAlloc_v2", allocate},
        {"cuMemFree_v2", allocate},
        {"cuLibraryLoadData", launch},
        {"cuLibraryLoadData", symbol},
        {"cuLibraryGetKernel", launch},
        {"cuLibraryGetGlobal", symbol},
        {"cuKernelGetFunction", launch},
        {"cuLaunchKernel", launch},
        {"cuFuncGetAttribute", attributes},
        {"cuDeviceGetAttribute", properties},
        {"cuDeviceGetName", properties},
        {"cuDeviceTotalMem_v2", properties},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

START_TEST(a_call_fails_once)
{
	char setting[64];

	snprintf(setting, sizeof(setting), "%s:1:2", cases[_i].symbol);
	setenv("SIMGPU_FAIL", setting, 1);
	ck_assert_int_eq(cases[_i].work(), cudaErrorMemoryAllocation);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
	ck_assert_int_eq(cases[_i].work(), cudaSuccess);
	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
	ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
}
END_TEST

START_TEST(no_device_stays_no_device)
{
	int count;

	setenv("SIMGPU_FAIL", "cuInit:1:100", 1);
	ck_assert_int_eq(cudaGetDeviceCount(&count), cudaErrorNoDevice);
	ck_assert_int_eq(cudaFree(NULL), cudaErrorNoDevice);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorNoDevice);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rt_faults");
	TCase *tcase = tcase_create("rt_faults");
	SRunner *runner;
	int failed;

	setenv("SIMGPU_DEVICE", "tiny-1g", 1);
	register_all();
	tcase_add_loop_test(tcase, a_call_fails_once, 0, CASES);
	tcase_add_test(tcase, no_device_stays_no_device);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
