/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/chunks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"

int ts_chunks_init(struct ts_chunks *chunks, const struct ts_gpu_ops *ops,
        int device, uint64_t least_bytes)
{
	size_t granularity = 0;
	int rc;

	memset(chunks, 0, sizeof(*chunks));
	chunks->ops = ops;
	chunks->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	chunks->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	chunks->prop.location.id = device;
	rc = ts_gpu_errno(ops->get_granularity(
	        &granularity, &chunks->prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	if (rc)
		return rc;
	if (!granularity)
		return -EIO;
	chunks->chunk_bytes =
	        (least_bytes + granularity - 1) / granularity * granularity;
	return 0;
}

void ts_chunks_finish(struct ts_chunks *chunks, bool driver_alive)
{
	while (driver_alive && chunks->idle_count)
		ts_chunks_release(chunks, ts_chunks_take(chunks));
	free(chunks->idle);
	chunks->idle = NULL;
	chunks->idle_count = 0;
	chunks->idle_capacity = 0;
}

CUresult ts_chunks_create(
        struct ts_chunks *chunks, CUmemGenericAllocationHandle *ret_handle)
{
	return chunks->ops->create(
	        ret_handle, chunks->chunk_bytes, &chunks->prop, 0);
}

void ts_chunks_release(
        struct ts_chunks *chunks, CUmemGenericAllocationHandle handle)
{
	/* A handle that does not go leaks memory the account still sees. */
	chunks->ops->release(handle);
}

int ts_chunks_reserve(struct ts_chunks *chunks, size_t count)
{
	size_t capacity = chunks->idle_capacity ? chunks->idle_capacity : 64;
	void *idle;

	while (capacity < count)
		capacity *= 2;
	if (capacity == chunks->idle_capacity)
		return 0;
	idle = realloc(chunks->idle, capacity * sizeof(*chunks->idle));
	if (!idle)
		return -ENOMEM;
	chunks->idle = idle;
	chunks->idle_capacity = capacity;
	return 0;
}

void ts_chunks_put(
        struct ts_chunks *chunks, CUmemGenericAllocationHandle handle)
{
	ts_assert(chunks->idle_count < chunks->idle_capacity);
	chunks->idle[chunks->idle_count++] = handle;
}

CUmemGenericAllocationHandle ts_chunks_take(struct ts_chunks *chunks)
{
	ts_assert(chunks->idle_count);
	return chunks->idle[--chunks->idle_count];
}
