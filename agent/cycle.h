/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where large blocks lie in steps that follow each other. A tensor that lives
 * until the next step has made its successor takes another place than that one,
 * and gives it back a step later: such blocks come back to their places after
 * two steps, or more, and only as many together repeat themselves. Keeps the
 * last steps that were recorded. The owner guards it.
 */
#ifndef TS_CYCLE_H
#define TS_CYCLE_H

#include "agent/op.h"
#include "agent/recording.h"

/* Steps that may have to pass until blocks are back in their places. */
#define TS_CYCLE_MAX 6

struct ts_cycle_step {
	struct ts_recording step; /* without its words */
	uint64_t shape;           /* hash of the shape it has */
	uint64_t layout;          /* of where its large blocks lie */
	uint64_t between;         /* ops since the step before it */
};

/* Steps that only together come again. */
struct ts_cycle_found {
	/* Until large blocks are back in their places; 0: they were not. */
	unsigned int steps;
	/* Shapes that take turns, as where two optimizers do: these follow each
	 * other; a divisor of steps. */
	unsigned int shapes;
	/* Something else is done between them: they begin with another. */
	bool torn;
	uint64_t id; /* of these shapes, with whichever they begin */
};

struct ts_cycles {
	struct ts_cycle_step last[TS_CYCLE_MAX + 1]; /* the newest first */
	unsigned int count;
	uint64_t noted; /* since the last ts_cycles_forget() */
};

/* A step of the shape @shape, after the one noted last, or after other work.
 * 0 or -ENOMEM: then all is forgotten. */
int ts_cycles_note(struct ts_cycles *cycles, const struct ts_recording *step,
        uint64_t shape);

/* What comes next does not follow what was noted. */
void ts_cycles_forget(struct ts_cycles *cycles);

/* How the last step comes again. */
struct ts_cycle_found ts_cycles_find(const struct ts_cycles *cycles);

/*
 * True where what was found begins with that of its steps with which it begins
 * in every run of the program: where large blocks lie lowest. Only then values
 * have the numbers that they have in a plan of another run.
 */
bool ts_cycles_begins(
        const struct ts_cycles *cycles, const struct ts_cycle_found *found);

/*
 * The last steps, as they were found, as one: work between them is left out,
 * the last one's times of a shape are those of all, and its duration is that
 * of one step of each shape. 0 or -ENOMEM.
 */
int ts_cycles_join(const struct ts_cycles *cycles,
        const struct ts_cycle_found *found, struct ts_recording *ret_joined);

/* Where the large blocks lie in @count ops from @first on. */
uint64_t ts_cycle_layout(
        const struct ts_recording *step, size_t first, size_t count);

/* Where the large blocks lie that an op touches; 0: there are none. */
uint64_t ts_cycle_place(
        const struct ts_recording *step, const struct ts_rec_op *op);
uint64_t ts_cycle_place_of(const struct ts_op *op);

#endif
