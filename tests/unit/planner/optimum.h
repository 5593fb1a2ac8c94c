/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The best of all plans for a short tape, by trying them all. */
#ifndef TS_TEST_OPTIMUM_H
#define TS_TEST_OPTIMUM_H

#include "planner/repair.h"

/* Combinations of actions that the gaps have; above @most: @most + 1. */
uint64_t ts_combinations(const struct ts_graph *graph, uint64_t most);

/*
 * Step of the fastest of the @n combinations, in all window modes, with copies
 * out early and late; TS_NEVER: none fits.
 */
uint64_t ts_optimum(struct ts_search *search, uint64_t n);

#endif
