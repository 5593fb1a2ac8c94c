/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Graphs: graph.c keeps nodes and edges, graph_node.c makes nodes,
 * graph_params.c changes them, graph_exec.c keeps instances and launches them,
 * graph_memory.c what these take of the device, userobj.c the objects a graph
 * keeps alive. Guarded by the lock.
 *
 * A graph owns its nodes, a node its work and child graph, an instance a clone
 * of the graph it was made from. Destroyed graphs, nodes and instances are
 * freed but for the structs themselves, which stay as dead handles.
 */
#ifndef SG_GRAPH_H
#define SG_GRAPH_H

#include "tests/simgpu/driver/sg.h"

struct sg_exec;

struct sg_node {
	struct sg_handle h;
	struct sg_graph *graph;
	struct sg_node_work work;
	struct sg_node **deps; /* nodes this one comes after */
	unsigned n_deps, cap_deps;
	unsigned place;         /* in graph->nodes */
	struct sg_node *source; /* the node it was cloned from, or NULL */
	void **param_pointers;  /* handed out by GetParams of a kernel node */
	CUkernelNodeAttrValue *attributes; /* of a kernel node, as set */

	/* In an instance (graph_exec.c). */
	unsigned branch;      /* the stream it runs in */
	bool disabled, inner; /* inner: another node comes after it */
	struct sg_op *op;     /* of the launch being issued; ref held */
	struct sg_exec *child;
};

struct sg_graph {
	struct sg_handle h;
	struct sg_node **nodes; /* in order of addition */
	unsigned n_nodes, cap_nodes;
	struct sg_node *owner; /* the node whose child it is, or NULL */
	struct sg_kept_object *objects; /* userobj.c */
};

struct sg_graph *sg_graph_new(void);
void sg_graph_destroy(struct sg_graph *graph);
/* A deep copy; each node's source is set. */
struct sg_graph *sg_graph_clone(const struct sg_graph *graph);
/* Takes over what work points to. */
struct sg_node *sg_graph_add(struct sg_graph *graph,
        const struct sg_node_work *work, struct sg_node *const *deps,
        size_t n_deps);
/* No edge twice. */
void sg_node_add_dep(struct sg_node *node, struct sg_node *dep);
void sg_node_destroy(struct sg_node *node);
struct sg_node_work sg_work_clone(const struct sg_node_work *work);
void sg_work_free(struct sg_node_work *work);
/* The clone of source in graph, or NULL. */
struct sg_node *sg_graph_find_clone(
        const struct sg_graph *graph, const struct sg_node *source);
bool sg_nodes_ok(const CUgraphNode *nodes, size_t n, const void *graph);
CUgraphNodeType sg_node_type(const struct sg_node *node);

/* Makes work from public parameters; checks them. */
CUresult sg_work_from_params(
        const CUgraphNodeParams *params, struct sg_node_work *ret_work);
/* The general form of the older ones. */
CUgraphNodeParams sg_kernel_params(const CUDA_KERNEL_NODE_PARAMS *params);
CUgraphNodeParams sg_kernel_params_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *params);
CUgraphNodeParams sg_memcpy_params(const CUDA_MEMCPY3D *params);
CUgraphNodeParams sg_memset_params(const CUDA_MEMSET_NODE_PARAMS *params);
CUgraphNodeParams sg_host_params(const CUDA_HOST_NODE_PARAMS *params);
/* Gives node new parameters of the same type; takes over work. */
CUresult sg_node_set_work(struct sg_node *node, struct sg_node_work *work);

/* graph_memory.c: what an instance takes of its context's memory. */
struct sg_graph_memory {
	struct sg_ctx *ctx; /* NULL: nothing */
	uint64_t ctx_id, bytes;
};
/* For an instance of graph in the current context; without one it takes
 * nothing. CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sg_graph_memory_take(
        const struct sg_graph *graph, struct sg_graph_memory *ret);
void sg_graph_memory_give(const struct sg_graph_memory *memory);

/* userobj.c: what the graph keeps alive is let go of, or shared. */
void sg_graph_objects_release(struct sg_graph *graph);
void sg_graph_objects_share(
        struct sg_graph *graph, const struct sg_graph *from);

/* The node of an instance for one of the graph it was made from; NULL and an
 * invalid value for another. */
struct sg_node *sg_exec_node(CUgraphExec exec, CUgraphNode node);

#endif
