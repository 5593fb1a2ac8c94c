/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* vDNN: offload the inputs of all layers, or of the heavy ones. */
#include "planner/baselines/baseline.h"

static bool heavy(const struct ts_graph *g, uint32_t op)
{
	const struct ts_profile *p = g->profile;
	enum ts_op_class c = p->signatures[p->ops[op].signature].op_class;

	return c == TS_CLASS_GEMM || c == TS_CLASS_ATTENTION ||
	       c == TS_CLASS_CONVOLUTION;
}

static int offload(
        struct ts_search *search, struct ts_baseline_result *result, bool all)
{
	const struct ts_graph *g = search->graph;
	uint32_t pivot = ts_baseline_pivot(g);

	ts_baseline_clear(&result->choice);
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		if (!ts_baseline_bridges(gap, pivot) || gap->to_op >= g->n_ops)
			continue;
		if (all || heavy(g, gap->from_op))
			result->choice.action[i] = TS_SWAP;
	}
	return ts_baseline_layered(search, result, all);
}

int ts_baseline_vdnn_conv(
        struct ts_search *search, struct ts_baseline_result *result)
{
	return offload(search, result, false);
}

int ts_baseline_vdnn_all(
        struct ts_search *search, struct ts_baseline_result *result)
{
	return offload(search, result, true);
}

int ts_baseline_vdnn(
        struct ts_search *search, struct ts_baseline_result *result)
{
	int err;

	ts_baseline_clear(&result->choice);
	err = ts_baseline_layered(search, result, false);
	if (!err && !result->outcome.fits)
		err = offload(search, result, false);
	if (!err && !result->outcome.fits)
		err = offload(search, result, true);
	return err;
}
