/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the proof share: proof.c (life), proof_step.c (one shadow
 * step), proof_judge.c (what it came to). Guarded by proof.lock unless a field
 * says otherwise.
 */
#ifndef TS_PROOF_INTERNAL_H
#define TS_PROOF_INTERNAL_H

#include <stdatomic.h>

#include "agent/base/lock.h"
#include "agent/base/map.h"
#include "agent/checksum.h"
#include "agent/proof.h"
#include "agent/proof_closure.h"
#include "agent/replay.h"
#include "runtime/scratch.h"

#define TS_PROOF_NO_SLOT UINT32_MAX

/* Shadow steps that must agree, on ops and then on closures. */
#define TS_PROOF_STEPS 2

/* A stretch of a block that an op touched, and sums of it. */
struct ts_proof_touch {
	uint64_t serial;
	uint32_t before, after; /* slots; TS_PROOF_NO_SLOT: none */
	uint32_t again;         /* after the op was launched again */
	uint32_t use;           /* of the op, as the step recorded them */
	bool scratch;           /* a library's own, which says nothing */
	bool read_only;         /* as far as the profile knows */
	bool changes;           /* and this it is to change */
};

struct ts_proof_trial {
	uint32_t first_touch, touch_count;
	uint32_t first_output, output_count; /* slots of comparisons */
	enum ts_verdict failed;              /* OPEN: it was launched again */
	bool tried;
};

/* Has the pager leave room for @bytes of others: 0 or -ENOSPC. */
int ts_proof_room_for(uint64_t bytes, void *unused);

/* The last sum of a block in this shadow step. */
struct ts_proof_known {
	struct ts_map_node node; /* by serial */
	uint64_t address, bytes;
	uint32_t slot;
};

/* What one op makes, while it is on its way. */
struct ts_proof_output {
	uint64_t address, bytes;             /* of the block */
	uint64_t range_address, range_bytes; /* of what the op touches in it */
	uint64_t before, first, second;      /* scratch */
	bool in_place; /* it is made of what was there before */
};

#define TS_PROOF_OUTPUTS 16

enum ts_proof_phase {
	TS_PROOF_IDLE,
	TS_PROOF_WAITING, /* for the end of a step */
	TS_PROOF_RUNNING, /* op `at` of the step comes next */
	TS_PROOF_RESULTS, /* for what the device has found */
};

struct ts_proof {
	bool on;   /* constant after start */
	bool asks; /* likewise: steps that are asked for are proved, no others
	            */
	_Atomic enum ts_proof_phase phase;

	struct ts_mutex lock;
	const struct ts_observed *step;
	enum ts_verdict *verdicts; /* by op */
	bool *in_place;            /* by op: in_place.h */
	uint8_t *agreed;           /* by op: shadow steps in a row */
	uint8_t *unstable;         /* by block of the step: changed unseen */
	bool looked;               /* a step went by with sums alone */
	unsigned int done;         /* shadow steps that were judged */
	unsigned int given_up;     /* and that were left */
	bool left;                 /* the last of these, not waited for */
	uint64_t waited;           /* ops, for a step to begin */
	uint64_t replays;          /* launches made for it */
	uint64_t looked_bytes;

	struct ts_closures *closures; /* NULL while ops are proved */
	bool verifying;               /* the shadow step is one more look */
	uint64_t verified;            /* looks that came to an end */
	uint64_t demoted;             /* closures that proved once, in all */
	uint64_t told;                /* of these, when last planned for */

	/* Of a shadow step. */
	struct ts_checks *checks;
	struct ts_scratch scratch;
	CUcontext context;
	uint32_t at;
	struct ts_proof_trial *trials; /* by op */
	struct ts_proof_touch *touches;
	size_t touch_count, touch_room;
	uint32_t *outputs;
	size_t output_count, output_room;
	struct ts_proof_known *known;
	size_t known_count, known_room;
	struct ts_map by_serial;

	bool may_begin; /* no step is in its middle, as far as is known */
	/* Of the op on its way. */
	uint64_t stamp; /* 0: none */
	struct ts_proof_output making[TS_PROOF_OUTPUTS];
	unsigned int making_count;
};

extern struct ts_proof ts_proof;

/*
 * The lock, for what is written at exit, when a thread may hold it that never
 * comes back. False: not to be had.
 */
bool ts_proof_lock_at_exit(void);

/* The op that the proof expects, and its place in the step. Lock held. */
int ts_proof_step_start(void);
void ts_proof_step_comes(struct ts_op *op);
void ts_proof_step_ready(const struct ts_op *op);
void ts_proof_step_issued(const struct ts_op *op, bool issued);

/* The last sum of a block in the shadow step; NULL: none. Lock held. */
struct ts_proof_known *ts_proof_find_known(uint64_t serial);

/* Gives the shadow step up, with a line at debug level. Lock held. */
void ts_proof_step_leave(const char *why);

/*
 * What the op at hand would be tried in is not for that, the step goes on. Lock
 * held.
 */
void ts_proof_step_spare(void);

/* What the shadow step found goes into the verdicts. Lock held. */
void ts_proof_judge(void);

#endif
