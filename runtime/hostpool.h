/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pinned host memory for what is moved out, in slabs of many slots of one page
 * each. Slots are guarded by the pager's lock; a slab is allocated by the
 * holder of the pager's `pinning`, without that lock. The agent never touches
 * the memory itself: copies do. Where the driver refuses to pin more, slabs are
 * of plain memory: copies then take longer, nothing else.
 */
#ifndef TS_HOSTPOOL_H
#define TS_HOSTPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/list.h"
#include "agent/base/map.h"
#include "runtime/ops.h"

struct ts_hostslab;

#define TS_HOSTPOOL_FOUND 4096u /* a power of two */

struct ts_hostpool {
	const struct ts_gpu_ops *ops;
	uint64_t slot_bytes;
	uint64_t limit_bytes;
	uint64_t pinned_bytes; /* all slabs together */
	uint64_t plain_bytes;  /* of that, what the driver would not pin */
	uint64_t peak_bytes;   /* most that was in use */
	size_t free_slots;
	struct ts_hostslab *slabs; /* newest first */
	struct ts_list open; /* slabs with free slots, the one in use first */
	struct ts_map by_address;
	/* Of slots that were asked for of late, by address. */
	struct ts_hostslab *found[TS_HOSTPOOL_FOUND];
};

void ts_hostpool_init(struct ts_hostpool *pool, const struct ts_gpu_ops *ops,
        uint64_t slot_bytes, uint64_t limit_bytes);

/* Frees the slabs, in the driver too where @driver_alive. */
void ts_hostpool_finish(struct ts_hostpool *pool, bool driver_alive);

/*
 * A new slab, for ts_hostpool_add(); of plain memory only where @plain says
 * so. -ENOSPC at the pool's limit, -ENOMEM where there is no host memory, else
 * what the driver's answer means.
 */
int ts_hostpool_grow(
        struct ts_hostpool *pool, bool plain, struct ts_hostslab **ret_slab);
void ts_hostpool_add(struct ts_hostpool *pool, struct ts_hostslab *slab);

/*
 * New memory in the current context for every slab, with what the slots hold;
 * pages then hold slots of former memory, see ts_hostpool_moved(). After a
 * failure all is as it was. Gate and pinning held, lock not.
 */
CUresult ts_hostpool_rehouse(struct ts_hostpool *pool, CUstream stream);

/* The slot that @slot became. */
void *ts_hostpool_moved(struct ts_hostpool *pool, void *slot);

/* From now on slots are of the new memory. Lock held. */
void ts_hostpool_reindex(struct ts_hostpool *pool);

/* Frees the former memory, in its own context. */
void ts_hostpool_drop_former(struct ts_hostpool *pool);

/*
 * A free slot (there must be one), the one after the last given where that is
 * free: neighbours in device memory then often share one copy.
 */
void *ts_hostpool_take(struct ts_hostpool *pool);

/* The most slots that follow on one another. */
size_t ts_hostpool_run(const struct ts_hostpool *pool);

/*
 * The next slots that are taken, up to @count, shall follow on one another, or
 * as many of them as may be found to do so at little cost. How many do.
 */
size_t ts_hostpool_aim(struct ts_hostpool *pool, size_t count);

/*
 * Slots of @slot's slab from it on: a copy must not run on into another slab,
 * though its memory may follow.
 */
size_t ts_hostpool_rest(struct ts_hostpool *pool, const void *slot);

void ts_hostpool_put(struct ts_hostpool *pool, void *slot);

/*
 * What is copied from a slot may be under way when it is given back: who copies
 * into it next waits for the last batch in of all @count slots from @slot on,
 * of one slab.
 */
void ts_hostpool_set_read(
        struct ts_hostpool *pool, const void *slot, size_t count, uint64_t in);
uint64_t ts_hostpool_read(
        struct ts_hostpool *pool, const void *slot, size_t count);

#endif
