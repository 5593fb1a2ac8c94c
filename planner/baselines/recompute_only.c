/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ablation: pass 2 alone, nothing is swapped. */
#include "planner/baselines/baseline.h"

int ts_baseline_recompute_only(
        struct ts_search *search, struct ts_baseline_result *result)
{
	return ts_search_ablation(search, TS_ORDER_COST, true, &result->choice,
	        &result->outcome, &result->plain);
}
