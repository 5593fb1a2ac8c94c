/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Nodes by kind: making them, their parameters, and changing those in an
 * instance. All forms go through CUgraphNodeParams. Guarded by the lock.
 */
#include "tests/simgpu/driver/code.h"
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/sg.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------- parameters <-> work */

static CUresult kernel_work(
        const CUDA_KERNEL_NODE_PARAMS_v3 *params, struct sg_node_work *work)
{
	const struct sg_launch shape = {
	        .grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
	        .block = {params->blockDimX, params->blockDimY,
	                params->blockDimZ},
	        .shared_bytes = params->sharedMemBytes,
	};
	CUfunction fn = params->func;

	if (!fn)
		fn = (CUfunction)params->kern;
	return sg_launch_make(
	        fn, &shape, params->kernelParams, params->extra, &work->launch);
}

static CUresult memset_work(
        const CUDA_MEMSET_NODE_PARAMS_v2 *params, struct sg_node_work *work)
{
	if (!params->dst || !params->width || !params->height ||
	        (params->elementSize != 1 && params->elementSize != 2 &&
	                params->elementSize != 4))
		return CUDA_ERROR_INVALID_VALUE;
	work->set = (CUDA_MEMSET_NODE_PARAMS){
	        .dst = params->dst,
	        .pitch = params->pitch,
	        .value = params->value,
	        .elementSize = params->elementSize,
	        .width = params->width,
	        .height = params->height,
	};
	return CUDA_SUCCESS;
}

static CUresult event_work(CUevent event, struct sg_node_work *work)
{
	if (!sg_handle_ok(event, SG_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_VALUE;
	work->event = (struct sg_event *)event;
	return CUDA_SUCCESS;
}

CUresult sg_work_from_params(
        const CUgraphNodeParams *params, struct sg_node_work *ret_work)
{
	struct sg_node_work work = {0};
	CUresult r = CUDA_SUCCESS;

	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		work.kind = SG_NODE_KERNEL;
		r = kernel_work(&params->kernel, &work);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		work.kind = SG_NODE_MEMCPY;
		work.copy = params->memcpy.copyParams;
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		work.kind = SG_NODE_MEMSET;
		r = memset_work(&params->memset, &work);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		work.kind = SG_NODE_HOST;
		if (!params->host.fn)
			r = CUDA_ERROR_INVALID_VALUE;
		work.host.fn = params->host.fn;
		work.host.arg = params->host.userData;
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		work.kind = SG_NODE_CHILD;
		if (!sg_handle_ok(params->graph.graph, SG_MAGIC_GRAPH))
			return CUDA_ERROR_INVALID_VALUE;
		work.child =
		        sg_graph_clone((struct sg_graph *)params->graph.graph);
		break;
	case CU_GRAPH_NODE_TYPE_EMPTY:
		work.kind = SG_NODE_EMPTY;
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		work.kind = SG_NODE_EVENT_WAIT;
		r = event_work(params->eventWait.event, &work);
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		work.kind = SG_NODE_EVENT_RECORD;
		r = event_work(params->eventRecord.event, &work);
		break;
	default:
		return sg_not_supported("this type of graph node");
	}
	if (!r)
		*ret_work = work;
	return r;
}

CUresult sg_node_set_work(struct sg_node *node, struct sg_node_work *work)
{
	if (node->work.kind != work->kind) {
		sg_work_free(work);
		return CUDA_ERROR_INVALID_VALUE;
	}
	sg_work_free(&node->work);
	node->work = *work;
	free(node->param_pointers);
	node->param_pointers = NULL;
	if (work->kind == SG_NODE_CHILD)
		work->child->owner = node;
	return CUDA_SUCCESS;
}

/* --------------------------------------------------------------- add a node */

static CUresult add(CUgraphNode *ret_node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps, const CUgraphNodeParams *params)
{
	struct sg_node_work work;
	CUresult r;

	if (!ret_node || !sg_handle_ok(graph, SG_MAGIC_GRAPH) ||
	        !sg_nodes_ok(deps, n_deps, graph))
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_work_from_params(params, &work);
	if (r)
		return r;
	*ret_node = (CUgraphNode)sg_graph_add((struct sg_graph *)graph, &work,
	        (struct sg_node *const *)deps, n_deps);
	return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps, CUgraphNodeParams *params)
{
	SG_API(cuGraphAddNode, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	return add(node, graph, deps, n_deps, params);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n_deps,
        CUgraphNodeParams *params)
{
	SG_API(cuGraphAddNode_v2, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; data && i < n_deps; i++) {
		if (data[i].from_port || data[i].to_port || data[i].type)
			return sg_not_supported(
			        "a programmatic edge of a graph");
	}
	return add(node, graph, deps, n_deps, params);
}

static CUgraphNodeParams kernel_params(const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	memcpy(&all.kernel, params, sizeof(*params));
	return all;
}

/* Before CUDA 12 a kernel node knew no CUkernel. */
static CUgraphNodeParams kernel_params_v1(
        const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	memcpy(&all.kernel, params, sizeof(*params));
	return all;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps,
        const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphAddKernelNode_v2, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = kernel_params(params);
	return add(node, graph, deps, n_deps, &all);
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps,
        const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphAddKernelNode, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = kernel_params_v1(params);
	return add(node, graph, deps, n_deps, &all);
}

static CUgraphNodeParams memcpy_params(const CUDA_MEMCPY3D *params)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

	all.memcpy.copyParams = *params;
	return all;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps, const CUDA_MEMCPY3D *params,
        CUcontext ctx)
{
	CUgraphNodeParams all;
	SG_API(cuGraphAddMemcpyNode, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = memcpy_params(params);
	return add(node, graph, deps, n_deps, &all);
}

static CUgraphNodeParams memset_params(const CUDA_MEMSET_NODE_PARAMS *params)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

	memcpy(&all.memset, params, sizeof(*params));
	return all;
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps,
        const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	CUgraphNodeParams all;
	SG_API(cuGraphAddMemsetNode, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = memset_params(params);
	return add(node, graph, deps, n_deps, &all);
}

static CUgraphNodeParams host_params(const CUDA_HOST_NODE_PARAMS *params)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_HOST};

	all.host.fn = params->fn;
	all.host.userData = params->userData;
	return all;
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps,
        const CUDA_HOST_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphAddHostNode, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = host_params(params);
	return add(node, graph, deps, n_deps, &all);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps, CUgraph child)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	SG_API(cuGraphAddChildGraphNode, SG_COST_NONE, SG_NEED_INIT);
	all.graph.graph = child;
	return add(node, graph, deps, n_deps, &all);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps)
{
	const CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
	SG_API(cuGraphAddEmptyNode, SG_COST_NONE, SG_NEED_INIT);
	return add(node, graph, deps, n_deps, &all);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps, CUevent event)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
	SG_API(cuGraphAddEventRecordNode, SG_COST_NONE, SG_NEED_INIT);
	all.eventRecord.event = event;
	return add(node, graph, deps, n_deps, &all);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps, CUevent event)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
	SG_API(cuGraphAddEventWaitNode, SG_COST_NONE, SG_NEED_INIT);
	all.eventWait.event = event;
	return add(node, graph, deps, n_deps, &all);
}

/* ----------------------------------------------------------- get parameters */

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

/* ----------------------------------------------------------- set parameters */

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
	all = kernel_params_v1(params);
	return set(any_node(node), &all);
}

CUresult cuGraphKernelNodeSetParams_v2(
        CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphKernelNodeSetParams_v2, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = kernel_params(params);
	return set(any_node(node), &all);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
        const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecKernelNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = kernel_params_v1(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
        const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecKernelNodeSetParams_v2, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = kernel_params(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphMemcpyNodeSetParams(
        CUgraphNode node, const CUDA_MEMCPY3D *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphMemcpyNodeSetParams, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = memcpy_params(params);
	return set(any_node(node), &all);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
        const CUDA_MEMCPY3D *params, CUcontext ctx)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecMemcpyNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = memcpy_params(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphMemsetNodeSetParams(
        CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphMemsetNodeSetParams, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = memset_params(params);
	return set(any_node(node), &all);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
        const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecMemsetNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = memset_params(params);
	return set(sg_exec_node(exec, node), &all);
}

CUresult cuGraphHostNodeSetParams(
        CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphHostNodeSetParams, SG_COST_NONE, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = host_params(params);
	return set(any_node(node), &all);
}

CUresult cuGraphExecHostNodeSetParams(
        CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	CUgraphNodeParams all;
	SG_API(cuGraphExecHostNodeSetParams, SG_COST_API, SG_NEED_INIT);
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	all = host_params(params);
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
