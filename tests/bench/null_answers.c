/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the null driver must answer; see null_driver.c. */
#include <cuda.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

/* As the benchmark asks for by its function handle: count and size. */
struct null_function {
	size_t count, bytes;
};

/* What is free never changes: nobody else uses anything. */
#define FREE_BYTES    (8ull << 30)
#define TOTAL_BYTES   (8ull << 30)
#define GRANULE_BYTES (2ull << 20)

static uint64_t next_address = 0x200000000000ull;

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	*address = next_address;
	next_address += (bytes + 511) / 512 * 512;
	return CUDA_SUCCESS;
}

/* With these four the agent has all that it places memory with. */
EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	*free_bytes = FREE_BYTES;
	*total_bytes = TOTAL_BYTES;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *bytes,
        const CUmemAllocationProp *properties,
        CUmemAllocationGranularity_flags option)
{
	(void)properties;
	(void)option;
	*bytes = GRANULE_BYTES;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes,
        size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	(void)alignment;
	(void)hint;
	(void)flags;
	next_address = (next_address + GRANULE_BYTES - 1) & -GRANULE_BYTES;
	*address = next_address;
	next_address += bytes;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
        const CUmemAllocationProp *properties, unsigned long long flags)
{
	static CUmemGenericAllocationHandle last;

	(void)bytes;
	(void)properties;
	(void)flags;
	*handle = ++last;
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
