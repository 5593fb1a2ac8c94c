/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Graphs: creation, structure, instantiation, user objects. Node parameters
 * stand in graph_node.c, launch and capture in stream.c.
 */
#include "rt.h"

cudaError_t CUDARTAPI cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphCreate(graph, flags));
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphDestroy(graph));
}

cudaError_t CUDARTAPI cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphClone(clone, graph));
}

cudaError_t CUDARTAPI cudaGraphDebugDotPrint(
        cudaGraph_t graph, const char *path, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphDebugDotPrint(graph, path, flags));
}

/* ---------------------------------------------------------------- structure */

cudaError_t CUDARTAPI cudaGraphGetNodes(
        cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphGetNodes(graph, nodes, count));
}

cudaError_t CUDARTAPI cudaGraphGetRootNodes(
        cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphGetRootNodes(graph, nodes, count));
}

cudaError_t CUDARTAPI cudaGraphGetEdges(cudaGraph_t graph,
        cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *edges,
        size_t *count)
{
	_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData),
	        "edge data have one layout");
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphGetEdges(
	        graph, from, to, (CUgraphEdgeData *)edges, count));
}

cudaError_t CUDARTAPI cudaGraphNodeGetType(
        cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphNodeGetType(node, (CUgraphNodeType *)type));
}

cudaError_t CUDARTAPI cudaGraphNodeGetDependencies(cudaGraphNode_t node,
        cudaGraphNode_t *dependencies, cudaGraphEdgeData *edges, size_t *count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphNodeGetDependencies(
	        node, dependencies, (CUgraphEdgeData *)edges, count));
}

cudaError_t CUDARTAPI cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
        cudaGraphNode_t *dependents, cudaGraphEdgeData *edges, size_t *count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphNodeGetDependentNodes(
	        node, dependents, (CUgraphEdgeData *)edges, count));
}

cudaError_t CUDARTAPI cudaGraphNodeFindInClone(
        cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t clone)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphNodeFindInClone(node, original, clone));
}

cudaError_t CUDARTAPI cudaGraphAddDependencies(cudaGraph_t graph,
        const cudaGraphNode_t *from, const cudaGraphNode_t *to,
        const cudaGraphEdgeData *edges, size_t count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphAddDependencies(
	        graph, from, to, (const CUgraphEdgeData *)edges, count));
}

cudaError_t CUDARTAPI cudaGraphRemoveDependencies(cudaGraph_t graph,
        const cudaGraphNode_t *from, const cudaGraphNode_t *to,
        const cudaGraphEdgeData *edges, size_t count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphRemoveDependencies(
	        graph, from, to, (const CUgraphEdgeData *)edges, count));
}

cudaError_t CUDARTAPI cudaGraphDestroyNode(cudaGraphNode_t node)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphDestroyNode(node));
}

/* ------------------------------------------------------------ instantiation */

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(
        cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t CUDARTAPI cudaGraphInstantiate(
        cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphExecGetFlags(
        cudaGraphExec_t exec, unsigned long long *flags)
{
	cuuint64_t driver_flags = 0;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_done(drv()->GraphExecGetFlags(exec, &driver_flags));
	if (!err)
		*flags = driver_flags;
	return err;
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphExecDestroy(exec));
}

cudaError_t CUDARTAPI cudaGraphExecUpdate(cudaGraphExec_t exec,
        cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info)
{
	_Static_assert(sizeof(*info) == sizeof(CUgraphExecUpdateResultInfo),
	        "update results have one layout");
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphExecUpdate(
	        exec, graph, (CUgraphExecUpdateResultInfo *)info));
}

cudaError_t CUDARTAPI cudaGraphNodeSetEnabled(
        cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphNodeSetEnabled(exec, node, enabled));
}

cudaError_t CUDARTAPI cudaGraphNodeGetEnabled(
        cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphNodeGetEnabled(exec, node, enabled));
}

cudaError_t CUDARTAPI cudaGraphConditionalHandleCreate(
        cudaGraphConditionalHandle *handle, cudaGraph_t graph,
        unsigned default_value, unsigned flags)
{
	CUgraphConditionalHandle driver_handle;
	CUcontext ctx;
	cudaError_t err = rt_enter_context(&ctx);

	if (err)
		return err;
	err = rt_done(drv()->GraphConditionalHandleCreate(
	        &driver_handle, graph, ctx, default_value, flags));
	if (!err)
		*handle = driver_handle;
	return err;
}

/* ------------------------------------------------------------- user objects */

cudaError_t CUDARTAPI cudaUserObjectCreate(cudaUserObject_t *object, void *ptr,
        cudaHostFn_t destroy, unsigned refs, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->UserObjectCreate(object, ptr, destroy, refs, flags));
}

cudaError_t CUDARTAPI cudaUserObjectRetain(
        cudaUserObject_t object, unsigned count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->UserObjectRetain(object, count));
}

cudaError_t CUDARTAPI cudaUserObjectRelease(
        cudaUserObject_t object, unsigned count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->UserObjectRelease(object, count));
}

cudaError_t CUDARTAPI cudaGraphRetainUserObject(cudaGraph_t graph,
        cudaUserObject_t object, unsigned count, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->GraphRetainUserObject(graph, object, count, flags));
}

cudaError_t CUDARTAPI cudaGraphReleaseUserObject(
        cudaGraph_t graph, cudaUserObject_t object, unsigned count)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphReleaseUserObject(graph, object, count));
}
