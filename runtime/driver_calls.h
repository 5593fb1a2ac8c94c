/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The driver's calls by which pages move and wait for one another: a table of
 * its functions that counts them, for the whole process, and times them on
 * threads that ask for it. A call that is timed takes a little longer.
 */
#ifndef TS_DRIVER_CALLS_H
#define TS_DRIVER_CALLS_H

#include <stdint.h>

#include "runtime/ops.h"

enum ts_driver_call {
	TS_CALL_COPY,
	TS_CALL_RECORD,  /* of an event */
	TS_CALL_ORDER,   /* a stream waits for an event */
	TS_CALL_QUERY,   /* of an event */
	TS_CALL_WAIT,    /* on the host */
	TS_CALL_CONTEXT, /* which one is current, or is to be */
	TS_CALL_KINDS,
};

struct ts_driver_calls {
	uint64_t count[TS_CALL_KINDS];
};

/* The same functions, which is for good; called once. */
const struct ts_gpu_ops *ts_driver_counted(const struct ts_gpu_ops *ops);

/* Calls so far. */
void ts_driver_calls(struct ts_driver_calls *ret_calls);

/* This thread's calls are timed from now on. */
void ts_driver_time_start(void);

/* And no more; what they took since. */
uint64_t ts_driver_time_stop(void);

#endif
