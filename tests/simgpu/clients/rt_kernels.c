/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels and variables as compiled programs register and launch them, on the
 * simulated device tiny-1g. The program image is a PTX text, registered the
 * way nvcc's code registers its fat binaries.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/runtime/registry.h"

#define OK(call) ck_assert_int_eq(call, cudaSuccess)

static const char image[] = ".version 8.0\n"
                            ".target sm_75\n"
                            ".address_size 64\n"
                            ".visible .global .align 4 .b8 device_table[64];\n"
                            ".visible .entry scale(\n"
                            "	.param .u64 scale_param_0,\n"
                            "	.param .f32 scale_param_1,\n"
                            "	.param .u32 scale_param_2)\n"
                            ".maxntid 256, 1, 1\n"
                            "{\n"
                            "	ret;\n"
                            "}\n";

static const struct {
	int magic, version;
	const void *data;
	const void *linked;
} wrapper = {0x466243b1, 1, image, NULL};

static char scale_stub, absent_stub, table_host[64];
static void **handle;

static void register_all(void)
{
	handle = __cudaRegisterFatBinary((void *)&wrapper);
	__cudaRegisterFunction(handle, &scale_stub, NULL, "scale", -1, NULL,
	        NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &absent_stub, NULL, "absent", -1, NULL,
	        NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, table_host, table_host, "device_table", 0,
	        sizeof(table_host), 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
}

static const dim3 grid = {4, 1, 1}, block = {128, 1, 1};

struct arguments {
	void *data;
	float factor;
	int count;
	void *list[3];
};

static void prepare(struct arguments *args)
{
	OK(cudaMalloc(&args->data, 4096));
	args->factor = 2;
	args->count = 1024;
	args->list[0] = &args->data;
	args->list[1] = &args->factor;
	args->list[2] = &args->count;
}

START_TEST(every_form_of_launch)
{
	cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = block};
	struct arguments args;
	cudaFunction_t function;
	cudaKernel_t kernel;

	prepare(&args);
	OK(cudaLaunchKernel(&scale_stub, grid, block, args.list, 0, NULL));
	OK(cudaLaunchKernelExC(&config, &scale_stub, args.list));
	OK(cudaLaunchCooperativeKernel(
	        &scale_stub, grid, block, args.list, 0, NULL));
	OK(__cudaGetKernel(&kernel, &scale_stub));
	OK(__cudaLaunchKernel(kernel, grid, block, args.list, 0, NULL));
	OK(__cudaLaunchKernel_ptsz(kernel, grid, block, args.list, 0, NULL));
	/* Handles are accepted in the place of the stub. */
	OK(cudaLaunchKernelExC(&config, kernel, args.list));
	OK(cudaGetFuncBySymbol(&function, &scale_stub));
	OK(cudaLaunchKernelExC(&config, function, args.list));
	OK(cudaDeviceSynchronize());
	OK(cudaFree(args.data));
}
END_TEST

START_TEST(what_is_not_registered_or_not_there)
{
	struct arguments args;
	int plain;

	prepare(&args);
	ck_assert_int_eq(
	        cudaLaunchKernel(&plain, grid, block, args.list, 0, NULL),
	        cudaErrorInvalidDeviceFunction);
	ck_assert_int_eq(
	        cudaLaunchKernel(&absent_stub, grid, block, args.list, 0, NULL),
	        cudaErrorInvalidDeviceFunction);
	/* A variable is no function, and the other way round. */
	ck_assert_int_eq(
	        cudaLaunchKernel(table_host, grid, block, args.list, 0, NULL),
	        cudaErrorInvalidDeviceFunction);
	ck_assert_int_eq(cudaGetSymbolAddress(&args.data, &scale_stub),
	        cudaErrorInvalidSymbol);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidSymbol);
}
END_TEST

START_TEST(a_block_too_large_is_refused)
{
	struct arguments args;
	dim3 large = {2048, 1, 1};

	prepare(&args);
	ck_assert_int_ne(
	        cudaLaunchKernel(&scale_stub, grid, large, args.list, 0, NULL),
	        cudaSuccess);
	cudaGetLastError();
	OK(cudaLaunchKernel(&scale_stub, grid, block, args.list, 0, NULL));
	OK(cudaDeviceSynchronize());
}
END_TEST

START_TEST(attributes_and_occupancy)
{
	struct cudaFuncAttributes attr;
	size_t offset, size;
	int blocks = 0;

	memset(&attr, 0xff, sizeof(attr));
	OK(cudaFuncGetAttributes(&attr, &scale_stub));
	ck_assert_int_eq(attr.maxThreadsPerBlock, 256);
	ck_assert_int_gt(attr.numRegs, 0);
	ck_assert_uint_eq(attr.sharedSizeBytes, 0);
	OK(cudaFuncGetParamInfo(&scale_stub, 1, &offset, &size));
	ck_assert_uint_eq(offset, 8);
	ck_assert_uint_eq(size, 4);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, &scale_stub, 256, 0));
	ck_assert_int_ge(blocks, 1);
	OK(cudaFuncSetAttribute(&scale_stub,
	        cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
	OK(cudaFuncGetAttributes(&attr, &scale_stub));
	ck_assert_int_eq(attr.maxDynamicSharedSizeBytes, 1024);
}
END_TEST

START_TEST(variables_have_addresses_and_bounds)
{
	char bytes[65] = {0};
	void *ptr = NULL;
	size_t size = 0;

	OK(cudaGetSymbolSize(&size, table_host));
	ck_assert_uint_eq(size, 64);
	OK(cudaGetSymbolAddress(&ptr, table_host));
	ck_assert_ptr_nonnull(ptr);
	OK(cudaMemcpyToSymbol(
	        table_host, bytes, 64, 0, cudaMemcpyHostToDevice));
	ck_assert_int_eq(cudaMemcpyToSymbol(table_host, bytes, 64, 1,
	                         cudaMemcpyHostToDevice),
	        cudaErrorInvalidValue);
}
END_TEST

START_TEST(configurations_nest)
{
	dim3 other = {7, 1, 1}, got_grid, got_block;
	cudaStream_t stream;
	size_t shared;

	ck_assert_uint_eq(
	        __cudaPushCallConfiguration(grid, block, 16, NULL), 0);
	ck_assert_uint_eq(__cudaPushCallConfiguration(
	                          other, block, 32, cudaStreamPerThread),
	        0);
	OK(__cudaPopCallConfiguration(&got_grid, &got_block, &shared, &stream));
	ck_assert_uint_eq(got_grid.x, 7);
	ck_assert_uint_eq(shared, 32);
	ck_assert_ptr_eq(stream, cudaStreamPerThread);
	OK(__cudaPopCallConfiguration(&got_grid, &got_block, &shared, &stream));
	ck_assert_uint_eq(got_grid.x, 4);
	ck_assert_uint_eq(shared, 16);
	ck_assert_int_eq(__cudaPopCallConfiguration(
	                         &got_grid, &got_block, &shared, &stream),
	        cudaErrorMissingConfiguration);
}
END_TEST

START_TEST(kernels_survive_a_reset)
{
	struct arguments args;

	prepare(&args);
	OK(cudaLaunchKernel(&scale_stub, grid, block, args.list, 0, NULL));
	OK(cudaDeviceReset());
	prepare(&args);
	OK(cudaLaunchKernel(&scale_stub, grid, block, args.list, 0, NULL));
	OK(cudaDeviceSynchronize());
}
END_TEST

START_TEST(nothing_is_left_after_unregistering)
{
	struct arguments args;

	prepare(&args);
	OK(cudaLaunchKernel(&scale_stub, grid, block, args.list, 0, NULL));
	OK(cudaDeviceSynchronize());
	__cudaUnregisterFatBinary(handle);
	ck_assert_int_eq(
	        cudaLaunchKernel(&scale_stub, grid, block, args.list, 0, NULL),
	        cudaErrorInvalidDeviceFunction);
}
END_TEST

START_TEST(a_library_of_the_program)
{
	struct arguments args;
	cudaLibrary_t library;
	cudaKernel_t kernel, listed;
	unsigned count = 0;

	prepare(&args);
	OK(cudaLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	OK(cudaLibraryGetKernelCount(&count, library));
	ck_assert_uint_eq(count, 1);
	OK(cudaLibraryGetKernel(&kernel, library, "scale"));
	OK(cudaLibraryEnumerateKernels(&listed, 1, library));
	ck_assert_ptr_eq(listed, kernel);
	OK(cudaLaunchKernel(kernel, grid, block, args.list, 0, NULL));
	OK(cudaDeviceSynchronize());
	OK(cudaLibraryUnload(library));
	ck_assert_int_eq(
	        cudaLaunchKernel(kernel, grid, block, args.list, 0, NULL),
	        cudaErrorInvalidDeviceFunction);
	OK(cudaFree(args.data));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rt_kernels");
	TCase *tcase = tcase_create("rt_kernels");
	SRunner *runner;
	int failed;

	setenv("SIMGPU_DEVICE", "tiny-1g", 1);
	register_all();
	tcase_add_test(tcase, every_form_of_launch);
	tcase_add_test(tcase, what_is_not_registered_or_not_there);
	tcase_add_test(tcase, a_block_too_large_is_refused);
	tcase_add_test(tcase, attributes_and_occupancy);
	tcase_add_test(tcase, variables_have_addresses_and_bounds);
	tcase_add_test(tcase, configurations_nest);
	tcase_add_test(tcase, kernels_survive_a_reset);
	tcase_add_test(tcase, nothing_is_left_after_unregistering);
	tcase_add_test(tcase, a_library_of_the_program);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
