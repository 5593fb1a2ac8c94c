/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chunks for pages where there are fewer than pages would like to have. A page
 * has to be there for the ops that use it; between two of them it stays if
 * nobody else uses its chunk meanwhile, and is away if somebody does. So pages
 * share chunks in such a way that those are away for whom it costs least. What
 * has several pages is away as a whole. Pure, the same input gives the same
 * result.
 */
#ifndef TS_PLANNER_SHARE_H
#define TS_PLANNER_SHARE_H

#include "planner/packing.h"

/* Nothing is in the page until its next tenancy. */
#define TS_SHARE_EMPTY UINT32_MAX

/*
 * Ops [from, end) for which a page is there whatever else is. If others have
 * its chunk before and after, copies take it from one tick to the other.
 */
struct ts_share_tenancy {
	uint32_t from, end;
	uint32_t from_tick, free_tick;
	uint32_t gap; /* that comes after it, or TS_SHARE_EMPTY */
};

struct ts_share_gap {
	uint64_t cost; /* ticks that it costs to be away in it */
	bool away;     /* it is, if nothing is known of chunks */
	bool wraps;    /* it reaches into the next step */
};

struct ts_share_input {
	/* Slices of the tenancies, which ascend and wrap around. */
	const struct ts_pack_run *runs;
	uint32_t n_runs;
	const struct ts_share_tenancy *tenancies;
	const struct ts_share_gap *gaps;
	uint32_t n_gaps;
	uint32_t n_ops, n_ticks;
	uint32_t most_chunks;
	/* So many ticks that pages wait for one another are one of cost. */
	uint32_t wait_part;
};

/* Two tenancies, one after the other in some chunk, of different pages. */
struct ts_share_handover {
	uint32_t from, to;
};

struct ts_sharing {
	struct ts_share_handover *handovers;
	uint32_t n_handovers;
	struct ts_packing packing; /* each piece for all of its run */
	/*
	 * By gap: 0, nobody comes between; else the op before which whoever was
	 * last in the chunks is gone, counted on into the next step.
	 */
	uint32_t *free_op;
	uint64_t cost; /* of all gaps that others come into */
	uint64_t wait; /* ticks that pages wait for one another */
	uint64_t work; /* what it took, in tenancies looked at; always told */
};

/* In so many orders runs may take their chunks; which is best is not known. */
#define TS_SHARE_ORDERS 7

/* 0, -ENOMEM, -ENOSPC where not all find chunks, or -E2BIG. */
int ts_share(const struct ts_share_input *input, uint32_t order,
        struct ts_sharing *ret);
void ts_sharing_finish(struct ts_sharing *sharing);

#endif
