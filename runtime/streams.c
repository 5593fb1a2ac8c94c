/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/streams.h"

#include <string.h>

void ts_streams_init(struct ts_streams *streams, const struct ts_gpu_ops *ops)
{
	memset(streams, 0, sizeof(*streams));
	streams->ops = ops;
}

static struct ts_stream *find(struct ts_streams *streams, ts_stream_key key)
{
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

/* A place for a new stream: an unused one, or that of an idle stream. */
static struct ts_stream *place(struct ts_streams *streams)
{
	if (streams->count < TS_STREAMS_MAX)
		return &streams->streams[streams->count++];
	for (size_t i = 0; i < streams->count; i++)
		if (streams->streams[i].done >= streams->streams[i].issued)
			return &streams->streams[i];
	return NULL;
}

void ts_streams_issued(
        struct ts_streams *streams, ts_stream_key key, uint64_t number)
{
	struct ts_stream *stream = NULL;

	if (key != TS_STREAM_PER_THREAD) {
		stream = find(streams, key);
		if (!stream) {
			stream = place(streams);
			if (stream)
				*stream = (struct ts_stream){.key = key};
		}
	}
	if (!stream)
		stream = &streams->others;
	if (number > stream->issued)
		stream->issued = number;
}

void ts_streams_destroyed(struct ts_streams *streams, ts_stream_key key)
{
	struct ts_stream *stream = find(streams, key);

	if (!stream)
		return;
	if (stream->done < stream->issued &&
	        stream->issued > streams->others.issued)
		streams->others.issued = stream->issued;
	*stream = streams->streams[--streams->count];
}

void ts_streams_synchronized(
        struct ts_streams *streams, ts_stream_key key, uint64_t number)
{
	struct ts_stream *stream = key ? find(streams, key) : NULL;

	if (stream)
		finished(stream, number);
	if (key)
		return;
	for (size_t i = 0; i < streams->count; i++)
		finished(&streams->streams[i], number);
	finished(&streams->others, number);
}

bool ts_streams_done(const struct ts_streams *streams, uint64_t number)
{
	for (size_t i = 0; i < streams->count; i++)
		if (pending(&streams->streams[i], number))
			return false;
	return !pending(&streams->others, number);
}

static uint64_t last_issued(const struct ts_streams *streams)
{
	uint64_t last = streams->others.issued;

	for (size_t i = 0; i < streams->count; i++)
		if (streams->streams[i].issued > last)
			last = streams->streams[i].issued;
	return last;
}

CUresult ts_streams_wait(
        struct ts_streams *streams, uint64_t number, struct ts_mutex *lock)
{
	CUresult rc = CUDA_SUCCESS;
	size_t i = 0;

	if (pending(&streams->others, number)) {
		uint64_t last = last_issued(streams);

		ts_mutex_unlock(lock);
		rc = streams->ops->ctx_synchronize();
		ts_mutex_lock(lock);
		if (rc == CUDA_SUCCESS)
			ts_streams_synchronized(streams, 0, last);
		return rc;
	}
	/* Streams may come and go while the lock is let go: start again. */
	while (rc == CUDA_SUCCESS && i < streams->count) {
		struct ts_stream stream = streams->streams[i];

		if (!pending(&stream, number)) {
			i++;
			continue;
		}
		ts_mutex_unlock(lock);
		rc = streams->ops->stream_synchronize(
		        (CUstream)(uintptr_t)stream.key);
		/* Destroyed just now: what it still runs is the context's. */
		if (rc == CUDA_ERROR_INVALID_HANDLE)
			rc = streams->ops->ctx_synchronize();
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
		CUstream handle = (CUstream)(uintptr_t)stream.key;
		CUstreamCaptureStatus status;
		CUresult rc;

		if (!pending(&stream, stream.issued))
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
