/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runtime's devices, errors and driver entry points, on the simulated
 * device tiny-1g (two of them).
 */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

START_TEST(properties_agree_with_attributes)
{
	struct cudaDeviceProp prop;
	int count = 0;

	ck_assert_int_eq(cudaGetDeviceCount(&count), cudaSuccess);
	ck_assert_int_eq(count, 2);
	memset(&prop, 0xff, sizeof(prop));
	ck_assert_int_eq(cudaGetDeviceProperties(&prop, 1), cudaSuccess);
	ck_assert(prop.name[0] != '\0' && memchr(prop.name, 0, 256));
	ck_assert_uint_eq(prop.totalGlobalMem, (size_t)1 << 30);

	const struct {
		enum cudaDeviceAttr attr;
		long long value;
	} rows[] = {
	        {cudaDevAttrMaxThreadsPerBlock, prop.maxThreadsPerBlock},
	        {cudaDevAttrMaxGridDimY, prop.maxGridSize[1]},
	        {cudaDevAttrWarpSize, prop.warpSize},
	        {cudaDevAttrComputeCapabilityMajor, prop.major},
	        {cudaDevAttrComputeCapabilityMinor, prop.minor},
	        {cudaDevAttrMultiProcessorCount, prop.multiProcessorCount},
	        {cudaDevAttrL2CacheSize, prop.l2CacheSize},
	        {cudaDevAttrMaxSharedMemoryPerBlockOptin,
	                (long long)prop.sharedMemPerBlockOptin},
	        {cudaDevAttrMaxSharedMemoryPerMultiprocessor,
	                (long long)prop.sharedMemPerMultiprocessor},
	        {cudaDevAttrMaxRegistersPerMultiprocessor,
	                prop.regsPerMultiprocessor},
	        {cudaDevAttrMaxBlocksPerMultiprocessor,
	                prop.maxBlocksPerMultiProcessor},
	        {cudaDevAttrPciBusId, prop.pciBusID},
	        {cudaDevAttrTotalConstantMemory, (long long)prop.totalConstMem},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int value = -1;

		ck_assert_int_eq(
		        cudaDeviceGetAttribute(&value, rows[i].attr, 1),
		        cudaSuccess);
		ck_assert_int_eq(value, rows[i].value);
	}
	ck_assert_int_eq(prop.warpSize, 32);
	ck_assert_int_ge(prop.major, 7);
}
END_TEST

START_TEST(last_error_is_taken_once)
{
	int device = -1;

	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
	ck_assert_int_eq(cudaSetDevice(7), cudaErrorInvalidDevice);
	ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	/* A later success does not clear it. */
	ck_assert_int_eq(cudaGetDevice(&device), cudaSuccess);
	ck_assert_int_eq(device, 0);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDevice);
	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
}
END_TEST

static void *other_thread(void *arg)
{
	int *ret = arg;
	int device = -1;

	ret[0] = cudaGetLastError();
	ret[1] = cudaGetDevice(&device);
	ret[2] = device;
	return NULL;
}

START_TEST(device_and_last_error_belong_to_threads)
{
	int ret[3] = {-1, -1, -1};
	pthread_t thread;
	int device;

	ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
	ck_assert_int_eq(cudaSetDevice(-1), cudaErrorInvalidDevice);
	ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, ret), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(ret[0], cudaSuccess);
	ck_assert_int_eq(ret[1], cudaSuccess);
	ck_assert_int_eq(ret[2], 0);
	ck_assert_int_eq(cudaGetDevice(&device), cudaSuccess);
	ck_assert_int_eq(device, 1);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidDevice);
}
END_TEST

START_TEST(set_device_makes_the_primary_context)
{
	unsigned flags;
	int active;
	CUcontext current;

	ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
	cuDevicePrimaryCtxGetState(1, &flags, &active);
	ck_assert_int_eq(active, 0);
	ck_assert_int_eq(cudaSetDevice(1), cudaSuccess);
	cuDevicePrimaryCtxGetState(1, &flags, &active);
	ck_assert_int_eq(active, 1);
	ck_assert_int_eq(cuCtxGetCurrent(&current), CUDA_SUCCESS);
	ck_assert_ptr_nonnull(current);
	ck_assert_int_eq(cudaDeviceReset(), cudaSuccess);
	cuDevicePrimaryCtxGetState(1, &flags, &active);
	ck_assert_int_eq(active, 0);
}
END_TEST

START_TEST(a_context_of_the_program_is_used)
{
	CUcontext mine, current;
	int device = -1;

	ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
	ck_assert_int_eq(cuCtxCreate(&mine, NULL, 0, 1), CUDA_SUCCESS);
	ck_assert_int_eq(cudaGetDevice(&device), cudaSuccess);
	ck_assert_int_eq(device, 1);
	ck_assert_int_eq(cudaFree(NULL), cudaSuccess);
	ck_assert_int_eq(cuCtxGetCurrent(&current), CUDA_SUCCESS);
	ck_assert_ptr_eq(current, mine);
}
END_TEST

START_TEST(names_and_texts_of_errors)
{
	ck_assert_str_eq(cudaGetErrorName(cudaErrorMemoryAllocation),
	        "cudaErrorMemoryAllocation");
	ck_assert_str_eq(
	        cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
	ck_assert_str_eq(cudaGetErrorString(cudaErrorIllegalAddress),
	        "an illegal memory access was encountered");
	ck_assert_str_eq(cudaGetErrorName((cudaError_t)12345),
	        "unrecognized error code");
}
END_TEST

START_TEST(entry_points_follow_version_and_stream_flag)
{
	enum cudaDriverEntryPointQueryResult status;
	void *legacy, *legacy2, *per_thread, *old, *none;

	ck_assert_int_eq(cudaGetDriverEntryPointByVersion("cuMemcpyHtoDAsync",
	                         &legacy, 13000, cudaEnableDefault, &status),
	        cudaSuccess);
	ck_assert_int_eq(status, cudaDriverEntryPointSuccess);
	ck_assert_int_eq(
	        cudaGetDriverEntryPointByVersion("cuMemcpyHtoDAsync", &legacy2,
	                13000, cudaEnableLegacyStream, &status),
	        cudaSuccess);
	ck_assert_int_eq(cudaGetDriverEntryPointByVersion("cuMemcpyHtoDAsync",
	                         &per_thread, 13000,
	                         cudaEnablePerThreadDefaultStream, &status),
	        cudaSuccess);
	ck_assert_ptr_eq(legacy, legacy2);
	ck_assert_ptr_ne(legacy, per_thread);
	ck_assert_int_eq(
	        cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo", &old,
	                10010, cudaEnableDefault, &status),
	        cudaSuccess);
	ck_assert_int_eq(
	        cudaGetDriverEntryPointByVersion("cuStreamGetCaptureInfo",
	                &legacy, 12030, cudaEnableDefault, &status),
	        cudaSuccess);
	ck_assert_ptr_ne(old, legacy);
	ck_assert_int_eq(cudaGetDriverEntryPointByVersion("cuNoSuchThing",
	                         &none, 13000, cudaEnableDefault, &status),
	        cudaSuccess);
	ck_assert_int_eq(status, cudaDriverEntryPointSymbolNotFound);
	ck_assert_ptr_null(none);
}
END_TEST

static void no_log(void *user, CUlogLevel level, char *text, size_t length)
{
}

START_TEST(log_callbacks_come_and_go)
{
	CUlogsCallbackHandle first, second;

	ck_assert_int_eq(
	        cuLogsRegisterCallback(no_log, NULL, &first), CUDA_SUCCESS);
	ck_assert_int_eq(
	        cuLogsRegisterCallback(no_log, NULL, &second), CUDA_SUCCESS);
	ck_assert_ptr_ne(first, second);
	ck_assert_int_eq(cuLogsUnregisterCallback(first), CUDA_SUCCESS);
	ck_assert_int_eq(
	        cuLogsUnregisterCallback(first), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(cuLogsUnregisterCallback(second), CUDA_SUCCESS);
	ck_assert_int_eq(cuLogsRegisterCallback(NULL, NULL, &first),
	        CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rt_device");
	TCase *tcase = tcase_create("rt_device");
	SRunner *runner;
	int failed;

	setenv("SIMGPU_DEVICE", "tiny-1g", 1);
	setenv("SIMGPU_DEVICES", "2", 1);
	tcase_add_test(tcase, properties_agree_with_attributes);
	tcase_add_test(tcase, last_error_is_taken_once);
	tcase_add_test(tcase, device_and_last_error_belong_to_threads);
	tcase_add_test(tcase, set_device_makes_the_primary_context);
	tcase_add_test(tcase, a_context_of_the_program_is_used);
	tcase_add_test(tcase, names_and_texts_of_errors);
	tcase_add_test(tcase, entry_points_follow_version_and_stream_flag);
	tcase_add_test(tcase, log_callbacks_come_and_go);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
