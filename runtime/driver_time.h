/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long the driver takes for the calls that move pages in a step by a plan:
 * a table of its functions with those timed, on threads that ask for it. Each
 * call then takes a little longer.
 */
#ifndef TS_DRIVER_TIME_H
#define TS_DRIVER_TIME_H

#include <stdint.h>

#include "runtime/ops.h"

/* The same functions, which is for good; called once. */
const struct ts_gpu_ops *ts_driver_timed(const struct ts_gpu_ops *ops);

/* This thread's calls are timed from now on. */
void ts_driver_time_start(void);

/* And no more; what they took since. */
uint64_t ts_driver_time_stop(void);

#endif
