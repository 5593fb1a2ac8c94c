/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a step goes by a plan on the event model, copies out after the last use:
 * when ops run, and when values that are swapped or made again leave memory
 * and take it again. Times are ticks of the step; what lies above n_ticks is in
 * the step after it. Pure.
 */
#ifndef TS_PLANNED_RUN_H
#define TS_PLANNED_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/graph.h"
#include "planner/program.h"

struct ts_planned_gap {
	bool away;           /* the value does leave */
	uint32_t release_op; /* before which it leaves: from_op + 1 */
	uint32_t gone_tick;  /* its memory is free */
	uint32_t take_op;    /* before which it is called back; n_ops: 0 */
	uint32_t come_tick;  /* it takes memory again */
	bool wraps;          /* it comes back in the next step */
	bool copies;         /* the host does not have it yet */
	bool replayed;       /* it is made again: it takes no copies at all */
};

struct ts_planned_run {
	uint64_t step_ns, peak_bytes, out_bytes;
	uint32_t n_ops, n_ticks;
	uint32_t *begin_tick, *end_tick; /* by op */
	struct ts_planned_gap *gaps;     /* by gap of the graph */
};

/* 0, -EAGAIN where it does not fit into @limit_bytes, or -ENOMEM. */
int ts_planned_run_make(const struct ts_graph *graph,
        const struct ts_choice *choice, uint64_t limit_bytes,
        struct ts_planned_run *ret_run);
void ts_planned_run_finish(struct ts_planned_run *run);

#endif
