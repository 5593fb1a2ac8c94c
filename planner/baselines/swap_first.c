/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ablation: the link budget goes to what is produced first. */
#include "planner/baselines/baseline.h"

int ts_baseline_swap_first(
        struct ts_search *search, struct ts_baseline_result *result)
{
	return ts_search_ablation(search, TS_ORDER_AGE, false, &result->choice,
	        &result->outcome, &result->plain);
}
