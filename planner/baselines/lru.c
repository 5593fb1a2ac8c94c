/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pager that knows no tape: when memory is short, what was used least
 * recently is copied out; it comes back when an op asks for it.
 */
#include "planner/baselines/baseline.h"

#include <string.h>

int ts_baseline_lru(struct ts_search *search, struct ts_baseline_result *result)
{
	static const struct ts_model_options lazy = {
	        .lazy_copies = true, .late_copies = true};

	memset(result->choice.action, TS_SWAP, result->choice.n_gaps);
	return ts_baseline_simulate(search, result, TS_WINDOWS_NEED, &lazy);
}
