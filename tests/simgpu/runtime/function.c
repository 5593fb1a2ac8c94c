/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels as objects: call configurations, handles, attributes, occupancy,
 * libraries.
 */
#include "registry.h"

#include <stdlib.h>

#include "rt.h"

/* ------------------------------------------------- <<<grid, block, ...>>> */

struct configuration {
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
};
/* Arguments of a launch may launch themselves: a stack. */
enum { CONFIGURATIONS_MAX = 32 };
static __thread struct configuration configurations[CONFIGURATIONS_MAX]
        __attribute__((tls_model("initial-exec")));
static __thread int configuration_count
        __attribute__((tls_model("initial-exec")));

unsigned CUDARTAPI __cudaPushCallConfiguration(
        dim3 grid, dim3 block, size_t shared_bytes, struct CUstream_st *stream)
{
	/* Not 0: the compiled code leaves the launch out. */
	if (configuration_count == CONFIGURATIONS_MAX)
		return (unsigned)rt_fail(cudaErrorMissingConfiguration);
	configurations[configuration_count++] =
	        (struct configuration){grid, block, shared_bytes, stream};
	return 0;
}

cudaError_t CUDARTAPI __cudaPopCallConfiguration(
        dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
	const struct configuration *top;

	if (!configuration_count)
		return rt_fail(cudaErrorMissingConfiguration);
	top = &configurations[--configuration_count];
	*grid = top->grid;
	*block = top->block;
	*shared_bytes = top->shared_bytes;
	*(cudaStream_t *)stream = top->stream;
	return cudaSuccess;
}

CUlaunchConfig rt_launch_config(const cudaLaunchConfig_t *config)
{
	_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute),
	        "launch attributes have one layout");

	return (CUlaunchConfig){
	        .gridDimX = config->gridDim.x,
	        .gridDimY = config->gridDim.y,
	        .gridDimZ = config->gridDim.z,
	        .blockDimX = config->blockDim.x,
	        .blockDimY = config->blockDim.y,
	        .blockDimZ = config->blockDim.z,
	        .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
	        .hStream = config->stream,
	        .attrs = (CUlaunchAttribute *)config->attrs,
	        .numAttrs = config->numAttrs,
	};
}

/* ------------------------------------------------------------------ handles */

static cudaError_t enter_function(const void *func, CUfunction *ret_function)
{
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	return rt_fail(rt_function(func, ctx, ret_function));
}

cudaError_t CUDARTAPI cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!kernel)
		return rt_fail(cudaErrorInvalidValue);
	return rt_fail(rt_kernel(func, kernel));
}

cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	return cudaGetKernel(kernel, func);
}

cudaError_t CUDARTAPI cudaGetFuncBySymbol(
        cudaFunction_t *function, const void *func)
{
	cudaError_t err;

	if (!function)
		return rt_fail(cudaErrorInvalidValue);
	err = enter_function(func, function);
	if (err)
		return err;
	return rt_fail(rt_function_known(*function));
}

cudaError_t CUDARTAPI cudaFuncGetName(const char **name, const void *func)
{
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	return rt_done(drv()->FuncGetName(name, function));
}

cudaError_t CUDARTAPI cudaFuncGetParamInfo(
        const void *func, size_t index, size_t *offset, size_t *size)
{
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	return rt_done(drv()->FuncGetParamInfo(function, index, offset, size));
}

/* --------------------------------------------------------------- attributes */

cudaError_t CUDARTAPI cudaFuncSetCacheConfig(
        const void *func, enum cudaFuncCache config)
{
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	return rt_done(
	        drv()->FuncSetCacheConfig(function, (CUfunc_cache)config));
}

cudaError_t CUDARTAPI cudaFuncSetAttribute(
        const void *func, enum cudaFuncAttribute attr, int value)
{
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	return rt_done(drv()->FuncSetAttribute(
	        function, (CUfunction_attribute)attr, value));
}

cudaError_t CUDARTAPI cudaKernelSetAttributeForDevice(
        cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->KernelSetAttribute(
	        (CUfunction_attribute)attr, value, kernel, device));
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(
        struct cudaFuncAttributes *attr, const void *func)
{
	struct cudaFuncAttributes out = {0};
	const struct {
		CUfunction_attribute attr;
		int *value;
		size_t *size;
	} rows[] = {
	        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, NULL,
	                &out.sharedSizeBytes},
	        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, NULL, &out.constSizeBytes},
	        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, NULL, &out.localSizeBytes},
	        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
	                &out.maxThreadsPerBlock, NULL},
	        {CU_FUNC_ATTRIBUTE_NUM_REGS, &out.numRegs, NULL},
	        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &out.ptxVersion, NULL},
	        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &out.binaryVersion, NULL},
	        {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &out.cacheModeCA, NULL},
	        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
	                &out.maxDynamicSharedSizeBytes, NULL},
	        {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
	                &out.preferredShmemCarveout, NULL},
	        {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
	                &out.clusterDimMustBeSet, NULL},
	        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
	                &out.requiredClusterWidth, NULL},
	        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
	                &out.requiredClusterHeight, NULL},
	        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
	                &out.requiredClusterDepth, NULL},
	        {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
	                &out.clusterSchedulingPolicyPreference, NULL},
	        {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
	                &out.nonPortableClusterSizeAllowed, NULL},
	};
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	if (!attr)
		return rt_fail(cudaErrorInvalidValue);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int value;
		CUresult res =
		        drv()->FuncGetAttribute(&value, rows[i].attr, function);

		if (res != CUDA_SUCCESS)
			return rt_done(res);
		if (rows[i].value)
			*rows[i].value = value;
		else
			*rows[i].size = (size_t)value;
	}
	*attr = out;
	return cudaSuccess;
}

/* ---------------------------------------------------------------- occupancy */

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        int *blocks, const void *func, int block_size, size_t shared_bytes,
        unsigned flags)
{
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	return rt_done(
	        drv()->OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	                blocks, function, block_size, shared_bytes, flags));
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        int *blocks, const void *func, int block_size, size_t shared_bytes)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	        blocks, func, block_size, shared_bytes, cudaOccupancyDefault);
}

cudaError_t CUDARTAPI cudaOccupancyAvailableDynamicSMemPerBlock(
        size_t *shared_bytes, const void *func, int blocks, int block_size)
{
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	return rt_done(drv()->OccupancyAvailableDynamicSMemPerBlock(
	        shared_bytes, function, blocks, block_size));
}

cudaError_t CUDARTAPI cudaOccupancyMaxPotentialClusterSize(
        int *cluster_size, const void *func, const cudaLaunchConfig_t *config)
{
	CUlaunchConfig driver_config;
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	if (!config)
		return rt_fail(cudaErrorInvalidValue);
	driver_config = rt_launch_config(config);
	return rt_done(drv()->OccupancyMaxPotentialClusterSize(
	        cluster_size, function, &driver_config));
}

cudaError_t CUDARTAPI cudaOccupancyMaxActiveClusters(
        int *clusters, const void *func, const cudaLaunchConfig_t *config)
{
	CUlaunchConfig driver_config;
	CUfunction function;
	cudaError_t err = enter_function(func, &function);

	if (err)
		return err;
	if (!config)
		return rt_fail(cudaErrorInvalidValue);
	driver_config = rt_launch_config(config);
	return rt_done(drv()->OccupancyMaxActiveClusters(
	        clusters, function, &driver_config));
}

/* ---------------------------------------------------------------- libraries */

cudaError_t CUDARTAPI cudaLibraryLoadData(cudaLibrary_t *library,
        const void *code, enum cudaJitOption *jit_options, void **jit_values,
        unsigned jit_count, enum cudaLibraryOption *options, void **values,
        unsigned count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->LibraryLoadData(library, code,
	        (CUjit_option *)jit_options, jit_values, jit_count,
	        (CUlibraryOption *)options, values, count));
}

cudaError_t CUDARTAPI cudaLibraryLoadFromFile(cudaLibrary_t *library,
        const char *file, enum cudaJitOption *jit_options, void **jit_values,
        unsigned jit_count, enum cudaLibraryOption *options, void **values,
        unsigned count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->LibraryLoadFromFile(library, file,
	        (CUjit_option *)jit_options, jit_values, jit_count,
	        (CUlibraryOption *)options, values, count));
}

cudaError_t CUDARTAPI cudaLibraryUnload(cudaLibrary_t library)
{
	CUkernel *kernels = NULL;
	unsigned count = 0;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	/* Its kernels' handles may be given out anew. */
	err = rt_done(drv()->LibraryGetKernelCount(&count, library));
	if (err)
		return err;
	if (count) {
		kernels = calloc(count, sizeof(CUkernel));
		if (!kernels)
			return rt_fail(cudaErrorMemoryAllocation);
		err = rt_done(drv()->LibraryEnumerateKernels(
		        kernels, count, library));
	}
	for (unsigned i = 0; !err && i < count; i++)
		rt_kernel_forget(kernels[i]);
	free(kernels);
	if (err)
		return err;
	return rt_done(drv()->LibraryUnload(library));
}

cudaError_t CUDARTAPI cudaLibraryGetKernel(
        cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_done(drv()->LibraryGetKernel(kernel, library, name));
	return err ? err : rt_fail(rt_kernel_known(*kernel));
}

cudaError_t CUDARTAPI cudaLibraryGetKernelCount(
        unsigned *count, cudaLibrary_t library)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->LibraryGetKernelCount(count, library));
}

cudaError_t CUDARTAPI cudaLibraryEnumerateKernels(
        cudaKernel_t *kernels, unsigned count, cudaLibrary_t library)
{
	unsigned have;
	cudaError_t err = cudaLibraryGetKernelCount(&have, library);

	if (err)
		return err;
	err = rt_done(drv()->LibraryEnumerateKernels(kernels, count, library));
	for (unsigned i = 0; !err && i < count && i < have; i++)
		err = rt_fail(rt_kernel_known(kernels[i]));
	return err;
}

cudaError_t CUDARTAPI cudaLibraryGetGlobal(
        void **ptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->LibraryGetGlobal(
	        (CUdeviceptr *)ptr, bytes, library, name));
}

cudaError_t CUDARTAPI cudaLibraryGetManaged(
        void **ptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->LibraryGetManaged(
	        (CUdeviceptr *)ptr, bytes, library, name));
}

cudaError_t CUDARTAPI cudaLibraryGetUnifiedFunction(
        void **function, cudaLibrary_t library, const char *name)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->LibraryGetUnifiedFunction(function, library, name));
}
