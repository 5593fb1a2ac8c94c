/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/knapsack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t cells_of(uint64_t bytes, uint64_t unit)
{
	uint64_t cells = (bytes + unit - 1) / unit;

	return cells > TS_KNAPSACK_CELLS ? TS_KNAPSACK_CELLS + 1
	                                 : (uint32_t)cells;
}

int ts_knapsack_solve(const struct ts_knapsack_class *classes, uint32_t n,
        uint64_t capacity_bytes, uint32_t *ret_taken)
{
	enum { CELLS = TS_KNAPSACK_CELLS + 1 };
	uint64_t unit = capacity_bytes / TS_KNAPSACK_CELLS;
	uint32_t room = TS_KNAPSACK_CELLS, left;
	uint64_t *best = calloc(CELLS, sizeof(*best));
	uint64_t *next = calloc(CELLS, sizeof(*next));
	uint16_t *taken = calloc((uint64_t)n * CELLS + 1, sizeof(*taken));
	int err = best && next && taken ? 0 : -ENOMEM;

	if (!unit) {
		/* Below one byte a cell: cells are bytes. */
		unit = 1;
		room = (uint32_t)capacity_bytes;
	}
	for (uint32_t i = 0; !err && i < n; i++) {
		uint16_t *row = taken + (uint64_t)i * CELLS;
		uint64_t *swap = best;

		memcpy(next, best, CELLS * sizeof(*next));
		for (uint32_t k = 1; k < classes[i].n_items && k < 65535; k++) {
			const struct ts_knapsack_item *item =
			        &classes[i].items[k];
			uint32_t need = cells_of(item->bytes, unit);

			for (uint32_t c = need; c <= room; c++) {
				uint64_t gain = best[c - need] + item->gain;

				if (gain <= next[c])
					continue;
				next[c] = gain;
				row[c] = (uint16_t)k;
			}
		}
		best = next;
		next = swap;
	}
	left = room;
	for (uint32_t i = n; !err && i-- > 0;) {
		ret_taken[i] = taken[(uint64_t)i * CELLS + left];
		if (ret_taken[i])
			left -= cells_of(
			        classes[i].items[ret_taken[i]].bytes, unit);
	}
	free(best);
	free(next);
	free(taken);
	return err;
}
