/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The policies that the planner is measured against, as the papers compare
 * them: each makes a choice and says how it runs. Pure; a policy uses the
 * search it is given as scratch and leaves search->best alone.
 */
#ifndef TS_PLANNER_BASELINE_H
#define TS_PLANNER_BASELINE_H

#include "planner/repair.h"

struct ts_baseline_result {
	/* Made by ts_baseline_run(), freed by its caller. */
	struct ts_choice choice;
	struct ts_outcome outcome;
	/* outcome holds under the planner's own runtime rules as well. */
	bool plain;
	/* The choice was narrowed to what left the device as it ran. */
	bool reactive;
};

/* Fills choice and outcome (fits == false: the policy has no plan). */
typedef int (*ts_baseline_fn)(
        struct ts_search *search, struct ts_baseline_result *result);

int ts_baseline_vdnn_conv(struct ts_search *, struct ts_baseline_result *);
int ts_baseline_vdnn_all(struct ts_search *, struct ts_baseline_result *);
/* Nothing if that fits, else conv, else all: what the papers plot. */
int ts_baseline_vdnn(struct ts_search *, struct ts_baseline_result *);
int ts_baseline_superneurons(struct ts_search *, struct ts_baseline_result *);
int ts_baseline_swapadvisor(struct ts_search *, struct ts_baseline_result *);
/* Fewest blocks recomputed from their inputs that fit. */
int ts_baseline_checkpoint(struct ts_search *, struct ts_baseline_result *);
/* Every block recomputed from its input. */
int ts_baseline_checkpoint_full(
        struct ts_search *, struct ts_baseline_result *);
/* Every block; the same outputs of each are saved, the dearest that fit. */
int ts_baseline_selective(struct ts_search *, struct ts_baseline_result *);
int ts_baseline_compile_budget(struct ts_search *, struct ts_baseline_result *);
int ts_baseline_swap_first(struct ts_search *, struct ts_baseline_result *);
int ts_baseline_recompute_only(struct ts_search *, struct ts_baseline_result *);
/* The two-pass plan under vDNN's barriers. */
int ts_baseline_barriers(struct ts_search *, struct ts_baseline_result *);
/* Least recently used out, back when asked for. */
int ts_baseline_lru(struct ts_search *, struct ts_baseline_result *);

/* SwapAdvisor's choice without a run. 0 or -ENOMEM. */
int ts_baseline_choose_swapadvisor(
        struct ts_search *search, struct ts_choice *choice);

/* All but the genetic algorithm, whose cost is a matter of taste. */
struct ts_baseline {
	const char *name;
	ts_baseline_fn fn;
	/* Another policy's plan, run under rules that only slow it down. */
	bool dominated;
};
extern const struct ts_baseline ts_baselines[];
extern const uint32_t ts_n_baselines;

/* Runs one policy; result->choice is made here. 0 or -ENOMEM. */
int ts_baseline_run(struct ts_search *search, ts_baseline_fn fn,
        struct ts_baseline_result *result);

/*
 * Genetic search over keep, swap and replay of every gap. Starts from
 * @seeds (may be none: random plans). A fixed number of evaluations.
 */
int ts_genetic(struct ts_search *search, const struct ts_choice *const *seeds,
        uint32_t n_seeds, uint32_t evaluations,
        struct ts_baseline_result *result);

/* Shared by the policies. */

/* The first turn, or the op of the peak where the tape has none. */
uint32_t ts_baseline_pivot(const struct ts_graph *graph);
/* Is the gap open over @pivot, within one step? */
bool ts_baseline_bridges(const struct ts_gap *gap, uint32_t pivot);
/* Class of the op that wrote the gap's version; TS_CLASS_OTHER for leaves. */
enum ts_op_class ts_baseline_class(
        const struct ts_graph *graph, const struct ts_gap *gap);
/* Keeps everything. */
void ts_baseline_clear(struct ts_choice *choice);
/* Runs result->choice under @options with @windows; restores the model. */
int ts_baseline_simulate(struct ts_search *search,
        struct ts_baseline_result *result, enum ts_window_mode windows,
        const struct ts_model_options *options);
/*
 * Times result->choice as vDNN runs it: a copy out overlaps the layer that
 * last reads the value and holds the next one; a layer of the backward
 * that needed what it had offloaded fetches for the closest one ahead, and
 * holds it likewise. @all: the input of the forward's last op goes out too.
 */
int ts_baseline_layered(
        struct ts_search *search, struct ts_baseline_result *result, bool all);

#endif
