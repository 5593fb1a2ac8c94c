/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/hostpool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/base/list.h"
#include "agent/base/log.h"

#define SLAB_BYTES (64ull << 20)
/* For a run of free slots; they have some 32 each. */
#define SLABS_LOOKED_AT 64

struct ts_hostslab {
	struct ts_hostslab *next;
	struct ts_list open; /* in the pool's, while some slot is free */
	char *memory;
	char *former;            /* while the pool moves to another context */
	struct ts_map_node node; /* by memory */
	size_t slots, used, cursor;
	bool plain;     /* the driver would not pin it */
	uint64_t *read; /* last batch in that reads each slot */
	bool taken[];
};

static uint64_t address_of(const void *slot)
{
	return (uint64_t)(uintptr_t)slot;
}

static uint64_t offset_in(const struct ts_hostslab *slab, const void *slot)
{
	return address_of(slot) - address_of(slab->memory);
}

/* The slab of @slot, with its place there; often that of the last one. */
static struct ts_hostslab *slab_of(
        struct ts_hostpool *pool, const void *slot, size_t *ret_at)
{
	struct ts_hostslab **found =
	        &pool->found[address_of(slot) / SLAB_BYTES % TS_HOSTPOOL_FOUND];
	struct ts_hostslab *slab = *found;

	if (!slab || offset_in(slab, slot) >= slab->slots * pool->slot_bytes) {
		struct ts_map_node *node =
		        ts_map_floor(&pool->by_address, address_of(slot));

		ts_assert(node);
		slab = ts_container_of(node, struct ts_hostslab, node);
		*found = slab;
	}
	*ret_at = offset_in(slab, slot) / pool->slot_bytes;
	ts_assert(*ret_at < slab->slots);
	return slab;
}

/* Memory for a slab: the driver's, or @plain where it has none to give. */
static CUresult get_memory(const struct ts_hostpool *pool, size_t bytes,
        bool plain, void **ret_memory, bool *ret_plain)
{
	CUresult rc = ts_gpu_said(
	        "cuMemHostAlloc", pool->ops->host_alloc(ret_memory, bytes,
	                                  CU_MEMHOSTALLOC_PORTABLE));
	void *memory;

	*ret_plain = plain && rc == CUDA_ERROR_OUT_OF_MEMORY;
	if (!*ret_plain)
		return rc;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return rc;
	*ret_memory = memory;
	return CUDA_SUCCESS;
}

static void put_memory(const struct ts_hostpool *pool,
        const struct ts_hostslab *slab, bool driver_alive)
{
	if (slab->plain)
		munmap(slab->memory, slab->slots * pool->slot_bytes);
	else if (driver_alive)
		pool->ops->host_free(slab->memory);
}

static void free_slab(struct ts_hostslab *slab)
{
	free(slab->read);
	free(slab);
}

void ts_hostpool_init(struct ts_hostpool *pool, const struct ts_gpu_ops *ops,
        uint64_t slot_bytes, uint64_t limit_bytes)
{
	memset(pool, 0, sizeof(*pool));
	pool->ops = ops;
	pool->slot_bytes = slot_bytes;
	pool->limit_bytes = limit_bytes;
	ts_list_init(&pool->open);
	ts_map_init(&pool->by_address);
}

void ts_hostpool_finish(struct ts_hostpool *pool, bool driver_alive)
{
	while (pool->slabs) {
		struct ts_hostslab *slab = pool->slabs;

		pool->slabs = slab->next;
		put_memory(pool, slab, driver_alive);
		free_slab(slab);
	}
	ts_map_init(&pool->by_address);
	memset(pool->found, 0, sizeof(pool->found));
	ts_list_init(&pool->open);
	pool->free_slots = 0;
	pool->pinned_bytes = 0;
	pool->plain_bytes = 0;
}

int ts_hostpool_grow(
        struct ts_hostpool *pool, bool plain, struct ts_hostslab **ret_slab)
{
	uint64_t left = pool->limit_bytes > pool->pinned_bytes
	                        ? pool->limit_bytes - pool->pinned_bytes
	                        : 0;
	uint64_t bytes = left < SLAB_BYTES ? left : SLAB_BYTES;
	size_t slots = bytes / pool->slot_bytes;
	struct ts_hostslab *slab;
	void *memory;
	bool is_plain;
	int rc;

	if (!slots)
		return -ENOSPC;
	slab = calloc(1, sizeof(*slab) + slots * sizeof(slab->taken[0]));
	if (!slab)
		return -ENOMEM;
	slab->read = calloc(slots, sizeof(*slab->read));
	if (!slab->read) {
		free_slab(slab);
		return -ENOMEM;
	}
	rc = ts_gpu_errno(get_memory(
	        pool, slots * pool->slot_bytes, plain, &memory, &is_plain));
	if (rc) {
		free_slab(slab);
		return rc;
	}
	slab->memory = memory;
	slab->plain = is_plain;
	slab->slots = slots;
	*ret_slab = slab;
	return 0;
}

void ts_hostpool_add(struct ts_hostpool *pool, struct ts_hostslab *slab)
{
	slab->next = pool->slabs;
	pool->slabs = slab;
	ts_list_append(&pool->open, &slab->open);
	ts_map_insert(&pool->by_address, &slab->node, address_of(slab->memory));
	pool->free_slots += slab->slots;
	pool->pinned_bytes += slab->slots * pool->slot_bytes;
	if (slab->plain)
		pool->plain_bytes += slab->slots * pool->slot_bytes;
}

static struct ts_hostslab *first_open(const struct ts_hostpool *pool)
{
	ts_assert(!ts_list_empty(&pool->open));
	return ts_container_of(pool->open.next, struct ts_hostslab, open);
}

/* Slots are taken of it next. */
static void put_first(struct ts_hostpool *pool, struct ts_hostslab *slab)
{
	ts_list_remove(&slab->open);
	/* Before the one that is first now. */
	ts_list_append(pool->open.next, &slab->open);
}

void *ts_hostpool_take(struct ts_hostpool *pool)
{
	struct ts_hostslab *slab = first_open(pool);
	uint64_t used;

	while (slab->taken[slab->cursor])
		slab->cursor = (slab->cursor + 1) % slab->slots;
	slab->taken[slab->cursor] = true;
	if (++slab->used == slab->slots)
		ts_list_remove(&slab->open);
	pool->free_slots--;
	used = pool->pinned_bytes - pool->free_slots * pool->slot_bytes;
	if (used > pool->peak_bytes)
		pool->peak_bytes = used;
	return slab->memory + slab->cursor * pool->slot_bytes;
}

/* A run of @count free slots of @slab begins at its cursor then. */
static bool aim_at(struct ts_hostslab *slab, size_t count)
{
	size_t run = 0;

	if (slab->slots - slab->used < count)
		return false;
	for (size_t i = 0; i < slab->slots; i++) {
		run = slab->taken[i] ? 0 : run + 1;
		if (run < count)
			continue;
		slab->cursor = i + 1 - count;
		return true;
	}
	return false;
}

size_t ts_hostpool_run(const struct ts_hostpool *pool)
{
	return SLAB_BYTES / pool->slot_bytes;
}

size_t ts_hostpool_aim(struct ts_hostpool *pool, size_t count)
{
	if (count > ts_hostpool_run(pool))
		count = ts_hostpool_run(pool);
	for (; count > 1; count /= 2) {
		struct ts_list *at = pool->open.next;

		for (int i = 0; at != &pool->open && i < SLABS_LOOKED_AT;
		        i++, at = at->next) {
			struct ts_hostslab *slab =
			        ts_container_of(at, struct ts_hostslab, open);

			if (!aim_at(slab, count))
				continue;
			put_first(pool, slab);
			return count;
		}
	}
	return 1;
}

size_t ts_hostpool_rest(struct ts_hostpool *pool, const void *slot)
{
	size_t at;
	const struct ts_hostslab *slab = slab_of(pool, slot, &at);

	return slab->slots - at;
}

void ts_hostpool_put(struct ts_hostpool *pool, void *slot)
{
	size_t at;
	struct ts_hostslab *slab = slab_of(pool, slot, &at);

	ts_assert(slab->taken[at]);
	slab->taken[at] = false;
	if (slab->used-- == slab->slots)
		ts_list_append(&pool->open, &slab->open);
	pool->free_slots++;
}

void ts_hostpool_set_read(
        struct ts_hostpool *pool, const void *slot, size_t count, uint64_t in)
{
	size_t at;
	struct ts_hostslab *slab = slab_of(pool, slot, &at);

	ts_assert(count <= slab->slots - at);
	for (size_t i = at; i < at + count; i++)
		slab->read[i] = in;
}

uint64_t ts_hostpool_read(
        struct ts_hostpool *pool, const void *slot, size_t count)
{
	size_t at;
	const struct ts_hostslab *slab = slab_of(pool, slot, &at);
	uint64_t last = 0;

	ts_assert(count <= slab->slots - at);
	for (size_t i = at; i < at + count; i++)
		if (slab->read[i] > last)
			last = slab->read[i];
	return last;
}

/* Slots in use that lie side by side share a copy. */
static CUresult copy_slots(const struct ts_hostpool *pool,
        const struct ts_hostslab *slab, char *to, CUstream stream)
{
	CUresult rc = CUDA_SUCCESS;

	for (size_t i = 0, end; i < slab->slots && rc == CUDA_SUCCESS;
	        i = end) {
		size_t offset = i * pool->slot_bytes;

		end = i + 1;
		if (!slab->taken[i])
			continue;
		while (end < slab->slots && slab->taken[end])
			end++;
		rc = pool->ops->copy_any((CUdeviceptr)(uintptr_t)to + offset,
		        (CUdeviceptr)(uintptr_t)slab->memory + offset,
		        (end - i) * pool->slot_bytes, stream);
	}
	return rc;
}

static void swap_memory(struct ts_hostslab *slab, char *memory)
{
	slab->former = slab->memory;
	slab->memory = memory;
}

CUresult ts_hostpool_rehouse(struct ts_hostpool *pool, CUstream stream)
{
	CUresult rc = CUDA_SUCCESS;
	struct ts_hostslab *slab;
	void *memory;

	for (slab = pool->slabs; slab && rc == CUDA_SUCCESS;
	        slab = slab->next) {
		/* It belongs to no context. */
		if (slab->plain)
			continue;
		rc = pool->ops->host_alloc(&memory,
		        slab->slots * pool->slot_bytes,
		        CU_MEMHOSTALLOC_PORTABLE);
		if (rc != CUDA_SUCCESS)
			break;
		rc = copy_slots(pool, slab, memory, stream);
		swap_memory(slab, memory);
	}
	if (rc == CUDA_SUCCESS)
		rc = pool->ops->stream_synchronize(stream);
	if (rc == CUDA_SUCCESS)
		return rc;
	for (slab = pool->slabs; slab; slab = slab->next)
		if (slab->former) {
			swap_memory(slab, slab->former);
			pool->ops->host_free(slab->former);
			slab->former = NULL;
		}
	return rc;
}

void *ts_hostpool_moved(struct ts_hostpool *pool, void *slot)
{
	for (struct ts_hostslab *slab = pool->slabs; slab; slab = slab->next) {
		char *former = slab->plain ? slab->memory : slab->former;
		size_t offset = (size_t)((char *)slot - former);

		if (former && (char *)slot >= former &&
		        offset < slab->slots * pool->slot_bytes)
			return slab->memory + offset;
	}
	ts_assert(!"slot of no slab");
	return slot;
}

void ts_hostpool_reindex(struct ts_hostpool *pool)
{
	ts_map_init(&pool->by_address);
	memset(pool->found, 0, sizeof(pool->found));
	for (struct ts_hostslab *slab = pool->slabs; slab; slab = slab->next)
		ts_map_insert(&pool->by_address, &slab->node,
		        address_of(slab->memory));
}

void ts_hostpool_drop_former(struct ts_hostpool *pool)
{
	for (struct ts_hostslab *slab = pool->slabs; slab; slab = slab->next) {
		if (slab->former)
			pool->ops->host_free(slab->former);
		slab->former = NULL;
	}
}
