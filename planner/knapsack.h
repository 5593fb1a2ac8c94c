/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Multiple-choice knapsack over a discretized capacity. Pure. */
#ifndef TS_PLANNER_KNAPSACK_H
#define TS_PLANNER_KNAPSACK_H

#include <stdint.h>

struct ts_knapsack_item {
	uint64_t bytes;
	uint64_t gain;
};

/* One class: exactly one of its items is taken; the first takes 0 bytes. */
struct ts_knapsack_class {
	const struct ts_knapsack_item *items;
	uint32_t n_items;
};

/* Cells of the capacity; bytes are rounded up, so that the sum fits. */
#define TS_KNAPSACK_CELLS 512

/*
 * Takes one item of each class for the largest gain within @capacity_bytes:
 * exact on the discretized capacity. @ret_taken gets the item's index by
 * class. 0 or -ENOMEM.
 */
int ts_knapsack_solve(const struct ts_knapsack_class *classes, uint32_t n,
        uint64_t capacity_bytes, uint32_t *ret_taken);

#endif
