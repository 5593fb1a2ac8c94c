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
	ts_list_init(&chunks->idle);
	chunks->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	chunks->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	chunks->prop.location.id = device;
	rc = ts_gpu_errno(ops->get_granularity(
	        &granularity, &chunks->prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	if (rc)
		return rc;
	if (!granularity)
		return -EIO;
	chunks->unit_bytes =
	        (least_bytes + granularity - 1) / granularity * granularity;
	return 0;
}

CUresult ts_chunks_create(
        struct ts_chunks *chunks, uint64_t bytes, struct ts_chunk **ret_chunk)
{
	struct ts_chunk *chunk = calloc(1, sizeof(*chunk));
	CUresult rc;

	if (!chunk)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = ts_gpu_said("cuMemCreate",
	        chunks->ops->create(&chunk->handle, bytes, &chunks->prop, 0));
	if (rc != CUDA_SUCCESS) {
		free(chunk);
		return rc;
	}
	chunk->bytes = bytes;
	ts_list_init(&chunk->list);
	ts_list_init(&chunk->mappers);
	*ret_chunk = chunk;
	return CUDA_SUCCESS;
}

void ts_chunks_add(struct ts_chunks *chunks, struct ts_chunk *chunk)
{
	chunks->created++;
	chunks->created_bytes += chunk->bytes;
	ts_chunks_put(chunks, chunk);
}

void ts_chunks_remove(struct ts_chunks *chunks, struct ts_chunk *chunk)
{
	ts_assert(!chunk->tenant && ts_list_empty(&chunk->mappers));
	ts_list_remove(&chunk->list);
	chunks->idle_bytes -= chunk->bytes;
	chunks->created_bytes -= chunk->bytes;
	chunks->created--;
}

CUresult ts_chunks_release(struct ts_chunks *chunks, struct ts_chunk *chunk)
{
	CUresult rc = ts_gpu_said(
	        "cuMemRelease", chunks->ops->release(chunk->handle));

	if (rc == CUDA_SUCCESS)
		free(chunk);
	return rc;
}

void ts_chunks_put(struct ts_chunks *chunks, struct ts_chunk *chunk)
{
	chunk->tenant = NULL;
	chunks->idle_bytes += chunk->bytes;
	ts_list_append(&chunks->idle, &chunk->list);
}

void ts_chunks_take(
        struct ts_chunks *chunks, struct ts_chunk *chunk, struct ts_page *page)
{
	ts_assert(!chunk->tenant);
	chunk->tenant = page;
	chunks->idle_bytes -= chunk->bytes;
	ts_list_remove(&chunk->list);
}
