/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The runtime's memory, copies and events, on the simulated device tiny-1g.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 16 };

#define OK(call) ck_assert_int_eq(call, cudaSuccess)

START_TEST(empty_allocations_and_frees)
{
	void *ptr = &ptr;

	OK(cudaMalloc(&ptr, 0));
	ck_assert_ptr_null(ptr);
	OK(cudaFree(ptr));
	OK(cudaFreeHost(NULL));
	ck_assert_int_eq(cudaMalloc(NULL, 16), cudaErrorInvalidValue);
}
END_TEST

START_TEST(too_large_an_allocation_is_no_sticky_error)
{
	void *ptr;

	ck_assert_int_eq(
	        cudaMalloc(&ptr, (size_t)4 << 30), cudaErrorMemoryAllocation);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorMemoryAllocation);
	ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
	OK(cudaMalloc(&ptr, BYTES));
	OK(cudaFree(ptr));
}
END_TEST

START_TEST(memory_info_counts_allocations)
{
	size_t before, after, total;
	void *ptr;

	OK(cudaMemGetInfo(&before, &total));
	ck_assert_uint_eq(total, (size_t)1 << 30);
	OK(cudaMalloc(&ptr, (size_t)64 << 20));
	OK(cudaMemGetInfo(&after, &total));
	ck_assert_uint_eq(before - after, (size_t)64 << 20);
	OK(cudaFree(ptr));
}
END_TEST

START_TEST(pointers_tell_their_kind)
{
	struct cudaPointerAttributes attr;
	void *device, *host;
	int plain;

	OK(cudaMalloc(&device, BYTES));
	OK(cudaPointerGetAttributes(&attr, (char *)device + 512));
	ck_assert_int_eq(attr.type, cudaMemoryTypeDevice);
	ck_assert_int_eq(attr.device, 0);
	ck_assert_ptr_eq(attr.devicePointer, (char *)device + 512);
	OK(cudaMallocHost(&host, BYTES));
	OK(cudaPointerGetAttributes(&attr, host));
	ck_assert_int_eq(attr.type, cudaMemoryTypeHost);
	ck_assert_ptr_eq(attr.hostPointer, host);
	OK(cudaPointerGetAttributes(&attr, &plain));
	ck_assert_int_eq(attr.type, cudaMemoryTypeUnregistered);
	ck_assert_ptr_eq(attr.hostPointer, &plain);
	ck_assert_ptr_null(attr.devicePointer);
	OK(cudaFree(device));
	OK(cudaFreeHost(host));
}
END_TEST

START_TEST(copies_check_direction_and_pitch)
{
	char host[256] = {0};
	void *device;

	OK(cudaMalloc(&device, BYTES));
	OK(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDefault));
	OK(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice));
	ck_assert_int_eq(cudaMemcpy(device, host, 1, (enum cudaMemcpyKind)9),
	        cudaErrorInvalidMemcpyDirection);
	ck_assert_int_eq(cudaMemcpy2D(device, 8, host, 16, 16, 2,
	                         cudaMemcpyHostToDevice),
	        cudaErrorInvalidPitchValue);
	OK(cudaMemcpy2D(device, 64, host, 16, 16, 8, cudaMemcpyHostToDevice));
	OK(cudaMemset2D(device, 64, 1, 16, 8));
	OK(cudaMemsetAsync(device, 1, BYTES, cudaStreamPerThread));
	OK(cudaDeviceSynchronize());
	OK(cudaFree(device));
}
END_TEST

START_TEST(copies_of_pitched_boxes)
{
	struct cudaExtent extent = {100, 4, 3};
	struct cudaPitchedPtr device;
	struct cudaMemcpy3DParms parms = {0};
	char *host = calloc(100 * 4, 3);

	OK(cudaMalloc3D(&device, extent));
	ck_assert_uint_ge(device.pitch, 100);
	parms.srcPtr = (struct cudaPitchedPtr){host, 100, 100, 4};
	parms.dstPtr = device;
	parms.extent = extent;
	parms.kind = cudaMemcpyHostToDevice;
	OK(cudaMemcpy3D(&parms));
	OK(cudaMemset3D(device, 0, extent));
	parms.srcArray = (cudaArray_t)host;
	ck_assert_int_eq(cudaMemcpy3D(&parms), cudaErrorNotSupported);
	OK(cudaFree(device.ptr));
	free(host);
}
END_TEST

START_TEST(events_measure_copies)
{
	cudaEvent_t start, end;
	cudaStream_t stream;
	void *device, *host;
	float ms = -1;
	size_t bytes = (size_t)32 << 20;

	OK(cudaMalloc(&device, bytes));
	OK(cudaMallocHost(&host, bytes));
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaEventCreate(&start));
	OK(cudaEventCreate(&end));
	OK(cudaEventRecord(start, stream));
	OK(cudaMemcpyAsync(
	        device, host, bytes, cudaMemcpyHostToDevice, stream));
	OK(cudaEventRecord(end, stream));
	OK(cudaEventSynchronize(end));
	OK(cudaEventElapsedTime(&ms, start, end));
	/* 32 MiB at between 4 and 100 GB/s. */
	ck_assert_float_gt(ms, 0.3f);
	ck_assert_float_lt(ms, 9.0f);
	OK(cudaStreamQuery(stream));
	OK(cudaEventDestroy(start));
	OK(cudaEventDestroy(end));
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(device));
	OK(cudaFreeHost(host));
}
END_TEST

START_TEST(stream_ordered_memory_returns_to_its_pool)
{
	uint64_t keep = UINT64_MAX, used = 1;
	cudaMemPool_t pool;
	void *ptr;

	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	OK(cudaMemPoolSetAttribute(
	        pool, cudaMemPoolAttrReleaseThreshold, &keep));
	OK(cudaMallocAsync(&ptr, BYTES, NULL));
	OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	ck_assert_uint_ge(used, BYTES);
	OK(cudaFreeAsync(ptr, NULL));
	OK(cudaDeviceSynchronize());
	OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	ck_assert_uint_eq(used, 0);
	OK(cudaMemPoolTrimTo(pool, 0));
}
END_TEST

START_TEST(a_lost_context_stays_lost)
{
	CUdeviceptr reserved;
	void *device;

	OK(cudaFree(NULL));
	ck_assert_int_eq(
	        cuMemAddressReserve(&reserved, (size_t)8 << 20, 0, 0, 0),
	        CUDA_SUCCESS);
	/* Nothing is mapped there. */
	cudaMemsetAsync((void *)reserved, 0, (size_t)8 << 20, NULL);
	ck_assert_int_eq(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
	ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
	ck_assert_int_eq(cudaMalloc(&device, BYTES), cudaErrorIllegalAddress);
	cudaDeviceReset();
	ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rt_memory");
	TCase *tcase = tcase_create("rt_memory");
	SRunner *runner;
	int failed;

	setenv("SIMGPU_DEVICE", "tiny-1g", 1);
	tcase_add_test(tcase, empty_allocations_and_frees);
	tcase_add_test(tcase, too_large_an_allocation_is_no_sticky_error);
	tcase_add_test(tcase, memory_info_counts_allocations);
	tcase_add_test(tcase, pointers_tell_their_kind);
	tcase_add_test(tcase, copies_check_direction_and_pitch);
	tcase_add_test(tcase, copies_of_pitched_boxes);
	tcase_add_test(tcase, events_measure_copies);
	tcase_add_test(tcase, stream_ordered_memory_returns_to_its_pool);
	tcase_add_test(tcase, a_lost_context_stays_lost);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
