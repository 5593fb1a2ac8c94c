/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/planner/optimum.h"

#include <string.h>

uint64_t ts_combinations(const struct ts_graph *g, uint64_t most)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < g->n_gaps && n <= most; i++)
		n *= g->gaps[i].replay_ns == TS_NEVER ? 2 : 3;
	return n <= most ? n : most + 1;
}

uint64_t ts_optimum(struct ts_search *s, uint64_t n)
{
	const struct ts_graph *g = s->graph;
	uint64_t best = TS_NEVER;

	for (uint64_t c = 0; c < n; c++) {
		uint64_t rest = c;

		for (uint32_t i = 0; i < g->n_gaps; i++) {
			uint32_t k = g->gaps[i].replay_ns == TS_NEVER ? 2 : 3;

			s->trial.action[i] = (uint8_t)(rest % k);
			rest /= k;
		}
		for (uint32_t w = 0; w < 2 * TS_WINDOW_MODES; w++) {
			struct ts_outcome o;

			memset(s->trial.late, w >= TS_WINDOW_MODES, g->n_gaps);
			ts_windows_set(g, &s->trial,
			        (enum ts_window_mode)(w % TS_WINDOW_MODES));
			if (!ts_model_run(s->model, &s->trial, &o, NULL) &&
			        o.fits && o.step_ns < best)
				best = o.step_ns;
		}
	}
	return best;
}
