/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CUPTI's records of when ops ran, as another way to time them. CUPTI has one
 * user at a time: it is taken only while nobody else has it, and given back as
 * soon as the program wants it. Ops are told apart by ids that the calling
 * thread pushes before it issues one. Functions run on the program's threads;
 * what was recorded is told on any thread, CUPTI's own included. A leaf lock of
 * its own; none is held across calls into CUPTI.
 */
#ifndef TS_CUPTI_TIMING_H
#define TS_CUPTI_TIMING_H

#include <stdbool.h>
#include <stdint.h>

/* An op with that id ran so long; once for each kernel or copy of it. */
typedef void ts_cupti_told(uint64_t id, uint64_t start_ns, uint64_t end_ns);

/*
 * Takes CUPTI. 0; -ENOENT where there is none; -EBUSY where another tool has
 * it; -EIO where it refuses something else. Once only.
 */
int ts_cupti_start(ts_cupti_told *told);

/*
 * Gives it back for good, with what is not told yet untold, or keeps it from
 * being taken. True where it was taken.
 */
bool ts_cupti_stop(void);

/* True between a start that went well and the stop. */
bool ts_cupti_is_on(void);

/* Ops of the calling thread carry @id, which is not 0, until the pop. */
void ts_cupti_push(uint64_t id);
void ts_cupti_pop(void);

/* Tells of all ops that the device has finished. */
void ts_cupti_flush(void);

#endif
