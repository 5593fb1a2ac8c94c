/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks: the framework's, as simgpu_block reports them, else allocations; and
 * the check that an operation touches only memory it may. simgpu_block takes
 * the lock itself, from any thread; the rest is called under it.
 */
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/simgpu_private.h"
#include "tests/simgpu/driver/start.h"

#include <stdio.h>
#include <stdlib.h>

struct block {
	struct sg_range range;
	int device;
	struct sg_map written; /* since its allocation; with tagged content */
};
static struct sg_ranges blocks;
static enum simgpu_bounds bounds;

static struct block *block_of(struct sg_range *range)
{
	return range ? sg_range_entry(range, struct block, range) : NULL;
}

static void block_remove(struct block *block)
{
	sg_ranges_remove(&blocks, &block->range);
	sg_map_clear(&block->written);
	free(block);
}

static void block_add(int device, uint64_t va, uint64_t bytes)
{
	struct sg_area *area = sg_area_at(va);
	struct sg_range *stale;
	struct block *block;

	/* Its end may have gone unreported with its segment. */
	while ((stale = sg_ranges_overlap(&blocks, va, bytes)))
		block_remove(block_of(stale));
	block = sg_xcalloc(1, sizeof(*block));
	block->range.start = va;
	block->range.bytes = bytes;
	block->device = device;
	sg_ranges_insert(&blocks, &block->range);
	if (area)
		area->framework = true;
}

SG_EXPORT void simgpu_block(int device, uint64_t addr, int64_t size_bytes)
{
	struct block *block;

	sg_lock();
	/* What a block held before it was handed out, nobody may read. */
	sg_taint_block_gone(
	        addr, (uint64_t)(size_bytes > 0 ? size_bytes : -size_bytes));
	if (size_bytes > 0) {
		block_add(device, addr, (uint64_t)size_bytes);
	} else {
		block = block_of(sg_ranges_at(&blocks, addr));
		if (block && block->range.start == addr)
			block_remove(block);
	}
	sg_unlock();
}

SG_EXPORT void simgpu_set_bounds(enum simgpu_bounds now)
{
	sg_lock();
	bounds = now;
	sg_unlock();
}

enum simgpu_bounds sg_block_bounds(void)
{
	return bounds;
}

struct sg_map *sg_block_written(
        uint64_t va, uint64_t *ret_start, uint64_t *ret_end)
{
	struct sg_range *range = sg_ranges_at(&blocks, va);

	*ret_start = range ? range->start : va;
	if (range) {
		*ret_end = range->start + range->bytes;
		return &block_of(range)->written;
	}
	range = sg_ranges_ceil(&blocks, va);
	*ret_end = range ? range->start : UINT64_MAX;
	return NULL;
}

bool sg_block_at(uint64_t va, uint64_t *ret_va, uint64_t *ret_bytes)
{
	const struct sg_range *range = sg_ranges_at(&blocks, va);
	const struct sg_area *area;
	const struct sg_host *host;

	if (!range && !sg_is_device_va(va)) {
		host = sg_host_at(va);
		range = host ? &host->range : NULL;
	}
	if (!range) {
		area = sg_area_at(va);
		/* Where a framework keeps its blocks, other bytes are free. */
		if (!area || area->framework)
			return false;
		if (area->kind == SG_AREA_RESERVATION) {
			sg_mapped_run(area, va, ret_va, ret_bytes);
			return true;
		}
		range = &area->range;
	}
	*ret_va = range->start;
	*ret_bytes = range->bytes;
	return true;
}

/* ----------------------------------------------------------- access checks */

/* One line on what stands at va. */
static void describe(
        const struct sg_device *dev, uint64_t va, char *ret_text, size_t size)
{
	struct sg_where where;

	if (!sg_where(va, &where)) {
		snprintf(ret_text, size, "no allocation");
		return;
	}
	snprintf(ret_text, size, "%s 0x%llx+0x%llx, %s",
	        where.vmm       ? "reservation"
	        : where.managed ? "managed memory"
	                        : "allocation",
	        (unsigned long long)where.alloc_va,
	        (unsigned long long)where.alloc_bytes,
	        !where.map_bytes   ? "not mapped"
	        : where.dev == dev ? "mapped without access"
	                           : "of another device");
}

/* The device by whose rights an access is made: copies between devices go
 * through the host where there is no peer access. */
static struct sg_device *accessor(const struct sg_op *op, uint64_t va)
{
	const struct sg_mapping *mapping = sg_mapping_at(va);

	if (op->kind == SG_OP_COPY_D2D && mapping)
		return mapping->chunk->dev;
	return op->dev;
}

CUresult sg_op_check(const struct sg_op *op)
{
	for (unsigned i = 0; i < op->n_accesses; i++) {
		const struct sg_access *access = &op->accesses[i];
		uint64_t va = access->va, block_va, block_bytes;
		struct sg_device *dev = accessor(op, va);
		uint64_t bad = sg_first_forbidden(
		        dev, va, access->bytes, access->write);
		char text[160];

		if (!bad)
			continue;
		/* A guess that points at nothing alive was none. */
		if (!access->certain &&
		        !sg_block_at(va, &block_va, &block_bytes))
			continue;
		describe(dev, bad, text, sizeof(text));
		sg_sticky_error(op->dev, CUDA_ERROR_ILLEGAL_ADDRESS,
		        "illegal address 0x%llx: %s %s 0x%llx+0x%llx; "
		        "there: %s",
		        (unsigned long long)bad,
		        sg_op_title(op->kind, op->name),
		        access->write ? "writes" : "reads",
		        (unsigned long long)va,
		        (unsigned long long)access->bytes, text);
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	return CUDA_SUCCESS;
}
