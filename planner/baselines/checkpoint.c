/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Block checkpointing: what a block saved beyond its input is dropped and
 * made again when its backward begins. Blocks are the profile's regions.
 */
#include "planner/baselines/baseline.h"

/* Drops all that was written inside region @r and can be made again. */
static void drop_region(const struct ts_graph *g, struct ts_choice *choice,
        uint32_t r, uint32_t pivot)
{
	const struct ts_region *region = &g->profile->regions[r];

	for (uint32_t k = g->from_first[region->first_op];
	        k < g->from_first[region->end_op]; k++) {
		const struct ts_gap *gap = &g->gaps[k];

		if (ts_baseline_bridges(gap, pivot) &&
		        gap->replay_ns != TS_NEVER &&
		        gap->born_op >= region->first_op &&
		        gap->born_op < region->end_op)
			choice->action[k] = TS_REPLAY;
	}
}

static int first_blocks(
        struct ts_search *search, struct ts_baseline_result *result, uint32_t n)
{
	uint32_t pivot = ts_baseline_pivot(search->graph);

	ts_baseline_clear(&result->choice);
	for (uint32_t r = 0; r < n; r++)
		drop_region(search->graph, &result->choice, r, pivot);
	return ts_baseline_simulate(search, result, TS_WINDOWS_TURN, NULL);
}

int ts_baseline_checkpoint_full(
        struct ts_search *search, struct ts_baseline_result *result)
{
	return first_blocks(search, result, search->graph->profile->n_regions);
}

int ts_baseline_checkpoint(
        struct ts_search *search, struct ts_baseline_result *result)
{
	uint32_t low = 0, high = search->graph->profile->n_regions;
	int err = first_blocks(search, result, high);

	if (err || !result->outcome.fits)
		return err;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		err = first_blocks(search, result, mid);
		if (err)
			return err;
		if (result->outcome.fits)
			high = mid;
		else
			low = mid + 1;
	}
	return first_blocks(search, result, low);
}
