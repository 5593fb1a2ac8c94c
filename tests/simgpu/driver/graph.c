/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Graphs, their nodes and edges. Guarded by the lock.
 */
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/sg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_graph_id, next_node_id;

/* --------------------------------------------------------------- structure */

struct sg_graph *sg_graph_new(void)
{
	struct sg_graph *graph = sg_handle_new(sizeof(*graph), SG_MAGIC_GRAPH);

	graph->h.id = ++next_graph_id;
	return graph;
}

struct sg_node_work sg_work_clone(const struct sg_node_work *work)
{
	struct sg_node_work copy = *work;

	if (work->kind == SG_NODE_KERNEL)
		copy.launch = sg_launch_dup(work->launch);
	if (work->kind == SG_NODE_CHILD)
		copy.child = sg_graph_clone(work->child);
	return copy;
}

void sg_work_free(struct sg_node_work *work)
{
	if (work->kind == SG_NODE_KERNEL)
		sg_launch_free(work->launch);
	if (work->kind == SG_NODE_CHILD)
		sg_graph_destroy(work->child);
	work->kind = SG_NODE_EMPTY;
}

void sg_node_add_dep(struct sg_node *node, struct sg_node *dep)
{
	for (unsigned i = 0; i < node->n_deps; i++) {
		if (node->deps[i] == dep)
			return;
	}
	if (node->n_deps == node->cap_deps) {
		node->cap_deps = node->cap_deps ? node->cap_deps * 2 : 2;
		node->deps = sg_xrealloc(
		        node->deps, node->cap_deps * sizeof(*node->deps));
	}
	node->deps[node->n_deps++] = dep;
}

static bool remove_dep(struct sg_node *node, const struct sg_node *dep)
{
	for (unsigned i = 0; i < node->n_deps; i++) {
		if (node->deps[i] != dep)
			continue;
		memmove(&node->deps[i], &node->deps[i + 1],
		        (node->n_deps - i - 1) * sizeof(*node->deps));
		node->n_deps--;
		return true;
	}
	return false;
}

struct sg_node *sg_graph_add(struct sg_graph *graph,
        const struct sg_node_work *work, struct sg_node *const *deps,
        size_t n_deps)
{
	struct sg_node *node =
	        sg_handle_new(sizeof(*node), SG_MAGIC_GRAPH_NODE);

	node->h.id = ++next_node_id;
	node->graph = graph;
	node->work = *work;
	if (work->kind == SG_NODE_CHILD)
		work->child->owner = node;
	for (size_t i = 0; i < n_deps; i++)
		sg_node_add_dep(node, deps[i]);
	if (graph->n_nodes == graph->cap_nodes) {
		graph->cap_nodes = graph->cap_nodes ? graph->cap_nodes * 2 : 16;
		graph->nodes = sg_xrealloc(
		        graph->nodes, graph->cap_nodes * sizeof(*graph->nodes));
	}
	node->place = graph->n_nodes;
	graph->nodes[graph->n_nodes++] = node;
	return node;
}

/* Frees what a node holds; the struct stays as a dead handle. */
static void node_finish(struct sg_node *node)
{
	sg_work_free(&node->work);
	free(node->deps);
	free(node->param_pointers);
	free(node->attributes);
	node->deps = NULL;
	node->param_pointers = NULL;
	node->attributes = NULL;
	node->n_deps = 0;
	sg_handle_kill(node);
}

void sg_node_destroy(struct sg_node *node)
{
	struct sg_graph *graph = node->graph;

	for (unsigned i = 0; i < graph->n_nodes; i++)
		remove_dep(graph->nodes[i], node);
	memmove(&graph->nodes[node->place], &graph->nodes[node->place + 1],
	        (graph->n_nodes - node->place - 1) * sizeof(*graph->nodes));
	graph->n_nodes--;
	for (unsigned i = node->place; i < graph->n_nodes; i++)
		graph->nodes[i]->place = i;
	node_finish(node);
}

void sg_graph_destroy(struct sg_graph *graph)
{
	for (unsigned i = 0; i < graph->n_nodes; i++)
		node_finish(graph->nodes[i]);
	free(graph->nodes);
	graph->nodes = NULL;
	graph->n_nodes = graph->cap_nodes = 0;
	sg_graph_objects_release(graph);
	sg_handle_kill(graph);
}

struct sg_graph *sg_graph_clone(const struct sg_graph *graph)
{
	struct sg_graph *clone = sg_graph_new();

	for (unsigned i = 0; i < graph->n_nodes; i++) {
		const struct sg_node_work work =
		        sg_work_clone(&graph->nodes[i]->work);

		sg_graph_add(clone, &work, NULL, 0)->source = graph->nodes[i];
	}
	for (unsigned i = 0; i < graph->n_nodes; i++) {
		const struct sg_node *node = graph->nodes[i];

		for (unsigned d = 0; d < node->n_deps; d++)
			sg_node_add_dep(clone->nodes[i],
			        clone->nodes[node->deps[d]->place]);
	}
	sg_graph_objects_share(clone, graph);
	return clone;
}

struct sg_node *sg_graph_find_clone(
        const struct sg_graph *graph, const struct sg_node *source)
{
	for (unsigned i = 0; i < graph->n_nodes; i++) {
		if (graph->nodes[i]->source == source)
			return graph->nodes[i];
	}
	return NULL;
}

bool sg_nodes_ok(const CUgraphNode *nodes, size_t n, const void *graph)
{
	if (n && !nodes)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct sg_node *node = (const struct sg_node *)nodes[i];

		if (!sg_handle_ok(node, SG_MAGIC_GRAPH_NODE) ||
		        node->graph != graph)
			return false;
	}
	return true;
}

CUgraphNodeType sg_node_type(const struct sg_node *node)
{
	switch (node->work.kind) {
	case SG_NODE_KERNEL:
		return CU_GRAPH_NODE_TYPE_KERNEL;
	case SG_NODE_MEMCPY:
		return CU_GRAPH_NODE_TYPE_MEMCPY;
	case SG_NODE_MEMSET:
		return CU_GRAPH_NODE_TYPE_MEMSET;
	case SG_NODE_HOST:
		return CU_GRAPH_NODE_TYPE_HOST;
	case SG_NODE_EVENT_RECORD:
		return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
	case SG_NODE_EVENT_WAIT:
		return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
	case SG_NODE_CHILD:
		return CU_GRAPH_NODE_TYPE_GRAPH;
	case SG_NODE_MEM_ALLOC:
		return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	case SG_NODE_MEM_FREE:
		return CU_GRAPH_NODE_TYPE_MEM_FREE;
	case SG_NODE_EMPTY:
		break;
	}
	return CU_GRAPH_NODE_TYPE_EMPTY;
}

/* --------------------------------------------------------------------- API */

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
	SG_API(cuGraphCreate, SG_COST_API, SG_NEED_INIT);
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = (CUgraph)sg_graph_new();
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle)
{
	struct sg_graph *graph = (struct sg_graph *)handle;
	SG_API(cuGraphDestroy, SG_COST_API, SG_NEED_INIT);
	if (!sg_handle_ok(graph, SG_MAGIC_GRAPH) || graph->owner)
		return CUDA_ERROR_INVALID_VALUE;
	sg_graph_destroy(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	SG_API(cuGraphClone, SG_COST_API, SG_NEED_INIT);
	if (!clone || !sg_handle_ok(graph, SG_MAGIC_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	*clone = (CUgraph)sg_graph_clone((struct sg_graph *)graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(
        CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
	SG_API(cuGraphNodeFindInClone, SG_COST_NONE, SG_NEED_INIT);
	if (!node || !sg_handle_ok(original, SG_MAGIC_GRAPH_NODE) ||
	        !sg_handle_ok(clone, SG_MAGIC_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	*node = (CUgraphNode)sg_graph_find_clone(
	        (struct sg_graph *)clone, (struct sg_node *)original);
	return *node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	SG_API(cuGraphNodeGetType, SG_COST_NONE, SG_NEED_INIT);
	if (!type || !sg_handle_ok(node, SG_MAGIC_GRAPH_NODE))
		return CUDA_ERROR_INVALID_VALUE;
	*type = sg_node_type((struct sg_node *)node);
	return CUDA_SUCCESS;
}

/* Lists are asked for twice: for their length, then with room for so many
 * entries; what is too much room is filled with NULL. */
struct list {
	CUgraphNode *first, *second; /* second: of edges; either may be NULL */
	size_t room, found;
};

static void list_add(
        struct list *list, const struct sg_node *a, const struct sg_node *b)
{
	if (list->found < list->room) {
		if (list->first)
			list->first[list->found] = (CUgraphNode)a;
		if (list->second)
			list->second[list->found] = (CUgraphNode)b;
	}
	list->found++;
}

static void list_end(const struct list *list, size_t *ret_count)
{
	for (size_t i = list->found; i < list->room; i++) {
		if (list->first)
			list->first[i] = NULL;
		if (list->second)
			list->second[i] = NULL;
	}
	if (list->room && list->found > list->room)
		*ret_count = list->room;
	else
		*ret_count = list->found;
}

static CUresult list_nodes(
        CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots)
{
	const struct sg_graph *graph = (const struct sg_graph *)handle;
	struct list list = {.first = nodes};

	if (!count || !sg_handle_ok(graph, SG_MAGIC_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	list.room = nodes ? *count : 0;
	for (unsigned i = 0; i < graph->n_nodes; i++) {
		if (!roots || !graph->nodes[i]->n_deps)
			list_add(&list, graph->nodes[i], NULL);
	}
	list_end(&list, count);
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	SG_API(cuGraphGetNodes, SG_COST_NONE, SG_NEED_INIT);
	return list_nodes(graph, nodes, count, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	SG_API(cuGraphGetRootNodes, SG_COST_NONE, SG_NEED_INIT);
	return list_nodes(graph, nodes, count, true);
}

static void clear_edges(CUgraphEdgeData *data, size_t count)
{
	if (data)
		memset(data, 0, count * sizeof(*data));
}

static CUresult list_edges(
        CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	const struct sg_graph *graph = (const struct sg_graph *)handle;
	struct list list = {.first = from, .second = to};

	if (!count || !sg_handle_ok(graph, SG_MAGIC_GRAPH) || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	list.room = from ? *count : 0;
	for (unsigned i = 0; i < graph->n_nodes; i++) {
		const struct sg_node *node = graph->nodes[i];

		for (unsigned d = 0; d < node->n_deps; d++)
			list_add(&list, node->deps[d], node);
	}
	list_end(&list, count);
	return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(
        CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	SG_API(cuGraphGetEdges, SG_COST_NONE, SG_NEED_INIT);
	return list_edges(graph, from, to, count);
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
        CUgraphEdgeData *data, size_t *count)
{
	CUresult r;
	SG_API(cuGraphGetEdges_v2, SG_COST_NONE, SG_NEED_INIT);
	r = list_edges(graph, from, to, count);
	if (!r && from)
		clear_edges(data, *count);
	return r;
}

static CUresult list_neighbours(
        CUgraphNode handle, CUgraphNode *nodes, size_t *count, bool after)
{
	const struct sg_node *node = (const struct sg_node *)handle;
	struct list list = {.first = nodes};

	if (!count || !sg_handle_ok(node, SG_MAGIC_GRAPH_NODE))
		return CUDA_ERROR_INVALID_VALUE;
	list.room = nodes ? *count : 0;
	for (unsigned d = 0; !after && d < node->n_deps; d++)
		list_add(&list, node->deps[d], NULL);
	for (unsigned i = 0; after && i < node->graph->n_nodes; i++) {
		const struct sg_node *other = node->graph->nodes[i];

		for (unsigned d = 0; d < other->n_deps; d++) {
			if (other->deps[d] == node)
				list_add(&list, other, NULL);
		}
	}
	list_end(&list, count);
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(
        CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	SG_API(cuGraphNodeGetDependencies, SG_COST_NONE, SG_NEED_INIT);
	return list_neighbours(node, nodes, count, false);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes,
        CUgraphEdgeData *data, size_t *count)
{
	CUresult r;
	SG_API(cuGraphNodeGetDependencies_v2, SG_COST_NONE, SG_NEED_INIT);
	r = list_neighbours(node, nodes, count, false);
	if (!r && nodes)
		clear_edges(data, *count);
	return r;
}

CUresult cuGraphNodeGetDependentNodes(
        CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	SG_API(cuGraphNodeGetDependentNodes, SG_COST_NONE, SG_NEED_INIT);
	return list_neighbours(node, nodes, count, true);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes,
        CUgraphEdgeData *data, size_t *count)
{
	CUresult r;
	SG_API(cuGraphNodeGetDependentNodes_v2, SG_COST_NONE, SG_NEED_INIT);
	r = list_neighbours(node, nodes, count, true);
	if (!r && nodes)
		clear_edges(data, *count);
	return r;
}

static CUresult change_edges(CUgraph graph, const CUgraphNode *from,
        const CUgraphNode *to, size_t count, bool add)
{
	if (!sg_handle_ok(graph, SG_MAGIC_GRAPH) ||
	        !sg_nodes_ok(from, count, graph) ||
	        !sg_nodes_ok(to, count, graph))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct sg_node *before = (struct sg_node *)from[i];
		struct sg_node *after = (struct sg_node *)to[i];

		if (!add) {
			if (!remove_dep(after, before))
				return CUDA_ERROR_INVALID_VALUE;
			continue;
		}
		if (before == after)
			return CUDA_ERROR_INVALID_VALUE;
		sg_node_add_dep(after, before);
	}
	return CUDA_SUCCESS;
}

/* Edges of programmatic launches would start a node before the one ahead of
 * it ends; here every edge is a full one. */
static bool edges_full(const CUgraphEdgeData *data, size_t count)
{
	for (size_t i = 0; data && i < count; i++) {
		if (data[i].from_port || data[i].to_port || data[i].type)
			return false;
	}
	return true;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
        const CUgraphNode *to, size_t count)
{
	SG_API(cuGraphAddDependencies, SG_COST_NONE, SG_NEED_INIT);
	return change_edges(graph, from, to, count, true);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
        const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
	SG_API(cuGraphAddDependencies_v2, SG_COST_NONE, SG_NEED_INIT);
	if (!edges_full(data, count))
		return sg_not_supported("a programmatic edge of a graph");
	return change_edges(graph, from, to, count, true);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from,
        const CUgraphNode *to, size_t count)
{
	SG_API(cuGraphRemoveDependencies, SG_COST_NONE, SG_NEED_INIT);
	return change_edges(graph, from, to, count, false);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
        const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
	SG_API(cuGraphRemoveDependencies_v2, SG_COST_NONE, SG_NEED_INIT);
	if (!edges_full(data, count))
		return CUDA_ERROR_INVALID_VALUE;
	return change_edges(graph, from, to, count, false);
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	SG_API(cuGraphDestroyNode, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_handle_ok(node, SG_MAGIC_GRAPH_NODE))
		return CUDA_ERROR_INVALID_VALUE;
	sg_node_destroy((struct sg_node *)node);
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------- print */

static void print_label(FILE *file, const struct sg_node *node)
{
	static const char *const names[] = {
	        [SG_NODE_KERNEL] = "KERNEL",
	        [SG_NODE_MEMCPY] = "MEMCPY",
	        [SG_NODE_MEMSET] = "MEMSET",
	        [SG_NODE_HOST] = "HOST",
	        [SG_NODE_EMPTY] = "EMPTY",
	        [SG_NODE_EVENT_RECORD] = "EVENT_RECORD",
	        [SG_NODE_EVENT_WAIT] = "EVENT_WAIT",
	        [SG_NODE_CHILD] = "GRAPH",
	        [SG_NODE_MEM_ALLOC] = "MEM_ALLOC",
	        [SG_NODE_MEM_FREE] = "MEM_FREE",
	};

	fprintf(file, "%u %s", node->place, names[node->work.kind]);
	if (node->work.kind == SG_NODE_KERNEL)
		fprintf(file, "\\n%s", node->work.launch->fn->name);
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned flags)
{
	const struct sg_graph *graph = (const struct sg_graph *)handle;
	FILE *file;
	SG_API(cuGraphDebugDotPrint, SG_COST_NONE, SG_NEED_INIT);
	if (!path || !sg_handle_ok(graph, SG_MAGIC_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "w");
	if (!file)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fprintf(file, "digraph graph_%lu {\n", (unsigned long)graph->h.id);
	for (unsigned i = 0; i < graph->n_nodes; i++) {
		fprintf(file, "\tn%u [label=\"", i);
		print_label(file, graph->nodes[i]);
		fprintf(file, "\"];\n");
	}
	for (unsigned i = 0; i < graph->n_nodes; i++) {
		const struct sg_node *node = graph->nodes[i];

		for (unsigned d = 0; d < node->n_deps; d++)
			fprintf(file, "\tn%u -> n%u;\n", node->deps[d]->place,
			        i);
	}
	fprintf(file, "}\n");
	return fclose(file) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
