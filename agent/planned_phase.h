/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Steps of one kind whose large blocks take turns in their places (cycle.h):
 * which of them goes on is told by where those blocks are that a few early ops
 * touch. Pure; guarded by its owner's lock.
 */
#ifndef TS_PLANNED_PHASE_H
#define TS_PLANNED_PHASE_H

#include "agent/cycle.h"
#include "agent/op.h"
#include "agent/recording.h"

#define TS_PHASE_MARKS 8

struct ts_phase_mark {
	uint32_t op;
	uint64_t place[TS_CYCLE_MAX]; /* by phase */
};

struct ts_phases {
	unsigned int steps; /* 1: they are all alike */
	/* Of the step that goes on, or else comes next. */
	unsigned int now;
	/* Bit by bit, those that the step's ops so far allow. */
	unsigned int possible;
	unsigned int strange; /* steps in a row that were none of them */
	struct ts_phase_mark marks[TS_PHASE_MARKS]; /* ascending */
	unsigned int n_marks;
};

/* @joined is @steps steps; the last one has just passed. */
void ts_phases_init(struct ts_phases *phases, const struct ts_recording *joined,
        unsigned int steps);

/*
 * Op @index of a step comes, or was issued; @op NULL where its blocks are not
 * known. False where it does not belong to the step expected: before op 0 one
 * that it does belong to is expected from then on, if there is any.
 */
bool ts_phases_see(
        struct ts_phases *phases, uint32_t index, const struct ts_op *op);

/* Ops so far belong to no step: any may come. */
void ts_phases_forget(struct ts_phases *phases);

/* The step goes on: which one it is, as far as its ops tell; false: none. */
bool ts_phases_settle(struct ts_phases *phases);

/* A whole step has passed. */
void ts_phases_pass(struct ts_phases *phases);

#endif
