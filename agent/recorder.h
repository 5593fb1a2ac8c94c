/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records ops and blocks until a training step is complete, and cuts steps.
 *
 * A step ends with its optimizer's phase: the ops after a backward
 * that touch gradients (blocks that an op of a backward was the first to touch)
 * and, among them, ops that work on nothing but what is older than the step.
 * That holds for accumulated gradients, evaluation passes and steps of changing
 * shape alike. A program without backwards has its steps told by the caller,
 * from the period of its ops.
 *
 * Any thread; one leaf lock of its own, not held across driver calls.
 */
#ifndef TS_RECORDER_H
#define TS_RECORDER_H

#include <stdatomic.h>

#include "agent/op.h"
#include "agent/recording.h"

/* Where programs only are followed each op asks: worth no call. */
extern atomic_bool ts_recorder_on;

void ts_recorder_init(void);

/* Blocks come and go. Counted in any case. */
void ts_recorder_born(const struct ts_block *block);
void ts_recorder_died(const struct ts_block *block);

/* Where nothing is recorded: one was born (@bytes > 0) or died. */
void ts_recorder_count(int64_t bytes, int device);

/* A block that was there before; not counted. */
void ts_recorder_knows(const struct ts_block *block);

/*
 * Stops recording ops, or begins again with the next one: the step that it
 * belongs to is marked as partial, and ts_recorder_knows() must tell the blocks
 * there are. On when the recorder is made. @launches: how many there were.
 */
void ts_recorder_pause(void);
void ts_recorder_resume(uint64_t launches);
static inline bool ts_recorder_is_recording(void)
{
	return atomic_load_explicit(&ts_recorder_on, memory_order_relaxed);
}

/*
 * The signatures of the ops that belong to no finished step yet, and how many.
 * The caller frees them; NULL without memory.
 */
size_t ts_recorder_signatures(uint64_t **ret_signatures);

/* What the block holds is a library's own. */
void ts_recorder_scratch(uint64_t serial);

/* True where ops shall have timers. */
bool ts_recorder_is_timing(void);
void ts_recorder_set_timing(bool on);

/* False until a backward was seen. */
bool ts_recorder_saw_backward(void);

/*
 * An op was issued. True where a step is complete, or with @ends_step, that
 * this op completes one; ts_recorder_take() follows then, on this thread.
 */
bool ts_recorder_op(const struct ts_op *op, bool ends_step);

/*
 * A step ends after the ops so far, and from now on only here; those before the
 * first such call are no step. True as above.
 */
bool ts_recorder_mark(void);

/* Reads the timers of what the device has done. Makes driver calls. */
void ts_recorder_settle(void);

/*
 * The step that is complete, with its times: waits for the device where
 * @wait, else takes the times that are known without any driver call. False
 * where there is none. The caller owns the result.
 */
bool ts_recorder_take(bool wait, struct ts_recording *ret_recording);

/*
 * Most bytes of reported blocks that ever lived together on @device; on any one
 * where it is negative.
 */
uint64_t ts_recorder_peak_bytes(int device);

#endif
