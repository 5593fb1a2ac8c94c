/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Times steps of a plan: an event before the first op of each, read
 * some steps later, when the device has long passed it. Guarded by the lock of
 * planned.c.
 */
#ifndef TS_PLANNED_CLOCK_H
#define TS_PLANNED_CLOCK_H

#include <stdint.h>

#include "runtime/ops.h"

struct ts_planned_clock {
	uint64_t steps; /* that were timed */
	uint64_t last_ns, shortest_ns;
};

/*
 * A step begins on @stream; the one before it was one too, unless
 * ts_planned_clock_stop() was called since. What a step took that is past; 0
 * where none was timed.
 */
uint64_t ts_planned_clock_step(const struct ts_gpu_ops *ops, CUstream stream);
void ts_planned_clock_stop(void);
/* Stops, and what was timed so far does not count. */
void ts_planned_clock_forget(void);
void ts_planned_clock_read(struct ts_planned_clock *ret);

/*
 * What steps took by the plan with that number, which is not 0, is kept for the
 * end: the last 63. The median is 0 where no step by it was noted, or one by
 * another plan since.
 */
void ts_planned_laps_note(uint64_t plan, uint64_t ns);
uint64_t ts_planned_laps_median(uint64_t plan);

#endif
