/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ts_streams_init(
        struct ts_streams *streams, const struct ts_gpu_ops *ops, CUcontext own)
{
	memset(streams, 0, sizeof(*streams));
	streams->ops = ops;
	streams->own = own;
}

void ts_streams_finish(struct ts_streams *streams, bool driver_alive)
{
	for (size_t i = 0; driver_alive && i < streams->count; i++)
		for (size_t j = 0; j < TS_STREAM_MARKS; j++)
			if (streams->streams[i].marks[j].event)
				streams->ops->event_destroy(
				        streams->streams[i].marks[j].event);
	free(streams->streams);
	streams->streams = NULL;
	streams->count = 0;
	streams->capacity = 0;
}

static CUcontext context_of(
        const struct ts_streams *streams, const struct ts_stream *stream)
{
	uint64_t context = stream->key & ~TS_STREAM_KIND;

	if (!(stream->key & TS_STREAM_KIND))
		return stream->context;
	return context ? (CUcontext)(uintptr_t)context : streams->own;
}

static struct ts_stream *find(struct ts_streams *streams, ts_stream_key key)
{
	/* One name for what belongs to the pager's context. */
	if ((key & ~TS_STREAM_KIND) == (uint64_t)(uintptr_t)streams->own)
		key &= TS_STREAM_KIND;
	for (size_t i = 0; i < streams->count; i++)
		if (streams->streams[i].key == key)
			return &streams->streams[i];
	return NULL;
}

/* Its events stay for the next stream of the entry. */
static void clear(struct ts_stream *stream, ts_stream_key key)
{
	for (size_t i = 0; i < TS_STREAM_MARKS; i++)
		stream->marks[i].number = 0;
	stream->key = key;
	stream->context = NULL;
	stream->issued = 0;
	stream->done = 0;
	stream->since_mark = 0;
	stream->marking = false;
	stream->waits = (struct ts_fence){0};
}

static bool pending(const struct ts_stream *stream, uint64_t number)
{
	return stream->done < stream->issued && stream->done < number;
}

static void finished(struct ts_stream *stream, uint64_t number)
{
	if (number > stream->done)
		stream->done = number;
}

static bool grow(struct ts_streams *streams)
{
	size_t capacity = streams->capacity ? 2 * streams->capacity : 16;
	void *grown =
	        realloc(streams->streams, capacity * sizeof(*streams->streams));

	if (!grown)
		return false;
	streams->streams = grown;
	streams->capacity = capacity;
	return true;
}

/* A place for a new stream: that of an idle one before more memory. */
static struct ts_stream *place(struct ts_streams *streams)
{
	for (size_t i = 0; i < streams->count; i++)
		if (streams->streams[i].key == TS_STREAM_NONE)
			return &streams->streams[i];
	if (streams->count == streams->capacity)
		for (size_t i = 0; i < streams->count; i++)
			if (streams->streams[i].done >=
			        streams->streams[i].issued)
				return &streams->streams[i];
	if (streams->count == streams->capacity && !grow(streams))
		return NULL;
	streams->streams[streams->count] = (struct ts_stream){0};
	return &streams->streams[streams->count++];
}

struct ts_stream *ts_streams_entry(
        struct ts_streams *streams, ts_stream_key key)
{
	struct ts_stream *stream = find(streams, key);

	if (stream)
		return stream;
	if ((key & ~TS_STREAM_KIND) == (uint64_t)(uintptr_t)streams->own)
		key &= TS_STREAM_KIND;
	stream = place(streams);
	if (stream)
		clear(stream, key);
	return stream;
}

int ts_streams_issued(
        struct ts_streams *streams, ts_stream_key key, uint64_t number)
{
	struct ts_stream *stream = ts_streams_entry(streams, key);

	if (!stream)
		return -ENOMEM;
	if (number > stream->issued)
		stream->issued = number;
	return 0;
}

void ts_streams_destroyed(
        struct ts_streams *streams, ts_stream_key key, CUcontext context)
{
	struct ts_stream *stream = find(streams, key), *rest, last;

	if (!stream)
		return;
	last = *stream;
	clear(stream, TS_STREAM_NONE);
	if (last.done >= last.issued)
		return;
	streams->moved++;
	/* There is a place: one was just left. */
	rest = ts_streams_entry(streams, ts_stream_whole(context));
	if (last.issued > rest->issued)
		rest->issued = last.issued;
}

static bool is_of(const struct ts_streams *streams,
        const struct ts_stream *stream, CUcontext context)
{
	return stream->key != TS_STREAM_NONE &&
	       context_of(streams, stream) ==
	               (context ? context : streams->own);
}

void ts_streams_synchronized(
        struct ts_streams *streams, ts_stream_key key, uint64_t number)
{
	CUcontext context = (CUcontext)(uintptr_t)(key & ~TS_STREAM_KIND);

	for (size_t i = 0; i < streams->count; i++)
		if ((key & TS_STREAM_PER_THREAD &&
		            is_of(streams, &streams->streams[i], context)) ||
		        &streams->streams[i] == find(streams, key))
			finished(&streams->streams[i], number);
}

void ts_streams_context_gone(struct ts_streams *streams, CUcontext context)
{
	for (size_t i = 0; i < streams->count; i++) {
		struct ts_stream *stream = &streams->streams[i];

		/* Its events went with it. */
		if (stream->marks_context == context) {
			memset(stream->marks, 0, sizeof(stream->marks));
			stream->marks_context = NULL;
		}
		if (is_of(streams, stream, context))
			clear(stream, TS_STREAM_NONE);
	}
}

void ts_streams_ask_contexts(struct ts_streams *streams, struct ts_mutex *lock)
{
	size_t i = 0;

	while (i < streams->count) {
		ts_stream_key key = streams->streams[i].key;
		CUcontext context = NULL;
		struct ts_stream *stream;

		if (key & TS_STREAM_KIND || streams->streams[i].context) {
			i++;
			continue;
		}
		ts_mutex_unlock(lock);
		if (streams->ops->stream_get_ctx(
		            (CUstream)(uintptr_t)key, &context) != CUDA_SUCCESS)
			context = NULL;
		ts_mutex_lock(lock);
		stream = find(streams, key);
		if (stream)
			stream->context = context;
		/* One that cannot be asked is passed by. */
		if (!stream || !context)
			i++;
	}
}

bool ts_streams_done(const struct ts_streams *streams, uint64_t number)
{
	for (size_t i = 0; i < streams->count; i++)
		if (pending(&streams->streams[i], number))
			return false;
	return true;
}

/* In its own context; one that is gone has nothing left to run. */
static CUresult wait_in_context(
        const struct ts_streams *streams, const struct ts_stream *stream)
{
	const struct ts_gpu_ops *ops = streams->ops;
	CUcontext context = context_of(streams, stream), popped;
	CUresult rc;

	if (context != streams->own && ops->ctx_push(context) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	if (stream->key & TS_STREAM_LEGACY)
		rc = ts_gpu_said("cuStreamSynchronize",
		        ops->stream_synchronize(CU_STREAM_LEGACY));
	else
		rc = ts_gpu_said("cuCtxSynchronize", ops->ctx_synchronize());
	if (context != streams->own)
		ops->ctx_pop(&popped);
	return rc;
}

static CUresult wait_for(
        const struct ts_streams *streams, const struct ts_stream *stream)
{
	CUresult rc;

	if (stream->key & TS_STREAM_KIND)
		return wait_in_context(streams, stream);
	rc = ts_gpu_said("cuStreamSynchronize",
	        streams->ops->stream_synchronize(
	                (CUstream)(uintptr_t)stream->key));
	/* Destroyed just now: what it still runs is the context's. */
	if (rc == CUDA_ERROR_INVALID_HANDLE)
		rc = ts_gpu_said(
		        "cuCtxSynchronize", streams->ops->ctx_synchronize());
	return rc;
}

/* The earliest mark behind all ops of @stream up to @number, or NULL. */
static const struct ts_mark *mark_behind(
        const struct ts_stream *stream, uint64_t number)
{
	const struct ts_mark *found = NULL;

	if (number > stream->issued)
		number = stream->issued;
	for (size_t i = 0; i < TS_STREAM_MARKS; i++) {
		const struct ts_mark *mark = &stream->marks[i];

		if (mark->number >= number && mark->number &&
		        (!found || mark->number < found->number))
			found = mark;
	}
	return found;
}

/* Who walks the entries begins anew where ops went to one passed by. */
static size_t next_entry(
        const struct ts_streams *streams, size_t at, uint64_t *moved)
{
	if (streams->moved == *moved)
		return at + 1;
	*moved = streams->moved;
	return 0;
}

/* @ask: what an event says of ops, a wait or a query. */
static CUresult wait_all(struct ts_streams *streams, uint64_t number,
        const char *call, CUresult (*ask)(CUevent event), struct ts_mutex *lock)
{
	uint64_t moved = streams->moved;
	CUresult rc = CUDA_SUCCESS;
	size_t i = 0;

	/* Entries stay where they are, while the lock is let go too. */
	while (i < streams->count && rc == CUDA_SUCCESS) {
		struct ts_stream stream = streams->streams[i];
		const struct ts_mark *mark = mark_behind(&stream, number);

		if (!pending(&stream, number)) {
			i++;
			continue;
		}
		ts_mutex_unlock(lock);
		if (mark)
			rc = ts_gpu_said(call, ask(mark->event));
		else
			rc = wait_for(streams, &stream);
		ts_mutex_lock(lock);
		if (rc == CUDA_SUCCESS)
			ts_streams_synchronized(streams, stream.key,
			        mark ? mark->number : stream.issued);
		i = next_entry(streams, i, &moved);
	}
	return rc;
}

CUresult ts_streams_wait(
        struct ts_streams *streams, uint64_t number, struct ts_mutex *lock)
{
	return wait_all(streams, number, "cuEventSynchronize",
	        streams->ops->event_synchronize, lock);
}

CUresult ts_streams_check(
        struct ts_streams *streams, uint64_t number, struct ts_mutex *lock)
{
	return wait_all(streams, number, "cuEventQuery",
	        streams->ops->event_query, lock);
}

static bool can_mark(const struct ts_stream *stream)
{
	return stream->key != TS_STREAM_NONE &&
	       !(stream->key & TS_STREAM_PER_THREAD) && !stream->marking;
}

bool ts_streams_mark_due(struct ts_streams *streams, ts_stream_key key)
{
	struct ts_stream *stream;

	if (!streams->marks || key & TS_STREAM_PER_THREAD)
		return false;
	stream = find(streams, key);
	return stream && ++stream->since_mark >= TS_STREAM_STRIDE &&
	       can_mark(stream);
}

static CUstream handle_of(ts_stream_key key)
{
	return key & TS_STREAM_LEGACY ? CU_STREAM_LEGACY
	                              : (CUstream)(uintptr_t)key;
}

/* With the lock held, and let go; false where nothing was recorded. */
static bool record(struct ts_streams *streams, size_t at, uint64_t number,
        CUcontext context, struct ts_mutex *lock)
{
	struct ts_stream *stream = &streams->streams[at];
	unsigned int which = stream->next_mark;
	CUevent former = stream->marks[which].event, event = former;
	ts_stream_key key = stream->key;
	CUresult rc = CUDA_SUCCESS;

	if (stream->marks_context && stream->marks_context != context)
		return false;
	stream->marking = true;
	/* While it is recorded anew it stands for nothing. */
	stream->marks[which].number = 0;
	ts_mutex_unlock(lock);
	if (!event)
		rc = streams->ops->event_create(
		        &event, CU_EVENT_DISABLE_TIMING);
	if (rc == CUDA_SUCCESS)
		rc = streams->ops->event_record(event, handle_of(key));
	ts_mutex_lock(lock);
	stream = &streams->streams[at];
	/* Given to another stream meanwhile, which has an event there too. */
	if (stream->marks[which].event != former) {
		ts_mutex_unlock(lock);
		if (!former && event)
			streams->ops->event_destroy(event);
		ts_mutex_lock(lock);
		return false;
	}
	if (event)
		stream->marks_context = context;
	stream->marks[which].event = event;
	if (stream->key != key)
		return false;
	stream->marking = false;
	stream->since_mark = 0;
	if (rc != CUDA_SUCCESS)
		return false;
	stream->marks[which].number = number;
	stream->next_mark = (which + 1) % TS_STREAM_MARKS;
	return true;
}

void ts_streams_mark(struct ts_streams *streams, ts_stream_key key,
        uint64_t number, struct ts_mutex *lock)
{
	CUcontext context = NULL;
	struct ts_stream *stream;

	if (streams->ops->ctx_get_current(&context) != CUDA_SUCCESS)
		return;
	ts_mutex_lock(lock);
	stream = find(streams, key);
	if (stream && can_mark(stream) && number <= stream->issued)
		record(streams, (size_t)(stream - streams->streams), number,
		        context, lock);
	ts_mutex_unlock(lock);
}

/* A mark behind all that @at has been given so far. Lock held, let go. */
static bool mark_now(
        struct ts_streams *streams, size_t at, struct ts_mutex *lock)
{
	struct ts_stream *stream = &streams->streams[at];
	ts_stream_key key = stream->key;
	uint64_t number = stream->issued;
	CUcontext context, current = NULL, popped;
	bool done = false;

	if (!can_mark(stream))
		return false;
	context = context_of(streams, stream);
	ts_mutex_unlock(lock);
	if (!context && streams->ops->stream_get_ctx(
	                        handle_of(key), &context) != CUDA_SUCCESS)
		context = NULL;
	streams->ops->ctx_get_current(&current);
	if (context && context != current &&
	        streams->ops->ctx_push(context) != CUDA_SUCCESS)
		context = NULL;
	ts_mutex_lock(lock);
	if (!context)
		return false;
	stream = &streams->streams[at];
	if (stream->key == key && can_mark(stream)) {
		if (!(key & TS_STREAM_KIND))
			stream->context = context;
		done = record(streams, at, number, context, lock);
	}
	if (context == current)
		return done;
	ts_mutex_unlock(lock);
	streams->ops->ctx_pop(&popped);
	ts_mutex_lock(lock);
	return done;
}

void ts_streams_mark_all(struct ts_streams *streams, struct ts_mutex *lock)
{
	for (size_t i = 0; i < streams->count; i++)
		if (pending(&streams->streams[i], streams->streams[i].issued) &&
		        !mark_behind(&streams->streams[i],
		                streams->streams[i].issued))
			mark_now(streams, i, lock);
}

static CUresult order_behind(struct ts_streams *streams, size_t at,
        uint64_t number, CUstream waiter, struct ts_mutex *lock)
{
	const struct ts_mark *mark = mark_behind(&streams->streams[at], number);
	ts_stream_key key = streams->streams[at].key;
	struct ts_stream stream;
	CUevent event;
	CUresult rc;

	if (!mark && mark_now(streams, at, lock))
		mark = mark_behind(&streams->streams[at], number);
	stream = streams->streams[at];
	/* Destroyed meanwhile: what it still runs is another entry's. */
	if (stream.key != key)
		return CUDA_SUCCESS;
	event = mark ? mark->event : NULL;
	ts_mutex_unlock(lock);
	if (event)
		rc = ts_gpu_said("cuStreamWaitEvent",
		        streams->ops->stream_wait_event(
		                waiter, event, CU_EVENT_WAIT_DEFAULT));
	else
		rc = wait_for(streams, &stream);
	ts_mutex_lock(lock);
	if (!event && rc == CUDA_SUCCESS)
		ts_streams_synchronized(streams, stream.key, stream.issued);
	return rc;
}

CUresult ts_streams_order(struct ts_streams *streams, uint64_t number,
        ts_stream_key except, CUstream waiter, struct ts_mutex *lock)
{
	struct ts_stream *own = except ? find(streams, except) : NULL;
	size_t skip = own ? (size_t)(own - streams->streams) : SIZE_MAX, i = 0;
	uint64_t moved = streams->moved;
	CUresult rc = CUDA_SUCCESS;

	/* What a thread's stream is called many threads' streams are. */
	if (except & TS_STREAM_PER_THREAD)
		skip = SIZE_MAX;
	while (i < streams->count && rc == CUDA_SUCCESS) {
		if (i != skip && pending(&streams->streams[i], number))
			rc = order_behind(streams, i, number, waiter, lock);
		i = next_entry(streams, i, &moved);
	}
	return rc;
}

/*
 * Whether mark @which of entry @at is behind what is done; false, too, where
 * another stream has the entry now. Lock held, and let go.
 */
static bool passed(struct ts_streams *streams, size_t at, unsigned int which,
        struct ts_mutex *lock)
{
	struct ts_stream *stream = &streams->streams[at];
	struct ts_mark mark = stream->marks[which];
	ts_stream_key key = stream->key;
	CUresult rc;

	if (mark.number <= stream->done)
		return true;
	ts_mutex_unlock(lock);
	rc = streams->ops->event_query(mark.event);
	ts_mutex_lock(lock);
	stream = &streams->streams[at];
	if (rc != CUDA_SUCCESS || stream->key != key)
		return false;
	finished(stream, mark.number);
	return true;
}

void ts_streams_poll(struct ts_streams *streams, struct ts_mutex *lock)
{
	for (size_t i = 0; i < streams->count; i++) {
		unsigned int first = streams->streams[i].next_mark, n = 0;

		/* The oldest comes first: what is behind it comes later. */
		while (n < TS_STREAM_MARKS &&
		        passed(streams, i, (first + n) % TS_STREAM_MARKS, lock))
			n++;
	}
}

void ts_streams_wait_beside_capture(
        struct ts_streams *streams, struct ts_mutex *lock)
{
	for (size_t i = 0; i < streams->count; i++) {
		struct ts_stream stream = streams->streams[i];
		/* The legacy stream's handle is its key. */
		CUstream handle = (CUstream)(uintptr_t)stream.key;
		CUstreamCaptureStatus status;
		CUresult rc;

		if (!pending(&stream, stream.issued) ||
		        (stream.key & TS_STREAM_KIND &&
		                stream.key != TS_STREAM_LEGACY))
			continue;
		ts_mutex_unlock(lock);
		/* Fails for the legacy stream where a blocking one captures. */
		rc = streams->ops->stream_is_capturing(handle, &status);
		if (rc == CUDA_SUCCESS &&
		        status == CU_STREAM_CAPTURE_STATUS_NONE)
			rc = streams->ops->stream_synchronize(handle);
		else
			rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		ts_mutex_lock(lock);
		if (rc == CUDA_SUCCESS)
			ts_streams_synchronized(
			        streams, stream.key, stream.issued);
	}
}
