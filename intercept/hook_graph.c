/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of what brings addresses into graphs by hand: their launches do not
 * show them, so that the blocks stay resident, as those of captured graphs do.
 */
#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

static CUresult pin_params(CUfunction function, void **params, void **extra)
{
	struct ts_op op;

	ts_op_init(&op, TS_OP_LAUNCH, NULL);
	op.function = function;
	op.params = params;
	op.extra = extra;
	return ts_agent_pin_op(&op);
}

static CUresult pin_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *node)
{
	if (!node)
		return CUDA_SUCCESS;
	return pin_params(node->func, node->kernelParams, node->extra);
}

/* Without a function the kernel counts; a launch takes it as one too. */
static CUresult pin_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *node)
{
	if (!node)
		return CUDA_SUCCESS;
	return pin_params(node->func ? node->func : (CUfunction)node->kern,
	        node->kernelParams, node->extra);
}

static CUresult pin_copy(const CUDA_MEMCPY3D *copy)
{
	struct ts_op op;
	CUresult rc;

	if (!copy)
		return CUDA_SUCCESS;
	ts_op_init(&op, TS_OP_COPY, "graph copy");
	rc = ts_copy_3d_touch(&op, copy);
	if (rc == CUDA_SUCCESS)
		return ts_agent_pin_op(&op);
	ts_op_finish(&op);
	return rc;
}

static CUresult pin_set(CUdeviceptr dst, size_t pitch, size_t width,
        size_t height, size_t element_bytes)
{
	struct ts_op op;

	ts_op_init(&op, TS_OP_SET, "graph set");
	ts_set_2d_touch(&op, dst, pitch, width, height, element_bytes);
	return ts_agent_pin_op(&op);
}

static CUresult pin_memset(const CUDA_MEMSET_NODE_PARAMS *node)
{
	if (!node)
		return CUDA_SUCCESS;
	return pin_set(node->dst, node->pitch, node->width, node->height,
	        node->elementSize);
}

static CUresult pin_node(const CUgraphNodeParams *node)
{
	const CUDA_KERNEL_NODE_PARAMS_v3 *kernel;

	if (!node)
		return CUDA_SUCCESS;
	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		kernel = &node->kernel;
		return pin_params(
		        kernel->func ? kernel->func : (CUfunction)kernel->kern,
		        kernel->kernelParams, kernel->extra);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return pin_copy(&node->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return pin_set(node->memset.dst, node->memset.pitch,
		        node->memset.width, node->memset.height,
		        node->memset.elementSize);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return ts_pin_mem_ops(
		        node->memOp.paramArray, node->memOp.count);
	default:
		return CUDA_SUCCESS;
	}
}

static CUresult pin_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *node)
{
	return node ? ts_pin_mem_ops(node->paramArray, node->count)
	            : CUDA_SUCCESS;
}

CUresult ts_hook_cuGraphAddBatchMemOpNode(CUgraphNode *ret_node, CUgraph graph,
        const CUgraphNode *dependencies, size_t count,
        const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphAddBatchMemOpNode(
		        ret_node, graph, dependencies, count, params);
	rc = pin_batch(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphAddBatchMemOpNode(
		        ret_node, graph, dependencies, count, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphBatchMemOpNodeSetParams(
        CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphBatchMemOpNodeSetParams(
		        node, params);
	rc = pin_batch(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphBatchMemOpNodeSetParams(node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec executable,
        CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphExecBatchMemOpNodeSetParams(
		        executable, node, params);
	rc = pin_batch(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphExecBatchMemOpNodeSetParams(
		        executable, node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphAddKernelNode(CUgraphNode *ret_node, CUgraph graph,
        const CUgraphNode *dependencies, size_t count,
        const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphAddKernelNode(
		        ret_node, graph, dependencies, count, params);
	rc = pin_kernel_v1(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphAddKernelNode(
		        ret_node, graph, dependencies, count, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphAddKernelNode_v2(CUgraphNode *ret_node, CUgraph graph,
        const CUgraphNode *dependencies, size_t count,
        const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphAddKernelNode_v2(
		        ret_node, graph, dependencies, count, params);
	rc = pin_kernel(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphAddKernelNode_v2(
		        ret_node, graph, dependencies, count, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphAddMemcpyNode(CUgraphNode *ret_node, CUgraph graph,
        const CUgraphNode *dependencies, size_t count,
        const CUDA_MEMCPY3D *params, CUcontext context)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphAddMemcpyNode(
		        ret_node, graph, dependencies, count, params, context);
	rc = pin_copy(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphAddMemcpyNode(
		        ret_node, graph, dependencies, count, params, context);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphAddMemsetNode(CUgraphNode *ret_node, CUgraph graph,
        const CUgraphNode *dependencies, size_t count,
        const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphAddMemsetNode(
		        ret_node, graph, dependencies, count, params, context);
	rc = pin_memset(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphAddMemsetNode(
		        ret_node, graph, dependencies, count, params, context);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphAddNode(CUgraphNode *ret_node, CUgraph graph,
        const CUgraphNode *dependencies, size_t count,
        CUgraphNodeParams *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphAddNode(
		        ret_node, graph, dependencies, count, params);
	rc = pin_node(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphAddNode(
		        ret_node, graph, dependencies, count, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphAddNode_v2(CUgraphNode *ret_node, CUgraph graph,
        const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
        size_t count, CUgraphNodeParams *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphAddNode_v2(
		        ret_node, graph, dependencies, edges, count, params);
	rc = pin_node(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphAddNode_v2(
		        ret_node, graph, dependencies, edges, count, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphExecKernelNodeSetParams(CUgraphExec executable,
        CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphExecKernelNodeSetParams(
		        executable, node, params);
	rc = pin_kernel_v1(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphExecKernelNodeSetParams(
		        executable, node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable,
        CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphExecKernelNodeSetParams_v2(
		        executable, node, params);
	rc = pin_kernel(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphExecKernelNodeSetParams_v2(
		        executable, node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphExecMemcpyNodeSetParams(CUgraphExec executable,
        CUgraphNode node, const CUDA_MEMCPY3D *params, CUcontext context)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphExecMemcpyNodeSetParams(
		        executable, node, params, context);
	rc = pin_copy(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphExecMemcpyNodeSetParams(
		        executable, node, params, context);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphExecMemsetNodeSetParams(CUgraphExec executable,
        CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params,
        CUcontext context)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphExecMemsetNodeSetParams(
		        executable, node, params, context);
	rc = pin_memset(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphExecMemsetNodeSetParams(
		        executable, node, params, context);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphExecNodeSetParams(
        CUgraphExec executable, CUgraphNode node, CUgraphNodeParams *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphExecNodeSetParams(
		        executable, node, params);
	rc = pin_node(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphExecNodeSetParams(
		        executable, node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphKernelNodeSetParams(
        CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphKernelNodeSetParams(node, params);
	rc = pin_kernel_v1(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphKernelNodeSetParams(node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphKernelNodeSetParams_v2(
        CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphKernelNodeSetParams_v2(node, params);
	rc = pin_kernel(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphKernelNodeSetParams_v2(node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphMemcpyNodeSetParams(
        CUgraphNode node, const CUDA_MEMCPY3D *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphMemcpyNodeSetParams(node, params);
	rc = pin_copy(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphMemcpyNodeSetParams(node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphMemsetNodeSetParams(
        CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphMemsetNodeSetParams(node, params);
	rc = pin_memset(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphMemsetNodeSetParams(node, params);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuGraphNodeSetParams(
        CUgraphNode node, CUgraphNodeParams *params)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuGraphNodeSetParams(node, params);
	rc = pin_node(params);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphNodeSetParams(node, params);
	ts_leave();
	return rc;
}
