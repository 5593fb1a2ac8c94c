/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shapes of steps: sequences of op signatures that came more than once. A
 * step that ends as a known shape does but begins with more is that shape
 * after other work (an evaluation pass, a loss that was printed). The owner
 * guards it.
 */
#ifndef TS_SHAPES_H
#define TS_SHAPES_H

#include "agent/recording.h"

#define TS_SHAPES_MAX 16

struct ts_shape {
	uint64_t hash;
	uint64_t *signatures;
	uint64_t *best_ns; /* by op: the shortest so far, or TS_UNKNOWN_NS */
	size_t op_count;
	/* By word of parameters, in the order of ops: words.h. */
	uint64_t *words; /* what a constant is, where a pointer leads */
	uint8_t *word_class;
	size_t word_count;
	uint64_t step_ns; /* likewise, of the whole */
	bool period_cut;  /* step_ns is of a step after other work */
	uint64_t seen, timed;
	uint64_t last;  /* number of the last step of this shape */
	bool published; /* the owner's to set and read */
	bool told;      /* its times were, by another run */
};

struct ts_shapes {
	struct ts_shape shapes[TS_SHAPES_MAX];
	size_t count;
	uint64_t steps;     /* so far */
	uint64_t timed;     /* of them: those that had all their times */
	uint64_t other_ops; /* before steps, belonging to none */
};

void ts_shapes_finish(struct ts_shapes *shapes);

/*
 * Takes note of a step; cuts from @step what is not part of it and gives it
 * the shortest times of its shape. Its words become offsets where they are
 * pointers. NULL without memory, or for a step that is not all there and no
 * known one.
 */
struct ts_shape *ts_shapes_note(
        struct ts_shapes *shapes, struct ts_recording *step);

/* No shape is published any more. */
void ts_shapes_unpublish(struct ts_shapes *shapes);

/*
 * How long the ops of a shape take, and a step, as another run measured it;
 * into @step, which is one, too. Nothing of it has to be timed.
 */
void ts_shape_tell(struct ts_shape *shape, struct ts_recording *step,
        const uint64_t *ops_ns, uint64_t step_ns);

/*
 * Nor is anything known of how long they take: the device is not what it was.
 */
void ts_shapes_forget_times(struct ts_shapes *shapes);

/* How many shapes came again among the last @steps steps. */
size_t ts_shapes_recent(const struct ts_shapes *shapes, uint64_t steps);

#endif
