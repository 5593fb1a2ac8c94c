/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What remake.c (what is given up, when) and remake_make.c (how it is made
 * again) share. Guarded by proof.lock but for what says otherwise.
 */
#ifndef TS_REMAKE_INTERNAL_H
#define TS_REMAKE_INTERNAL_H

#include <stdatomic.h>

#include "agent/proof_closure_internal.h"
#include "agent/remake.h"

/* A value that is given up, and what it is made from: all of it stays. */
struct ts_given_up {
	uint32_t closure; /* index */
	uint32_t make_op; /* before which it is made again */
	bool wanted;      /* now */
	struct ts_kept_use value;
	struct ts_kept_use *leaves; /* owned */
	unsigned int leaf_count;
	ts_stream_key stream;
};

struct ts_remake {
	atomic_bool on;
	struct ts_closures *closures;
	struct ts_replay_choice *choices; /* ascending by from_op */
	uint32_t n_choices;
	uint8_t *kept; /* by choice: steps in a row in which it stayed */
	bool *wanted;  /* by op: of chosen closures */
	uint64_t plan; /* its number; 0: under the pager alone */
	bool on_step, pressed; /* the pager had to move memory */
	uint32_t at;           /* op of the step that comes next */
	uint32_t next;         /* of the choices: not given up yet */
	struct ts_given_up *items;
	uint32_t count;
	/* Scratch for steps by a plan; 0: others' is asked for. */
	uint64_t arena, arena_bytes;
	ts_stream_key stream; /* of the last launches; where launched */
	bool launched;
	uint64_t steps; /* that gave values up, since a look at all */
	uint64_t given, made, early, failed, bytes, launches, shared, refused;
};

extern struct ts_remake ts_remake;

struct ts_pager *ts_remake_pager(void);

/*
 * Makes again what is wanted, and what that is made from where it is given up
 * too. 0, or a negative errno: what could not be made is still given up.
 */
int ts_remake_wanted(void);

/* Nothing of it is needed any more. */
void ts_remake_forget_item(uint32_t number);

#endif
