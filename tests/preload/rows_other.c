/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Launches, which must find both buffers there, and calls that carry an
 * address to where launches do not show it, which must keep buffer a there.
 */
#include <string.h>

#include "rows.h"

static CUresult launch(void *function)
{
	void *params[] = {&a, &b};

	return AS(cuLaunchKernel)(
	        kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
}

static CUresult launch_buffer(void *function)
{
	CUdeviceptr params[] = {a + 100, b + 8};
	size_t bytes = sizeof(params);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params,
	        CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};

	return AS(cuLaunchKernel)(
	        kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra);
}

static CUresult launch_ex(void *function)
{
	CUlaunchConfig config = {.gridDimX = 1,
	        .gridDimY = 1,
	        .gridDimZ = 1,
	        .blockDimX = 32,
	        .blockDimY = 1,
	        .blockDimZ = 1};
	void *params[] = {&a, &b};

	return AS(cuLaunchKernelEx)(&config, kernel, params, NULL);
}

static CUresult launch_cooperative(void *function)
{
	void *params[] = {&a, &b};

	return AS(cuLaunchCooperativeKernel)(
	        kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params);
}

const struct row launch_rows[] = {
        {"cuLaunchKernel", launch},
        {"cuLaunchKernel_ptsz", launch},
        {"cuLaunchKernel", launch_buffer},
        {"cuLaunchKernelEx", launch_ex},
        {"cuLaunchKernelEx_ptsz", launch_ex},
        {"cuLaunchCooperativeKernel", launch_cooperative},
        {"cuLaunchCooperativeKernel_ptsz", launch_cooperative},
        {NULL, NULL},
};

/* A table in host memory, not aligned there, with an address inside a. */
static unsigned char *table(void)
{
	CUdeviceptr inside = a + 100;

	memset(host, 0, 4096);
	memcpy(host + 1 + 24, &inside, sizeof(inside));
	return host + 1;
}

static CUdeviceptr table_address(void)
{
	return (CUdeviceptr)(uintptr_t)table();
}

static CUresult table_up(void *function)
{
	return AS(cuMemcpyHtoD)(b, table(), 64);
}

/* A target that is not aligned moves the words, not what they mean. */
static CUresult table_up_shifted(void *function)
{
	return AS(cuMemcpyHtoD)(b + 4, table() - 4, 64);
}

static CUresult table_up_async(void *function)
{
	return AS(cuMemcpyHtoDAsync)(b, table(), 64, NULL);
}

static CUresult table_any(void *function)
{
	return AS(cuMemcpy)(b, table_address(), 64);
}

static CUresult table_any_async(void *function)
{
	return AS(cuMemcpyAsync)(b, table_address(), 64, NULL);
}

static CUDA_MEMCPY2D table_2d_form(void)
{
	/* The address is in the second of three rows of 16 bytes. */
	return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
	        .srcHost = table(),
	        .srcPitch = 24,
	        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	        .dstDevice = b,
	        .dstPitch = 512,
	        .WidthInBytes = 16,
	        .Height = 3};
}

static CUresult table_2d(void *function)
{
	CUDA_MEMCPY2D copy = table_2d_form();

	return AS(cuMemcpy2D)(&copy);
}

static CUresult table_2d_async(void *function)
{
	CUDA_MEMCPY2D copy = table_2d_form();

	return AS(cuMemcpy2DAsync)(&copy, NULL);
}

static CUDA_MEMCPY3D table_3d_form(void)
{
	/* Unified: a plain address, which may be the host's. */
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	        .srcDevice = table_address(),
	        .srcPitch = 24,
	        .srcHeight = 1,
	        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	        .dstDevice = b,
	        .dstPitch = 512,
	        .dstHeight = 1,
	        .WidthInBytes = 16,
	        .Height = 1,
	        .Depth = 3};
}

static CUresult table_3d(void *function)
{
	CUDA_MEMCPY3D copy = table_3d_form();

	return AS(cuMemcpy3D)(&copy);
}

static CUresult table_3d_async(void *function)
{
	CUDA_MEMCPY3D copy = table_3d_form();

	return AS(cuMemcpy3DAsync)(&copy, NULL);
}

static CUresult table_batch(void *function)
{
	CUmemcpyAttributes attributes = {
	        .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUdeviceptr dst = b, src = table_address();
	size_t bytes = 64, first = 0;

	return AS(cuMemcpyBatchAsync)(&dst, &src, &bytes, 1, &attributes,
	        &first, 1, CU_STREAM_PER_THREAD);
}

static CUresult table_batch_3d(void *function)
{
	CUDA_MEMCPY3D_BATCH_OP copy = {.extent = {64, 1, 1},
	        .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

	copy.src.type = copy.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	copy.src.op.ptr.ptr = table_address();
	copy.dst.op.ptr.ptr = b;
	return AS(cuMemcpy3DBatchAsync)(1, &copy, 0, CU_STREAM_PER_THREAD);
}

static CUresult tensor_map(void *function)
{
	static CUtensorMap map;
	cuuint64_t size[] = {64, 64}, stride[] = {256};
	cuuint32_t box[] = {16, 16}, step[] = {1, 1};

	/* Made for newer devices: pinned whether it can be made or not. */
	AS(cuTensorMapEncodeTiled)
	(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)a, size,
	        stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
	        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
	        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	return CUDA_SUCCESS;
}

static CUresult tensor_map_address(void *function)
{
	static CUtensorMap map;

	AS(cuTensorMapReplaceAddress)(&map, (void *)(uintptr_t)a);
	return CUDA_SUCCESS;
}

static CUresult texture(void *function)
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
	CUDA_TEXTURE_DESC texture_desc = {0};
	CUtexObject made;

	resource.res.linear.devPtr = a;
	resource.res.linear.format = CU_AD_FORMAT_FLOAT;
	resource.res.linear.numChannels = 1;
	resource.res.linear.sizeInBytes = 4096;
	AS(cuTexObjectCreate)(&made, &resource, &texture_desc, NULL);
	return CUDA_SUCCESS;
}

static CUresult write_32(void *function)
{
	return AS(cuStreamWriteValue32)(NULL, a + 8, 1, 0);
}

static CUresult write_64(void *function)
{
	return AS(cuStreamWriteValue64)(NULL, a + 8, 1, 0);
}

static CUresult memory_ops(void *function)
{
	CUstreamBatchMemOpParams item = {
	        .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32};

	item.writeValue.address = a + 8;
	item.writeValue.value = 1;
	return AS(cuStreamBatchMemOp)(NULL, 1, &item, 0);
}

static CUgraph graph(void)
{
	CUgraph made = NULL;

	DRIVER(cuGraphCreate)(&made, 0);
	return made;
}

static CUDA_MEMSET_NODE_PARAMS set_params(CUdeviceptr dst)
{
	return (CUDA_MEMSET_NODE_PARAMS){.dst = dst,
	        .elementSize = 1,
	        .width = BUFFER_BYTES,
	        .height = 1,
	        .pitch = BUFFER_BYTES};
}

static CUresult set_node(void *function)
{
	CUDA_MEMSET_NODE_PARAMS set = set_params(a);
	CUgraphNode node;

	return AS(cuGraphAddMemsetNode)(&node, graph(), NULL, 0, &set, context);
}

static CUresult any_node(void *function)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	CUgraphNode node;

	params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = a,
	        .elementSize = 1,
	        .width = BUFFER_BYTES,
	        .height = 1,
	        .pitch = BUFFER_BYTES,
	        .ctx = context};
	return AS(cuGraphAddNode)(&node, graph(), NULL, NULL, 0, &params);
}

static CUresult copy_node(void *function)
{
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	        .srcDevice = a,
	        .dstMemoryType = CU_MEMORYTYPE_HOST,
	        .dstHost = host,
	        .WidthInBytes = BUFFER_BYTES,
	        .Height = 1,
	        .Depth = 1};
	CUgraphNode node;

	return AS(cuGraphAddMemcpyNode)(
	        &node, graph(), NULL, 0, &copy, context);
}

static CUresult kernel_node(void *function)
{
	CUdeviceptr none = 0;
	void *kernel_params[] = {&a, &none};
	CUDA_KERNEL_NODE_PARAMS params = {.func = kernel,
	        .gridDimX = 1,
	        .gridDimY = 1,
	        .gridDimZ = 1,
	        .blockDimX = 32,
	        .blockDimY = 1,
	        .blockDimZ = 1,
	        .kernelParams = kernel_params};
	CUgraphNode node;

	return AS(cuGraphAddKernelNode)(&node, graph(), NULL, 0, &params);
}

static CUresult memory_ops_node(void *function)
{
	CUstreamBatchMemOpParams item = {
	        .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {
	        .ctx = context, .count = 1, .paramArray = &item};
	CUgraphNode node;

	item.writeValue.address = a + 8;
	AS(cuGraphAddBatchMemOpNode)(&node, graph(), NULL, 0, &params);
	return CUDA_SUCCESS;
}

/* A node that is told of a after it was made. */
static CUresult set_node_later(void *function)
{
	CUDA_MEMSET_NODE_PARAMS set = set_params(b);
	CUgraphNode node;
	CUresult rc;

	rc = DRIVER(cuGraphAddMemsetNode)(
	        &node, graph(), NULL, 0, &set, context);
	set.dst = a;
	return rc ? rc : AS(cuGraphMemsetNodeSetParams)(node, &set);
}

const struct row pin_rows[] = {
        {"cuMemcpyHtoD_v2", table_up},
        {"cuMemcpyHtoD_v2_ptds", table_up},
        {"cuMemcpyHtoD_v2", table_up_shifted},
        {"cuMemcpyHtoDAsync_v2", table_up_async},
        {"cuMemcpyHtoDAsync_v2_ptsz", table_up_async},
        {"cuMemcpy", table_any},
        {"cuMemcpy_ptds", table_any},
        {"cuMemcpyAsync", table_any_async},
        {"cuMemcpyAsync_ptsz", table_any_async},
        {"cuMemcpy2D_v2", table_2d},
        {"cuMemcpy2DUnaligned_v2", table_2d},
        {"cuMemcpy2DAsync_v2", table_2d_async},
        {"cuMemcpy3D_v2", table_3d},
        {"cuMemcpy3DAsync_v2_ptsz", table_3d_async},
        {"cuMemcpyBatchAsync_v2", table_batch},
        {"cuMemcpy3DBatchAsync_v2", table_batch_3d},
        {"cuTensorMapEncodeTiled", tensor_map},
        {"cuTensorMapReplaceAddress", tensor_map_address},
        {"cuTexObjectCreate", texture},
        {"cuStreamWriteValue32", write_32},
        {"cuStreamWriteValue32_v2", write_32},
        {"cuStreamWriteValue64_v2_ptsz", write_64},
        {"cuStreamBatchMemOp_v2", memory_ops},
        {"cuGraphAddMemsetNode", set_node},
        {"cuGraphAddNode_v2", any_node},
        {"cuGraphAddMemcpyNode", copy_node},
        {"cuGraphAddKernelNode_v2", kernel_node},
        {"cuGraphAddBatchMemOpNode", memory_ops_node},
        {"cuGraphMemsetNodeSetParams", set_node_later},
        {NULL, NULL},
};
