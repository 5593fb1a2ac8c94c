/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/list.h"

static const struct ts_stretch nothing = {.device = -1};

void ts_blocks_init(struct ts_blocks *blocks)
{
	ts_mutex_init(&blocks->lock, TS_RANK_BLOCKS);
	ts_map_init(&blocks->allocations);
	ts_map_init(&blocks->blocks);
	blocks->spare = NULL;
	blocks->late = (struct ts_late){.slots = NULL};
	memset(blocks->split, 0, sizeof(blocks->split));
	memset(blocks->recent, 0, sizeof(blocks->recent));
	blocks->lowest = UINT64_MAX;
	blocks->highest = 0;
	blocks->next_serial = 1;
	blocks->live_bytes = 0;
	blocks->peak_bytes = 0;
}

static struct ts_block **recent_place(
        struct ts_blocks *blocks, uint64_t address)
{
	/* First addresses are multiples of 512. */
	uint64_t hash = (address >> 9) * 0x9fb21c651e98df25ull;

	return &blocks->recent[hash >> 40 & (TS_BLOCKS_RECENT - 1)];
}

/* The block is live no more. */
static void forget_recent(
        struct ts_blocks *blocks, const struct ts_block *block)
{
	struct ts_block **place = recent_place(blocks, block->address);

	if (*place == block)
		*place = NULL;
}

static struct ts_block *block_of(struct ts_map_node *node)
{
	return node ? ts_container_of(node, struct ts_block, node) : NULL;
}

static struct ts_allocation *allocation_of(struct ts_map_node *node)
{
	return node ? ts_container_of(node, struct ts_allocation, whole.node)
	            : NULL;
}

/* Lock held. A block to be filled in, or NULL without memory. */
static struct ts_block *take_block(struct ts_blocks *blocks)
{
	struct ts_block *block = blocks->spare;

	if (!block)
		return malloc(sizeof(*block));
	blocks->spare = block_of(block->node.left);
	return block;
}

/* Lock held. The memory is kept: as many come again as go. */
static void leave_block(struct ts_blocks *blocks, struct ts_block *block)
{
	block->node.left = blocks->spare ? &blocks->spare->node : NULL;
	blocks->spare = block;
}

void ts_blocks_finish(struct ts_blocks *blocks)
{
	struct ts_map_node *node;

	while ((node = blocks->blocks.root)) {
		ts_map_remove(&blocks->blocks, node->key);
		leave_block(blocks, block_of(node));
	}
	while (blocks->spare)
		free(take_block(blocks));
	ts_late_finish(&blocks->late);
	while ((node = blocks->allocations.root)) {
		ts_map_remove(&blocks->allocations, node->key);
		free(allocation_of(node));
	}
	ts_mutex_finish(&blocks->lock);
}

static void widen(struct ts_blocks *blocks, uint64_t address, uint64_t bytes)
{
	if (address < blocks->lowest)
		blocks->lowest = address;
	if (address + bytes > blocks->highest)
		blocks->highest = address + bytes;
}

static void count_live(struct ts_blocks *blocks, uint64_t bytes)
{
	blocks->live_bytes += bytes;
	if (blocks->live_bytes > blocks->peak_bytes)
		blocks->peak_bytes = blocks->live_bytes;
}

static struct ts_stretch stretch_of(const struct ts_block *block)
{
	return (struct ts_stretch){
	        .address = block->address,
	        .bytes = block->bytes,
	        .device = block->managed ? block->device : -1,
	        .serial = block->serial,
	};
}

static struct ts_allocation *find_allocation(
        struct ts_blocks *blocks, uint64_t address)
{
	struct ts_allocation *allocation =
	        allocation_of(ts_map_floor(&blocks->allocations, address));

	if (!allocation ||
	        address - allocation->whole.address >= allocation->whole.bytes)
		return NULL;
	return allocation;
}

/* Lock held. */
static void report_birth(struct ts_blocks *blocks, uint64_t address,
        uint64_t bytes, int device, struct ts_stretch *ret_dead,
        struct ts_stretch *ret_live)
{
	struct ts_block *block = take_block(blocks);
	struct ts_allocation *allocation;

	if (!block)
		return;
	*block = (struct ts_block){.address = address,
	        .bytes = bytes,
	        .device = device,
	        .reported = true};
	if (ts_map_insert(&blocks->blocks, &block->node, address)) {
		leave_block(blocks, block);
		return;
	}
	allocation = find_allocation(blocks, address);
	block->serial = blocks->next_serial++;
	block->managed = allocation && allocation->whole.managed;
	if (allocation && !allocation->split) {
		allocation->split = true;
		forget_recent(blocks, &allocation->whole);
		blocks->live_bytes -= allocation->whole.bytes;
		*ret_dead = stretch_of(&allocation->whole);
	}
	widen(blocks, block->address, block->bytes);
	count_live(blocks, block->bytes);
	*ret_live = stretch_of(block);
}

/* Lock held. */
static void report_death(
        struct ts_blocks *blocks, uint64_t address, struct ts_stretch *ret_dead)
{
	struct ts_block *block =
	        block_of(ts_map_remove(&blocks->blocks, address));

	if (!block)
		return;
	forget_recent(blocks, block);
	blocks->live_bytes -= block->bytes;
	*ret_dead = stretch_of(block);
	leave_block(blocks, block);
}

/* Lock held. Two rounds: what is born may lie where another died. */
static void settle(struct ts_blocks *blocks)
{
	uint64_t live_bytes = blocks->live_bytes;
	uint64_t peak_bytes = blocks->peak_bytes;
	struct ts_stretch ignored;

	if (!ts_late_any(&blocks->late))
		return;
	ts_late_sort(&blocks->late);
	for (size_t i = 0; i < blocks->late.slot_count; i++)
		if (blocks->late.slots[i].address)
			report_death(blocks, blocks->late.slots[i].address,
			        &ignored);
	for (size_t i = 0; i < blocks->late.slot_count; i++) {
		const struct ts_late_report *report = &blocks->late.slots[i];

		if (report->address && report->bytes > 0)
			report_birth(blocks, report->address,
			        (uint64_t)report->bytes, report->device,
			        &ignored, &ignored);
	}
	/* These bytes were counted as the reports came. */
	blocks->live_bytes = live_bytes;
	blocks->peak_bytes = peak_bytes;
	ts_late_clear(&blocks->late);
}

static int add_allocation(
        struct ts_blocks *blocks, const struct ts_allocation *wanted)
{
	struct ts_allocation *allocation = malloc(sizeof(*allocation));
	int rc;

	if (!allocation)
		return -ENOMEM;
	*allocation = *wanted;
	ts_mutex_lock(&blocks->lock);
	allocation->whole.serial = blocks->next_serial++;
	rc = ts_map_insert(&blocks->allocations, &allocation->whole.node,
	        allocation->whole.address);
	if (!rc)
		widen(blocks, allocation->whole.address,
		        allocation->whole.bytes);
	if (!rc && !allocation->split)
		count_live(blocks, allocation->whole.bytes);
	ts_mutex_unlock(&blocks->lock);
	if (rc)
		free(allocation);
	return rc;
}

int ts_blocks_add_allocation(struct ts_blocks *blocks, uint64_t address,
        uint64_t bytes, int device, CUcontext context, bool managed)
{
	return add_allocation(
	        blocks, &(struct ts_allocation){.whole = {.address = address,
	                                                .bytes = bytes,
	                                                .device = device,
	                                                .managed = managed},
	                        .context = context});
}

int ts_blocks_add_mapped(
        struct ts_blocks *blocks, uint64_t address, uint64_t bytes, int device)
{
	return add_allocation(
	        blocks, &(struct ts_allocation){.whole = {.address = address,
	                                                .bytes = bytes,
	                                                .device = device,
	                                                .managed = true},
	                        .split = true,
	                        .mapped = true});
}

/* A reported block inside @allocation, taken out; NULL when none is left. */
static struct ts_block *pull_block(
        struct ts_blocks *blocks, const struct ts_allocation *allocation)
{
	const struct ts_block *whole = &allocation->whole;
	struct ts_block *block;

	ts_mutex_lock(&blocks->lock);
	settle(blocks);
	block = block_of(ts_map_ceiling(&blocks->blocks, whole->address));
	if (block && block->address - whole->address < whole->bytes) {
		ts_map_remove(&blocks->blocks, block->address);
		forget_recent(blocks, block);
		blocks->live_bytes -= block->bytes;
	} else {
		block = NULL;
	}
	ts_mutex_unlock(&blocks->lock);
	return block;
}

bool ts_blocks_remove_allocation(struct ts_blocks *blocks, uint64_t address,
        struct ts_allocation *ret_allocation,
        void (*died)(const struct ts_stretch *stretch, void *data), void *data)
{
	struct ts_allocation *allocation;
	struct ts_block *block;

	ts_mutex_lock(&blocks->lock);
	settle(blocks);
	allocation =
	        allocation_of(ts_map_remove(&blocks->allocations, address));
	if (allocation && !allocation->split)
		blocks->live_bytes -= allocation->whole.bytes;
	if (allocation)
		forget_recent(blocks, &allocation->whole);
	memset(blocks->split, 0, sizeof(blocks->split));
	ts_mutex_unlock(&blocks->lock);
	if (!allocation)
		return false;
	while ((block = pull_block(blocks, allocation))) {
		struct ts_stretch stretch = stretch_of(block);

		if (stretch.device >= 0)
			died(&stretch, data);
		ts_mutex_lock(&blocks->lock);
		leave_block(blocks, block);
		ts_mutex_unlock(&blocks->lock);
	}
	if (!allocation->split && allocation->whole.managed) {
		struct ts_stretch stretch = stretch_of(&allocation->whole);

		died(&stretch, data);
	}
	*ret_allocation = *allocation;
	free(allocation);
	return true;
}

void ts_blocks_report(struct ts_blocks *blocks, uint64_t address, int64_t bytes,
        int device, struct ts_stretch *ret_dead, struct ts_stretch *ret_live)
{
	*ret_dead = nothing;
	*ret_live = nothing;
	ts_mutex_lock(&blocks->lock);
	settle(blocks);
	if (bytes <= 0)
		report_death(blocks, address, ret_dead);
	else
		report_birth(blocks, address, (uint64_t)bytes, device, ret_dead,
		        ret_live);
	ts_mutex_unlock(&blocks->lock);
}

/* Lock held. The first block in an allocation changes what counts as live. */
static bool may_be_late(
        struct ts_blocks *blocks, uint64_t address, int64_t bytes)
{
	uint64_t hash = (address >> TS_BLOCKS_LOCAL) * 0x9fb21c651e98df25ull;
	struct ts_span *known =
	        &blocks->split[hash >> 40 & (TS_BLOCKS_SPLIT - 1)];
	const struct ts_allocation *allocation;

	if (bytes <= 0 || address - known->address < known->bytes)
		return true;
	allocation = find_allocation(blocks, address);
	if (!allocation)
		return true;
	if (!allocation->split)
		return false;
	*known = (struct ts_span){
	        allocation->whole.address, allocation->whole.bytes};
	return true;
}

void ts_blocks_report_late(
        struct ts_blocks *blocks, uint64_t address, int64_t bytes, int device)
{
	struct ts_stretch dead, live;
	bool late;

	ts_mutex_lock(&blocks->lock);
	late = may_be_late(blocks, address, bytes) &&
	       ts_late_put(&blocks->late, address, bytes, device);
	if (late && bytes > 0)
		count_live(blocks, (uint64_t)bytes);
	else if (late)
		blocks->live_bytes -= (uint64_t)-bytes;
	ts_mutex_unlock(&blocks->lock);
	if (!late)
		ts_blocks_report(blocks, address, bytes, device, &dead, &live);
}

bool ts_blocks_find_allocation(struct ts_blocks *blocks, uint64_t address,
        struct ts_allocation *ret_allocation)
{
	struct ts_allocation *allocation;

	ts_mutex_lock(&blocks->lock);
	allocation = find_allocation(blocks, address);
	if (allocation)
		*ret_allocation = *allocation;
	ts_mutex_unlock(&blocks->lock);
	return allocation != NULL;
}

static bool find_first(struct ts_blocks *blocks,
        bool (*wanted)(const struct ts_allocation *allocation, void *data),
        void *data, uint64_t *ret_address)
{
	struct ts_map_node *node;
	bool found = false;

	ts_mutex_lock(&blocks->lock);
	node = ts_map_ceiling(&blocks->allocations, 0);
	while (node && !found) {
		found = wanted(allocation_of(node), data);
		*ret_address = node->key;
		node = ts_map_ceiling(&blocks->allocations, node->key + 1);
	}
	ts_mutex_unlock(&blocks->lock);
	return found;
}

static bool is_on_device(const struct ts_allocation *allocation, void *data)
{
	return allocation->whole.device == *(const int *)data;
}

static bool is_in_context(const struct ts_allocation *allocation, void *data)
{
	return allocation->context == (CUcontext)data;
}

bool ts_blocks_any_allocation(
        struct ts_blocks *blocks, int device, uint64_t *ret_address)
{
	return find_first(blocks, is_on_device, &device, ret_address);
}

bool ts_blocks_any_in_context(
        struct ts_blocks *blocks, CUcontext context, CUdeviceptr *ret_address)
{
	uint64_t address = 0;
	bool found = find_first(blocks, is_in_context, context, &address);

	*ret_address = address;
	return found;
}

bool ts_blocks_other_context(struct ts_blocks *blocks, int device,
        CUcontext context, CUcontext *ret_context)
{
	struct ts_map_node *node;
	bool found = false;

	ts_mutex_lock(&blocks->lock);
	node = ts_map_ceiling(&blocks->allocations, 0);
	for (; node && !found;
	        node = ts_map_ceiling(&blocks->allocations, node->key + 1)) {
		const struct ts_allocation *allocation = allocation_of(node);

		found = allocation->whole.device == device &&
		        allocation->context && allocation->context != context;
		if (found)
			*ret_context = allocation->context;
	}
	ts_mutex_unlock(&blocks->lock);
	return found;
}

struct ts_block *ts_blocks_find_locked(
        struct ts_blocks *blocks, uint64_t address)
{
	struct ts_block **place = recent_place(blocks, address);
	struct ts_allocation *allocation;
	struct ts_block *block;

	settle(blocks);
	if (*place && (*place)->address == address)
		return *place;
	if (address < blocks->lowest || address >= blocks->highest)
		return NULL;
	block = block_of(ts_map_floor(&blocks->blocks, address));
	if (!block || address - block->address >= block->bytes) {
		allocation = find_allocation(blocks, address);
		if (!allocation || allocation->split)
			return NULL;
		block = &allocation->whole;
	}
	if (block->address == address)
		*place = block;
	return block;
}

struct ts_block *ts_blocks_next_locked(
        struct ts_blocks *blocks, uint64_t address)
{
	struct ts_allocation *allocation;
	struct ts_block *block;

	settle(blocks);
	block = block_of(ts_map_ceiling(&blocks->blocks, address + 1));
	allocation = allocation_of(
	        ts_map_ceiling(&blocks->allocations, address + 1));
	while (allocation && allocation->split)
		allocation = allocation_of(ts_map_ceiling(
		        &blocks->allocations, allocation->whole.address + 1));
	if (!allocation ||
	        (block && block->address < allocation->whole.address))
		return block;
	return &allocation->whole;
}
