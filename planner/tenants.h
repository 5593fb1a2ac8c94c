/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chunks for pages that keep theirs: who shares one is never there for the same
 * op. That is all that has to hold: copies wait for what was in the chunk
 * before. So who leaves late and who comes early share one where there are not
 * chunks enough for them not to, those that wait least. Pure, the same input
 * gives the same result.
 */
#ifndef TS_PLANNER_TENANTS_H
#define TS_PLANNER_TENANTS_H

#include "planner/packing.h"

/* For the ops [from, end) a page is there; its copies take from one tick to the
 * other, which may be in the next step. */
struct ts_tenant_span {
	uint32_t from, end;
	uint32_t from_tick, free_tick;
};

struct ts_tenants_input {
	const struct ts_pack_run *runs; /* slices of the spans; wraps: unused */
	uint32_t n_runs;
	const struct ts_tenant_span *spans;
	uint32_t n_slots, n_ticks;
	/* As many are there: nobody waits while there are some left. */
	uint32_t most_chunks;
};

/*
 * 0, -ENOMEM, or -E2BIG where it would take more time than a plan may. Of what
 * @ret_packing tells, which the caller finishes after success, each piece is
 * for all spans of its run.
 */
int ts_tenants_pack(
        const struct ts_tenants_input *input, struct ts_packing *ret_packing);

#endif
