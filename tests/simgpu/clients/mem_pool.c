/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stream-ordered allocation and memory pools. */
#include "mem_client.h"

static CUmemoryPool new_pool(size_t max_bytes)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	        .maxSize = max_bytes};
	CUmemoryPool pool;

	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	OK(cuMemPoolCreate(&pool, &props));
	return pool;
}

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute name)
{
	cuuint64_t value;

	OK(cuMemPoolGetAttribute(pool, name, &value));
	return value;
}

START_TEST(memory_freed_in_a_stream_is_used_again_in_it)
{
	CUstream stream;
	CUdeviceptr a, b, c;
	void *host;

	client_start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemHostAlloc(&host, 16 * MIB, 0));
	OK(cuMemAllocAsync(&a, 16 * MIB, stream));
	OK(cuMemcpyHtoDAsync(a, host, 16 * MIB, stream));
	OK(cuMemFreeAsync(a, stream));
	/* The copy still runs, and the next owner's work comes after it. */
	FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	OK(cuMemAllocAsync(&b, 16 * MIB, stream));
	ck_assert_uint_eq(a, b);
	OK(cuMemAllocAsync(&c, 16 * MIB, stream));
	ck_assert_uint_ne(b, c);
	OK(cuMemFreeAsync(b, stream));
	OK(cuMemFreeAsync(c, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemFreeHost(host));
}
END_TEST

START_TEST(other_streams_wait_or_take_other_memory)
{
	CUmemoryPool pool;
	CUstream one, two;
	CUdeviceptr a, b, c;
	int no = 0;
	void *host;

	client_start();
	pool = new_pool(0);
	OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	OK(cuMemHostAlloc(&host, 16 * MIB, 0));
	OK(cuMemAllocFromPoolAsync(&a, 16 * MIB, pool, one));
	OK(cuMemcpyHtoDAsync(a, host, 16 * MIB, one));
	OK(cuMemFreeAsync(a, one));
	OK(cuMemAllocFromPoolAsync(&b, 16 * MIB, pool, two));
	ck_assert_uint_eq(a, b);
	OK(cuMemsetD8Async(b, 0, 16, two));
	OK(cuStreamSynchronize(two)); /* waits for the copy in one */
	OK(cuStreamQuery(one));

	OK(cuMemPoolSetAttribute(
	        pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
	OK(cuMemcpyHtoDAsync(b, host, 16 * MIB, two));
	OK(cuMemFreeAsync(b, two));
	OK(cuMemAllocFromPoolAsync(&c, 16 * MIB, pool, one));
	ck_assert_uint_ne(b, c);
	OK(cuMemFreeAsync(c, one));
	OK(cuCtxSynchronize());
	OK(cuMemPoolDestroy(pool));
	OK(cuMemFreeHost(host));
}
END_TEST

START_TEST(memory_above_the_threshold_is_given_back)
{
	CUmemoryPool pool;
	cuuint64_t keep = UINT64_MAX;
	CUdevice device;
	CUdeviceptr a;
	size_t before;

	client_start();
	before = client_free_bytes();
	OK(cuDeviceGet(&device, 0));
	OK(cuDeviceGetDefaultMemPool(&pool, device));
	OK(cuMemAllocAsync(&a, 16 * MIB, NULL));
	ck_assert_uint_eq(before - client_free_bytes(), 16 * MIB);
	OK(cuMemFreeAsync(a, NULL));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(client_free_bytes(), before);
	OK(cuMemPoolSetAttribute(
	        pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	OK(cuMemAllocAsync(&a, 16 * MIB, NULL));
	OK(cuMemFreeAsync(a, NULL));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(before - client_free_bytes(), 16 * MIB);
	ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
	        16 * MIB);
	ck_assert_uint_eq(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	ck_assert_uint_eq(
	        attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 16 * MIB);
	OK(cuMemPoolTrimTo(pool, 0));
	ck_assert_uint_eq(client_free_bytes(), before);
}
END_TEST

START_TEST(unused_pool_memory_yields_to_other_allocations)
{
	cuuint64_t keep = UINT64_MAX;
	CUmemoryPool pool;
	CUdevice device;
	CUdeviceptr a, b;

	client_start();
	OK(cuDeviceGet(&device, 0));
	OK(cuDeviceGetDefaultMemPool(&pool, device));
	OK(cuMemPoolSetAttribute(
	        pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	OK(cuMemAllocAsync(&a, 900 * MIB, NULL));
	FAILS(cuMemAllocAsync(&b, 900 * MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFreeAsync(a, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemAlloc(&b, 900 * MIB));
	OK(cuMemFree(b));
}
END_TEST

START_TEST(pools_have_limits_and_owners)
{
	CUmemoryPool pool, own, current;
	CUmemAccess_flags flags;
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
	CUmemAccessDesc none = {
	        .location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
	CUmemoryPool of_pointer;
	CUdevice device;
	CUdeviceptr a, b;

	client_start();
	OK(cuDeviceGet(&device, 0));
	OK(cuDeviceGetDefaultMemPool(&own, device));
	INVALID(cuMemPoolDestroy(own));
	pool = new_pool(8 * MIB);
	OK(cuMemAllocFromPoolAsync(&a, 6 * MIB, pool, NULL));
	FAILS(cuMemAllocFromPoolAsync(&b, 6 * MIB, pool, NULL),
	        CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuPointerGetAttribute(
	        &of_pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a + 5));
	ck_assert_ptr_eq(of_pointer, pool);
	OK(cuMemPoolGetAccess(&flags, pool, &here));
	ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	INVALID(cuMemPoolSetAccess(pool, &none, 1));
	OK(cuDeviceSetMemPool(device, pool));
	OK(cuDeviceGetMemPool(&current, device));
	ck_assert_ptr_eq(current, pool);
	/* Destroyed with an allocation alive: it ends with it. */
	OK(cuMemPoolDestroy(pool));
	INVALID(cuMemPoolDestroy(pool));
	OK(cuDeviceGetMemPool(&current, device));
	ck_assert_ptr_eq(current, own);
	OK(cuMemsetD8(a, 0, 6 * MIB));
	OK(cuMemFreeAsync(a, NULL));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(client_free_bytes(), 960 * MIB);
}
END_TEST

START_TEST(both_kinds_of_free_take_both_kinds_of_memory)
{
	CUdeviceptr a, b;

	client_start();
	OK(cuMemAllocAsync(&a, MIB, NULL));
	OK(cuMemAlloc(&b, MIB));
	INVALID(cuMemFreeAsync(a + 512, NULL));
	OK(cuMemFree(a));
	INVALID(cuMemFree(a));
	OK(cuMemFreeAsync(b, NULL));
	INVALID(cuMemFreeAsync(b, NULL));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(client_free_bytes(), 960 * MIB);
}
END_TEST

START_TEST(freed_pool_memory_is_not_touched_again)
{
	CUdeviceptr a, b;

	client_start();
	OK(cuMemAllocAsync(&a, MIB, NULL));
	OK(cuMemAllocAsync(&b, MIB, NULL));
	OK(cuMemFreeAsync(a, NULL));
	INVALID(cuMemsetD8(a, 0, 1));
	OK(cuMemsetD8(b, 0, MIB));
	OK(cuMemFreeAsync(b, NULL));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("pool");

	tcase_add_test(tests, memory_freed_in_a_stream_is_used_again_in_it);
	tcase_add_test(tests, other_streams_wait_or_take_other_memory);
	tcase_add_test(tests, memory_above_the_threshold_is_given_back);
	tcase_add_test(tests, unused_pool_memory_yields_to_other_allocations);
	tcase_add_test(tests, pools_have_limits_and_owners);
	tcase_add_test(tests, both_kinds_of_free_take_both_kinds_of_memory);
	tcase_add_test(tests, freed_pool_memory_is_not_touched_again);
	return client_run(tests, "mem_pool");
}
