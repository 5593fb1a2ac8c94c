/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Launches of kernels and host functions. Compiled twice, see rt.h.
 */
#include "registry.h"
#include "rt.h"

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif

static cudaError_t launch(const void *func, dim3 grid, dim3 block, void **args,
        size_t shared_bytes, cudaStream_t stream, bool cooperative)
{
	CUfunction function;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	err = rt_function(func, ctx, &function);
	if (err)
		return rt_fail(err);
	if (cooperative)
		return rt_done(drv()->LaunchCooperativeKernel(function, grid.x,
		        grid.y, grid.z, block.x, block.y, block.z,
		        (unsigned)shared_bytes, stream, args));
	return rt_done(drv()->LaunchKernel(function, grid.x, grid.y, grid.z,
	        block.x, block.y, block.z, (unsigned)shared_bytes, stream, args,
	        NULL));
}

cudaError_t CUDARTAPI cudaLaunchKernel(const void *func, dim3 grid, dim3 block,
        void **args, size_t shared_bytes, cudaStream_t stream)
{
	return launch(func, grid, block, args, shared_bytes, stream, false);
}

cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid,
        dim3 block, void **args, size_t shared_bytes, cudaStream_t stream)
{
	return launch(kernel, grid, block, args, shared_bytes, stream, false);
}

cudaError_t CUDARTAPI cudaLaunchCooperativeKernel(const void *func, dim3 grid,
        dim3 block, void **args, size_t shared_bytes, cudaStream_t stream)
{
	return launch(func, grid, block, args, shared_bytes, stream, true);
}

cudaError_t CUDARTAPI cudaLaunchKernelExC(
        const cudaLaunchConfig_t *config, const void *func, void **args)
{
	CUlaunchConfig driver_config;
	CUfunction function;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	if (!config)
		return rt_fail(cudaErrorInvalidValue);
	err = rt_function(func, ctx, &function);
	if (err)
		return rt_fail(err);
	driver_config = rt_launch_config(config);
	return rt_done(
	        drv()->LaunchKernelEx(&driver_config, function, args, NULL));
}

cudaError_t CUDARTAPI cudaLaunchHostFunc(
        cudaStream_t stream, cudaHostFn_t fn, void *user)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->LaunchHostFunc(stream, fn, user));
}
