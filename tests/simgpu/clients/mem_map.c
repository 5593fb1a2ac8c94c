/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels that are given tensor maps: SIMGPU_DEVICE=h100-pcie5. */
#include "mem_client.h"

#include "kernel_client.h"

#define READWRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE

static CUfunction kernel;

static void start(void)
{
	static const uint32_t params[] = {sizeof(CUtensorMap)};

	client_start();
	kernel = client_kernel_of(90, "unheard_of", params, 1);
}

static CUresult encode(CUtensorMap *map, CUdeviceptr va, cuuint64_t rows)
{
	cuuint64_t sizes[] = {256, rows}, strides[] = {1024};
	cuuint32_t box[] = {64, 64}, steps[] = {1, 1};

	return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
	        (void *)(uintptr_t)va, sizes, strides, box, steps,
	        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
	        CU_TENSOR_MAP_L2_PROMOTION_NONE,
	        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static CUresult launch(CUtensorMap *map)
{
	void *params[] = {map};

	OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	return cuCtxSynchronize();
}

START_TEST(kernel_follows_its_map)
{
	CUmemGenericAllocationHandle chunk;
	uint64_t words[sizeof(CUtensorMap) / 8];
	CUtensorMap map;
	CUdeviceptr va, other;

	start();
	va = client_reserve(2 * PAGE);
	chunk = client_chunk(PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(client_access(va, PAGE, READWRITE));
	OK(cuMemAlloc(&other, PAGE));
	OK(encode(&map, va, PAGE / 1024));
	memcpy(words, &map, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		ck_assert(words[i] < va || words[i] >= va + PAGE);
	OK(launch(&map));
	OK(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)other));
	OK(launch(&map));
	/* A row more than there is. */
	OK(encode(&map, va, PAGE / 1024 + 1));
	FAILS(launch(&map), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(what_is_no_tensor_is_refused)
{
	CUtensorMap map;

	start();
	INVALID(encode(&map, 0, 1));
	INVALID(encode(&map, 4, 1));
	INVALID(encode(&map, 1024, 0));
	INVALID(encode(NULL, 1024, 1));
	memset(&map, 0, sizeof(map));
	INVALID(cuTensorMapReplaceAddress(&map, (void *)1024));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("map");

	tcase_add_test(tests, kernel_follows_its_map);
	tcase_add_test(tests, what_is_no_tensor_is_refused);
	return client_run(tests, "mem_map");
}
