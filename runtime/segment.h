/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Address ranges under the program's allocations and their pages. A segment is
 * one reservation: one allocation of a chunk or more, or a slab of one page
 * that smaller allocations share. Addresses stay as they are for the life of
 * the allocation; what is mapped under them is the pager's affair.
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
#include "runtime/ops.h"

enum ts_pin {
	TS_PIN_NONE = 0,
	TS_PIN_ESCAPED = 1,  /* its address lies in memory; until it is free */
	TS_PIN_CAPTURED = 2, /* a graph may use it as long as it exists */
	TS_PIN_REGISTERED = 4, /* known to a network card; for good */
};

#define TS_SLAB_UNIT_BYTES 512
#define TS_PAGE_USES       14

struct ts_page {
	struct ts_list list; /* in one of the pager's lists while resident */
	uint64_t address;
	CUmemGenericAllocationHandle handle; /* 0: not resident */
	void *host;                  /* slot with its content, or NULL */
	uint64_t last_op;            /* number of the last op that used it */
	uint64_t mark;               /* last slow path that counted it */
	uint64_t next_use;           /* when it is expected; see foresee.h */
	uint32_t uses[TS_PAGE_USES]; /* ring of when it was used */
	uint8_t use_at;              /* where the last one stands */
	uint32_t live_bytes;         /* of live blocks in it */
	uint32_t life;               /* counts the times it became free */
	uint16_t busy;               /* ops between begin and end */
	uint8_t pins;                /* enum ts_pin, as bits */
	bool written;                /* has content that @host does not hold */
	bool spare;                  /* its list is that of free pages */
};

struct ts_segment {
	struct ts_map_node node; /* by base */
	uint64_t base, bytes;    /* bytes: a multiple of the page */
	uint64_t page_bytes;
	size_t page_count;
	struct ts_page *pages;
	struct ts_list slabs; /* in the pager's list of slabs or freed ones */
	uint8_t *units;       /* slab: one byte a unit, 1 = taken; else NULL */
	size_t units_taken;   /* slab */
};

/*
 * A new segment of at least @bytes. CUDA_ERROR_OUT_OF_MEMORY without host
 * memory for it, else what the driver answers. Lock not held.
 */
CUresult ts_segment_create(const struct ts_gpu_ops *ops, uint64_t bytes,
        uint64_t page_bytes, bool slab, struct ts_segment **ret_segment);

/* Gives the addresses back where @driver_alive; no page may be resident. */
void ts_segment_destroy(const struct ts_gpu_ops *ops,
        struct ts_segment *segment, bool driver_alive);

/* The segment of @map that @address lies in, or NULL. */
struct ts_segment *ts_segment_of(const struct ts_map *map, uint64_t address);

/* Takes @bytes of a slab, 0 where they do not fit. */
uint64_t ts_slab_take(struct ts_segment *slab, uint64_t bytes);

/* Gives them back; returns true where the slab is empty now. */
bool ts_slab_put(struct ts_segment *slab, uint64_t address, uint64_t bytes);

#endif
