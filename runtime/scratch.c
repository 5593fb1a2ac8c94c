/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/scratch.h"

#include <errno.h>
#include <stdlib.h>

/* So that buffers of about the same size serve each other. */
#define ROUND_BYTES 512u

struct ts_scratch_buffer {
	struct ts_scratch_buffer *next;
	uint64_t address, bytes;
	ts_stream_key stream; /* of its last use; 0: none */
	bool taken;
};

static struct ts_scratch_buffer *find(
        struct ts_scratch *scratch, uint64_t bytes, ts_stream_key stream)
{
	struct ts_scratch_buffer *found = NULL;

	for (struct ts_scratch_buffer *at = scratch->buffers; at; at = at->next)
		if (!at->taken && at->bytes == bytes &&
		        (!found || at->stream == stream))
			found = at;
	return found;
}

void ts_scratch_trim(struct ts_scratch *scratch)
{
	struct ts_scratch_buffer **at = &scratch->buffers;

	while (*at) {
		struct ts_scratch_buffer *buffer = *at;

		if (buffer->taken) {
			at = &buffer->next;
			continue;
		}
		/* Freeing waits for what uses it. */
		*at = buffer->next;
		scratch->ops->mem_free(buffer->address);
		scratch->held_bytes -= buffer->bytes;
		free(buffer);
	}
}

static int add(struct ts_scratch *scratch, uint64_t bytes,
        struct ts_scratch_buffer **ret_buffer)
{
	struct ts_scratch_buffer *buffer;
	CUdeviceptr address;
	int rc = 0;

	if (scratch->held_bytes + bytes > scratch->most_bytes)
		ts_scratch_trim(scratch);
	if (scratch->held_bytes + bytes > scratch->most_bytes)
		return -ENOSPC;
	buffer = calloc(1, sizeof(*buffer));
	if (!buffer)
		return -ENOMEM;
	if (scratch->make_room)
		rc = scratch->make_room(bytes, scratch->data);
	if (!rc)
		rc = ts_gpu_errno(scratch->ops->mem_alloc(&address, bytes));
	if (rc) {
		free(buffer);
		return rc == -ENOMEM ? -ENOSPC : rc;
	}
	*buffer = (struct ts_scratch_buffer){
	        .next = scratch->buffers, .address = address, .bytes = bytes};
	scratch->buffers = buffer;
	scratch->held_bytes += bytes;
	if (scratch->held_bytes > scratch->peak_bytes)
		scratch->peak_bytes = scratch->held_bytes;
	*ret_buffer = buffer;
	return 0;
}

int ts_scratch_get(struct ts_scratch *scratch, uint64_t bytes,
        ts_stream_key stream, uint64_t *ret_address)
{
	struct ts_scratch_buffer *buffer;
	int rc = 0;

	bytes = (bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
	buffer = find(scratch, bytes, stream);
	if (!buffer)
		rc = add(scratch, bytes, &buffer);
	else if (buffer->stream != stream)
		rc = ts_gpu_errno(scratch->ops->stream_synchronize(
		        (CUstream)(uintptr_t)buffer->stream));
	if (rc)
		return rc;
	buffer->taken = true;
	buffer->stream = stream;
	*ret_address = buffer->address;
	return 0;
}

void ts_scratch_put(
        struct ts_scratch *scratch, uint64_t address, ts_stream_key stream)
{
	for (struct ts_scratch_buffer *at = scratch->buffers; at;
	        at = at->next) {
		if (at->address != address)
			continue;
		at->taken = false;
		at->stream = stream;
	}
}

void ts_scratch_finish(struct ts_scratch *scratch, bool driver_alive)
{
	while (scratch->buffers) {
		struct ts_scratch_buffer *buffer = scratch->buffers;

		scratch->buffers = buffer->next;
		if (driver_alive)
			scratch->ops->mem_free(buffer->address);
		free(buffer);
	}
	scratch->held_bytes = 0;
}
