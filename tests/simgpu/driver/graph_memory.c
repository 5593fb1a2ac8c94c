/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Device memory that instances of graphs take for their kernel nodes,
 * SIMGPU_GRAPH_NODE_BYTES each, in whole pages of their context, with which it
 * goes. Guarded by the lock.
 */
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/sg.h"

static uint64_t kernel_nodes(const struct sg_graph *graph)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < graph->n_nodes; i++) {
		const struct sg_node_work *work = &graph->nodes[i]->work;

		if (work->kind == SG_NODE_KERNEL)
			n++;
		else if (work->kind == SG_NODE_CHILD)
			n += kernel_nodes(work->child);
	}
	return n;
}

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + SG_PAGE_BYTES - 1) / SG_PAGE_BYTES * SG_PAGE_BYTES;
}

CUresult sg_graph_memory_take(
        const struct sg_graph *graph, struct sg_graph_memory *ret)
{
	struct sg_ctx *ctx = sg_ctx_current();
	uint64_t bytes, more;

	*ret = (struct sg_graph_memory){0};
	if (!ctx)
		return CUDA_SUCCESS;
	bytes = kernel_nodes(graph) * sg_settings.graph_node_bytes;
	more = whole_pages(ctx->graph_bytes + bytes) -
	       whole_pages(ctx->graph_bytes);
	if (sg_physical_take(ctx->dev, more))
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->graph_bytes += bytes;
	*ret = (struct sg_graph_memory){ctx, ctx->h.id, bytes};
	return CUDA_SUCCESS;
}

void sg_graph_memory_give(const struct sg_graph_memory *memory)
{
	struct sg_ctx *ctx = memory->ctx;
	uint64_t before;

	/* Its context may have gone, and another come in its place. */
	if (!ctx || !sg_handle_ok(ctx, SG_MAGIC_CTX) ||
	        ctx->h.id != memory->ctx_id)
		return;
	before = whole_pages(ctx->graph_bytes);
	ctx->graph_bytes -= memory->bytes;
	sg_physical_give(ctx->dev, before - whole_pages(ctx->graph_bytes));
}

void sg_graph_memory_ctx_gone(struct sg_ctx *ctx)
{
	sg_physical_give(ctx->dev, whole_pages(ctx->graph_bytes));
	ctx->graph_bytes = 0;
}
