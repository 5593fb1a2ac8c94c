/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Graph nodes: adding them, reading and changing their parameters. */
#include "rt.h"

#include <string.h>

/* ------------------------------------------------------------------ kernels */

static cudaError_t kernel_params(const struct cudaKernelNodeParams *params,
        CUcontext ctx, CUDA_KERNEL_NODE_PARAMS *ret_params)
{
	CUfunction function;
	cudaError_t err;

	if (!params)
		return cudaErrorInvalidValue;
	err = rt_function(params->func, ctx, &function);
	if (err)
		return err;
	*ret_params = (CUDA_KERNEL_NODE_PARAMS){
	        .func = function,
	        .gridDimX = params->gridDim.x,
	        .gridDimY = params->gridDim.y,
	        .gridDimZ = params->gridDim.z,
	        .blockDimX = params->blockDim.x,
	        .blockDimY = params->blockDim.y,
	        .blockDimZ = params->blockDim.z,
	        .sharedMemBytes = params->sharedMemBytes,
	        .kernelParams = params->kernelParams,
	        .extra = params->extra,
	};
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphAddKernelNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        const struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS driver_params;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	err = kernel_params(params, ctx, &driver_params);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->GraphAddKernelNode(
	        node, graph, dependencies, count, &driver_params));
}

cudaError_t CUDARTAPI cudaGraphKernelNodeGetParams(
        cudaGraphNode_t node, struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS driver_params;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_done(drv()->GraphKernelNodeGetParams(node, &driver_params));
	if (err)
		return err;
	/* The handle is accepted wherever a function is. */
	err = rt_function_known(driver_params.func);
	if (err)
		return rt_fail(err);
	*params = (struct cudaKernelNodeParams){
	        .func = driver_params.func,
	        .gridDim = {driver_params.gridDimX, driver_params.gridDimY,
	                driver_params.gridDimZ},
	        .blockDim = {driver_params.blockDimX, driver_params.blockDimY,
	                driver_params.blockDimZ},
	        .sharedMemBytes = driver_params.sharedMemBytes,
	        .kernelParams = driver_params.kernelParams,
	        .extra = driver_params.extra,
	};
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphKernelNodeSetParams(
        cudaGraphNode_t node, const struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS driver_params;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	err = kernel_params(params, ctx, &driver_params);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->GraphKernelNodeSetParams(node, &driver_params));
}

cudaError_t CUDARTAPI cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec,
        cudaGraphNode_t node, const struct cudaKernelNodeParams *params)
{
	CUDA_KERNEL_NODE_PARAMS driver_params;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	err = kernel_params(params, ctx, &driver_params);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->GraphExecKernelNodeSetParams(
	        exec, node, &driver_params));
}

/* ---------------------------------------------------------- copies and sets */

cudaError_t CUDARTAPI cudaGraphAddMemcpyNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        const struct cudaMemcpy3DParms *parms)
{
	CUDA_MEMCPY3D copy;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	err = rt_copy3d(parms, &copy);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->GraphAddMemcpyNode(
	        node, graph, dependencies, count, &copy, ctx));
}

cudaError_t CUDARTAPI cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms = {
	        .srcPtr = {(void *)(uintptr_t)src, bytes, bytes, 1},
	        .dstPtr = {dst, bytes, bytes, 1},
	        .extent = {bytes, 1, 1},
	        .kind = kind,
	};

	return cudaGraphAddMemcpyNode(node, graph, dependencies, count, &parms);
}

static cudaError_t memset_params(const struct cudaMemsetParams *params,
        CUDA_MEMSET_NODE_PARAMS *ret_params)
{
	if (!params)
		return cudaErrorInvalidValue;
	*ret_params = (CUDA_MEMSET_NODE_PARAMS){
	        .dst = rt_dev(params->dst),
	        .pitch = params->pitch,
	        .value = params->value,
	        .elementSize = params->elementSize,
	        .width = params->width,
	        .height = params->height,
	};
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphAddMemsetNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        const struct cudaMemsetParams *params)
{
	CUDA_MEMSET_NODE_PARAMS driver_params;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	err = memset_params(params, &driver_params);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->GraphAddMemsetNode(
	        node, graph, dependencies, count, &driver_params, ctx));
}

cudaError_t CUDARTAPI cudaGraphMemsetNodeGetParams(
        cudaGraphNode_t node, struct cudaMemsetParams *params)
{
	CUDA_MEMSET_NODE_PARAMS driver_params;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_done(drv()->GraphMemsetNodeGetParams(node, &driver_params));
	if (err)
		return err;
	*params = (struct cudaMemsetParams){
	        .dst = (void *)(uintptr_t)driver_params.dst,
	        .pitch = driver_params.pitch,
	        .value = driver_params.value,
	        .elementSize = driver_params.elementSize,
	        .width = driver_params.width,
	        .height = driver_params.height,
	};
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphMemsetNodeSetParams(
        cudaGraphNode_t node, const struct cudaMemsetParams *params)
{
	CUDA_MEMSET_NODE_PARAMS driver_params;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = memset_params(params, &driver_params);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->GraphMemsetNodeSetParams(node, &driver_params));
}

/* -------------------------------------------------------------- other kinds */

cudaError_t CUDARTAPI cudaGraphAddHostNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        const struct cudaHostNodeParams *params)
{
	CUDA_HOST_NODE_PARAMS driver_params;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!params)
		return rt_fail(cudaErrorInvalidValue);
	driver_params = (CUDA_HOST_NODE_PARAMS){params->fn, params->userData};
	return rt_done(drv()->GraphAddHostNode(
	        node, graph, dependencies, count, &driver_params));
}

cudaError_t CUDARTAPI cudaGraphHostNodeGetParams(
        cudaGraphNode_t node, struct cudaHostNodeParams *params)
{
	CUDA_HOST_NODE_PARAMS driver_params;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_done(drv()->GraphHostNodeGetParams(node, &driver_params));
	if (err)
		return err;
	params->fn = driver_params.fn;
	params->userData = driver_params.userData;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphHostNodeSetParams(
        cudaGraphNode_t node, const struct cudaHostNodeParams *params)
{
	CUDA_HOST_NODE_PARAMS driver_params;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!params)
		return rt_fail(cudaErrorInvalidValue);
	driver_params = (CUDA_HOST_NODE_PARAMS){params->fn, params->userData};
	return rt_done(drv()->GraphHostNodeSetParams(node, &driver_params));
}

cudaError_t CUDARTAPI cudaGraphAddChildGraphNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        cudaGraph_t child)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphAddChildGraphNode(
	        node, graph, dependencies, count, child));
}

cudaError_t CUDARTAPI cudaGraphChildGraphNodeGetGraph(
        cudaGraphNode_t node, cudaGraph_t *graph)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphChildGraphNodeGetGraph(node, graph));
}

cudaError_t CUDARTAPI cudaGraphAddEmptyNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->GraphAddEmptyNode(node, graph, dependencies, count));
}

cudaError_t CUDARTAPI cudaGraphAddEventRecordNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        cudaEvent_t event)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphAddEventRecordNode(
	        node, graph, dependencies, count, event));
}

cudaError_t CUDARTAPI cudaGraphAddEventWaitNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        cudaEvent_t event)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphAddEventWaitNode(
	        node, graph, dependencies, count, event));
}

cudaError_t CUDARTAPI cudaGraphAddMemAllocNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        struct cudaMemAllocNodeParams *params)
{
	_Static_assert(sizeof(*params) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
	        "allocation nodes have one layout");
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphAddMemAllocNode(node, graph, dependencies,
	        count, (CUDA_MEM_ALLOC_NODE_PARAMS *)params));
}

cudaError_t CUDARTAPI cudaGraphMemAllocNodeGetParams(
        cudaGraphNode_t node, struct cudaMemAllocNodeParams *params)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphMemAllocNodeGetParams(
	        node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params));
}

cudaError_t CUDARTAPI cudaGraphAddMemFreeNode(cudaGraphNode_t *node,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
        void *ptr)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphAddMemFreeNode(
	        node, graph, dependencies, count, rt_dev(ptr)));
}

cudaError_t CUDARTAPI cudaGraphMemFreeNodeGetParams(
        cudaGraphNode_t node, void *ptr)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphMemFreeNodeGetParams(node, ptr));
}

/* ------------------------------------------------------------- generic form */

static cudaError_t node_params(const struct cudaGraphNodeParams *params,
        CUcontext ctx, CUgraphNodeParams *ret_params)
{
	_Static_assert(sizeof(*params) == sizeof(CUgraphNodeParams),
	        "node parameters have one layout");
	struct cudaKernelNodeParams kernel;
	CUDA_KERNEL_NODE_PARAMS driver_kernel;
	CUgraphNodeParams out;
	cudaError_t err;

	memcpy(&out, params, sizeof(out));
	switch (params->type) {
	case cudaGraphNodeTypeKernel:
		kernel = (struct cudaKernelNodeParams){
		        .func = params->kernel.func,
		        .gridDim = params->kernel.gridDim,
		        .blockDim = params->kernel.blockDim,
		        .sharedMemBytes = params->kernel.sharedMemBytes,
		        .kernelParams = params->kernel.kernelParams,
		        .extra = params->kernel.extra,
		};
		err = kernel_params(&kernel, ctx, &driver_kernel);
		if (err)
			return err;
		memset(&out.kernel, 0, sizeof(out.kernel));
		memcpy(&out.kernel, &driver_kernel, sizeof(driver_kernel));
		break;
	case cudaGraphNodeTypeMemcpy:
		memset(&out.memcpy, 0, sizeof(out.memcpy));
		out.memcpy.flags = params->memcpy.flags;
		out.memcpy.copyCtx = ctx;
		err = rt_copy3d(
		        &params->memcpy.copyParams, &out.memcpy.copyParams);
		if (err)
			return err;
		break;
	case cudaGraphNodeTypeMemset:
		out.memset.ctx = ctx;
		break;
	case cudaGraphNodeTypeConditional:
		out.conditional.ctx = ctx;
		break;
	case cudaGraphNodeTypeHost:
	case cudaGraphNodeTypeGraph:
	case cudaGraphNodeTypeEmpty:
	case cudaGraphNodeTypeWaitEvent:
	case cudaGraphNodeTypeEventRecord:
	case cudaGraphNodeTypeMemAlloc:
	case cudaGraphNodeTypeMemFree:
		break;
	default:
		return cudaErrorNotSupported;
	}
	*ret_params = out;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
        const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
        size_t count, struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams driver_params;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	if (!params)
		return rt_fail(cudaErrorInvalidValue);
	err = node_params(params, ctx, &driver_params);
	if (err)
		return rt_fail(err);
	err = rt_done(drv()->GraphAddNode(node, graph, dependencies,
	        (const CUgraphEdgeData *)edges, count, &driver_params));
	if (err)
		return err;
	/* What the driver tells about the new node. */
	if (params->type == cudaGraphNodeTypeConditional)
		params->conditional.phGraph_out =
		        driver_params.conditional.phGraph_out;
	else if (params->type == cudaGraphNodeTypeMemAlloc)
		params->alloc.dptr =
		        (void *)(uintptr_t)driver_params.alloc.dptr;
	return cudaSuccess;
}
