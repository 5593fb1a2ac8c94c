/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a recorded step to the planner's profile: a value for each content of
 * a block between two writes, ops that read and write them, turns, regions.
 * Pure; the builder belongs to the caller.
 */
#ifndef TS_VALUES_H
#define TS_VALUES_H

#include "agent/recording.h"
#include "planner/profile.h"

struct ts_values {
	int device; /* whose blocks the profile is of */
	/* By use of the step, from 0: the value it reads and the one it leaves
	 * behind; TS_NONE: none, or a block of another device. */
	uint32_t *use_read, *use_write;
	uint8_t *kind;      /* by block: enum ts_value_kind */
	uint32_t *block_of; /* by value: its block */
	size_t value_room;
	/* By signature of the profile. */
	uint64_t *hashes;
	uint32_t *example; /* an op with it */
	char **labels;
	size_t signature_count;
};

/*
 * Fills @builder from @step, as @device sees it: ops have the same index as in
 * the step, but those of other devices take no time and touch nothing. Returns
 * 0 or a negative errno; @ret_values is finished by the caller after success
 * only.
 */
int ts_values_build(const struct ts_recording *step, int device,
        struct ts_profile_builder *builder, struct ts_values *ret_values);
void ts_values_finish(struct ts_values *values);

#endif
