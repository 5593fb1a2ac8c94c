/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tapes of any length, to see what planning takes as they grow. For tests and
 * benchmarks; 0 or a negative errno. The caller finishes the profile.
 */
#ifndef TS_TESTS_LONG_TAPE_H
#define TS_TESTS_LONG_TAPE_H

#include "planner/profile.h"

/* Layers of activations alone; forward and backward of one are 26 ops. */
int ts_long_transformer(uint32_t ops, struct ts_profile *ret_profile);

/* A chain whose parameters and optimizer state live on from step to step. */
int ts_long_chain(uint32_t ops, struct ts_profile *ret_profile);

#endif
