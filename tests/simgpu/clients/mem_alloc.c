/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plain, pitched, managed and page-locked memory; what pointers tell. */
#include "mem_client.h"

START_TEST(large_allocation_takes_whole_pages_and_gives_them_back)
{
	size_t before, during;
	CUdeviceptr p;

	client_start();
	before = client_free_bytes();
	OK(cuMemAlloc(&p, 3 * MIB));
	during = client_free_bytes();
	ck_assert_uint_eq(before - during, 4 * MIB);
	ck_assert_uint_eq(p % 512, 0);
	OK(cuMemFree(p));
	ck_assert_uint_eq(client_free_bytes(), before);
}
END_TEST

START_TEST(small_allocations_share_one_page)
{
	CUdeviceptr p[100];
	size_t before;

	client_start();
	before = client_free_bytes();
	for (int i = 0; i < 100; i++) {
		OK(cuMemAlloc(&p[i], 1000));
		ck_assert_uint_eq(p[i] % 512, 0);
		if (i)
			ck_assert_uint_eq(p[i] - p[i - 1], 1024);
	}
	ck_assert_uint_eq(before - client_free_bytes(), PAGE);
	for (int i = 0; i < 100; i++)
		OK(cuMemFree(p[i]));
	ck_assert_uint_eq(client_free_bytes(), before);
}
END_TEST

START_TEST(freed_addresses_are_used_again)
{
	CUdeviceptr a, b, c;

	client_start();
	OK(cuMemAlloc(&a, 4 * MIB));
	OK(cuMemAlloc(&b, 4 * MIB));
	OK(cuMemFree(a));
	OK(cuMemAlloc(&c, 4 * MIB));
	ck_assert_uint_eq(a, c);
	OK(cuMemFree(b));
	OK(cuMemFree(c));
}
END_TEST

START_TEST(wrong_frees_and_sizes_are_refused)
{
	CUdeviceptr p;
	size_t pitch;

	client_start();
	INVALID(cuMemAlloc(&p, 0));
	INVALID(cuMemAlloc(NULL, 1));
	OK(cuMemAlloc(&p, 4 * MIB));
	INVALID(cuMemFree(p + 512));
	INVALID(cuMemFree(0));
	OK(cuMemFree(p));
	INVALID(cuMemFree(p));
	INVALID(cuMemAllocPitch(&p, &pitch, 100, 10, 3));
	INVALID(cuMemAllocPitch(&p, &pitch, 0, 10, 4));
}
END_TEST

START_TEST(rows_of_a_pitched_allocation_are_aligned)
{
	CUdeviceptr p;
	size_t pitch, size;
	CUdeviceptr base;

	client_start();
	OK(cuMemAllocPitch(&p, &pitch, 1000, 7, 4));
	ck_assert_uint_eq(pitch, 1024);
	OK(cuMemGetAddressRange(&base, &size, p + 5 * pitch + 3));
	ck_assert_uint_eq(base, p);
	ck_assert_uint_eq(size, 7 * pitch);
	OK(cuMemFree(p));
}
END_TEST

START_TEST(full_device_is_out_of_memory_and_goes_on)
{
	CUdeviceptr p, q, r;
	size_t left;

	client_start();
	left = client_free_bytes();
	FAILS(cuMemAlloc(&p, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
	FAILS(cuMemAlloc(&p, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc(&p, left));
	ck_assert_uint_eq(client_free_bytes(), 0);
	FAILS(cuMemAlloc(&q, 1), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree(p));
	OK(cuMemAlloc(&q, left / 2));
	OK(cuMemAlloc(&r, 1));
	OK(cuMemFree(q));
	OK(cuMemFree(r));
	ck_assert_uint_eq(client_free_bytes(), left);
}
END_TEST

START_TEST(memory_info_counts_the_context)
{
	size_t left, total;

	client_start();
	OK(cuMemGetInfo(&left, &total));
	ck_assert_uint_eq(total, 1024 * MIB);
	ck_assert_uint_eq(left, 960 * MIB); /* tiny-1g: context of 64 MiB */
}
END_TEST

START_TEST(destroyed_context_gives_its_memory_back)
{
	size_t before;
	CUcontext ctx;
	CUdeviceptr p;

	client_start();
	before = client_free_bytes();
	OK(cuCtxCreate(&ctx, NULL, 0, 0));
	OK(cuMemAlloc(&p, 10 * MIB));
	ck_assert_uint_lt(client_free_bytes(), before - 10 * MIB);
	OK(cuCtxDestroy(ctx));
	client_start();
	ck_assert_uint_eq(client_free_bytes(), before);
}
END_TEST

START_TEST(pinned_memory_is_host_memory_with_attributes)
{
	CUmemorytype type;
	unsigned flags;
	CUdeviceptr d;
	size_t before;
	char *p;

	client_start();
	before = client_free_bytes();
	OK(cuMemHostAlloc(
	        (void **)&p, (size_t)8 << 30, CU_MEMHOSTALLOC_PORTABLE));
	p[0] = 1;
	p[((size_t)8 << 30) - 1] = 2;
	ck_assert_uint_eq(client_free_bytes(), before);
	OK(cuMemHostGetDevicePointer(&d, p, 0));
	ck_assert_uint_eq(d, (uintptr_t)p);
	OK(cuMemHostGetFlags(&flags, p + 100));
	ck_assert_uint_eq(flags, CU_MEMHOSTALLOC_PORTABLE);
	OK(cuPointerGetAttribute(
	        &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)p + 5));
	ck_assert_int_eq(type, CU_MEMORYTYPE_HOST);
	INVALID(cuMemFreeHost(p + 8));
	OK(cuMemFreeHost(p));
	INVALID(cuMemFreeHost(p));
	INVALID(cuMemHostAlloc((void **)&p, 0, 0));
	INVALID(cuMemHostAlloc((void **)&p, 10, 0x80));
}
END_TEST

START_TEST(registered_memory_is_known_until_unregistered)
{
	char *p = malloc(MIB);
	CUdeviceptr d;

	client_start();
	INVALID(cuMemHostGetDevicePointer(&d, p, 0));
	OK(cuMemHostRegister(p, MIB, 0));
	FAILS(cuMemHostRegister(p + 10, 10, 0),
	        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostGetDevicePointer(&d, p + 7, 0));
	ck_assert_uint_eq(d, (uintptr_t)p + 7);
	FAILS(cuMemHostUnregister(p + 10),
	        CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	INVALID(cuMemFreeHost(p));
	OK(cuMemHostUnregister(p));
	FAILS(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(p);
}
END_TEST

START_TEST(managed_memory_is_reached_by_host_and_device)
{
	unsigned managed = 0;
	CUdeviceptr d;
	int *p, where;

	client_start();
	INVALID(cuMemAllocManaged(&d, MIB, CU_MEM_ATTACH_SINGLE));
	OK(cuMemAllocManaged(&d, MIB, CU_MEM_ATTACH_GLOBAL));
	p = (int *)(uintptr_t)d;
	p[3] = 7;
	OK(cuPointerGetAttribute(
	        &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, d + 4));
	ck_assert_uint_eq(managed, 1);
	OK(cuMemsetD32(d, 0x01020304, 4));
	ck_assert_int_eq(p[3], 0x01020304);
	OK(cuMemRangeGetAttribute(&where, sizeof(where),
	        CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, d, MIB));
	ck_assert_int_eq(where, CU_DEVICE_INVALID);
	OK(cuMemFree(d));
	INVALID(cuMemFree(d));
}
END_TEST

START_TEST(pointers_tell_what_they_point_into)
{
	CUpointer_attribute names[4] = {CU_POINTER_ATTRIBUTE_CONTEXT,
	        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
	        CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	CUcontext owner, ctx = client_start();
	CUmemorytype type;
	int ordinal, local;
	size_t size;
	void *values[4] = {&owner, &type, &ordinal, &size};
	CUdeviceptr p, base;
	unsigned on = 1, got = 0;

	OK(cuMemAlloc(&p, 1000));
	OK(cuPointerGetAttributes(4, names, values, p + 999));
	ck_assert_ptr_eq(owner, ctx);
	ck_assert_int_eq(type, CU_MEMORYTYPE_DEVICE);
	ck_assert_int_eq(ordinal, 0);
	ck_assert_uint_eq(size, 1000);
	OK(cuMemGetAddressRange(&base, &size, p + 999));
	ck_assert_uint_eq(base, p);
	ck_assert_uint_eq(size, 1000);
	FAILS(cuMemGetAddressRange(&base, &size, p + 1000),
	        CUDA_ERROR_NOT_FOUND);
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	OK(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	ck_assert_uint_eq(got, 1);
	/* Memory the driver does not know: an error, or defaults. */
	INVALID(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	        (CUdeviceptr)(uintptr_t)&local));
	OK(cuPointerGetAttributes(
	        4, names, values, (CUdeviceptr)(uintptr_t)&local));
	ck_assert_ptr_null(owner);
	ck_assert_int_eq((int)type, 0);
	ck_assert_int_eq(ordinal, CU_DEVICE_INVALID);
	OK(cuMemFree(p));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("alloc");

	tcase_add_test(
	        tests, large_allocation_takes_whole_pages_and_gives_them_back);
	tcase_add_test(tests, small_allocations_share_one_page);
	tcase_add_test(tests, freed_addresses_are_used_again);
	tcase_add_test(tests, wrong_frees_and_sizes_are_refused);
	tcase_add_test(tests, rows_of_a_pitched_allocation_are_aligned);
	tcase_add_test(tests, full_device_is_out_of_memory_and_goes_on);
	tcase_add_test(tests, memory_info_counts_the_context);
	tcase_add_test(tests, destroyed_context_gives_its_memory_back);
	tcase_add_test(tests, pinned_memory_is_host_memory_with_attributes);
	tcase_add_test(tests, registered_memory_is_known_until_unregistered);
	tcase_add_test(tests, managed_memory_is_reached_by_host_and_device);
	tcase_add_test(tests, pointers_tell_what_they_point_into);
	return client_run(tests, "mem_alloc");
}
