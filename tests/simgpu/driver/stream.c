/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streams: creation, resolution of the default ones, waiting, attributes.
 * Guarded by the lock; the list of per-thread streams belongs to its thread.
 */
#include "tests/simgpu/driver/stream.h"
#include "tests/simgpu/driver/capture.h"
#include "tests/simgpu/driver/ctx.h"
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_id; /* guarded by the lock */

/* The thread's own streams, one for each context it used one in. */
struct own_stream {
	struct sg_ctx *ctx;
	uint64_t ctx_id; /* a context may come to life again */
	struct sg_stream *stream;
	struct own_stream *next;
};
static __thread struct own_stream *own_streams;
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

struct sg_stream *sg_stream_new(
        struct sg_ctx *ctx, enum sg_stream_kind kind, int priority)
{
	struct sg_stream *stream =
	        sg_handle_new(sizeof(*stream), SG_MAGIC_STREAM);

	stream->h.id = ++next_id;
	stream->ctx = ctx;
	stream->legacy = kind == SG_STREAM_LEGACY;
	stream->per_thread = kind == SG_STREAM_PER_THREAD;
	stream->non_blocking = kind == SG_STREAM_NON_BLOCKING;
	stream->priority = priority;
	if (kind == SG_STREAM_BLOCKING || kind == SG_STREAM_PER_THREAD)
		ctx->blocking_streams++;
	stream->next = ctx->streams;
	ctx->streams = stream;
	return stream;
}

void sg_stream_destroy(struct sg_stream *stream)
{
	struct sg_stream **link = &stream->ctx->streams;

	while (*link && *link != stream)
		link = &(*link)->next;
	if (*link)
		*link = stream->next;
	if (!stream->legacy && !stream->non_blocking)
		stream->ctx->blocking_streams--;
	sg_capture_stream_gone(stream);
	for (unsigned i = 0; i < stream->n_waits; i++)
		sg_op_unref(stream->waits[i]);
	free(stream->waits);
	stream->waits = NULL;
	stream->n_waits = stream->cap_waits = 0;
	sg_op_unref(stream->last);
	stream->last = NULL;
	sg_clock_stream_gone(stream);
	sg_handle_kill(stream);
}

void sg_streams_destroy(struct sg_ctx *ctx)
{
	while (ctx->streams)
		sg_stream_destroy(ctx->streams);
}

void sg_stream_add_wait(struct sg_stream *stream, struct sg_op *op)
{
	if (stream->n_waits == stream->cap_waits) {
		stream->cap_waits =
		        stream->cap_waits ? stream->cap_waits * 2 : 4;
		stream->waits = sg_xrealloc(stream->waits,
		        stream->cap_waits * sizeof(*stream->waits));
	}
	stream->waits[stream->n_waits++] = op;
	sg_op_ref(op);
}

/* --------------------------------------------------------- default streams */

static void thread_ends(void *list)
{
	struct own_stream *own = list;

	sg_lock();
	while (own) {
		struct own_stream *next = own->next;

		if (own->stream->h.magic == SG_MAGIC_STREAM)
			sg_stream_destroy(own->stream);
		free(own);
		own = next;
	}
	sg_unlock();
}

static void make_key(void)
{
	pthread_key_create(&own_key, thread_ends);
}

static struct sg_stream *own_stream(struct sg_ctx *ctx)
{
	struct own_stream *own = own_streams;

	while (own && (own->ctx != ctx || own->ctx_id != ctx->h.id))
		own = own->next;
	if (!own) {
		pthread_once(&own_once, make_key);
		own = sg_xcalloc(1, sizeof(*own));
		own->ctx = ctx;
		own->ctx_id = ctx->h.id;
		own->stream = sg_stream_new(ctx, SG_STREAM_PER_THREAD, 0);
		own->next = own_streams;
		own_streams = own;
		pthread_setspecific(own_key, own_streams);
	}
	return own->stream;
}

CUresult sg_stream_resolve(
        CUstream handle, bool per_thread, struct sg_stream **ret_stream)
{
	struct sg_stream *stream = (struct sg_stream *)handle;
	struct sg_ctx *ctx;

	if (handle && handle != CU_STREAM_LEGACY &&
	        handle != CU_STREAM_PER_THREAD) {
		if (!sg_handle_ok(stream, SG_MAGIC_STREAM))
			return CUDA_ERROR_INVALID_HANDLE;
		*ret_stream = stream;
		return CUDA_SUCCESS;
	}
	ctx = sg_ctx_current();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ctx->h.magic != SG_MAGIC_CTX)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (handle == CU_STREAM_PER_THREAD || (!handle && per_thread))
		*ret_stream = own_stream(ctx);
	else
		*ret_stream = ctx->legacy;
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------ creation and death */

static CUresult create(CUstream *ret_stream, unsigned flags, int priority)
{
	struct sg_ctx *ctx = sg_ctx_current();

	if (!ret_stream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	if (priority > SG_PRIORITY_LEAST)
		priority = SG_PRIORITY_LEAST;
	if (priority < SG_PRIORITY_GREATEST)
		priority = SG_PRIORITY_GREATEST;
	*ret_stream = (CUstream)sg_stream_new(ctx,
	        flags ? SG_STREAM_NON_BLOCKING : SG_STREAM_BLOCKING, priority);
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	SG_API(cuStreamCreate, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return create(stream, flags, SG_PRIORITY_LEAST);
}

CUresult cuStreamCreateWithPriority(
        CUstream *stream, unsigned flags, int priority)
{
	SG_API(cuStreamCreateWithPriority, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return create(stream, flags, priority);
}

static CUresult destroy(CUstream handle)
{
	struct sg_stream *stream = (struct sg_stream *)handle;

	if (!handle || handle == CU_STREAM_LEGACY ||
	        handle == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!sg_handle_ok(stream, SG_MAGIC_STREAM) || stream->legacy ||
	        stream->per_thread)
		return CUDA_ERROR_INVALID_HANDLE;
	sg_stream_destroy(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	SG_API(cuStreamDestroy_v2, SG_COST_API, SG_NEED_INIT | SG_NO_STICKY);
	return destroy(stream);
}

CUresult cuStreamDestroy(CUstream stream)
{
	SG_API(cuStreamDestroy, SG_COST_API, SG_NEED_INIT | SG_NO_STICKY);
	return destroy(stream);
}

/* ----------------------------------------------------------------- waiting */

/* The op after which everything now in the stream is done, or NULL. For the
 * null stream and for event waits that no op has taken up a marker is made. */
static CUresult tail(struct sg_stream *stream, struct sg_op **ret_op)
{
	struct sg_op *op;
	CUresult r;

	if (stream->legacy || stream->n_waits) {
		op = sg_op_new(SG_OP_MARKER, stream);
		r = sg_op_enqueue(op);
		if (r)
			return r;
	}
	*ret_op = stream->last;
	return CUDA_SUCCESS;
}

void sg_stream_wait(struct sg_stream *stream)
{
	struct sg_op *op = NULL;

	if (!tail(stream, &op))
		sg_op_wait(op);
}

static CUresult synchronize(CUstream handle, bool per_thread)
{
	struct sg_stream *stream;
	struct sg_op *op = NULL;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (!r && stream->capture)
		r = sg_capture_break(
		        stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (!r)
		r = sg_capture_unsafe();
	if (!r)
		r = tail(stream, &op);
	if (r)
		return r;
	sg_op_wait(op);
	return stream->ctx->dev->sticky;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	SG_API(cuStreamSynchronize, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return synchronize(stream, false);
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	SG_API(cuStreamSynchronize_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return synchronize(stream, true);
}

static CUresult query(CUstream handle, bool per_thread)
{
	struct sg_stream *stream;
	struct sg_op *op = NULL;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (!r && stream->capture)
		r = sg_capture_break(
		        stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (!r)
		r = sg_capture_unsafe();
	if (!r)
		r = tail(stream, &op);
	if (r)
		return r;
	return !op || sg_op_done(op) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamQuery(CUstream stream)
{
	SG_API(cuStreamQuery, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return query(stream, false);
}

CUresult cuStreamQuery_ptsz(CUstream stream)
{
	SG_API(cuStreamQuery_ptsz, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return query(stream, true);
}

static CUresult wait_event(
        CUstream handle, CUevent event_handle, unsigned flags, bool per_thread)
{
	struct sg_event *event = (struct sg_event *)event_handle;
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (!sg_handle_ok(event, SG_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture || event->capture_id)
		return sg_capture_wait_event(stream, event, flags);
	if (event->op)
		stream->ctx->dev->count.event_waits++;
	if (event->op && sg_mutate_wait(stream, event->op))
		return CUDA_SUCCESS;
	/* An op that is done in virtual time may still be new to the stream. */
	if (event->op &&
	        (sg_races_on() || !event->op->done || event->op->host_gate))
		sg_stream_add_wait(stream, event->op);
	return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	SG_API(cuStreamWaitEvent, SG_COST_EVENT, SG_NEED_INIT | SG_NEED_CTX);
	return wait_event(stream, event, flags, false);
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags)
{
	SG_API(cuStreamWaitEvent_ptsz, SG_COST_EVENT,
	        SG_NEED_INIT | SG_NEED_CTX);
	return wait_event(stream, event, flags, true);
}
