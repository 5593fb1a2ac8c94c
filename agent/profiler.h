/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Profiles the program: starts and stops the timing of ops, takes steps from
 * the recorder, writes TAPESWAP_PROFILE after each that was timed. Functions
 * run on the program's threads inside its CUDA calls; one lock keeps steps in
 * order, and no lock is held across driver calls.
 */
#ifndef TS_PROFILER_H
#define TS_PROFILER_H

#include "agent/op.h"

void ts_profiler_init(void);

/* True where ops shall be recorded. */
bool ts_profiler_is_on(void);

/* Around the issue of an op, which may have failed. */
void ts_profiler_begin(struct ts_op *op);
void ts_profiler_end(struct ts_op *op, bool issued);

/* The program has waited for the device. */
void ts_profiler_synchronized(void);

/* The last step, without any driver call. */
void ts_profiler_stop(void);

/* Steps seen so far. */
uint64_t ts_profiler_steps(void);

#endif
