/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Instances of graphs and their launches. An instance has a stream of its own
 * for each branch of the graph: a node follows the first node ahead of it whose
 * branch has no successor yet, else begins a branch; the other nodes ahead of
 * it are waited for. Launches of one instance follow each other. Guarded by the
 * lock.
 */
#include "tests/simgpu/driver/capture.h"
#include "tests/simgpu/driver/event.h"
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/stream.h"

#include <stdlib.h>
#include <string.h>

#define NO_BRANCH UINT32_MAX

struct sg_exec {
	struct sg_handle h;
	struct sg_graph *graph; /* a clone, its nodes in order of execution */
	struct sg_ctx *ctx;     /* of the branches' streams */
	uint64_t ctx_id;
	struct sg_stream **streams;
	unsigned n_branches;
	cuuint64_t flags;
	struct sg_op *last; /* end of the launch before; ref held */
	struct sg_graph_memory memory;
};

static uint64_t next_id;

/* ----------------------------------------------------------- instantiation */

/* Puts the nodes into an order that respects the edges, otherwise that of
 * addition. False: the edges form a cycle; *ret_bad is a node of it. */
static bool sort_nodes(struct sg_graph *graph, struct sg_node **ret_bad)
{
	unsigned n = graph->n_nodes, sorted = 0;
	struct sg_node **order = sg_xcalloc(n, sizeof(*order));
	bool *placed = sg_xcalloc(n, sizeof(*placed)), progress = true;

	while (sorted < n && progress) {
		progress = false;
		for (unsigned i = 0; i < n; i++) {
			const struct sg_node *node = graph->nodes[i];
			bool free_now = !placed[i];

			for (unsigned d = 0; free_now && d < node->n_deps; d++)
				free_now = placed[node->deps[d]->place];
			if (!free_now)
				continue;
			placed[i] = true;
			order[sorted++] = graph->nodes[i];
			progress = true;
		}
	}
	for (unsigned i = 0; sorted < n && i < n; i++) {
		if (!placed[i])
			*ret_bad = graph->nodes[i];
	}
	if (n && sorted == n) {
		memcpy(graph->nodes, order, n * sizeof(*order));
		for (unsigned i = 0; i < n; i++)
			graph->nodes[i]->place = i;
	}
	free(placed);
	free(order);
	return sorted == n;
}

static void assign_branches(struct sg_exec *exec)
{
	struct sg_graph *graph = exec->graph;

	for (unsigned i = 0; i < graph->n_nodes; i++) {
		struct sg_node *node = graph->nodes[i];

		node->branch = NO_BRANCH;
		for (unsigned d = 0; d < node->n_deps; d++) {
			struct sg_node *dep = node->deps[d];

			if (node->branch == NO_BRANCH && !dep->inner)
				node->branch = dep->branch;
			dep->inner = true;
		}
		if (node->branch == NO_BRANCH)
			node->branch = exec->n_branches++;
	}
}

static void exec_finish(struct sg_exec *exec)
{
	for (unsigned i = 0; i < exec->graph->n_nodes; i++) {
		struct sg_exec *child = exec->graph->nodes[i]->child;

		if (child)
			exec_finish(child);
	}
	for (unsigned b = 0; exec->streams && b < exec->n_branches; b++) {
		if (exec->streams[b]->h.magic == SG_MAGIC_STREAM)
			sg_stream_destroy(exec->streams[b]);
	}
	free(exec->streams);
	exec->streams = NULL;
	sg_op_unref(exec->last);
	exec->last = NULL;
	sg_graph_memory_give(&exec->memory);
	sg_graph_destroy(exec->graph);
	sg_handle_kill(exec);
}

/* NULL: the graph has a cycle; *ret_bad is a node of it. */
static struct sg_exec *exec_new(
        const struct sg_graph *graph, struct sg_node **ret_bad)
{
	struct sg_exec *exec =
	        sg_handle_new(sizeof(*exec), SG_MAGIC_GRAPH_EXEC);

	exec->h.id = ++next_id;
	exec->graph = sg_graph_clone(graph);
	if (!sort_nodes(exec->graph, ret_bad)) {
		*ret_bad = (*ret_bad)->source;
		exec_finish(exec);
		return NULL;
	}
	assign_branches(exec);
	for (unsigned i = 0; i < exec->graph->n_nodes; i++) {
		struct sg_node *node = exec->graph->nodes[i];

		if (node->work.kind != SG_NODE_CHILD)
			continue;
		node->child = exec_new(node->work.child, ret_bad);
		if (!node->child) {
			*ret_bad = node->source;
			exec_finish(exec);
			return NULL;
		}
	}
	return exec;
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph graph,
        cuuint64_t flags, CUgraphNode *ret_bad)
{
	const cuuint64_t known =
	        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
	        CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
	        CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	struct sg_node *bad = NULL;
	struct sg_exec *exec;
	CUresult r;

	if (!ret_exec || !sg_handle_ok(graph, SG_MAGIC_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return sg_not_supported("launching graphs from the device");
	if (flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	exec = exec_new((struct sg_graph *)graph, &bad);
	if (!exec) {
		if (ret_bad)
			*ret_bad = (CUgraphNode)bad;
		return CUDA_ERROR_INVALID_VALUE;
	}
	r = sg_graph_memory_take(exec->graph, &exec->memory);
	if (r) {
		exec_finish(exec);
		return r;
	}
	exec->flags = flags;
	*ret_exec = (CUgraphExec)exec;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(
        CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	SG_API(cuGraphInstantiateWithFlags, SG_COST_API, SG_NEED_INIT);
	return instantiate(exec, graph, flags, NULL);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *bad,
        char *log, size_t log_bytes)
{
	SG_API(cuGraphInstantiate, SG_COST_API, SG_NEED_INIT);
	if (log && log_bytes)
		log[0] = '\0';
	return instantiate(exec, graph, 0, bad);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph,
        CUgraphNode *bad, char *log, size_t log_bytes)
{
	SG_API(cuGraphInstantiate_v2, SG_COST_API, SG_NEED_INIT);
	if (log && log_bytes)
		log[0] = '\0';
	return instantiate(exec, graph, 0, bad);
}

static CUresult instantiate_params(
        CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUresult r;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	r = instantiate(exec, graph, params->flags, &params->hErrNode_out);
	params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	if (r)
		params->result_out =
		        params->hErrNode_out
		                ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
		                : CUDA_GRAPH_INSTANTIATE_ERROR;
	return r;
}

CUresult cuGraphInstantiateWithParams(
        CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	SG_API(cuGraphInstantiateWithParams, SG_COST_API, SG_NEED_INIT);
	return instantiate_params(exec, graph, params);
}

CUresult cuGraphInstantiateWithParams_ptsz(
        CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	SG_API(cuGraphInstantiateWithParams_ptsz, SG_COST_API, SG_NEED_INIT);
	return instantiate_params(exec, graph, params);
}

CUresult cuGraphExecDestroy(CUgraphExec handle)
{
	struct sg_exec *exec = (struct sg_exec *)handle;
	SG_API(cuGraphExecDestroy, SG_COST_API, SG_NEED_INIT);
	if (!sg_handle_ok(exec, SG_MAGIC_GRAPH_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	exec_finish(exec);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
	const struct sg_exec *exec = (const struct sg_exec *)handle;
	SG_API(cuGraphExecGetFlags, SG_COST_NONE, SG_NEED_INIT);
	if (!flags || !sg_handle_ok(exec, SG_MAGIC_GRAPH_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = exec->flags;
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------ launch */

/* The branches run in the context of the stream they are launched into. */
static void make_streams(struct sg_exec *exec, struct sg_ctx *ctx)
{
	if (exec->streams && exec->ctx == ctx && exec->ctx_id == ctx->h.id)
		return;
	for (unsigned b = 0; exec->streams && b < exec->n_branches; b++) {
		if (exec->streams[b]->h.magic == SG_MAGIC_STREAM)
			sg_stream_destroy(exec->streams[b]);
	}
	free(exec->streams);
	exec->streams = sg_xcalloc(exec->n_branches, sizeof(*exec->streams));
	for (unsigned b = 0; b < exec->n_branches; b++) {
		exec->streams[b] =
		        sg_stream_new(ctx, SG_STREAM_NON_BLOCKING, 0);
		exec->streams[b]->of_graph = true;
	}
	exec->ctx = ctx;
	exec->ctx_id = ctx->h.id;
}

static CUresult mark(struct sg_stream *stream)
{
	return sg_op_enqueue(sg_op_new(SG_OP_MARKER, stream));
}

static CUresult launch(struct sg_exec *exec, struct sg_stream *stream);

static CUresult issue(struct sg_node *node, struct sg_stream *stream)
{
	if (node->disabled)
		return mark(stream);
	switch (node->work.kind) {
	case SG_NODE_CHILD:
		return launch(node->child, stream);
	case SG_NODE_EVENT_RECORD:
		if (!sg_handle_ok(node->work.event, SG_MAGIC_EVENT))
			return CUDA_ERROR_INVALID_HANDLE;
		return sg_event_record(node->work.event, stream);
	case SG_NODE_EVENT_WAIT:
		if (!sg_handle_ok(node->work.event, SG_MAGIC_EVENT))
			return CUDA_ERROR_INVALID_HANDLE;
		if (node->work.event->op)
			sg_stream_add_wait(stream, node->work.event->op);
		return mark(stream);
	case SG_NODE_EMPTY:
		return mark(stream);
	default:
		return sg_node_issue(&node->work, stream);
	}
}

static CUresult launch_nodes(struct sg_exec *exec, struct sg_op *begin)
{
	const struct sg_graph *graph = exec->graph;

	for (unsigned i = 0; i < graph->n_nodes; i++) {
		struct sg_node *node = graph->nodes[i];
		struct sg_stream *stream = exec->streams[node->branch];
		CUresult r;

		if (!node->n_deps)
			sg_stream_add_wait(stream, begin);
		for (unsigned d = 0; d < node->n_deps; d++) {
			if (node->deps[d]->op != stream->last)
				sg_stream_add_wait(stream, node->deps[d]->op);
		}
		stream->priority = begin->stream->priority;
		r = issue(node, stream);
		if (r)
			return r;
		node->op = stream->last;
		sg_op_ref(node->op);
	}
	return CUDA_SUCCESS;
}

static CUresult launch(struct sg_exec *exec, struct sg_stream *stream)
{
	const struct sg_graph *graph = exec->graph;
	struct sg_op *begin;
	CUresult r;

	make_streams(exec, stream->ctx);
	if (exec->last)
		sg_stream_add_wait(stream, exec->last);
	r = mark(stream);
	if (r)
		return r;
	begin = stream->last;
	sg_op_ref(begin);
	r = launch_nodes(exec, begin);
	for (unsigned i = 0; i < graph->n_nodes; i++) {
		struct sg_node *node = graph->nodes[i];

		if (node->op && !node->inner)
			sg_stream_add_wait(stream, node->op);
		sg_op_unref(node->op);
		node->op = NULL;
	}
	sg_op_unref(begin);
	if (!r)
		r = mark(stream);
	if (r)
		return r;
	sg_op_unref(exec->last);
	exec->last = stream->last;
	sg_op_ref(exec->last);
	return CUDA_SUCCESS;
}

static CUresult launch_api(CUgraphExec handle, CUstream stream, bool per_thread)
{
	struct sg_exec *exec = (struct sg_exec *)handle;
	struct sg_stream *target;
	CUresult r = sg_stream_resolve(stream, per_thread, &target);

	if (r)
		return r;
	if (!sg_handle_ok(exec, SG_MAGIC_GRAPH_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	if (target->capture) {
		const struct sg_node_work work = {
		        .kind = SG_NODE_CHILD,
		        .child = sg_graph_clone(exec->graph),
		};
		return sg_capture_add(target, &work);
	}
	return launch(exec, target);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	SG_API(cuGraphLaunch, SG_COST_LAUNCH, SG_NEED_INIT | SG_NEED_CTX);
	return launch_api(exec, stream, false);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	SG_API(cuGraphLaunch_ptsz, SG_COST_LAUNCH, SG_NEED_INIT | SG_NEED_CTX);
	return launch_api(exec, stream, true);
}

static CUresult upload(CUgraphExec exec, CUstream stream, bool per_thread)
{
	struct sg_stream *target;
	CUresult r = sg_stream_resolve(stream, per_thread, &target);

	if (!r && !sg_handle_ok(exec, SG_MAGIC_GRAPH_EXEC))
		r = CUDA_ERROR_INVALID_VALUE;
	return r; /* nothing to prepare */
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	SG_API(cuGraphUpload, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return upload(exec, stream, false);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	SG_API(cuGraphUpload_ptsz, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return upload(exec, stream, true);
}

/* ------------------------------------------------------------------ change */

struct sg_node *sg_exec_node(CUgraphExec handle, CUgraphNode node)
{
	const struct sg_exec *exec = (const struct sg_exec *)handle;

	if (!sg_handle_ok(exec, SG_MAGIC_GRAPH_EXEC) ||
	        !sg_handle_ok(node, SG_MAGIC_GRAPH_NODE))
		return NULL;
	return sg_graph_find_clone(exec->graph, (struct sg_node *)node);
}

CUresult cuGraphNodeSetEnabled(
        CUgraphExec exec, CUgraphNode handle, unsigned enabled)
{
	struct sg_node *node;
	SG_API(cuGraphNodeSetEnabled, SG_COST_NONE, SG_NEED_INIT);
	node = sg_exec_node(exec, handle);
	if (!node || (node->work.kind != SG_NODE_KERNEL &&
	                     node->work.kind != SG_NODE_MEMCPY &&
	                     node->work.kind != SG_NODE_MEMSET))
		return CUDA_ERROR_INVALID_VALUE;
	node->disabled = !enabled;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(
        CUgraphExec exec, CUgraphNode handle, unsigned *enabled)
{
	const struct sg_node *node;
	SG_API(cuGraphNodeGetEnabled, SG_COST_NONE, SG_NEED_INIT);
	node = sg_exec_node(exec, handle);
	if (!node || !enabled)
		return CUDA_ERROR_INVALID_VALUE;
	*enabled = !node->disabled;
	return CUDA_SUCCESS;
}

static CUresult update(struct sg_exec *exec, const struct sg_graph *graph,
        CUgraphExecUpdateResult *result, struct sg_node **ret_bad);

/* Replaces the child graph of an instance's node. */
static CUresult update_child(struct sg_node *node, const struct sg_graph *child,
        CUgraphExecUpdateResult *result, struct sg_node **ret_bad)
{
	return update(node->child, child, result, ret_bad);
}

CUresult cuGraphExecChildGraphNodeSetParams(
        CUgraphExec exec, CUgraphNode handle, CUgraph child)
{
	CUgraphExecUpdateResult result;
	struct sg_node *node, *bad;
	SG_API(cuGraphExecChildGraphNodeSetParams, SG_COST_API, SG_NEED_INIT);
	node = sg_exec_node(exec, handle);
	if (!node || node->work.kind != SG_NODE_CHILD ||
	        !sg_handle_ok(child, SG_MAGIC_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	return update_child(node, (struct sg_graph *)child, &result, &bad) ==
	                       CUDA_SUCCESS
	               ? CUDA_SUCCESS
	               : CUDA_ERROR_INVALID_VALUE;
}

/* Do both nodes come after the same ones? Both graphs are in one order. */
static bool same_deps(const struct sg_node *a, const struct sg_node *b)
{
	if (a->n_deps != b->n_deps)
		return false;
	for (unsigned i = 0; i < a->n_deps; i++) {
		bool found = false;

		for (unsigned j = 0; j < b->n_deps && !found; j++)
			found = a->deps[i]->place == b->deps[j]->place;
		if (!found)
			return false;
	}
	return true;
}

static CUgraphExecUpdateResult compare(const struct sg_graph *old,
        const struct sg_graph *new, struct sg_node **ret_bad)
{
	*ret_bad = NULL;
	if (old->n_nodes != new->n_nodes)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (unsigned i = 0; i < old->n_nodes; i++) {
		*ret_bad = new->nodes[i]->source;
		if (!same_deps(old->nodes[i], new->nodes[i]))
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (old->nodes[i]->work.kind != new->nodes[i]->work.kind)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
	}
	*ret_bad = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update(struct sg_exec *exec, const struct sg_graph *graph,
        CUgraphExecUpdateResult *result, struct sg_node **ret_bad)
{
	struct sg_graph *clone = sg_graph_clone(graph);
	CUresult r = CUDA_SUCCESS;

	*ret_bad = NULL;
	*result = sort_nodes(clone, ret_bad)
	                  ? compare(exec->graph, clone, ret_bad)
	                  : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (unsigned i = 0; !*result && i < clone->n_nodes; i++) {
		struct sg_node *old = exec->graph->nodes[i];
		struct sg_node *new = clone->nodes[i];
		struct sg_node_work work = new->work;

		if (work.kind == SG_NODE_CHILD)
			r = update_child(old, work.child, result, ret_bad);
		/* The old work goes with the clone, the new one stays. */
		new->work = old->work;
		old->work = work;
		if (work.kind == SG_NODE_CHILD)
			work.child->owner = old;
		old->source = new->source;
		free(old->param_pointers);
		old->param_pointers = NULL;
	}
	if (*result)
		r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	else
		sg_graph_objects_share(exec->graph, clone);
	sg_graph_destroy(clone);
	return r;
}

CUresult cuGraphExecUpdate_v2(
        CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct sg_node *bad = NULL;
	CUresult r;
	SG_API(cuGraphExecUpdate_v2, SG_COST_API, SG_NEED_INIT);
	if (!info || !sg_handle_ok(exec, SG_MAGIC_GRAPH_EXEC) ||
	        !sg_handle_ok(graph, SG_MAGIC_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	memset(info, 0, sizeof(*info));
	r = update((struct sg_exec *)exec, (struct sg_graph *)graph,
	        &info->result, &bad);
	info->errorNode = (CUgraphNode)bad;
	return r;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph,
        CUgraphNode *ret_bad, CUgraphExecUpdateResult *result)
{
	struct sg_node *bad = NULL;
	CUresult r;
	SG_API(cuGraphExecUpdate, SG_COST_API, SG_NEED_INIT);
	if (!result || !ret_bad || !sg_handle_ok(exec, SG_MAGIC_GRAPH_EXEC) ||
	        !sg_handle_ok(graph, SG_MAGIC_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	r = update(
	        (struct sg_exec *)exec, (struct sg_graph *)graph, result, &bad);
	*ret_bad = (CUgraphNode)bad;
	return r;
}
