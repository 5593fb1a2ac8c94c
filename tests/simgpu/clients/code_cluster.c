/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Thread block clusters on a simulated device that has them (h100-pcie5):
 * compiled in, asked for at launch, refused, and their occupancy.
 */
#include "code_common.h"

static CUmodule module;
static CUfunction plain, pairs;

static void setup(void)
{
	struct image_kernel kernels[] = {
	        {.name = "plain", .regs = 32},
	        {.name = "pairs", .regs = 32, .cluster_size = 2},
	};
	struct buffer cubin;

	use_device();
	cubin = image_cubin(90, kernels, 2, NULL, 0);
	ck_cu(cuModuleLoadData(&module, cubin.data));
	buffer_free(&cubin);
	ck_cu(cuModuleGetFunction(&plain, module, "plain"));
	ck_cu(cuModuleGetFunction(&pairs, module, "pairs"));
}

static void teardown(void)
{
	ck_cu(cuCtxSynchronize());
	ck_cu(cuModuleUnload(module));
	leave_device();
}

static CUresult launch(CUfunction fn, unsigned grid, unsigned cluster)
{
	CUlaunchAttribute attribute = {
	        .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
	        .value.clusterDim = {cluster, 1, 1},
	};
	CUlaunchConfig config = {.gridDimX = grid,
	        .gridDimY = 1,
	        .gridDimZ = 1,
	        .blockDimX = 128,
	        .blockDimY = 1,
	        .blockDimZ = 1,
	        .attrs = &attribute,
	        .numAttrs = cluster ? 1 : 0};

	return cuLaunchKernelEx(&config, fn, NULL, NULL);
}

START_TEST(cluster_launches)
{
	ck_cu(launch(plain, 16, 0));
	ck_cu(launch(plain, 16, 8));
	ck_cu_is(launch(plain, 15, 8), CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(launch(plain, 16, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	ck_cu(cuFuncSetAttribute(
	        plain, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	ck_cu(launch(plain, 16, 16));
	ck_cu_is(launch(plain, 32, 32), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	/* Compiled in: no other size may be asked for. */
	ck_cu(launch(pairs, 16, 0));
	ck_cu(launch(pairs, 16, 2));
	ck_cu_is(launch(pairs, 16, 4), CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(launch(pairs, 15, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(cluster_attributes)
{
	int value;

	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, pairs));
	ck_assert_int_eq(value, 1);
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, pairs));
	ck_assert_int_eq(value, 2);
	ck_cu_is(cuFuncSetAttribute(
	                 pairs, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4),
	        CUDA_ERROR_NOT_PERMITTED);
	ck_cu(cuFuncSetAttribute(
	        plain, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4));
	ck_cu_is(launch(plain, 16, 2), CUDA_ERROR_INVALID_VALUE);
	ck_cu(launch(plain, 16, 4));
}
END_TEST

START_TEST(cluster_occupancy)
{
	CUlaunchAttribute attribute = {
	        .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
	        .value.clusterDim = {4, 1, 1},
	};
	CUlaunchConfig config = {.gridDimX = 64,
	        .gridDimY = 1,
	        .gridDimZ = 1,
	        .blockDimX = 1024,
	        .blockDimY = 1,
	        .blockDimZ = 1,
	        .attrs = &attribute,
	        .numAttrs = 1};
	int size, clusters, blocks, processors;

	ck_cu(cuOccupancyMaxPotentialClusterSize(&size, plain, &config));
	ck_assert_int_eq(size, 8);
	ck_cu(cuOccupancyMaxPotentialClusterSize(&size, pairs, &config));
	ck_assert_int_eq(size, 2);
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, plain, 1024, 0));
	ck_cu(cuDeviceGetAttribute(
	        &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	ck_cu(cuOccupancyMaxActiveClusters(&clusters, plain, &config));
	ck_assert_int_eq(clusters, blocks * processors / 4);
	/* Compiled in: nothing else may be asked for. */
	ck_cu_is(cuOccupancyMaxActiveClusters(&clusters, pairs, &config),
	        CUDA_ERROR_INVALID_CLUSTER_SIZE);
	config.numAttrs = 0;
	ck_cu_is(cuOccupancyMaxActiveClusters(&clusters, plain, &config),
	        CUDA_ERROR_INVALID_CLUSTER_SIZE);
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, pairs, 1024, 0));
	ck_cu(cuOccupancyMaxActiveClusters(&clusters, pairs, &config));
	ck_assert_int_eq(clusters, blocks * processors / 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("code_cluster");
	TCase *tests = tcase_create("clusters");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, cluster_launches);
	tcase_add_test(tests, cluster_attributes);
	tcase_add_test(tests, cluster_occupancy);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
