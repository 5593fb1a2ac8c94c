/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conformance: plain allocations, virtual memory, aliases. */
#include "gpu.h"

static CUmemAllocationProp prop(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

static size_t granularity(void)
{
	CUmemAllocationProp of = prop();
	size_t bytes;

	OK(gpu.cuMemGetAllocationGranularity(
	        &bytes, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	return bytes;
}

static CUmemGenericAllocationHandle chunk(size_t bytes)
{
	CUmemAllocationProp of = prop();
	CUmemGenericAllocationHandle handle;

	OK(gpu.cuMemCreate(&handle, bytes, &of, 0));
	return handle;
}

static CUresult access(CUdeviceptr va, size_t bytes)
{
	CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return gpu.cuMemSetAccess(va, bytes, &desc, 1);
}

static CUdeviceptr reserve(size_t bytes)
{
	CUdeviceptr va;

	OK(gpu.cuMemAddressReserve(&va, bytes, 0, 0, 0));
	return va;
}

START_TEST(allocations_are_aligned_and_apart)
{
	CUdeviceptr a, b, base;
	size_t bytes;

	gpu_start();
	a = gpu_alloc(1);
	b = gpu_alloc(5 * MIB);
	ck_assert_uint_eq(a % 256, 0);
	ck_assert_uint_eq(b % 256, 0);
	ck_assert(a < b || a >= b + 5 * MIB);
	OK(gpu.cuMemGetAddressRange(&base, &bytes, b + MIB));
	ck_assert_uint_eq(base, b);
	ck_assert_uint_eq(bytes, 5 * MIB);
	OK(gpu.cuMemFree(a));
	OK(gpu.cuMemFree(b));
	FAILS(gpu.cuMemFree(b), CUDA_ERROR_INVALID_VALUE);
	FAILS(gpu.cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(memory_info_follows_allocations)
{
	size_t before, after, total, device;
	CUdeviceptr p;

	gpu_start();
	OK(gpu.cuMemGetInfo(&before, &total));
	OK(gpu.cuDeviceTotalMem(&device, 0));
	ck_assert_uint_eq(total, device);
	p = gpu_alloc(64 * MIB);
	OK(gpu.cuMemGetInfo(&after, &total));
	ck_assert_uint_ge(before, after + 64 * MIB);
	OK(gpu.cuMemFree(p));
	FAILS(gpu.cuMemAlloc(&p, 2 * total), CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

START_TEST(pointers_know_what_they_are)
{
	CUdeviceptr p;
	CUmemorytype type;
	void *host;

	gpu_start();
	p = gpu_alloc(MIB);
	host = gpu_pinned(MIB);
	OK(gpu.cuPointerGetAttribute(
	        &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5));
	ck_assert_int_eq(type, CU_MEMORYTYPE_DEVICE);
	OK(gpu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	        (CUdeviceptr)(uintptr_t)host));
	ck_assert_int_eq(type, CU_MEMORYTYPE_HOST);
	OK(gpu.cuMemFreeHost(host));
}
END_TEST

START_TEST(copies_and_sets_move_bytes)
{
	unsigned char *host;
	CUdeviceptr p, q;

	gpu_start();
	host = gpu_pinned(MIB);
	p = gpu_alloc(MIB);
	q = gpu_alloc(MIB);
	memset(host, 41, MIB);
	OK(gpu.cuMemcpyHtoD(p, host, MIB));
	OK(gpu.cuMemsetD8(p + 100, 7, 50));
	OK(gpu.cuMemcpyDtoDAsync(q, p, MIB, NULL));
	ck_assert(gpu_holds(q, 100, 41));
	ck_assert(gpu_holds(q + 100, 50, 7));
	ck_assert(gpu_holds(q + 150, MIB - 150, 41));
	OK(gpu.cuMemsetD32Async(q, 0x05050505, MIB / 4, NULL));
	ck_assert(gpu_holds(q, MIB, 5));
	FAILS(gpu.cuMemcpyHtoD(0, host, MIB), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(chunk_keeps_its_bytes_wherever_it_is_mapped)
{
	CUmemGenericAllocationHandle first, second;
	size_t page;
	CUdeviceptr va;

	gpu_start();
	page = granularity();
	ck_assert_uint_gt(page, 0);
	first = chunk(page);
	second = chunk(page);
	va = reserve(2 * page);
	OK(gpu.cuMemMap(va, page, 0, first, 0));
	OK(gpu.cuMemMap(va + page, page, 0, second, 0));
	OK(access(va, 2 * page));
	OK(gpu.cuMemsetD8(va, 1, page));
	OK(gpu.cuMemsetD8(va + page, 2, page));
	OK(gpu.cuCtxSynchronize());
	OK(gpu.cuMemUnmap(va, page));
	OK(gpu.cuMemUnmap(va + page, page));
	OK(gpu.cuMemMap(va, page, 0, second, 0));
	OK(gpu.cuMemMap(va + page, page, 0, first, 0));
	OK(access(va, 2 * page));
	ck_assert(gpu_holds(va, page, 2));
	ck_assert(gpu_holds(va + page, page, 1));
	OK(gpu.cuMemUnmap(va, 2 * page));
	OK(gpu.cuMemRelease(first));
	OK(gpu.cuMemRelease(second));
	OK(gpu.cuMemAddressFree(va, 2 * page));
}
END_TEST

START_TEST(aliases_show_the_same_bytes)
{
	CUmemGenericAllocationHandle handle;
	size_t page;
	CUdeviceptr va;

	gpu_start();
	page = granularity();
	handle = chunk(page);
	va = reserve(2 * page);
	OK(gpu.cuMemMap(va, page, 0, handle, 0));
	OK(gpu.cuMemMap(va + page, page, 0, handle, 0));
	OK(access(va, 2 * page));
	OK(gpu.cuMemRelease(handle)); /* the mappings hold it */
	OK(gpu.cuMemsetD8(va, 9, page));
	ck_assert(gpu_holds(va + page, page, 9));
	OK(gpu.cuMemsetD8(va + page, 8, page / 2));
	ck_assert(gpu_holds(va, page / 2, 8));
	ck_assert(gpu_holds(va + page / 2, page / 2, 9));
	OK(gpu.cuMemUnmap(va, page));
	ck_assert(gpu_holds(va + page, page / 2, 8));
	OK(gpu.cuMemUnmap(va + page, page));
}
END_TEST

START_TEST(mappings_are_whole)
{
	CUmemAllocationProp of = prop();
	CUmemGenericAllocationHandle handle;
	size_t page;
	CUdeviceptr va;

	gpu_start();
	page = granularity();
	FAILS(gpu.cuMemCreate(&handle, page + 1, &of, 0),
	        CUDA_ERROR_INVALID_VALUE);
	handle = chunk(2 * page);
	va = reserve(4 * page);
	OK(gpu.cuMemMap(va, 2 * page, 0, handle, 0));
	FAILS(gpu.cuMemMap(va, 2 * page, 0, handle, 0),
	        CUDA_ERROR_INVALID_VALUE);
	FAILS(gpu.cuMemUnmap(va, page), CUDA_ERROR_INVALID_VALUE);
	OK(gpu.cuMemUnmap(va, 2 * page));
	OK(gpu.cuMemRelease(handle));
	OK(gpu.cuMemAddressFree(va, 4 * page));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("gpu_memory");

	tcase_add_test(tests, allocations_are_aligned_and_apart);
	tcase_add_test(tests, memory_info_follows_allocations);
	tcase_add_test(tests, pointers_know_what_they_are);
	tcase_add_test(tests, copies_and_sets_move_bytes);
	tcase_add_test(tests, chunk_keeps_its_bytes_wherever_it_is_mapped);
	tcase_add_test(tests, aliases_show_the_same_bytes);
	tcase_add_test(tests, mappings_are_whole);
	return gpu_run(tests, "gpu_memory");
}
