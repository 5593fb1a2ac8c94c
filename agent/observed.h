/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A training step as it is known once it was recorded often enough: its ops in
 * issue order with their coordinates and words, and for each device the
 * planner's profile of it. An op has the same index here, in the profiles and
 * in struct ts_spot. Constant once made, so any thread may read it; whoever
 * holds it owns it, and those that the tracker knows live as long as the
 * process.
 *
 * Coordinates: of an op, its signature and which of the ops with that
 * signature it is; of a value, those of the op that writes it, and which of
 * that op's outputs it is (struct ts_value, where signature is an index:
 * values.hashes[signature] is the op's). Families take the place of signatures
 * where steps of different length are compared.
 */
#ifndef TS_OBSERVED_H
#define TS_OBSERVED_H

#include "agent/cycle.h"
#include "agent/recording.h"
#include "agent/values.h"
#include "agent/words.h"
#include "planner/profile.h"

struct ts_shape;
struct ts_device_facts;

struct ts_observed_device {
	int device;
	struct ts_profile profile;
	struct ts_values values; /* which block, use, kernel a value is of */
};

/* Steps in a row as one; its ops have no words (cycle.h). */
struct ts_observed_cycle {
	uint64_t id; /* of the shapes that take turns */
	/* So often all shapes come, with large blocks in other places. */
	unsigned int rounds;
	struct ts_recording step;
	struct ts_observed_device device; /* the first of the step's */
};

struct ts_observed {
	uint64_t hash; /* of all signatures: the step's own */
	/* Ops, uses, blocks of the step it was made from; times are the
	 * shortest there were. */
	struct ts_recording step;
	uint32_t op_count;
	/* By op. */
	uint64_t *signatures;
	uint32_t *ordinals, *family_ordinals;
	/*
	 * By word of step.words: enum ts_word_class. Words of pointers are
	 * ts_word_pointer(), those of constants the constant.
	 */
	uint8_t *word_class;
	/* First ops of the backwards. */
	uint32_t *turns;
	uint32_t turn_count;
	/* The one with most bytes first. */
	struct ts_observed_device *devices;
	size_t device_count;
	/* Where large blocks take turns in their places from step to step, or
	 * steps of several shapes do: all until it comes again; or NULL. */
	struct ts_observed_cycle *cycle;
	bool in_turn; /* with steps of other shapes */
};

/*
 * From @step, whose content it takes over in any case, and the shape it has.
 * @facts by device number. NULL without memory.
 */
struct ts_observed *ts_observed_create(struct ts_recording *step,
        const struct ts_shape *shape, const struct ts_device_facts *facts);

/* @joined, whose content is taken over in any case, is what was found. 0, or a
 * negative errno: then it has no cycle. */
int ts_observed_add_cycle(struct ts_observed *observed,
        struct ts_recording *joined, const struct ts_cycle_found *found,
        const struct ts_device_facts *facts);
void ts_observed_destroy(struct ts_observed *observed);

/* The classes of the words of op @op; there are step.ops[op].word_count. */
static inline const uint8_t *ts_observed_classes(
        const struct ts_observed *observed, uint32_t op)
{
	return &observed->word_class[observed->step.ops[op].first_word -
	                             observed->step.first_word];
}

#endif
