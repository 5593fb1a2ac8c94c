/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Durations of ops, by a pair of events each or by CUPTI's records
 * (cupti_timing.h). A timer stands for one op, from a pool that grows; the
 * recorder hands them back. Any thread; a leaf lock guards the pool and is not
 * held across driver calls.
 */
#ifndef TS_TIMING_H
#define TS_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/ops.h"
#include "runtime/streams.h"

#define TS_NO_TIMER (-1)

/* With @cupti records are asked for at the first timer; a line says if not. */
void ts_timing_init(const struct ts_gpu_ops *ops, bool cupti);

/*
 * The program is about to use CUPTI itself: event pairs from now on. May come
 * before the init.
 */
void ts_timing_yield_cupti(void);

/* Starts a timer on @stream; TS_NO_TIMER where that is not possible. */
int32_t ts_timing_begin(ts_stream_key stream);

/* The op was issued; @timer may be TS_NO_TIMER. */
void ts_timing_end(int32_t timer, ts_stream_key stream);

/* Waits until the device has passed the timer's end. */
void ts_timing_wait(int32_t timer);

/*
 * Its duration, UINT64_MAX where it is known that none can be told; false where
 * the device has not come so far, or an error.
 */
bool ts_timing_read(int32_t timer, uint64_t *ret_ns);

/* From the start of @from to the start of @to. */
bool ts_timing_between(int32_t from, int32_t to, uint64_t *ret_ns);

/* Back into the pool. */
void ts_timing_release(int32_t timer);

#endif
