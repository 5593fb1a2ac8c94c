/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory pools for stream-ordered allocation: what pool.c (the pools and their
 * memory) offers to pool_api.c (the exported functions). Under sg_lock.
 */
#ifndef SG_POOL_H
#define SG_POOL_H

#include "tests/simgpu/driver/memory.h"

struct sg_pool {
	struct sg_handle h;
	struct sg_device *dev;
	struct sg_pool *next;
	struct sg_segment *segments; /* by address */
	int follow_events, opportunistic, internal_dependencies;
	uint64_t threshold_bytes, max_bytes; /* max_bytes 0: no limit */
	uint64_t reserved_bytes, reserved_high_bytes;
	uint64_t used_bytes, used_high_bytes;
	uint64_t read, write; /* devices with access, by bit of the ordinal */
	bool is_default;
	bool closing; /* destroyed, but allocations remain */
};

/* The pool of a live handle, or NULL. */
struct sg_pool *sg_pool_get(CUmemoryPool handle);
struct sg_pool *sg_pool_create(struct sg_device *dev, uint64_t max_bytes);
/* A device's own pool and the one cuMemAllocAsync uses; made on first need. */
struct sg_pool *sg_pool_default(struct sg_device *dev);
struct sg_pool *sg_pool_current(struct sg_device *dev);
void sg_pool_set_current(struct sg_device *dev, struct sg_pool *pool);
/* Ends the pool once its last allocation is freed. */
void sg_pool_close(struct sg_pool *pool);
/* Allocates for work that follows on stream. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sg_pool_alloc(struct sg_pool *pool, struct sg_stream *stream,
        uint64_t bytes, uint64_t *ret_va);
/* Frees once stream's work so far is done. */
CUresult sg_pool_free(struct sg_area *area, struct sg_stream *stream);
/* Gives unused memory back until at most keep_bytes are reserved. */
void sg_pool_trim(struct sg_pool *pool, uint64_t keep_bytes);
/* Applies read and write to all memory of the pool. */
void sg_pool_apply_access(struct sg_pool *pool);

#endif
