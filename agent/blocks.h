/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From an address to the live block it lies in. A block is what the framework's
 * allocator reports; a driver allocation in which none was reported is a block
 * itself. Any thread; the registry has one leaf lock of its own, so that
 * reports may come under the framework's allocator lock.
 */
#ifndef TS_BLOCKS_H
#define TS_BLOCKS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/lock.h"
#include "agent/base/map.h"
#include "agent/late.h"

struct ts_block {
	struct ts_map_node node; /* by address */
	uint64_t address, bytes;
	uint64_t serial; /* never used again */
	uint64_t stamp;  /* last op that took it (op.c) */
	int device;
	bool managed;       /* the pager placed its memory */
	bool reported;      /* by the framework, not by the driver */
	bool touched;       /* by an op, and not by a doubtful word only */
	bool from_backward; /* the first op that took it was in a backward */
	bool scratch;       /* a library works in it */
};

struct ts_allocation {
	struct ts_block whole; /* a live block until one is reported inside */
	CUcontext context;
	bool split;  /* blocks were reported inside */
	bool mapped; /* by the program, which unmaps it: virtual.h */
};

#define TS_BLOCKS_RECENT 4096u /* a power of two */
#define TS_BLOCKS_SPLIT  64u   /* likewise */
#define TS_BLOCKS_LOCAL  21    /* addresses alike but for so many bits */

struct ts_blocks {
	struct ts_mutex lock;
	/* Guarded by lock. */
	struct ts_map allocations; /* struct ts_allocation by address */
	struct ts_map blocks;      /* reported struct ts_block by address */
	struct ts_block *spare;    /* dead ones, linked by node.left */
	struct ts_late late;       /* what the maps lack so far */
	/* Split allocations that late blocks were in; 0 bytes: none. */
	struct ts_span {
		uint64_t address, bytes;
	} split[TS_BLOCKS_SPLIT];
	uint64_t lowest, highest; /* no block outside [lowest, highest) */
	/* Found of late, by first address: programs mostly pass these. */
	struct ts_block *recent[TS_BLOCKS_RECENT];
	uint64_t next_serial;
	uint64_t live_bytes, peak_bytes; /* of live blocks */
};

/* A stretch of placed memory that comes to life or dies. */
struct ts_stretch {
	uint64_t address, bytes;
	int device;      /* -1: none, or not placed by the pager */
	uint64_t serial; /* of the block; 0: none */
};

void ts_blocks_init(struct ts_blocks *blocks);
void ts_blocks_finish(struct ts_blocks *blocks);

int ts_blocks_add_allocation(struct ts_blocks *blocks, uint64_t address,
        uint64_t bytes, int device, CUcontext context, bool managed);

/*
 * Memory of @device that the program has mapped and the pager places. Nothing
 * in it is live until a block is reported.
 */
int ts_blocks_add_mapped(
        struct ts_blocks *blocks, uint64_t address, uint64_t bytes, int device);

/*
 * Takes an allocation out and every block reported inside with it; @died is
 * called for each live stretch of managed memory, without the lock.
 * Returns false where @address is no allocation's first.
 */
bool ts_blocks_remove_allocation(struct ts_blocks *blocks, uint64_t address,
        struct ts_allocation *ret_allocation,
        void (*died)(const struct ts_stretch *stretch, void *data), void *data);

/*
 * The framework reports a block: @bytes > 0 at birth, < 0 at death. Says what
 * changes for the pager: @ret_dead first, then @ret_live.
 */
void ts_blocks_report(struct ts_blocks *blocks, uint64_t address, int64_t bytes,
        int device, struct ts_stretch *ret_dead, struct ts_stretch *ret_live);

/*
 * The same where nobody asks for blocks for now: cheaper, and nothing is said.
 * Whoever does ask finds it done.
 */
void ts_blocks_report_late(
        struct ts_blocks *blocks, uint64_t address, int64_t bytes, int device);

/* A copy of the allocation @address lies in; false where there is none. */
bool ts_blocks_find_allocation(struct ts_blocks *blocks, uint64_t address,
        struct ts_allocation *ret_allocation);

/* Some allocation of @device, to take them away one by one. */
bool ts_blocks_any_allocation(
        struct ts_blocks *blocks, int device, uint64_t *ret_address);

/* Some allocation made in @context. */
bool ts_blocks_any_in_context(
        struct ts_blocks *blocks, CUcontext context, CUdeviceptr *ret_address);

/* A context other than @context with an allocation on @device. */
bool ts_blocks_other_context(struct ts_blocks *blocks, int device,
        CUcontext context, CUcontext *ret_context);

/*
 * The live block @address lies in, or NULL. The lock is held by the caller,
 * and the block may be used until it is let go.
 */
struct ts_block *ts_blocks_find_locked(
        struct ts_blocks *blocks, uint64_t address);

/* The live block with the least address > @address, or NULL. Lock held. */
struct ts_block *ts_blocks_next_locked(
        struct ts_blocks *blocks, uint64_t address);

#endif
