/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where in a known step the program stands. Each known shape of a step is
 * followed as a string-matching automaton over op signatures, so that a step is
 * found again from its first op after whatever came between (an evaluation
 * pass, another shape), at a compare per op and shape. Any thread; one leaf
 * lock.
 */
#ifndef TS_TRACK_H
#define TS_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ts_observed;

#define TS_TRACK_SHAPES 16
/* So many ops must match before a step is believed that followed no other. */
#define TS_TRACK_SURE 16u

/* Of one op. */
struct ts_spot {
	/* NULL: not in a known step. Lives as long as the process. */
	const struct ts_observed *step;
	uint32_t op; /* index in it */
	/* False while too few ops matched to tell steps from other work. */
	bool sure;
	bool begins; /* the first sure op of the step; its index may be > 0 */
	bool turns;  /* sure, and a backward begins with it */
	bool ends;   /* sure, and the last op of the step */
};

void ts_track_init(void);

/*
 * Adds a step, with the @count ops issued since the last step ended (the ones
 * that are first ops of it count as matched). The caller's @step must stay.
 * A step with the hash of one that is known takes its place. 0, -ENOMEM or
 * -ENOSPC.
 */
int ts_track_add(
        const struct ts_observed *step, const uint64_t *since, size_t count);

/* An op with @signature is about to be issued: where it stands. */
void ts_track_op(uint64_t signature, struct ts_spot *ret_spot);

/* The op was not issued, or others that were not seen: nothing matches. */
void ts_track_lose(void);

/* No step is known any more. */
void ts_track_clear(void);

/* A step begins with the next op, says the program. */
void ts_track_mark(void);

/* Steps that ended while they were tracked. */
uint64_t ts_track_steps(void);

/* Ops since the last that stood in a step for sure. */
uint64_t ts_track_astray(void);

#endif
