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

/* A step begins on @stream; the one before it was one too, unless
 * ts_planned_clock_stop() was called since. */
void ts_planned_clock_step(const struct ts_gpu_ops *ops, CUstream stream);
void ts_planned_clock_stop(void);
/* Stops, and what was timed so far does not count. */
void ts_planned_clock_forget(void);
void ts_planned_clock_read(struct ts_planned_clock *ret);

#endif
