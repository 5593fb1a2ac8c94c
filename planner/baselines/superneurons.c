/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SuperNeurons: norm, activation and dropout outputs are always recomputed;
 * outputs of heavy ops leave in the order of their last use when memory is
 * short, and come back one heavy op ahead.
 */
#include "planner/baselines/baseline.h"

static bool heavy(enum ts_op_class c)
{
	return c == TS_CLASS_GEMM || c == TS_CLASS_ATTENTION ||
	       c == TS_CLASS_CONVOLUTION;
}

/* Adding is no layer of its own: its output is the stream that blocks share */
static bool cheap(const struct ts_graph *g, const struct ts_gap *gap)
{
	enum ts_op_class c = ts_baseline_class(g, gap);
	uint32_t versions = 0;

	if (c == TS_CLASS_NORM || c == TS_CLASS_DROPOUT || c == TS_CLASS_POOL)
		return true;
	if (c != TS_CLASS_ELEMENTWISE)
		return false;
	/* One input that is saved: an activation function. */
	for (uint32_t k = 0; k < g->profile->ops[gap->born_op].n_reads; k++)
		versions += ts_graph_alive(g,
		        g->profile->uses
		                [g->profile->ops[gap->born_op].first_read + k],
		        gap->to_op);
	return versions == g->profile->ops[gap->born_op].n_reads;
}

/* Start of the last heavy op before @op, after @from. */
static uint32_t heavy_before(
        const struct ts_graph *g, uint32_t from, uint32_t op)
{
	const struct ts_profile *p = g->profile;

	for (uint32_t i = op; i-- > from + 1;) {
		if (heavy(p->signatures[p->ops[i].signature].op_class))
			return i;
	}
	return op;
}

int ts_baseline_superneurons(
        struct ts_search *search, struct ts_baseline_result *result)
{
	static const struct ts_model_options lazy = {
	        .lazy_copies = true, .late_copies = true};
	const struct ts_graph *g = search->graph;
	uint32_t pivot = ts_baseline_pivot(g);

	ts_baseline_clear(&result->choice);
	if (g->peak_bytes <= search->limit_bytes)
		return ts_baseline_simulate(
		        search, result, TS_WINDOWS_TURN, NULL);
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		if (!ts_baseline_bridges(gap, pivot) || gap->to_op >= g->n_ops)
			continue;
		if (gap->replay_ns != TS_NEVER && cheap(g, gap)) {
			result->choice.action[i] = TS_REPLAY;
		} else if (heavy(ts_baseline_class(g, gap))) {
			result->choice.action[i] = TS_SWAP;
			result->choice.window[i] =
			        heavy_before(g, gap->from_op, gap->to_op);
		}
	}
	return ts_baseline_simulate(search, result, TS_WINDOW_MODES, &lazy);
}
