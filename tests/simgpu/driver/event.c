/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events. Each record makes a marker op in the stream, whose end is the event's
 * time. Guarded by the lock.
 */
#include "tests/simgpu/driver/event.h"
#include "tests/simgpu/driver/capture.h"
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/sg.h"

#include <stdlib.h>

#define NS_PER_MS 1e6
/* So many dead events are kept before the oldest is used again, so that a use
 * after destruction is found but a long run stays flat. */
#define DEAD_EVENTS 4096

static uint64_t next_id;
static struct sg_event *dead, **dead_tail = &dead;
static unsigned dead_count;

CUevent sg_event_new(unsigned flags)
{
	struct sg_event *event;

	if (dead_count > DEAD_EVENTS) {
		event = dead;
		dead = event->next_dead;
		dead_count--;
		*event = (struct sg_event){0};
	} else {
		event = sg_handle_new(sizeof(*event), SG_MAGIC_EVENT);
	}
	event->h.magic = SG_MAGIC_EVENT;
	event->h.id = ++next_id;
	event->ctx = sg_ctx_current();
	event->flags = flags;
	return (CUevent)event;
}

CUresult cuEventCreate(CUevent *ret_event, unsigned flags)
{
	const unsigned known = CU_EVENT_BLOCKING_SYNC |
	                       CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

	SG_API(cuEventCreate, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if (!ret_event || (flags & ~known) ||
	        ((flags & CU_EVENT_INTERPROCESS) &&
	                !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_event = sg_event_new(flags);
	return CUDA_SUCCESS;
}

static CUresult destroy(CUevent handle)
{
	struct sg_event *event = (struct sg_event *)handle;

	if (!sg_handle_ok(event, SG_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	sg_op_unref(event->op);
	event->op = NULL;
	free(event->capture_nodes);
	event->capture_nodes = NULL;
	sg_handle_kill(event);
	event->next_dead = NULL;
	*dead_tail = event;
	dead_tail = &event->next_dead;
	dead_count++;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	SG_API(cuEventDestroy_v2, SG_COST_NONE, SG_NEED_INIT | SG_NO_STICKY);
	return destroy(event);
}

CUresult cuEventDestroy(CUevent event)
{
	SG_API(cuEventDestroy, SG_COST_NONE, SG_NEED_INIT | SG_NO_STICKY);
	return destroy(event);
}

CUresult sg_event_record(struct sg_event *event, struct sg_stream *stream)
{
	struct sg_op *op = sg_op_new(SG_OP_MARKER, stream);
	CUresult r = sg_op_enqueue(op);

	if (r)
		return r;
	sg_op_unref(event->op);
	event->op = stream->last;
	sg_op_ref(event->op);
	event->capture_id = 0;
	return CUDA_SUCCESS;
}

static CUresult record(
        CUevent handle, CUstream stream_handle, unsigned flags, bool per_thread)
{
	struct sg_event *event = (struct sg_event *)handle;
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(stream_handle, per_thread, &stream);

	if (r)
		return r;
	if (!sg_handle_ok(event, SG_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (event->ctx->dev != stream->ctx->dev)
		return CUDA_ERROR_INVALID_HANDLE;
	if (stream->capture)
		return sg_capture_record_event(stream, event, flags);
	return sg_event_record(event, stream);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	SG_API(cuEventRecord, SG_COST_EVENT, SG_NEED_INIT | SG_NEED_CTX);
	return record(event, stream, 0, false);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
	SG_API(cuEventRecord_ptsz, SG_COST_EVENT, SG_NEED_INIT | SG_NEED_CTX);
	return record(event, stream, 0, true);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
	SG_API(cuEventRecordWithFlags, SG_COST_EVENT,
	        SG_NEED_INIT | SG_NEED_CTX);
	return record(event, stream, flags, false);
}

CUresult cuEventRecordWithFlags_ptsz(
        CUevent event, CUstream stream, unsigned flags)
{
	SG_API(cuEventRecordWithFlags_ptsz, SG_COST_EVENT,
	        SG_NEED_INIT | SG_NEED_CTX);
	return record(event, stream, flags, true);
}

/* Events of a capture say nothing of the device's work. */
static CUresult usable(const struct sg_event *event)
{
	if (!sg_handle_ok(event, SG_MAGIC_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (event->capture_id)
		return sg_capture_break_id(
		        event->capture_id, CUDA_ERROR_CAPTURED_EVENT);
	return sg_capture_unsafe();
}

CUresult cuEventQuery(CUevent handle)
{
	struct sg_event *event = (struct sg_event *)handle;
	CUresult r;
	SG_API(cuEventQuery, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	r = usable(event);
	if (r)
		return r;
	return !event->op || sg_op_done(event->op) ? CUDA_SUCCESS
	                                           : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent handle)
{
	struct sg_event *event = (struct sg_event *)handle;
	CUresult r;
	SG_API(cuEventSynchronize, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	r = usable(event);
	if (r)
		return r;
	sg_op_wait(event->op);
	return event->ctx->dev->sticky;
}

static CUresult elapsed(float *ms, CUevent first, CUevent second)
{
	const struct sg_event *start = (const struct sg_event *)first;
	const struct sg_event *end = (const struct sg_event *)second;
	double ns;

	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(start, SG_MAGIC_EVENT) ||
	        !sg_handle_ok(end, SG_MAGIC_EVENT) || !start->op || !end->op ||
	        start->capture_id || end->capture_id ||
	        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) ||
	        start->ctx->dev != end->ctx->dev)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!sg_op_done(start->op) || !sg_op_done(end->op))
		return CUDA_ERROR_NOT_READY;
	ns = (double)end->op->end_ns - (double)start->op->end_ns;
	*ms = (float)(ns / NS_PER_MS);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	SG_API(cuEventElapsedTime, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return elapsed(ms, start, end);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	SG_API(cuEventElapsedTime_v2, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return elapsed(ms, start, end);
}
