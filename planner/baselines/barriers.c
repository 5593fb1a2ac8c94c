/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ablation: the two-pass plan, run with vDNN's per-layer barriers. */
#include "planner/baselines/baseline.h"

int ts_baseline_barriers(
        struct ts_search *search, struct ts_baseline_result *result)
{
	uint64_t peak_bytes;
	int err = ts_search_ablation(search, TS_ORDER_COST, false,
	        &result->choice, &result->outcome, &result->plain);

	if (err || !result->outcome.fits)
		return err;
	/* Asks what barriers cost: memory is taken to be the plan's. */
	peak_bytes = result->outcome.peak_bytes;
	err = ts_baseline_layered(search, result, false);
	result->outcome.fits = !err;
	result->outcome.peak_bytes = peak_bytes;
	return err;
}
