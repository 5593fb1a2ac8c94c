/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conformance: launches, parameter layouts, errors of kernels. */
#include "gpu.h"

#define COUNT 4096u

static CUresult launch(CUfunction kernel, unsigned grid, unsigned block,
        void **params, void **extra)
{
	return gpu.cuLaunchKernel(
	        kernel, grid, 1, 1, block, 1, 1, 0, NULL, params, extra);
}

static CUresult fill(CUfunction kernel, CUdeviceptr p)
{
	uint32_t value = 3, count = COUNT;
	void *params[] = {&p, &value, &count};

	return launch(kernel, COUNT / 256, 256, params, NULL);
}

START_TEST(parameters_have_offsets_and_sizes)
{
	static const size_t want[][2] = {{0, 1}, {8, 8}, {16, 2}, {24, 24}};
	CUfunction kernel;
	size_t offset, size;
	int version;

	gpu_start();
	OK(gpu.cuDriverGetVersion(&version));
	if (version < 12040)
		return; /* the driver cannot say */
	kernel = gpu_kernel("mixed");
	for (size_t i = 0; i < 4; i++) {
		OK(gpu.cuFuncGetParamInfo(kernel, i, &offset, &size));
		ck_assert_uint_eq(offset, want[i][0]);
		ck_assert_uint_eq(size, want[i][1]);
	}
	FAILS(gpu.cuFuncGetParamInfo(kernel, 4, &offset, &size),
	        CUDA_ERROR_INVALID_VALUE);
	FAILS(gpu.cuFuncGetParamInfo(gpu_kernel("nothing"), 0, &offset, &size),
	        CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(parameters_come_in_two_forms)
{
	struct {
		CUdeviceptr p;
		uint32_t value, count;
	} packed;
	size_t bytes = sizeof(packed);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
	        CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	void *params[] = {&packed.p, &packed.value, &packed.count};
	CUfunction kernel;

	gpu_start();
	packed.p = gpu_alloc(4 * COUNT);
	packed.value = 1;
	packed.count = COUNT;
	kernel = gpu_kernel("fill");
	OK(launch(kernel, 16, 256, params, NULL));
	OK(launch(kernel, 16, 256, NULL, extra));
	FAILS(launch(kernel, 16, 256, params, extra), CUDA_ERROR_INVALID_VALUE);
	OK(launch(gpu_kernel("nothing"), 1, 32, NULL, NULL));
	OK(gpu.cuCtxSynchronize());
}
END_TEST

START_TEST(launch_forms_are_equal)
{
	CUlaunchConfig config = {.gridDimX = 16,
	        .gridDimY = 1,
	        .gridDimZ = 1,
	        .blockDimX = 256,
	        .blockDimY = 1,
	        .blockDimZ = 1};
	CUfunction kernel;
	int blocks;

	gpu_start();
	kernel = gpu_kernel("nothing");
	OK(gpu.cuLaunchKernelEx(&config, kernel, NULL, NULL));
	OK(gpu.cuLaunchCooperativeKernel(
	        kernel, 2, 1, 1, 64, 1, 1, 0, NULL, NULL));
	OK(gpu.cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, kernel, 256, 0));
	ck_assert_int_ge(blocks, 1);
	OK(gpu.cuCtxSynchronize());
}
END_TEST

START_TEST(impossible_launches_are_refused)
{
	CUfunction kernel;
	int threads;

	gpu_start();
	kernel = gpu_kernel("nothing");
	OK(gpu.cuFuncGetAttribute(
	        &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel));
	ck_assert_int_ge(threads, 32);
	FAILS(launch(kernel, 0, 32, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	FAILS(launch(kernel, 1, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	FAILS(launch(kernel, 1, 4096, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	/* None of these breaks anything. */
	OK(launch(kernel, 1, 32, NULL, NULL));
	OK(gpu.cuCtxSynchronize());
}
END_TEST

START_TEST(missing_names_are_not_found)
{
	CUmodule module;
	CUfunction kernel;

	gpu_start();
	gpu_kernel("fill");
	OK(gpu.cuModuleLoadData(&module,
	        ".version 7.0\n.target sm_75\n"
	        ".address_size 64\n"
	        ".visible .entry one()\n{\nret;\n}\n"));
	OK(gpu.cuModuleGetFunction(&kernel, module, "one"));
	FAILS(gpu.cuModuleGetFunction(&kernel, module, "two"),
	        CUDA_ERROR_NOT_FOUND);
	OK(gpu.cuModuleUnload(module));
}
END_TEST

START_TEST(kernel_on_memory_that_is_mapped)
{
	gpu_start();
	OK(fill(gpu_kernel("fill"), gpu_alloc(4 * COUNT)));
	OK(gpu.cuCtxSynchronize());
}
END_TEST

START_TEST(illegal_address_stays)
{
	CUfunction kernel;
	CUdeviceptr va, p;

	gpu_start();
	kernel = gpu_kernel("fill");
	OK(gpu.cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0));
	OK(fill(kernel, va));
	FAILS(gpu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(gpu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(gpu.cuMemAlloc(&p, MIB), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(fill(kernel, va), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(mapped_without_access_is_illegal_for_a_kernel)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr va;
	size_t page;

	gpu_start();
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	OK(gpu.cuMemGetAllocationGranularity(
	        &page, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	OK(gpu.cuMemCreate(&handle, page, &prop, 0));
	OK(gpu.cuMemAddressReserve(&va, page, 0, 0, 0));
	OK(gpu.cuMemMap(va, page, 0, handle, 0));
	OK(fill(gpu_kernel("fill"), va));
	FAILS(gpu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("gpu_launch");

	tcase_add_test(tests, parameters_have_offsets_and_sizes);
	tcase_add_test(tests, parameters_come_in_two_forms);
	tcase_add_test(tests, launch_forms_are_equal);
	tcase_add_test(tests, impossible_launches_are_refused);
	tcase_add_test(tests, missing_names_are_not_found);
	tcase_add_test(tests, kernel_on_memory_that_is_mapped);
	tcase_add_test(tests, illegal_address_stays);
	tcase_add_test(tests, mapped_without_access_is_illegal_for_a_kernel);
	return gpu_run(tests, "gpu_launch");
}
