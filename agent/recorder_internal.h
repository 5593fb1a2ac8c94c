/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The one recorder, as recorder.c (ops and blocks) and recorder_take.c (times,
 * steps that are complete) share it. */
#ifndef TS_RECORDER_INTERNAL_H
#define TS_RECORDER_INTERNAL_H

#include <stdatomic.h>

#include "agent/base/lock.h"
#include "agent/recorder.h"

#define TS_NO_BOUNDARY      UINT64_MAX
#define TS_RECORDER_DEVICES 16

struct ts_recorder {
	struct ts_mutex lock;
	atomic_bool timing;
	atomic_bool saw_backward;
	atomic_bool settling;

	/* Guarded by lock. */
	struct ts_recording kept; /* what belongs to no finished step yet */
	size_t op_capacity, use_capacity, word_capacity, block_capacity;
	/* Open addressing from a block's serial to its index + 1; 0: empty. */
	uint32_t *slots;
	size_t slot_count;
	uint64_t boundary;   /* a step is complete before this op */
	bool marked;         /* ts_recorder_mark() alone tells steps */
	bool in_update;      /* the op before was one of an update */
	bool saw_gradient;   /* since the backward */
	uint64_t update_end; /* one past its last op; 0: none */
	uint64_t settled;    /* ops before this one have their times */
	int32_t last_timer;  /* of the op before it */
	uint64_t events;     /* births and deaths so far */

	/* Of reported blocks; without the lock. */
	_Atomic uint64_t live_bytes[TS_RECORDER_DEVICES];
	_Atomic uint64_t peak_bytes[TS_RECORDER_DEVICES];
};

extern struct ts_recorder ts_rec;

/* The number of the op that comes next. Lock held. */
static inline uint64_t ts_recorder_next_op(void)
{
	return ts_rec.kept.first_op + ts_rec.kept.op_count;
}

/* Makes the slots anew, @count of them. Lock held. */
bool ts_recorder_fill_slots(size_t count);

#endif
