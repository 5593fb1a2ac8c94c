/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Virtual memory management: reservations, handles, mappings, access. */
#include "mem_client.h"

#define READWRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE

/* A chunk mapped with access over all of a new reservation. */
static CUdeviceptr mapped(size_t bytes)
{
	CUmemGenericAllocationHandle chunk = client_chunk(bytes);
	CUdeviceptr va = client_reserve(bytes);

	OK(cuMemMap(va, bytes, 0, chunk, 0));
	OK(cuMemRelease(chunk));
	OK(client_access(va, bytes, READWRITE));
	return va;
}

START_TEST(sizes_off_the_granularity_are_refused)
{
	CUmemAllocationProp prop = client_prop();
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;
	size_t least, best;

	client_start();
	OK(cuMemGetAllocationGranularity(
	        &least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	OK(cuMemGetAllocationGranularity(
	        &best, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	ck_assert_uint_eq(least, PAGE);
	ck_assert_uint_eq(best, PAGE);
	INVALID(cuMemCreate(&chunk, PAGE + 4096, &prop, 0));
	INVALID(cuMemCreate(&chunk, 0, &prop, 0));
	INVALID(cuMemAddressReserve(&va, PAGE / 2, 0, 0, 0));
	INVALID(cuMemAddressReserve(&va, PAGE, 3, 0, 0));
	prop.location.id = 99;
	FAILS(cuMemCreate(&chunk, PAGE, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

START_TEST(reservations_honour_alignment_and_hint)
{
	CUdeviceptr a, b, c;
	size_t align = (size_t)64 << 20;

	client_start();
	OK(cuMemAddressReserve(&a, PAGE, align, 0, 0));
	ck_assert_uint_eq(a % align, 0);
	OK(cuMemAddressReserve(&b, PAGE, 0, a + 100 * PAGE, 0));
	ck_assert_uint_eq(b, a + 100 * PAGE);
	/* A hint that is taken is no error. */
	OK(cuMemAddressReserve(&c, PAGE, 0, b, 0));
	ck_assert_uint_ne(c, b);
	INVALID(cuMemAddressFree(a, 2 * PAGE));
	OK(cuMemAddressFree(a, PAGE));
	INVALID(cuMemAddressFree(a, PAGE));
	OK(cuMemAddressFree(b, PAGE));
	OK(cuMemAddressFree(c, PAGE));
}
END_TEST

START_TEST(chunk_lives_until_handle_and_mappings_are_gone)
{
	size_t before;
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;

	client_start();
	before = client_free_bytes();
	chunk = client_chunk(4 * MIB);
	ck_assert_uint_eq(before - client_free_bytes(), 4 * MIB);
	va = client_reserve(4 * MIB);
	OK(cuMemMap(va, 4 * MIB, 0, chunk, 0));
	OK(cuMemRelease(chunk));
	INVALID(cuMemRelease(chunk));
	ck_assert_uint_eq(before - client_free_bytes(), 4 * MIB);
	INVALID(cuMemAddressFree(va, 4 * MIB));
	OK(cuMemUnmap(va, 4 * MIB));
	ck_assert_uint_eq(client_free_bytes(), before);
	OK(cuMemAddressFree(va, 4 * MIB));
}
END_TEST

START_TEST(one_chunk_at_several_addresses)
{
	CUmemGenericAllocationHandle chunk, again;
	CUmemAllocationProp prop;
	unsigned long long id[2];
	CUdeviceptr va;
	size_t before;

	client_start();
	before = client_free_bytes();
	chunk = client_chunk(PAGE);
	va = client_reserve(8 * PAGE);
	for (int i = 0; i < 8; i++)
		OK(cuMemMap(va + i * PAGE, PAGE, 0, chunk, 0));
	OK(client_access(va, 8 * PAGE, READWRITE));
	ck_assert_uint_eq(before - client_free_bytes(), PAGE);
	OK(cuPointerGetAttribute(
	        &id[0], CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, va));
	OK(cuPointerGetAttribute(&id[1], CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID,
	        va + 7 * PAGE + 5));
	ck_assert_uint_eq(id[0], id[1]);
	OK(cuMemcpyDtoD(va, va + 3 * PAGE, PAGE));
	OK(cuMemsetD8(va, 1, 8 * PAGE));
	OK(cuCtxSynchronize());
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)va));
	ck_assert_uint_eq(again, chunk);
	OK(cuMemGetAllocationPropertiesFromHandle(&prop, again));
	ck_assert_int_eq(prop.location.id, 0);
	OK(cuMemRelease(again));
	OK(cuMemUnmap(va, 8 * PAGE));
	ck_assert_uint_eq(before - client_free_bytes(), PAGE);
	OK(cuMemRelease(chunk));
	ck_assert_uint_eq(client_free_bytes(), before);
	OK(cuMemAddressFree(va, 8 * PAGE));
}
END_TEST

START_TEST(maps_that_do_not_fit_are_refused)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va, plain;

	client_start();
	chunk = client_chunk(4 * PAGE);
	va = client_reserve(4 * PAGE);
	OK(cuMemAlloc(&plain, 8 * MIB));
	INVALID(cuMemMap(va, PAGE, PAGE, chunk, 0));
	INVALID(cuMemMap(va, 5 * PAGE, 0, chunk, 0));
	INVALID(cuMemMap(va + PAGE, 4 * PAGE, 0, chunk, 0));
	INVALID(cuMemMap(va + 4096, PAGE, 0, chunk, 0));
	INVALID(cuMemMap(plain, PAGE, 0, chunk, 0));
	INVALID(cuMemMap(va, PAGE, 0, chunk + 1, 0));
	OK(cuMemMap(va + PAGE, PAGE, 0, chunk, 0)); /* its beginning */
	INVALID(cuMemMap(va, 2 * PAGE, 0, chunk, 0));
	OK(cuMemUnmap(va + PAGE, PAGE));
	OK(cuMemRelease(chunk));
	OK(cuMemFree(plain));
}
END_TEST

START_TEST(only_whole_mappings_are_unmapped)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;

	client_start();
	chunk = client_chunk(4 * PAGE);
	va = client_reserve(16 * PAGE);
	OK(cuMemMap(va, 4 * PAGE, 0, chunk, 0));
	OK(cuMemMap(va + 4 * PAGE, 4 * PAGE, 0, chunk, 0));
	INVALID(cuMemUnmap(va, PAGE));
	INVALID(cuMemUnmap(va + PAGE, 3 * PAGE));
	INVALID(cuMemUnmap(va, 6 * PAGE));
	INVALID(cuMemUnmap(va, 12 * PAGE));
	INVALID(cuMemUnmap(va + 8 * PAGE, PAGE));
	OK(client_access(va, 8 * PAGE, READWRITE));
	OK(cuMemsetD8(va, 0, 8 * PAGE)); /* nothing was unmapped */
	OK(cuCtxSynchronize());
	OK(cuMemUnmap(va, 8 * PAGE)); /* two at once */
	INVALID(cuMemUnmap(va, 4 * PAGE));
	OK(cuMemRelease(chunk));
	OK(cuMemAddressFree(va, 16 * PAGE));
}
END_TEST

START_TEST(new_mappings_are_inaccessible)
{
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
	CUmemGenericAllocationHandle chunk;
	unsigned long long flags;
	CUdeviceptr va;

	client_start();
	chunk = client_chunk(2 * PAGE);
	va = client_reserve(2 * PAGE);
	INVALID(client_access(va, 2 * PAGE, READWRITE));
	INVALID(cuMemGetAccess(&flags, &location, va));
	OK(cuMemMap(va, 2 * PAGE, 0, chunk, 0));
	OK(cuMemGetAccess(&flags, &location, va));
	ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	INVALID(client_access(va, PAGE, READWRITE));
	OK(client_access(va, 2 * PAGE, CU_MEM_ACCESS_FLAGS_PROT_READ));
	OK(cuMemGetAccess(&flags, &location, va + PAGE));
	ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	OK(client_access(va, 2 * PAGE, READWRITE));
	OK(cuMemGetAccess(&flags, &location, va + PAGE));
	ck_assert_uint_eq(flags, READWRITE);
	OK(cuMemUnmap(va, 2 * PAGE));
	OK(cuMemRelease(chunk));
}
END_TEST

/* What the context answers after an illegal access, and goes on answering. */
static void check_sticky(void)
{
	CUdeviceptr p;

	FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(cuMemAlloc(&p, 10), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

START_TEST(copy_to_reserved_but_unmapped_memory_is_700)
{
	char host[16] = {0};
	CUdeviceptr va;

	client_start();
	va = client_reserve(PAGE);
	FAILS(cuMemcpyHtoD(va, host, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_sticky();
}
END_TEST

START_TEST(copy_across_a_hole_is_700)
{
	CUdeviceptr va, plain;
	CUmemGenericAllocationHandle chunk;

	client_start();
	OK(cuMemAlloc(&plain, 4 * PAGE));
	chunk = client_chunk(PAGE);
	va = client_reserve(4 * PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(cuMemMap(va + 2 * PAGE, PAGE, 0, chunk, 0));
	OK(client_access(va, PAGE, READWRITE));
	OK(client_access(va + 2 * PAGE, PAGE, READWRITE));
	OK(cuMemcpyDtoD(plain, va, PAGE));
	OK(cuMemcpyDtoD(plain, va + 2 * PAGE, PAGE));
	FAILS(cuMemcpyDtoD(plain, va, PAGE + 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_sticky();
}
END_TEST

START_TEST(memset_without_access_is_700)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;

	client_start();
	chunk = client_chunk(PAGE);
	va = client_reserve(PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	FAILS(cuMemsetD32(va, 0, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_sticky();
}
END_TEST

START_TEST(write_to_readable_memory_is_700)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va, plain;

	client_start();
	OK(cuMemAlloc(&plain, PAGE));
	chunk = client_chunk(PAGE);
	va = client_reserve(PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(client_access(va, PAGE, CU_MEM_ACCESS_FLAGS_PROT_READ));
	OK(cuMemcpyDtoD(plain, va, PAGE));
	FAILS(cuMemcpyDtoD(va, plain, PAGE), CUDA_ERROR_ILLEGAL_ADDRESS);
	check_sticky();
}
END_TEST

START_TEST(chunks_count_against_the_device)
{
	CUmemAllocationProp prop = client_prop();
	CUmemGenericAllocationHandle chunk, more;
	size_t left;

	client_start();
	left = client_free_bytes() / PAGE * PAGE;
	OK(cuMemCreate(&chunk, left, &prop, 0));
	FAILS(cuMemCreate(&more, PAGE, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemRelease(chunk));
	OK(cuMemCreate(&more, PAGE, &prop, 0));
	OK(cuMemRelease(more));
}
END_TEST

START_TEST(many_chunks_come_and_go)
{
	enum { N = 400 };
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;
	size_t before;

	client_start();
	before = client_free_bytes();
	va = client_reserve(N * PAGE);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < N; i++) {
			chunk = client_chunk(PAGE);
			OK(cuMemMap(va + i * PAGE, PAGE, 0, chunk, 0));
			OK(cuMemRelease(chunk));
		}
		OK(client_access(va, N * PAGE, READWRITE));
		OK(cuMemsetD8(va, 0, N * PAGE));
		OK(cuCtxSynchronize());
		OK(cuMemUnmap(va, N * PAGE));
	}
	ck_assert_uint_eq(client_free_bytes(), before);
	OK(cuMemAddressFree(va, N * PAGE));
}
END_TEST

START_TEST(address_range_of_a_mapping_is_the_mapping)
{
	CUdeviceptr va, base;
	unsigned char is_mapped = 9;
	size_t size;

	client_start();
	va = mapped(2 * PAGE);
	OK(cuMemGetAddressRange(&base, &size, va + PAGE));
	ck_assert_uint_eq(base, va);
	ck_assert_uint_eq(size, 2 * PAGE);
	OK(cuMemUnmap(va, 2 * PAGE));
	FAILS(cuMemGetAddressRange(&base, &size, va), CUDA_ERROR_NOT_FOUND);
	OK(cuPointerGetAttribute(&is_mapped, CU_POINTER_ATTRIBUTE_MAPPED, va));
	ck_assert_int_eq(is_mapped, 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("vmm");

	tcase_add_test(tests, sizes_off_the_granularity_are_refused);
	tcase_add_test(tests, reservations_honour_alignment_and_hint);
	tcase_add_test(tests, chunk_lives_until_handle_and_mappings_are_gone);
	tcase_add_test(tests, one_chunk_at_several_addresses);
	tcase_add_test(tests, maps_that_do_not_fit_are_refused);
	tcase_add_test(tests, only_whole_mappings_are_unmapped);
	tcase_add_test(tests, new_mappings_are_inaccessible);
	tcase_add_test(tests, copy_to_reserved_but_unmapped_memory_is_700);
	tcase_add_test(tests, copy_across_a_hole_is_700);
	tcase_add_test(tests, memset_without_access_is_700);
	tcase_add_test(tests, write_to_readable_memory_is_700);
	tcase_add_test(tests, chunks_count_against_the_device);
	tcase_add_test(tests, many_chunks_come_and_go);
	tcase_add_test(tests, address_range_of_a_mapping_is_the_mapping);
	return client_run(tests, "mem_vmm");
}
