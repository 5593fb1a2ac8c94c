/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The ops of the recent past, in issue order, with the blocks they touched; and
 * counts of all ops there ever were. Any thread; one leaf lock.
 */
#ifndef TS_TAPE_H
#define TS_TAPE_H

#include <stdatomic.h>

#include "agent/op.h"
#include "agent/step.h"

/* So many ops are kept at least; more while a step needs them. */
#define TS_TAPE_KEEP 16384
#define TS_TAPE_MAX  262144

struct ts_tape_op {
	uint64_t signature;
	const struct ts_func *func; /* NULL but for a launch */
	const char *name;           /* of a copy or set */
	ts_stream_key stream;
	uint64_t bytes;
	uint64_t in_bytes, out_bytes;
	uint64_t first_use; /* number of its first use */
	uint32_t use_count;
	uint32_t grid[3], block[3];
	uint8_t kind; /* enum ts_op_kind */
	bool captured;
	bool collective;
};

/* How the tape goes, for readers without the lock. */
struct ts_pace {
	_Atomic uint64_t count;  /* ops so far */
	_Atomic uint64_t period; /* of the step that goes on; 0: none */
};

struct ts_tape {
	struct ts_mutex lock;
	/* Guarded by lock. The rings are indexed by number modulo size. */
	struct ts_tape_op *ops;
	size_t op_capacity;
	uint64_t op_count, oldest_op; /* kept: [oldest_op, op_count) */
	struct ts_use *uses;
	size_t use_capacity;
	uint64_t use_count, oldest_use;
	/* Not guarded. */
	_Atomic uint64_t totals[TS_OP_KIND_COUNT]; /* issued to the device */
	_Atomic uint64_t captured;    /* recorded into graphs instead */
	_Atomic uint64_t collectives; /* launches of them, of those issued */
	/* Guarded by lock again. */
	uint64_t lost; /* not recorded for want of host memory */
	struct ts_step step;
	struct ts_pace pace; /* written with the lock held */
};

int ts_tape_init(struct ts_tape *tape);
void ts_tape_finish(struct ts_tape *tape);

/* Records an op that was issued, and signed. */
void ts_tape_record(struct ts_tape *tape, const struct ts_op *op);

/* Counts it, and keeps nothing of it. */
void ts_tape_count(struct ts_tape *tape, const struct ts_op *op);

/* Reading, with the lock held by the caller. @number must be kept. */
const struct ts_tape_op *ts_tape_op(
        const struct ts_tape *tape, uint64_t number);
const struct ts_use *ts_tape_use(const struct ts_tape *tape, uint64_t number);

#endif
