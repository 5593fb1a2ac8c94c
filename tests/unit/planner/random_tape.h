/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Random small tapes, the same for the same seed. */
#ifndef TS_TEST_RANDOM_TAPE_H
#define TS_TEST_RANDOM_TAPE_H

#include "planner/profile.h"

struct ts_random {
	uint64_t state;
};

void ts_random_seed(struct ts_random *random, uint64_t seed);
/* Uniform below @n. */
uint32_t ts_random_below(struct ts_random *random, uint32_t n);

/*
 * A step of a few forward ops (a chain with skips, shared inputs, in-place
 * updates), its backward, and now and then parameters with optimizer state.
 */
int ts_random_tape(uint64_t seed, struct ts_profile *ret_profile);

/* The same tape with a link whose speeds are drawn for each way. */
int ts_random_tape_apart(uint64_t seed, struct ts_profile *ret_profile);

/*
 * Replayed intermediates that have several readers, whose outputs are used in
 * any order; the link's speeds are drawn for each way.
 */
int ts_random_woven_tape(uint64_t seed, struct ts_profile *ret_profile);

/*
 * The same with so many layers, all of which have parameters and optimizer
 * state, that the planner's search for wide tapes is reached (more than 64
 * gaps, some of which wrap), and with small values among the others.
 */
int ts_random_wide_tape(uint64_t seed, struct ts_profile *ret_profile);

#endif
