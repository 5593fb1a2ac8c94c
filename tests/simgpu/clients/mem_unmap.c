/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unmapping memory that unfinished work uses, under each SIMGPU_UNMAP_SYNC:
 * with none it is the program's error, else the device is waited for.
 */
#include "mem_client.h"

#include "tests/simgpu/driver/simgpu_private.h"

#define BYTES (64 * MIB)

static CUstream stream;
static CUdeviceptr va;

static bool unmap_waits(void)
{
	const char *set = getenv("SIMGPU_UNMAP_SYNC");

	/* The model tiny-1g waits. */
	return !set || strcmp(set, "none") != 0;
}

/* A mapping that a download of some milliseconds reads. */
static void start_busy(void)
{
	CUmemGenericAllocationHandle chunk;
	void *host;

	client_start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemHostAlloc(&host, BYTES, 0));
	chunk = client_chunk(BYTES);
	va = client_reserve(BYTES);
	OK(cuMemMap(va, BYTES, 0, chunk, 0));
	OK(cuMemRelease(chunk));
	OK(client_access(va, BYTES, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(cuMemcpyDtoHAsync(host, va, BYTES, stream));
	FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
}

static void check_after(void)
{
	if (unmap_waits())
		OK(cuStreamQuery(stream));
	else
		FAILS(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}

START_TEST(unmap_under_a_copy)
{
	start_busy();
	OK(cuMemUnmap(va, BYTES));
	check_after();
}
END_TEST

START_TEST(access_taken_away_under_a_copy)
{
	start_busy();
	OK(client_access(va, BYTES, CU_MEM_ACCESS_FLAGS_PROT_NONE));
	check_after();
}
END_TEST

START_TEST(unmap_after_waiting_is_right_everywhere)
{
	start_busy();
	OK(cuStreamSynchronize(stream));
	OK(cuMemUnmap(va, BYTES));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(client_free_bytes(), 960 * MIB);
}
END_TEST

START_TEST(unmap_of_other_memory_is_right_everywhere)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr other;

	start_busy();
	chunk = client_chunk(PAGE);
	other = client_reserve(PAGE);
	OK(cuMemMap(other, PAGE, 0, chunk, 0));
	OK(cuMemUnmap(other, PAGE));
	OK(cuMemRelease(chunk));
	OK(cuCtxSynchronize());
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("unmap");

	tcase_add_test(tests, unmap_under_a_copy);
	tcase_add_test(tests, access_taken_away_under_a_copy);
	tcase_add_test(tests, unmap_after_waiting_is_right_everywhere);
	tcase_add_test(tests, unmap_of_other_memory_is_right_everywhere);
	return client_run(tests, "mem_unmap");
}
