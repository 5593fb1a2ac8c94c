/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values that are given up after a use and made again before the next one, in
 * place: of the closures that two steps have proved (proof_closure.h). What is
 * given up takes no copy to leave. Under the pager alone that is what costs
 * less to make than to copy, once memory had to be moved; in a step by a plan
 * it is what the plan says, when it says.
 *
 * Only while ops are those of the proved step, one by one. At the first that is
 * not, at any that touches what is given up or what it is made from otherwise
 * than the step does, and before memory is freed, all that is given up is made
 * again at once. Where that fails the op does not run: nothing is lost, and
 * nothing is wrong.
 *
 * Part of the proof; guarded by its lock, but for the functions that say so.
 */
#ifndef TS_REMAKE_H
#define TS_REMAKE_H

#include <jansson.h>

#include "agent/op.h"
#include "agent/proof_candidates.h"
#include "agent/proof_closure.h"

/* Values made together at most. */
#define TS_REMAKE_GROUP_MAX 32

/* Closures are proved; they stay. Lock held. True where some are worth it. */
bool ts_remake_start(struct ts_closures *closures);

/*
 * Steps by plan @plan, a number but 0, give up what @choices say, ascending by
 * from_op; the choices are copied. None: no step does any more. Takes the lock.
 * 0 or a negative errno, then no step does.
 */
int ts_remake_by_plan(
        uint64_t plan, const struct ts_replay_choice *choices, uint32_t count);

/*
 * Steps go by plan @plan no more: if values are given up for it, none is any
 * longer, and its scratch is free. Takes the lock.
 */
void ts_remake_end_plan(uint64_t plan);

/*
 * Memory for what closures make beside their values in steps by a plan: so much
 * is had from now on, and nobody asks for more. Takes the lock. 0 or a negative
 * errno.
 */
int ts_remake_reserve(uint64_t bytes);
/* How much there is. Takes the lock. */
uint64_t ts_remake_reserved(void);

/* The closures go: everything must have been made again. Lock held. */
void ts_remake_stop(bool driver_alive);

/* True where there is something to do. Any thread, no lock. */
bool ts_remake_is_on(void);

/* True where a plan's steps give values up. Lock held. */
bool ts_remake_is_planned(void);

/*
 * Steps that gave values up since this was last true: it is where there were
 * @every. Lock held.
 */
bool ts_remake_wants_look(uint64_t every);

/* Around each op. CUDA_ERROR_OUT_OF_MEMORY: it must not run. Lock held. */
CUresult ts_remake_comes(const struct ts_op *op, bool may_begin);
void ts_remake_issued(const struct ts_op *op, bool issued);

/*
 * Memory is about to be freed, pinned or looked at outside of ops: everything
 * is made again. Takes the lock. False where it could not be.
 */
bool ts_remake_all(void);

/* The same with proof.lock held. */
bool ts_remake_all_locked(void);

/* For the status file; NULL where nothing was given up. Takes the lock. */
json_t *ts_remake_status(void);

#endif
