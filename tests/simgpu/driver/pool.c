/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory pools: segments of whole pages cut into blocks, and the rules by
 * which a block freed in stream order may be given out again. Under sg_lock.
 */
#include "tests/simgpu/driver/pool.h"
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/stream.h"

#include <stdlib.h>

/* A piece of a segment; the blocks of a segment tile it. */
struct block {
	struct sg_area area; /* entered while live */
	struct sg_segment *segment;
	struct block *prev, *next; /* by address */
	uint64_t va, bytes;
	bool live;
	/* The marker after which it is free; NULL: free for anyone. */
	struct sg_op *freed;
};
struct sg_segment {
	struct sg_segment *next;
	struct sg_pool *pool;
	struct sg_mapping *mapping;
	struct block *first;
	unsigned live;
};

static struct sg_pool *pools;       /* all that are not ended */
static struct sg_pool *ended_pools; /* kept as dead handles */
static struct {
	struct sg_pool *own, *current;
} of_device[64];
static uint64_t next_id;

/* ------------------------------------------------------------------- pools */

struct sg_pool *sg_pool_get(CUmemoryPool handle)
{
	struct sg_pool *pool = (struct sg_pool *)handle;

	return sg_handle_ok(pool, SG_MAGIC_POOL) ? pool : NULL;
}

struct sg_pool *sg_pool_create(struct sg_device *dev, uint64_t max_bytes)
{
	struct sg_pool *pool = sg_xcalloc(1, sizeof(*pool));

	pool->h.magic = SG_MAGIC_POOL;
	pool->h.id = ++next_id;
	pool->dev = dev;
	pool->follow_events = 1;
	pool->opportunistic = 1;
	pool->internal_dependencies = 1;
	pool->max_bytes = max_bytes;
	pool->read = (uint64_t)1 << dev->ordinal;
	pool->write = pool->read;
	pool->next = pools;
	pools = pool;
	return pool;
}

struct sg_pool *sg_pool_default(struct sg_device *dev)
{
	struct sg_pool **own = &of_device[dev->ordinal].own;

	if (!*own) {
		*own = sg_pool_create(dev, 0);
		(*own)->is_default = true;
	}
	return *own;
}

struct sg_pool *sg_pool_current(struct sg_device *dev)
{
	struct sg_pool *current = of_device[dev->ordinal].current;

	return current ? current : sg_pool_default(dev);
}

void sg_pool_set_current(struct sg_device *dev, struct sg_pool *pool)
{
	of_device[dev->ordinal].current = pool;
}

/* The handle itself is kept, dead, so that its use is recognised. */
static void pool_end(struct sg_pool *pool)
{
	struct sg_pool **link = &pools;

	sg_pool_trim(pool, 0);
	if (pool->segments)
		return;
	while (*link != pool)
		link = &(*link)->next;
	*link = pool->next;
	pool->next = ended_pools;
	ended_pools = pool;
}

void sg_pool_close(struct sg_pool *pool)
{
	for (unsigned i = 0; i < sg_device_count; i++) {
		if (of_device[i].current == pool)
			of_device[i].current = NULL;
	}
	pool->h.was = pool->h.magic;
	pool->h.magic = SG_MAGIC_DEAD;
	pool->closing = true;
	pool_end(pool);
}

void sg_pool_apply_access(struct sg_pool *pool)
{
	for (struct sg_segment *s = pool->segments; s; s = s->next) {
		s->mapping->read = pool->read;
		s->mapping->write = pool->write;
	}
}

/* ----------------------------------------------------- segments and blocks */

static CUresult segment_add(
        struct sg_pool *pool, uint64_t bytes, struct block **ret_block)
{
	struct sg_segment **link = &pool->segments, *segment;
	struct sg_chunk *chunk;
	struct block *block;
	uint64_t va;

	bytes = sg_round_up(bytes, SG_PAGE_BYTES);
	if (pool->max_bytes && pool->reserved_bytes + bytes > pool->max_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sg_host_advance(pool->dev->model.malloc_ns);
	if (sg_chunk_create(pool->dev, bytes, &chunk) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	va = sg_va_take(bytes, SG_PAGE_BYTES, 0);
	if (!va) {
		sg_chunk_put(chunk);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	segment = sg_xcalloc(1, sizeof(*segment));
	segment->pool = pool;
	segment->mapping = sg_mapping_create(chunk, va, bytes);
	segment->mapping->read = pool->read;
	segment->mapping->write = pool->write;
	block = sg_xcalloc(1, sizeof(*block));
	block->segment = segment;
	block->va = va;
	block->bytes = bytes;
	segment->first = block;
	while (*link && (*link)->mapping->va < va)
		link = &(*link)->next;
	segment->next = *link;
	*link = segment;
	sg_allocated_add(pool->dev, bytes);
	pool->reserved_bytes += bytes;
	if (pool->reserved_bytes > pool->reserved_high_bytes)
		pool->reserved_high_bytes = pool->reserved_bytes;
	*ret_block = block;
	return CUDA_SUCCESS;
}

/* Forgets a free that has been carried out. */
static void block_settle(struct block *block)
{
	if (block->freed && sg_op_over(block->freed)) {
		if (sg_races_on())
			sg_races_settled(block->va, block->bytes);
		sg_op_unref(block->freed);
		block->freed = NULL;
	}
}

static bool mergeable(const struct block *block)
{
	return block && !block->live && !block->freed;
}

static void block_swallow_next(struct block *block)
{
	struct block *next = block->next;

	block->bytes += next->bytes;
	block->next = next->next;
	if (block->next)
		block->next->prev = block;
	free(next);
}

static void segment_merge(struct sg_segment *segment)
{
	for (struct block *b = segment->first; b; b = b->next) {
		block_settle(b);
		while (mergeable(b) && mergeable(b->next))
			block_swallow_next(b);
		if (b->next) {
			block_settle(b->next);
			while (mergeable(b) && mergeable(b->next))
				block_swallow_next(b);
		}
	}
}

void sg_pool_trim(struct sg_pool *pool, uint64_t keep_bytes)
{
	struct sg_segment **link = &pool->segments, *segment;

	while ((segment = *link)) {
		uint64_t va = segment->mapping->va;
		uint64_t bytes = segment->mapping->bytes;

		if (pool->reserved_bytes <= keep_bytes)
			return;
		segment_merge(segment);
		if (!mergeable(segment->first) || segment->first->next) {
			link = &segment->next;
			continue;
		}
		*link = segment->next;
		sg_allocated_sub(pool->dev, bytes);
		pool->reserved_bytes -= bytes;
		sg_mapping_destroy(segment->mapping);
		sg_va_give(va, bytes);
		free(segment->first);
		free(segment);
	}
}

void sg_pools_reclaim(struct sg_device *dev, bool all)
{
	struct sg_pool *next;

	for (struct sg_pool *pool = pools; pool; pool = next) {
		next = pool->next;
		if (pool->dev != dev)
			continue;
		if (pool->closing)
			pool_end(pool);
		else
			sg_pool_trim(pool, all ? 0 : pool->threshold_bytes);
	}
}

/* ------------------------------------------------------ stream-ordered use */

/* How well a free block suits work on a stream; the lower the better. */
enum reuse {
	REUSE_AS_IS,
	REUSE_AFTER_WAIT,
	REUSE_NOT,
};

static enum reuse reuse(const struct sg_pool *pool,
        const struct sg_stream *stream, const struct block *block)
{
	if (!block->freed || block->freed->stream == stream)
		return REUSE_AS_IS;
	if (pool->opportunistic && sg_op_over(block->freed))
		return REUSE_AS_IS;
	return pool->internal_dependencies ? REUSE_AFTER_WAIT : REUSE_NOT;
}

/* The smallest block with room that needs the least waiting, lowest first. */
static struct block *find(const struct sg_pool *pool,
        const struct sg_stream *stream, uint64_t bytes, enum reuse *ret_how)
{
	struct block *best = NULL;
	enum reuse best_how = REUSE_NOT;

	for (struct sg_segment *s = pool->segments; s; s = s->next) {
		for (struct block *b = s->first; b; b = b->next) {
			enum reuse how;

			if (b->live || b->bytes < bytes)
				continue;
			how = reuse(pool, stream, b);
			if (how > best_how || how == REUSE_NOT)
				continue;
			if (how == best_how && best && b->bytes >= best->bytes)
				continue;
			best = b;
			best_how = how;
		}
	}
	*ret_how = best_how;
	return best;
}

/* Makes the first bytes of a free block live. */
static void block_use(struct block *block, uint64_t bytes, uint64_t asked_bytes)
{
	struct sg_pool *pool = block->segment->pool;
	struct block *rest;

	block_settle(block);
	if (block->bytes > bytes) {
		rest = sg_xcalloc(1, sizeof(*rest));
		rest->segment = block->segment;
		rest->va = block->va + bytes;
		rest->bytes = block->bytes - bytes;
		rest->freed = block->freed;
		if (rest->freed)
			sg_op_ref(rest->freed);
		rest->prev = block;
		rest->next = block->next;
		if (rest->next)
			rest->next->prev = rest;
		block->next = rest;
		block->bytes = bytes;
	}
	if (block->freed)
		sg_op_unref(block->freed);
	block->freed = NULL;
	block->live = true;
	block->segment->live++;
	block->area = (struct sg_area){
	        .range = {.start = block->va, .bytes = asked_bytes},
	        .kind = SG_AREA_POOL,
	        .dev = pool->dev,
	        .ctx = sg_ctx_current(),
	};
	sg_area_add(&block->area);
	pool->used_bytes += bytes;
	if (pool->used_bytes > pool->used_high_bytes)
		pool->used_high_bytes = pool->used_bytes;
}

CUresult sg_pool_alloc(struct sg_pool *pool, struct sg_stream *stream,
        uint64_t bytes, uint64_t *ret_va)
{
	uint64_t asked_bytes = bytes;
	struct block *block;
	enum reuse how;
	CUresult error;

	if (bytes > pool->dev->model.memory_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bytes = sg_round_up(bytes, SG_ALLOC_ALIGN);
	if (pool->opportunistic) {
		for (struct sg_segment *s = pool->segments; s; s = s->next)
			segment_merge(s);
	}
	block = find(pool, stream, bytes, &how);
	if (!block) {
		error = segment_add(pool, bytes, &block);
		if (error != CUDA_SUCCESS)
			return error;
		how = REUSE_AS_IS;
	}
	if (how == REUSE_AFTER_WAIT)
		sg_stream_add_wait(stream, block->freed);
	block_use(block, bytes, asked_bytes);
	*ret_va = block->va;
	return CUDA_SUCCESS;
}

/* Ends the allocation; its memory is free after op, or now. */
static void block_release(struct block *block, struct sg_op *op)
{
	struct sg_pool *pool = block->segment->pool;

	sg_area_remove(&block->area);
	pool->used_bytes -= block->bytes;
	block->live = false;
	block->segment->live--;
	block->freed = op;
	if (pool->closing)
		pool_end(pool);
}

CUresult sg_pool_free(struct sg_area *area, struct sg_stream *stream)
{
	struct block *block = sg_range_entry(area, struct block, area);
	struct sg_op *op = sg_op_new(SG_OP_MARKER, stream);
	CUresult error;

	sg_op_ref(op);
	error = sg_op_enqueue(op);
	if (error != CUDA_SUCCESS) {
		sg_op_unref(op);
		return error;
	}
	if (sg_races_on())
		sg_races_ending(block->segment->pool->dev, op, block->va,
		        block->bytes, "cuMemFreeAsync");
	block_release(block, op);
	return CUDA_SUCCESS;
}

void sg_pool_free_now(struct sg_area *area)
{
	block_release(sg_range_entry(area, struct block, area), NULL);
}

struct sg_pool *sg_pool_of(struct sg_area *area)
{
	return sg_range_entry(area, struct block, area)->segment->pool;
}
