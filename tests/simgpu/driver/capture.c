/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stream capture: while it goes on, what is put into its streams becomes nodes
 * of a graph. A stream's capture_deps are the nodes its next node comes after.
 * Guarded by the lock; each thread's mode belongs to it.
 */
#include "tests/simgpu/driver/capture.h"
#include "tests/simgpu/driver/ctx.h"
#include "tests/simgpu/driver/graph.h"
#include "tests/simgpu/driver/sg.h"

#include <stdlib.h>
#include <string.h>

struct sg_capture {
	uint64_t id;
	struct sg_graph *graph;
	bool own_graph; /* not one the program gave */
	bool invalid;
	CUstreamCaptureMode mode;
	const void *thread; /* thread_mark of the one that began it */
	struct sg_stream *origin;
	struct sg_capture *next;
};

static struct sg_capture *captures; /* under way */
static uint64_t next_id;
static __thread CUstreamCaptureMode thread_mode; /* 0 is global */
static __thread char thread_mark;

/* ------------------------------------------------------------------- state */

static struct sg_capture *find(uint64_t id)
{
	struct sg_capture *capture = captures;

	while (capture && capture->id != id)
		capture = capture->next;
	return capture;
}

static void add_dep(struct sg_stream *stream, struct sg_node *node)
{
	for (unsigned i = 0; i < stream->n_capture_deps; i++) {
		if (stream->capture_deps[i] == node)
			return;
	}
	if (stream->n_capture_deps == stream->cap_capture_deps) {
		stream->cap_capture_deps =
		        stream->cap_capture_deps ? stream->cap_capture_deps * 2
		                                 : 4;
		stream->capture_deps = sg_xrealloc(stream->capture_deps,
		        stream->cap_capture_deps *
		                sizeof(*stream->capture_deps));
	}
	stream->capture_deps[stream->n_capture_deps++] = node;
}

static void leave(struct sg_stream *stream)
{
	stream->capture = NULL;
	free(stream->capture_deps);
	stream->capture_deps = NULL;
	stream->n_capture_deps = stream->cap_capture_deps = 0;
}

/* All streams let go of the capture, which ends. */
static void end(struct sg_capture *capture, bool keep_graph)
{
	struct sg_capture **link = &captures;

	for (struct sg_ctx *ctx = sg_ctx_first(); ctx; ctx = ctx->next) {
		for (struct sg_stream *s = ctx->streams; s; s = s->next) {
			if (s->capture == capture)
				leave(s);
		}
	}
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	if (!keep_graph && capture->own_graph)
		sg_graph_destroy(capture->graph);
	free(capture);
}

CUresult sg_capture_break(struct sg_stream *stream, CUresult error)
{
	if (stream->capture)
		stream->capture->invalid = true;
	return error;
}

CUresult sg_capture_break_id(uint64_t id, CUresult error)
{
	struct sg_capture *capture = find(id);

	if (capture)
		capture->invalid = true;
	return error;
}

void sg_capture_stream_gone(struct sg_stream *stream)
{
	struct sg_capture *capture = stream->capture;

	if (!capture)
		return;
	capture->invalid = true;
	leave(stream);
	if (capture->origin == stream)
		end(capture, false);
}

CUresult sg_capture_add(
        struct sg_stream *stream, const struct sg_node_work *work)
{
	struct sg_node *node;

	if (stream->capture->invalid) {
		struct sg_node_work mine = *work;

		sg_work_free(&mine);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	node = sg_graph_add(stream->capture->graph, work, stream->capture_deps,
	        stream->n_capture_deps);
	stream->n_capture_deps = 0;
	add_dep(stream, node);
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------- rules */

/* A blocking stream that captures, or NULL. */
static struct sg_stream *blocking_capture(const struct sg_ctx *ctx)
{
	struct sg_stream *stream = captures ? ctx->streams : NULL;

	while (stream && (!stream->capture || stream->non_blocking))
		stream = stream->next;
	return stream;
}

CUresult sg_capture_implicit(struct sg_ctx *ctx)
{
	struct sg_stream *stream = blocking_capture(ctx);

	if (!stream)
		return CUDA_SUCCESS;
	return sg_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

CUresult sg_capture_unsafe(void)
{
	CUresult r = CUDA_SUCCESS;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	for (struct sg_capture *c = captures; c; c = c->next) {
		bool mine = c->thread == &thread_mark;

		if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (!mine && (thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
		                     c->mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
			continue;
		c->invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return r;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;
	SG_API(cuThreadExchangeStreamCaptureMode, SG_COST_NONE, SG_NEED_INIT);
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------ events */

CUresult sg_capture_record_event(
        struct sg_stream *stream, struct sg_event *event, unsigned flags)
{
	size_t bytes = stream->n_capture_deps * sizeof(*stream->capture_deps);

	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (flags & CU_EVENT_RECORD_EXTERNAL) {
		const struct sg_node_work work = {
		        .kind = SG_NODE_EVENT_RECORD, .event = event};

		return sg_capture_add(stream, &work);
	}
	sg_op_unref(event->op);
	event->op = NULL;
	event->capture_id = stream->capture->id;
	event->n_capture_nodes = stream->n_capture_deps;
	event->capture_nodes = sg_xrealloc(event->capture_nodes, bytes);
	if (bytes)
		memcpy(event->capture_nodes, stream->capture_deps, bytes);
	return CUDA_SUCCESS;
}

/* Waits for an event recorded in a capture: joins it. */
static CUresult join(struct sg_stream *stream, const struct sg_event *event)
{
	struct sg_capture *capture = find(event->capture_id);

	if (!capture)
		return sg_capture_break(stream, CUDA_ERROR_CAPTURED_EVENT);
	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->legacy) {
		capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (stream->capture && stream->capture != capture) {
		capture->invalid = stream->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	stream->capture = capture;
	for (unsigned i = 0; i < event->n_capture_nodes; i++)
		add_dep(stream, event->capture_nodes[i]);
	return CUDA_SUCCESS;
}

CUresult sg_capture_wait_event(
        struct sg_stream *stream, struct sg_event *event, unsigned flags)
{
	if (stream->capture && stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->capture && (flags & CU_EVENT_WAIT_EXTERNAL)) {
		const struct sg_node_work work = {
		        .kind = SG_NODE_EVENT_WAIT, .event = event};

		return sg_capture_add(stream, &work);
	}
	if (event->capture_id)
		return join(stream, event);
	if (!event->op) /* never recorded: nothing to wait for */
		return CUDA_SUCCESS;
	return sg_capture_break(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
}

/* ------------------------------------------------------------------- begin */

static CUresult begin(CUstream handle, bool per_thread, CUgraph graph,
        const CUgraphNode *deps, size_t n_deps, CUstreamCaptureMode mode)
{
	struct sg_capture *capture;
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (graph && (!sg_handle_ok(graph, SG_MAGIC_GRAPH) ||
	                     !sg_nodes_ok(deps, n_deps, graph)))
		return CUDA_ERROR_INVALID_VALUE;
	capture = sg_xcalloc(1, sizeof(*capture));
	capture->id = ++next_id;
	capture->own_graph = !graph;
	capture->graph = graph ? (struct sg_graph *)graph : sg_graph_new();
	capture->mode = mode;
	capture->thread = &thread_mark;
	capture->origin = stream;
	capture->next = captures;
	captures = capture;
	stream->capture = capture;
	for (size_t i = 0; i < n_deps; i++)
		add_dep(stream, (struct sg_node *)deps[i]);
	return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	SG_API(cuStreamBeginCapture_v2, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return begin(stream, false, NULL, NULL, 0, mode);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
	SG_API(cuStreamBeginCapture_v2_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return begin(stream, true, NULL, NULL, 0, mode);
}

CUresult cuStreamBeginCapture(CUstream stream)
{
	SG_API(cuStreamBeginCapture, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return begin(
	        stream, false, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
	SG_API(cuStreamBeginCapture_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return begin(
	        stream, true, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
        const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n_deps,
        CUstreamCaptureMode mode)
{
	SG_API(cuStreamBeginCaptureToGraph, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	return begin(stream, false, graph, deps, n_deps, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
        const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n_deps,
        CUstreamCaptureMode mode)
{
	SG_API(cuStreamBeginCaptureToGraph_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	return begin(stream, true, graph, deps, n_deps, mode);
}

/* --------------------------------------------------------------------- end */

static void mark_ahead(bool *ahead, const struct sg_node *node)
{
	if (ahead[node->place])
		return;
	ahead[node->place] = true;
	for (unsigned d = 0; d < node->n_deps; d++)
		mark_ahead(ahead, node->deps[d]);
}

/* Is all work of the other streams ahead of the origin's? */
static bool joined(const struct sg_capture *capture)
{
	const struct sg_stream *origin = capture->origin;
	bool *ahead = sg_xcalloc(capture->graph->n_nodes, sizeof(*ahead));
	bool all = true;

	for (unsigned i = 0; i < origin->n_capture_deps; i++)
		mark_ahead(ahead, origin->capture_deps[i]);
	for (struct sg_ctx *ctx = sg_ctx_first(); ctx; ctx = ctx->next) {
		for (struct sg_stream *s = ctx->streams; s; s = s->next) {
			if (s->capture != capture)
				continue;
			for (unsigned i = 0; i < s->n_capture_deps; i++)
				all &= ahead[s->capture_deps[i]->place];
		}
	}
	free(ahead);
	return all;
}

static CUresult end_api(CUstream handle, bool per_thread, CUgraph *ret_graph)
{
	struct sg_capture *capture;
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (!ret_graph)
		return CUDA_ERROR_INVALID_VALUE;
	capture = stream->capture;
	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream) {
		capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
	        capture->thread != &thread_mark)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (capture->invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!joined(capture))
		r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	*ret_graph = r ? NULL : (CUgraph)capture->graph;
	end(capture, !r);
	return r;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	SG_API(cuStreamEndCapture, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return end_api(stream, false, graph);
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	SG_API(cuStreamEndCapture_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return end_api(stream, true, graph);
}

/* -------------------------------------------------------------------- info */

CUresult sg_capture_info(
        CUstream handle, bool per_thread, struct sg_capture_info *ret_info)
{
	struct sg_capture_info info = {0};
	const struct sg_capture *capture;
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (stream->legacy && blocking_capture(stream->ctx))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	capture = stream->capture;
	info.status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (capture) {
		info.status = capture->invalid
		                      ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
		                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		info.id = capture->id;
		info.graph = (CUgraph)capture->graph;
		info.deps = (const CUgraphNode *)stream->capture_deps;
		info.n_deps = stream->n_capture_deps;
	}
	*ret_info = info;
	return CUDA_SUCCESS;
}

CUresult sg_capture_set_deps(CUstream handle, bool per_thread,
        CUgraphNode *deps, size_t n_deps, unsigned flags)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (!stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES ||
	        !sg_nodes_ok(deps, n_deps, stream->capture->graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		stream->n_capture_deps = 0;
	for (size_t i = 0; i < n_deps; i++)
		add_dep(stream, (struct sg_node *)deps[i]);
	return CUDA_SUCCESS;
}
