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

void ts_streams_finish(struct ts_streams *streams)
{
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
	if (streams->count == streams->capacity)
		for (size_t i = 0; i < streams->count; i++)
			if (streams->streams[i].done >=
			        streams->streams[i].issued)
				return &streams->streams[i];
	if (streams->count == streams->capacity && !grow(streams))
		return NULL;
	return &streams->streams[streams->count++];
}

static struct ts_stream *find_or_add(
        struct ts_streams *streams, ts_stream_key key)
{
	struct ts_stream *stream = find(streams, key);

	if (stream)
		return stream;
	if ((key & ~TS_STREAM_KIND) == (uint64_t)(uintptr_t)streams->own)
		key &= TS_STREAM_KIND;
	stream = place(streams);
	if (stream)
		*stream = (struct ts_stream){.key = key};
	return stream;
}

int ts_streams_issued(
        struct ts_streams *streams, ts_stream_key key, uint64_t number)
{
	struct ts_stream *stream = find_or_add(streams, key);

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
	*stream = streams->streams[--streams->count];
	if (last.done >= last.issued)
		return;
	/* There is a place: one was just left. */
	rest = find_or_add(streams, ts_stream_whole(context));
	if (last.issued > rest->issued)
		rest->issued = last.issued;
}

static bool is_of(const struct ts_streams *streams,
        const struct ts_stream *stream, CUcontext context)
{
	return context_of(streams, stream) ==
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
	size_t kept = 0;

	for (size_t i = 0; i < streams->count; i++)
		if (!is_of(streams, &streams->streams[i], context))
			streams->streams[kept++] = streams->streams[i];
	streams->count = kept;
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
	rc = stream->key & TS_STREAM_LEGACY
	             ? ops->stream_synchronize(CU_STREAM_LEGACY)
	             : ops->ctx_synchronize();
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
	rc = streams->ops->stream_synchronize((CUstream)(uintptr_t)stream->key);
	/* Destroyed just now: what it still runs is the context's. */
	if (rc == CUDA_ERROR_INVALID_HANDLE)
		rc = streams->ops->ctx_synchronize();
	return rc;
}

CUresult ts_streams_wait(
        struct ts_streams *streams, uint64_t number, struct ts_mutex *lock)
{
	CUresult rc = CUDA_SUCCESS;
	size_t i = 0;

	/* Streams may come and go while the lock is let go: start again. */
	while (rc == CUDA_SUCCESS && i < streams->count) {
		struct ts_stream stream = streams->streams[i];

		if (!pending(&stream, number)) {
			i++;
			continue;
		}
		ts_mutex_unlock(lock);
		rc = wait_for(streams, &stream);
		ts_mutex_lock(lock);
		if (rc == CUDA_SUCCESS)
			ts_streams_synchronized(
			        streams, stream.key, stream.issued);
		i = 0;
	}
	return rc;
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
