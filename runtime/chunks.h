/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pool of physical memory of one device: handles of equal size, created
 * when the limit allows, kept when a page gives its own up. Idle chunks are
 * guarded by the pager's lock; creating and releasing calls the driver and is
 * done by the holder of the gate, without that lock.
 */
#ifndef TS_CHUNKS_H
#define TS_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ops.h"

struct ts_chunks {
	const struct ts_gpu_ops *ops;
	CUmemAllocationProp prop;
	uint64_t chunk_bytes;
	size_t created; /* that exist: idle or under a page */
	CUmemGenericAllocationHandle *idle;
	size_t idle_count, idle_capacity;
};

/* Chunks of at least @least_bytes, a multiple of what the device asks for. */
int ts_chunks_init(struct ts_chunks *chunks, const struct ts_gpu_ops *ops,
        int device, uint64_t least_bytes);

/* Releases the idle chunks where @driver_alive, and frees the rest. */
void ts_chunks_finish(struct ts_chunks *chunks, bool driver_alive);

/* A new handle from the driver. */
CUresult ts_chunks_create(
        struct ts_chunks *chunks, CUmemGenericAllocationHandle *ret_handle);

/* Gives @handle, which no page uses any more, back to the driver. */
void ts_chunks_release(
        struct ts_chunks *chunks, CUmemGenericAllocationHandle handle);

/* Makes room for one more handle per existing chunk, so that put is sure. */
int ts_chunks_reserve(struct ts_chunks *chunks, size_t count);

void ts_chunks_put(
        struct ts_chunks *chunks, CUmemGenericAllocationHandle handle);

/* An idle chunk; there must be one. */
CUmemGenericAllocationHandle ts_chunks_take(struct ts_chunks *chunks);

#endif
