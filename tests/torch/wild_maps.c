/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library whose kernel is given tensor maps, as those for newer devices are:
 * no word of its parameters is an address. Nobody knows the kernel, so that it
 * is taken to read and write all that the maps describe.
 */
#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define MAPS   2

static const char ptx[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
                          ".visible .entry wild_maps_kernel(\n"
                          "\t.param .align 64 .b8 from[128],\n"
                          "\t.param .align 64 .b8 to[128]\n)\n{\n\tret;\n}\n";

static CUtensorMap maps[MAPS];
static CUfunction kernel;

/* Map @which describes rows of @columns floats at @address. 0, or a CUresult.
 */
EXPORT int wild_maps_encode(
        int which, void *address, uint64_t rows, uint64_t columns);
/* The same tensor elsewhere. */
EXPORT int wild_maps_replace(int which, void *address);
/* Launches on the null stream. */
EXPORT int wild_maps_launch(void);

int wild_maps_encode(int which, void *address, uint64_t rows, uint64_t columns)
{
	const cuuint64_t sizes[] = {columns, rows}, strides[] = {columns * 4};
	const cuuint32_t box[] = {64, 64}, steps[] = {1, 1};

	return (int)cuTensorMapEncodeTiled(&maps[which],
	        CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, address, sizes, strides,
	        box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
	        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
	        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

int wild_maps_replace(int which, void *address)
{
	return (int)cuTensorMapReplaceAddress(&maps[which], address);
}

int wild_maps_launch(void)
{
	void *params[MAPS] = {&maps[0], &maps[1]};
	CUresult rc = CUDA_SUCCESS;
	CUmodule module;

	if (!kernel)
		rc = cuModuleLoadData(&module, ptx);
	if (!kernel && rc == CUDA_SUCCESS)
		rc = cuModuleGetFunction(&kernel, module, "wild_maps_kernel");
	if (rc != CUDA_SUCCESS)
		return (int)rc;
	return (int)cuLaunchKernel(
	        kernel, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
}
