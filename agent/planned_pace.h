/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When pages leave and come that share chunks: who has to be back first comes
 * first, of those whose chunks are free. Pure.
 */
#ifndef TS_PLANNED_PACE_H
#define TS_PLANNED_PACE_H

#include "agent/planned_run.h"
#include "planner/graph.h"

/* A gap in which pages are away, and what has to be done before they can come
 * back, or are made again. Ops and gaps are those before the gap's end, around
 * the step. */
struct ts_planned_handover {
	uint32_t to;   /* gap that ends, or TS_NONE: */
	uint32_t at;   /* something new is there from this op on */
	uint32_t from; /* gap that began in its chunks, or TS_NONE: */
	uint32_t end;  /* something was there until this op began */
};

/*
 * A step in which pages are away in all gaps that are not kept, and in no
 * others; all @handovers, n of them, hold. 0 or -ENOMEM; -EINVAL where they
 * wait for one another.
 */
struct ts_planned_pace_input {
	const struct ts_graph *graph;
	const uint8_t *action; /* by gap: enum ts_action */
	const uint8_t *ends;   /* by gap: nothing comes back after it */
	const uint8_t *copies; /* by gap: the host does not have it yet */
	/* By gap: the op before which it is there again, as a program has it.
	 */
	const uint32_t *need_op;
	const uint64_t *replay_ns; /* by op: what is made again before it */
	const struct ts_planned_handover *handovers;
	uint32_t n_handovers;
};

int ts_planned_pace(const struct ts_planned_pace_input *input,
        struct ts_planned_run *ret_run);

#endif
