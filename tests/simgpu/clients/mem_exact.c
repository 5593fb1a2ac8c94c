/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exact content: device memory holds its bytes wherever it is mapped, kernels
 * are carried out, and one without an implementation stops the device.
 */
#include "mem_client.h"

#include "kernel_client.h"

#include "tests/simgpu/blas/simblas_params.h"

#define READWRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define WORDS     1000

/* Words that say where they stand. */
static void write_words(CUdeviceptr va, uint32_t seed)
{
	uint32_t words[WORDS];

	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = seed + i;
	OK(cuMemcpyHtoD(va, words, sizeof(words)));
}

static void check_words(CUdeviceptr va, uint32_t seed)
{
	uint32_t words[WORDS];

	OK(cuMemcpyDtoH(words, va, sizeof(words)));
	for (uint32_t i = 0; i < WORDS; i++)
		ck_assert_uint_eq(words[i], seed + i);
}

START_TEST(bytes_come_back_from_copies_and_sets)
{
	CUdeviceptr a, b;
	uint16_t set[4];

	client_start();
	OK(cuMemAlloc(&a, 3 * PAGE));
	OK(cuMemAlloc(&b, 3 * PAGE));
	/* Across a border of pages. */
	write_words(a + PAGE - 100, 7);
	OK(cuMemcpyDtoD(b + 12, a + PAGE - 100, WORDS * 4));
	check_words(b + 12, 7);
	OK(cuMemsetD16(b, 0xabcd, 3));
	OK(cuMemcpyDtoH(set, b, sizeof(set)));
	ck_assert_uint_eq(set[0], 0xabcd);
	ck_assert_uint_eq(set[2], 0xabcd);
	ck_assert_uint_ne(set[3], 0xabcd);
	check_words(b + 12, 7);
}
END_TEST

START_TEST(chunk_keeps_its_bytes_at_every_address)
{
	CUmemGenericAllocationHandle chunk, other;
	CUdeviceptr va;

	client_start();
	chunk = client_chunk(PAGE);
	other = client_chunk(PAGE);
	va = client_reserve(4 * PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(cuMemMap(va + PAGE, PAGE, 0, chunk, 0));
	OK(cuMemMap(va + 2 * PAGE, PAGE, 0, other, 0));
	OK(client_access(va, 3 * PAGE, READWRITE));
	write_words(va, 100);
	write_words(va + 2 * PAGE, 5000);
	check_words(va + PAGE, 100);
	OK(cuMemUnmap(va, PAGE));
	OK(cuMemUnmap(va + PAGE, PAGE));
	OK(cuMemMap(va + 3 * PAGE, PAGE, 0, chunk, 0));
	OK(client_access(va + 3 * PAGE, PAGE, READWRITE));
	check_words(va + 3 * PAGE, 100);
	check_words(va + 2 * PAGE, 5000);
}
END_TEST

START_TEST(kernel_is_carried_out)
{
	/* simblas_copy: four addresses, three numbers, two factors, two
	 * words. */
	static const uint32_t params[] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 4, 4};
	struct simblas_vec vec = {.n = WORDS, .incx = 1, .incy = 1};
	size_t bytes = SIMBLAS_VEC_BYTES;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &vec,
	        CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	CUdeviceptr x, y;
	CUfunction copy;

	client_start();
	copy = client_kernel_of(80, "simblas_copy", params, 11);
	OK(cuMemAlloc(&x, WORDS * 4));
	OK(cuMemAlloc(&y, WORDS * 4));
	write_words(x, 42);
	vec.x = x;
	vec.y = y;
	OK(cuLaunchKernel(copy, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	OK(cuCtxSynchronize());
	check_words(y, 42);
}
END_TEST

START_TEST(kernel_without_implementation_stops_the_device)
{
	static const uint32_t params[] = {8};
	CUdeviceptr va;
	void *args[] = {&va};
	CUfunction kernel;

	client_start();
	kernel = client_kernel_of(80, "unheard_of", params, 1);
	OK(cuMemAlloc(&va, PAGE));
	cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL);
	FAILS(cuCtxSynchronize(), CUDA_ERROR_NOT_SUPPORTED);
	FAILS(cuMemAlloc(&va, PAGE), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("mem_exact");

	tcase_add_test(tests, bytes_come_back_from_copies_and_sets);
	tcase_add_test(tests, chunk_keeps_its_bytes_at_every_address);
	tcase_add_test(tests, kernel_is_carried_out);
	tcase_add_test(tests, kernel_without_implementation_stops_the_device);
	return client_run(tests, "mem_exact");
}
