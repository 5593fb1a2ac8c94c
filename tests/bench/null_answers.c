/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the null driver must answer; see null_driver.c. */
#include <cuda.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

/* As the benchmark asks for by its function handle: count and size. */
struct null_function {
	size_t count, bytes;
};

static uint64_t next_address = 0x200000000000ull;

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	*address = next_address;
	next_address += (bytes + 511) / 512 * 512;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = (CUcontext)&next_address;
	return CUDA_SUCCESS;
}

/* Of all versions the first is asked. */
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);

/* Without it no op is ever timed, and no step done with being recorded. */
EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	(void)start;
	(void)end;
	*ms = 0.01f;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetName(const char **name, CUfunction function)
{
	(void)function;
	*name = "null_kernel";
	return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(
        CUfunction handle, size_t index, size_t *offset, size_t *bytes)
{
	const struct null_function *function = (const void *)handle;

	if (index >= function->count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = index * function->bytes;
	*bytes = function->bytes;
	return CUDA_SUCCESS;
}
