/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Selective checkpointing as it is tuned by hand: in every block the same few
 * outputs are saved, those that cost most to make again per byte.
 */
#include "planner/baselines/baseline.h"

#include <errno.h>
#include <stdlib.h>

struct slot {
	uint32_t gap; /* in the first region */
	double ns_per_byte;
};

static int by_cost(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->ns_per_byte != y->ns_per_byte)
		return x->ns_per_byte > y->ns_per_byte ? -1 : 1;
	return x->gap < y->gap ? -1 : x->gap > y->gap;
}

/* The same place in a region: offset of the writer and which output. */
static bool same_place(const struct ts_graph *g, const struct ts_gap *a,
        uint32_t a_first, const struct ts_gap *b, uint32_t b_first)
{
	const struct ts_profile *p = g->profile;

	return a->born_op - a_first == b->born_op - b_first &&
	       p->values[a->version].output == p->values[b->version].output;
}

static bool dropped_in(const struct ts_graph *g, const struct ts_gap *gap,
        const struct ts_region *region, uint32_t pivot)
{
	return ts_baseline_bridges(gap, pivot) && gap->replay_ns != TS_NEVER &&
	       gap->born_op >= region->first_op &&
	       gap->born_op < region->end_op && gap->to_op < g->n_ops;
}

static int save_slots(struct ts_search *search,
        struct ts_baseline_result *result, const struct slot *slots, uint32_t n)
{
	const struct ts_graph *g = search->graph;
	const struct ts_profile *p = g->profile;
	uint32_t pivot = ts_baseline_pivot(g);

	ts_baseline_clear(&result->choice);
	for (uint32_t r = 0; r < p->n_regions; r++) {
		const struct ts_region *region = &p->regions[r];

		for (uint32_t k = g->from_first[region->first_op];
		        k < g->from_first[region->end_op]; k++) {
			bool saved = false;

			if (!dropped_in(g, &g->gaps[k], region, pivot))
				continue;
			for (uint32_t i = 0; !saved && i < n; i++)
				saved = same_place(g, &g->gaps[k],
				        region->first_op,
				        &g->gaps[slots[i].gap],
				        p->regions[0].first_op);
			if (!saved)
				result->choice.action[k] = TS_REPLAY;
		}
	}
	return ts_baseline_simulate(search, result, TS_WINDOWS_TURN, NULL);
}

int ts_baseline_selective(
        struct ts_search *search, struct ts_baseline_result *result)
{
	const struct ts_graph *g = search->graph;
	const struct ts_profile *p = g->profile;
	uint32_t n = 0, low = 0, high;
	struct slot *slots;
	int err;

	if (!p->n_regions)
		return save_slots(search, result, NULL, 0);
	slots = calloc(g->n_gaps + UINT64_C(1), sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t k = g->from_first[p->regions[0].first_op];
	        k < g->from_first[p->regions[0].end_op]; k++) {
		const struct ts_gap *gap = &g->gaps[k];

		if (!dropped_in(g, gap, &p->regions[0], ts_baseline_pivot(g)))
			continue;
		slots[n].gap = k;
		slots[n++].ns_per_byte =
		        (double)gap->replay_ns / (double)(gap->size_bytes + 1);
	}
	qsort(slots, n, sizeof(*slots), by_cost);
	high = n;
	/* The longest prefix that fits. */
	err = 0;
	while (!err && low < high) {
		uint32_t mid = low + (high - low + 1) / 2;

		err = save_slots(search, result, slots, mid);
		if (result->outcome.fits)
			low = mid;
		else
			high = mid - 1;
	}
	if (!err)
		err = save_slots(search, result, slots, low);
	free(slots);
	return err;
}
