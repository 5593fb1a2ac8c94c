/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/baselines/baseline.h"

#include <errno.h>
#include <string.h>

const struct ts_baseline ts_baselines[] = {
        {"vdnn", ts_baseline_vdnn, true},
        {"vdnn-conv", ts_baseline_vdnn_conv, false},
        {"vdnn-all", ts_baseline_vdnn_all, false},
        {"superneurons", ts_baseline_superneurons, false},
        {"swapadvisor", ts_baseline_swapadvisor, false},
        {"checkpoint", ts_baseline_checkpoint, false},
        {"checkpoint-full", ts_baseline_checkpoint_full, false},
        {"selective", ts_baseline_selective, false},
        {"compile-budget", ts_baseline_compile_budget, false},
        {"swap-first", ts_baseline_swap_first, false},
        {"recompute-only", ts_baseline_recompute_only, false},
        {"barriers", ts_baseline_barriers, true},
        {"lru", ts_baseline_lru, false},
};
const uint32_t ts_n_baselines = sizeof(ts_baselines) / sizeof(ts_baselines[0]);

int ts_baseline_run(struct ts_search *search, ts_baseline_fn fn,
        struct ts_baseline_result *result)
{
	int err;

	memset(result, 0, sizeof(*result));
	err = ts_choice_init(&result->choice, search->graph->n_gaps);
	if (err)
		return err;
	result->outcome.step_ns = TS_NEVER;
	err = fn(search, result);
	if (err)
		ts_choice_finish(&result->choice);
	return err;
}

uint32_t ts_baseline_pivot(const struct ts_graph *graph)
{
	return graph->profile->n_turns ? graph->profile->turns[0]
	                               : graph->peak_op;
}

bool ts_baseline_bridges(const struct ts_gap *gap, uint32_t pivot)
{
	return gap->from_op < pivot && gap->to_op >= pivot;
}

enum ts_op_class ts_baseline_class(
        const struct ts_graph *graph, const struct ts_gap *gap)
{
	const struct ts_profile *p = graph->profile;

	if (gap->born_op == TS_NONE)
		return TS_CLASS_OTHER;
	return p->signatures[p->ops[gap->born_op].signature].op_class;
}

void ts_baseline_clear(struct ts_choice *choice)
{
	memset(choice->action, TS_KEEP, choice->n_gaps);
	memset(choice->window, 0, choice->n_gaps * sizeof(*choice->window));
	memset(choice->late, 0, choice->n_gaps * sizeof(*choice->late));
}

int ts_baseline_simulate(struct ts_search *search,
        struct ts_baseline_result *result, enum ts_window_mode windows,
        const struct ts_model_options *options)
{
	static const struct ts_model_options plain;
	int err;

	if (windows != TS_WINDOW_MODES)
		ts_windows_set(search->graph, &result->choice, windows);
	ts_model_set_options(search->model, options ? options : &plain);
	err = ts_model_run(
	        search->model, &result->choice, &result->outcome, NULL);
	ts_model_set_options(search->model, &plain);
	result->plain = !options;
	result->reactive = options && options->lazy_copies;
	for (uint32_t i = 0; result->reactive && i < search->graph->n_gaps;
	        i++) {
		if (result->choice.action[i] == TS_SWAP &&
		        ts_model_left(search->model)[i] == TS_NONE)
			result->choice.action[i] = TS_KEEP;
	}
	return err;
}
