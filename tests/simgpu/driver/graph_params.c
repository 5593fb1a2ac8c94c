/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Asking for and changing the parameters of nodes, in a graph or an instance of
 * it. Guarded by the lock.
 */
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/sg.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------- get parameters */

static struct sg_node *node_of(CUgraphNode handle, enum sg_node_kind kind)
{
	struct sg_node *node = (struct sg_node *)handle;

	if (!sg_handle_ok(node, SG_MAGIC_GRAPH_NODE) || node->work.kind != kind)
		return NULL;
	return node;
}

/* The node keeps the array of pointers into its copy of the parameters. */
static void get_kernel(struct sg_node *node, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	const struct sg_launch *launch = node->work.launch;

	if (!node->param_pointers && launch->fn->n_params) {
		node->param_pointers = sg_xcalloc(
		        launch->fn->n_params, sizeof(*node->param_pointers));
		for (unsigned i = 0; i < launch->fn->n_params; i++)
			node->param_pointers[i] =
			        launch->params +
			        launch->fn->params[i].offset_bytes;
	}
	*params = (CUDA_KERNEL_NODE_PARAMS_v1){
	        .func = (CUfunction)launch->fn,
	        .gridDimX = launch->grid[0],
	        .gridDimY = launch->grid[1],
	        .gridDimZ = launch->grid[2],
	        .blockDimX = launch->block[0],
	        .blockDimY = launch->block[1],
	        .blockDimZ = launch->block[2],
	        .sharedMemBytes = launch->shared_bytes,
	        .kernelParams = node->param_pointers,
	};
}

CUresult cuGraphKernelNodeGetParams(
        CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	struct sg_node *node;
	SG_API(cuGraphKernelNodeGetParams, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_KERNEL);
	if (!node || !params)
		return CUDA_ERROR_INVALID_VALUE;
	get_kernel(node, params);
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(
        CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *params)
{
	CUDA_KERNEL_NODE_PARAMS_v1 old;
	struct sg_node *node;
	SG_API(cuGraphKernelNodeGetParams_v2, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_KERNEL);
	if (!node || !params)
		return CUDA_ERROR_INVALID_VALUE;
	get_kernel(node, &old);
	memset(params, 0, sizeof(*params));
	memcpy(params, &old, sizeof(old));
	return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *params)
{
	const struct sg_node *node;
	SG_API(cuGraphMemcpyNodeGetParams, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_MEMCPY);
	if (!node || !params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = node->work.copy;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(
        CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *params)
{
	const struct sg_node *node;
	SG_API(cuGraphMemsetNodeGetParams, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_MEMSET);
	if (!node || !params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = node->work.set;
	return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(
        CUgraphNode handle, CUDA_HOST_NODE_PARAMS *params)
{
	const struct sg_node *node;
	SG_API(cuGraphHostNodeGetParams, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_HOST);
	if (!node || !params)
		return CUDA_ERROR_INVALID_VALUE;
	params->fn = node->work.host.fn;
	params->userData = node->work.host.arg;
	return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *graph)
{
	const struct sg_node *node;
	SG_API(cuGraphChildGraphNodeGetGraph, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_CHILD);
	if (!node || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = (CUgraph)node->work.child;
	return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent *event)
{
	const struct sg_node *node;
	SG_API(cuGraphEventRecordNodeGetEvent, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_EVENT_RECORD);
	if (!node || !event)
		return CUDA_ERROR_INVALID_VALUE;
	*event = (CUevent)node->work.event;
	return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent *event)
{
	const struct sg_node *node;
	SG_API(cuGraphEventWaitNodeGetEvent, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_EVENT_WAIT);
	if (!node || !event)
		return CUDA_ERROR_INVALID_VALUE;
	*event = (CUevent)node->work.event;
	return CUDA_SUCCESS;
}

/* ---------------------------------------------------------- set parameters */

static CUresult set(struct sg_node *node, const CUgraphNodeParams *params)
{
	struct sg_node_work work;
	CUresult r;

	if (!node || sg_node_type(node) != params->type)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_work_from_params(params, &work);
	return r ? r : sg_node_set_work(node, &work);
}

static struct sg_node *any_node(CUgraphNode handle)
{
	return sg_handle_ok(handle, SG_MAGIC_GRAPH_NODE)
	               ? (struct sg_node *)handle
	               : NULL;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
	SG_API(cuGraphNodeSetParams, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	return set(any_node(node), params);
}

CUresult cuGraphExecNodeSetParams(
        CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	SG_API(cuGraphExecNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	return set(sg_exec_node(exec, node), params);
}

CUresult cuGraphKernelNodeSetParams(
        CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphKernelNodeSetParams, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_kernel_params_v1(params);
	return set(any_node(node), &all);
}

CUresult cuGraphKernelNodeSetParams_v2(
        CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphKernelNodeSetParams_v2, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_kernel_params(params);
	return set(any_node(node), &all);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
        const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecKernelNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_kernel_params_v1(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
        const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecKernelNodeSetParams_v2, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_kernel_params(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphMemcpyNodeSetParams(
        CUgraphNode node, const CUDA_MEMCPY3D *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphMemcpyNodeSetParams, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_memcpy_params(params);
	return set(any_node(node), &all);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
        const CUDA_MEMCPY3D *params, CUcontext ctx)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecMemcpyNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_memcpy_params(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphMemsetNodeSetParams(
        CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphMemsetNodeSetParams, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_memset_params(params);
	return set(any_node(node), &all);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
        const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecMemsetNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_memset_params(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphHostNodeSetParams(
        CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphHostNodeSetParams, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_host_params(params);
	return set(any_node(node), &all);
}

CUresult cuGraphExecHostNodeSetParams(
        CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecHostNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = sg_host_params(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
	SG_API(cuGraphEventRecordNodeSetEvent, SG_COST_NONE, SG_NEED_INIT);
	all.eventRecord.event = event;
	return set(any_node(node), &all);
}

CUresult cuGraphExecEventRecordNodeSetEvent(
        CUgraphExec exec, CUgraphNode node, CUevent event)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
	SG_API(cuGraphExecEventRecordNodeSetEvent, SG_COST_API, SG_NEED_INIT);
	all.eventRecord.event = event;
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
	SG_API(cuGraphEventWaitNodeSetEvent, SG_COST_NONE, SG_NEED_INIT);
	all.eventWait.event = event;
	return set(any_node(node), &all);
}

CUresult cuGraphExecEventWaitNodeSetEvent(
        CUgraphExec exec, CUgraphNode node, CUevent event)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
	SG_API(cuGraphExecEventWaitNodeSetEvent, SG_COST_API, SG_NEED_INIT);
	all.eventWait.event = event;
	return set(sg_exec_node(exec, node), &all);
}

/* --------------------------------------------- attributes of kernel nodes */

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle,
        CUkernelNodeAttrID attribute, CUkernelNodeAttrValue *value)
{
	const struct sg_node *node;
	SG_API(cuGraphKernelNodeGetAttribute, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_KERNEL);
	if (!node || !value || (unsigned)attribute >= SG_STREAM_ATTRIBUTES)
		return CUDA_ERROR_INVALID_VALUE;
	memset(value, 0, sizeof(*value));
	if (node->attributes)
		*value = node->attributes[attribute];
	if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		value->cooperative = node->work.launch->cooperative;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle,
        CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue *value)
{
	struct sg_node *node;
	SG_API(cuGraphKernelNodeSetAttribute, SG_COST_NONE, SG_NEED_INIT);
	node = node_of(handle, SG_NODE_KERNEL);
	if (!node || !value || (unsigned)attribute >= SG_STREAM_ATTRIBUTES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!node->attributes)
		node->attributes = sg_xcalloc(
		        SG_STREAM_ATTRIBUTES, sizeof(*node->attributes));
	node->attributes[attribute] = *value;
	if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		node->work.launch->cooperative = value->cooperative != 0;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
	struct sg_node *target;
	const struct sg_node *source;
	SG_API(cuGraphKernelNodeCopyAttributes, SG_COST_NONE, SG_NEED_INIT);
	target = node_of(to, SG_NODE_KERNEL);
	source = node_of(from, SG_NODE_KERNEL);
	if (!target || !source)
		return CUDA_ERROR_INVALID_VALUE;
	free(target->attributes);
	target->attributes = NULL;
	if (source->attributes) {
		target->attributes = sg_xcalloc(
		        SG_STREAM_ATTRIBUTES, sizeof(*target->attributes));
		memcpy(target->attributes, source->attributes,
		        SG_STREAM_ATTRIBUTES * sizeof(*target->attributes));
	}
	target->work.launch->cooperative = source->work.launch->cooperative;
	return CUDA_SUCCESS;
}
