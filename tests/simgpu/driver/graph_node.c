/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Making nodes of each kind. All forms of parameters go through
 * CUgraphNodeParams. Guarded by the lock.
 */
#include "tests/simgpu/driver/code.h"
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

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

/* -------------------------------------------------------------- add a node */

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

CUgraphNodeParams sg_kernel_params(const CUDA_KERNEL_NODE_PARAMS *params)
{
	CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	memcpy(&all.kernel, params, sizeof(*params));
	return all;
}

/* Before CUDA 12 a kernel node knew no CUkernel. */
CUgraphNodeParams sg_kernel_params_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
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
	all = sg_kernel_params(params);
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
	all = sg_kernel_params_v1(params);
	return add(node, graph, deps, n_deps, &all);
}

CUgraphNodeParams sg_memcpy_params(const CUDA_MEMCPY3D *params)
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
	all = sg_memcpy_params(params);
	return add(node, graph, deps, n_deps, &all);
}

CUgraphNodeParams sg_memset_params(const CUDA_MEMSET_NODE_PARAMS *params)
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
	all = sg_memset_params(params);
	return add(node, graph, deps, n_deps, &all);
}

CUgraphNodeParams sg_host_params(const CUDA_HOST_NODE_PARAMS *params)
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
	all = sg_host_params(params);
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

/* ---------------------------------------------- memory nodes of the device */

/* There are no memory nodes, so they hold no memory. */
CUresult cuDeviceGetGraphMemAttribute(
        CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	SG_API(cuDeviceGetGraphMemAttribute, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	*(cuuint64_t *)value = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(
        CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	SG_API(cuDeviceSetGraphMemAttribute, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	/* Only the high watermarks can be set, and only to zero. */
	if (!value || *(cuuint64_t *)value ||
	        (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH &&
	                attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	SG_API(cuDeviceGraphMemTrim, SG_COST_API, SG_NEED_INIT);
	return sg_device_get(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
