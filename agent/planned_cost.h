/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What going by a plan costs the program's threads: the time that an op of the
 * step takes here, with its moves and without. Taken only where debug lines are
 * printed. Guarded by the lock of planned.c.
 */
#ifndef TS_PLANNED_COST_H
#define TS_PLANNED_COST_H

#include <stdbool.h>
#include <stdint.h>

struct ts_planned_cost {
	/*
	 * An op without a move: the median of all, which a busy machine does
	 * not touch; 0: not known.
	 */
	uint64_t idle_ns;
	uint64_t mean_ns; /* an op, in the step where that was least */
	/* The same of the driver's part, of other steps. */
	uint64_t driver_ns;
};

/* Now, or 0 where nothing is to be timed. */
uint64_t ts_planned_cost_begin(void);

/* An op of the step that began at @begin_ns; @moved: pages moved for it. */
void ts_planned_cost_op(uint64_t begin_ns, bool moved);

/* What began at @begin_ns is over, whether or not it was an op of the step. */
void ts_planned_cost_end(uint64_t begin_ns);

/* A step went by, or was @left: that does not count. */
void ts_planned_cost_step(bool left);
void ts_planned_cost_read(struct ts_planned_cost *ret);

#endif
