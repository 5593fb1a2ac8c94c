/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Physical memory of the devices: what is taken, its peak, chunks and the
 * table of their handles. Called under sg_lock.
 */
#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/races.h"

#include <errno.h>
#include <stdlib.h>

/* A handle is a slot of this table and how often the slot has been used, so
 * that a released handle is never mistaken for a later one. */
struct slot {
	struct sg_chunk *chunk; /* NULL: free */
	uint32_t uses;
	uint32_t next_free; /* index + 1 */
};
static struct {
	struct slot *slots;
	uint32_t n, cap;
	uint32_t first_free; /* index + 1 */
	uint64_t next_id;
} handles;

int sg_physical_take(struct sg_device *dev, uint64_t bytes)
{
	uint64_t total = dev->model.memory_bytes;

	if (sg_settings.oom_bytes && total > sg_settings.oom_bytes)
		total = sg_settings.oom_bytes;

	/* Pools would have given this back at their last synchronisation. */
	sg_pools_reclaim(dev, false);
	if (bytes > total || dev->physical_bytes > total - bytes) {
		sg_pools_reclaim(dev, true);
		if (bytes > total || dev->physical_bytes > total - bytes)
			return -ENOMEM;
	}
	dev->physical_bytes += bytes;
	if (dev->physical_bytes > dev->physical_peak_bytes)
		dev->physical_peak_bytes = dev->physical_bytes;
	return 0;
}

void sg_physical_give(struct sg_device *dev, uint64_t bytes)
{
	dev->physical_bytes -= bytes;
}

void sg_allocated_add(struct sg_device *dev, uint64_t bytes)
{
	dev->allocated_bytes += bytes;
	if (dev->allocated_bytes > dev->allocated_peak_bytes)
		dev->allocated_peak_bytes = dev->allocated_bytes;
}

void sg_allocated_sub(struct sg_device *dev, uint64_t bytes)
{
	dev->allocated_bytes -= bytes;
}

int sg_chunk_create(
        struct sg_device *dev, uint64_t bytes, struct sg_chunk **ret_chunk)
{
	struct sg_chunk *chunk;
	int r = sg_physical_take(dev, bytes);

	if (r < 0)
		return r;
	chunk = sg_xcalloc(1, sizeof(*chunk));
	chunk->id = ++handles.next_id;
	chunk->dev = dev;
	chunk->bytes = bytes;
	*ret_chunk = chunk;
	return 0;
}

struct sg_chunk *sg_chunk_import(
        struct sg_device *dev, uint64_t bytes, int file, uint64_t place)
{
	struct sg_chunk *chunk = sg_xcalloc(1, sizeof(*chunk));

	chunk->id = ++handles.next_id;
	chunk->dev = dev;
	chunk->bytes = bytes;
	chunk->imported = true;
	chunk->exact_file = file + 1;
	chunk->exact_end = file < 0 ? 0 : place + bytes;
	return chunk;
}

void sg_chunk_put(struct sg_chunk *chunk)
{
	if (chunk->handle_refs || chunk->maps)
		return;
	sg_content_chunk_gone(chunk);
	sg_races_forget(&chunk->races);
	sg_taint_forget(&chunk->taint);
	if (chunk->vmm)
		sg_allocated_sub(chunk->dev, chunk->bytes);
	if (!chunk->imported)
		sg_physical_give(chunk->dev, chunk->bytes);
	free(chunk);
}

void sg_chunk_add_handle(struct sg_chunk *chunk)
{
	struct slot *slot;
	uint32_t i;

	chunk->handle_refs++;
	if (chunk->handle_refs > 1)
		return;
	if (handles.first_free) {
		i = handles.first_free - 1;
		handles.first_free = handles.slots[i].next_free;
	} else {
		if (handles.n == handles.cap) {
			handles.cap = handles.cap ? 2 * handles.cap : 256;
			handles.slots = sg_xrealloc(handles.slots,
			        handles.cap * sizeof(*handles.slots));
		}
		i = handles.n++;
		handles.slots[i].uses = 0;
	}
	slot = &handles.slots[i];
	slot->chunk = chunk;
	slot->uses++;
	chunk->handle = (uint64_t)slot->uses << 32 | (i + 1);
}

struct sg_chunk *sg_chunk_find(
        CUmemGenericAllocationHandle handle, const char *what)
{
	uint32_t i = (uint32_t)handle - 1, uses = (uint32_t)(handle >> 32);
	struct slot *slot;

	if ((uint32_t)handle == 0 || i >= handles.n || uses == 0)
		return NULL;
	slot = &handles.slots[i];
	if (slot->chunk && slot->uses == uses)
		return slot->chunk;
	if (uses <= slot->uses)
		sg_memory_error(&sg_devices[0],
		        "%s: use of released memory handle 0x%llx", what,
		        handle);
	return NULL;
}

void sg_chunk_drop_handle(struct sg_chunk *chunk)
{
	struct slot *slot = &handles.slots[(uint32_t)chunk->handle - 1];

	chunk->handle_refs--;
	if (chunk->handle_refs == 0) {
		slot->chunk = NULL;
		slot->next_free = handles.first_free;
		handles.first_free = (uint32_t)chunk->handle;
		chunk->handle = 0;
	}
	sg_chunk_put(chunk);
}
