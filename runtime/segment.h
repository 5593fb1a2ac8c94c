/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Address ranges under the program's allocations and their pages. A segment is
 * one reservation: one allocation of a unit or more, or a slab of one unit
 * that smaller allocations share. Addresses stay as they are for the life of
 * the allocation; what is mapped under them is the pager's affair.
 *
 * A unit is the least that can be mapped. A page is what moves as one: a run
 * of units, under which there is one chunk. Whole allocations begin as few
 * large pages, since every call that maps costs; a page that is not resident
 * can be cut where a block ends, or joined with its neighbour.
 *
 * Everything here is guarded by the pager's lock; reserving and freeing
 * addresses calls the driver and is done without it.
 */
#ifndef TS_SEGMENT_H
#define TS_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/list.h"
#include "agent/base/map.h"
#include "runtime/chunks.h"
#include "runtime/fence.h"
#include "runtime/ops.h"

enum ts_pin {
	TS_PIN_NONE = 0,
	TS_PIN_ESCAPED = 1,  /* its address lies in memory; until it is free */
	TS_PIN_CAPTURED = 2, /* as long as there are graphs at all */
	TS_PIN_REGISTERED = 4, /* known to a network card; for good */
};

#define TS_SLAB_UNIT_BYTES 512
#define TS_PAGE_USES       14

struct ts_unit {
	struct ts_page *page; /* that it is part of */
	void *slot;           /* host memory that has its content, or had it */
	uint32_t live_bytes;  /* of live blocks in it */
};

/* What every op asks of each of its pages comes first, line by line. */
struct ts_page {
	struct ts_segment *segment;
	struct ts_unit *units;
	size_t count, end; /* of units; of the segment's, one past its last */
	uint64_t address, bytes;
	uint16_t busy;  /* ops between begin and end */
	uint8_t pins;   /* enum ts_pin, as bits */
	uint8_t use_at; /* where the last one of uses stands */
	bool resident;  /* in its chunk, or on its way there by a copy issued */
	bool written;   /* has content that the slots do not hold */
	bool former;    /* former_op, fence.out are of former tenants */
	bool spare;     /* its list is that of free pages */
	bool opened;    /* what is mapped may be accessed */
	bool planned;   /* what is mapped is what the last plan has there */
	bool leaving;   /* a copy of it is being issued; see evict.c */
	bool seeks;     /* memory; see find.c */
	bool chosen;    /* to go; see evict.c */

	struct ts_list list;      /* in one of the pager's lists */
	struct ts_chunk *chunk;   /* whose tenant it is, or NULL */
	struct ts_chunk *mapping; /* what is mapped at the address, or NULL */
	/*
	 * Whatever touched it so far: ops, copies out and in. A new tenant of
	 * a chunk takes over what touched the former.
	 */
	struct ts_fence fence;
	uint64_t former_op; /* ops of former tenants up to this one */

	uint64_t used_at;            /* 0, or the use next_use is to follow */
	uint32_t uses[TS_PAGE_USES]; /* ring of when it was used */

	uint64_t next_use; /* when it is expected; see foresee.h */
	size_t live_units;
	uint64_t mark;        /* last slow path that counted it */
	size_t wanted;        /* its units that one wants; see mark */
	struct ts_list alias; /* in chunk->mappers of what is mapped */
};

/* What ops ask of it is in its first line. */
struct ts_segment {
	struct ts_map_node node; /* by base */
	uint64_t base, bytes;    /* bytes: a multiple of the unit */
	struct ts_unit *units;
	uint64_t unit_bytes;
	size_t unit_count;
	size_t page_units;    /* the most of a page */
	bool adopted;         /* the program reserved the addresses */
	struct ts_list slabs; /* in the pager's list of slabs or freed ones */
	uint8_t *taken;       /* slab: one byte a piece, 1 = taken; else NULL */
	size_t taken_count;   /* slab */
};

/*
 * A new segment of at least @bytes in pages of at most @page_bytes.
 * CUDA_ERROR_OUT_OF_MEMORY without host memory for it, else what the driver
 * answers. Lock not held.
 */
CUresult ts_segment_create(const struct ts_gpu_ops *ops, uint64_t bytes,
        uint64_t unit_bytes, uint64_t page_bytes, bool slab,
        struct ts_segment **ret_segment);

/*
 * A segment of whole units on addresses that the program reserved, and frees.
 * -ENOMEM without host memory for it.
 */
int ts_segment_adopt(uint64_t base, uint64_t bytes, uint64_t unit_bytes,
        uint64_t page_bytes, struct ts_segment **ret_segment);

/*
 * Gives the addresses back where @driver_alive and they are the pager's;
 * nothing may be mapped.
 */
void ts_segment_destroy(const struct ts_gpu_ops *ops,
        struct ts_segment *segment, bool driver_alive);

/* The segment of @map that @address lies in, or NULL. */
struct ts_segment *ts_segment_of(const struct ts_map *map, uint64_t address);

static inline size_t ts_page_first(const struct ts_page *page)
{
	return page->end - page->count;
}

/* The page after @page in its segment, or NULL. */
struct ts_page *ts_page_after(const struct ts_page *page);

/*
 * Cuts a page, of which nothing is mapped, so that one ends before unit @at of
 * the segment. -ENOMEM without host memory for it.
 */
int ts_page_cut(struct ts_page *page, size_t at);

/* Joins a page with the one after it; of both nothing is mapped. */
void ts_page_join(struct ts_page *page);

/* True where some unit has its content in host memory. */
bool ts_page_has_slots(const struct ts_page *page);

/* Takes @bytes of a slab, 0 where they do not fit. */
uint64_t ts_slab_take(struct ts_segment *slab, uint64_t bytes);

/* Gives them back; returns true where the slab is empty now. */
bool ts_slab_put(struct ts_segment *slab, uint64_t address, uint64_t bytes);

#endif
