/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings of the pass over all gaps. Called by ts_plan_make(). */
#include "planner/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rounds in which replays show what they take. */
#define FITTING 3
/* Settings that go on with later times, and for how many rounds. */
#define MORE        2
#define MORE_ROUNDS 5
/* Times that the windows of the best plan are fitted to its run. */
#define REFITS 4
/* How far times move to those that a run had. */
#define SHIFT 0.4
/* Share of the limit that copies on their way may take beside the plan. */
#define HEADROOM 0.01
/* Share of the link's speed that is counted on. */
#define LINK_SHARE 0.97

/* See struct ts_cover_options; pull in lengths of a region's backward. */
struct setting {
	bool by_area;
	bool reserve;
	double pull;
	bool no_replays;
};

static const struct setting settings[] = {
        {true, false, 2.5, false},
        {false, false, 2.5, false},
        {false, true, 2.5, false},
        {true, false, 1.1, false},
        /* Where all of these go badly. */
        {true, false, 2.5, true},
};
#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))
/* Badly: so many times slower than the ideal. */
#define POOR 1.5

/*
 * Compares what the compiled trial takes with what the pass believed; the
 * difference is there from the next round on. True: all ops fit.
 */
static bool learn(struct ts_search *s, uint64_t *bytes)
{
	const struct ts_graph *g = s->graph;
	struct ts_cover *c = &s->cover;
	bool fits = true;

	ts_program_memory(&s->program, &s->trial, bytes);
	for (uint32_t i = 0; i < g->n_ops; i++) {
		int64_t believed = ts_segtree_get(&c->memory, i);
		int64_t more = (int64_t)bytes[i] - believed;

		fits = fits && bytes[i] <= s->limit_bytes;
		if (more > 0)
			c->extra_bytes[i] += (uint64_t)more;
	}
	return fits;
}

/* Replays that the compiled trial has room for after all, dearest first. */
static int keep_what_fits(
        struct ts_search *s, const uint64_t *bytes, uint64_t limit_bytes)
{
	const struct ts_graph *g = s->graph;
	int64_t limit = (int64_t)limit_bytes;
	struct ts_segtree memory;
	int err = ts_segtree_init(&memory, bytes, g->n_ops);

	for (uint32_t i = 0; !err && i < g->n_gaps; i++) {
		uint32_t gap = s->pass.order_by_cost[i], at;
		uint32_t from = g->gaps[gap].from_op + 1;
		uint32_t to = s->program.need_op[gap];
		int64_t size = (int64_t)g->gaps[gap].size_bytes;

		if (s->trial.action[gap] != TS_REPLAY || to > g->n_ops ||
		        ts_segtree_range_max(&memory, from, to, &at) + size >
		                limit)
			continue;
		s->trial.action[gap] = TS_KEEP;
		ts_segtree_add(&memory, from, to, size);
	}
	if (!err)
		ts_segtree_finish(&memory);
	return err;
}

/*
 * Rounds of one setting: first until all ops fit, then with later times, as
 * long as that helps. *ret_step_ns is the best step of these rounds.
 */
static int try_setting(struct ts_search *s,
        const struct ts_cover_options *options, uint32_t rounds,
        uint64_t *bytes, uint64_t *ret_step_ns)
{
	int err = 0;

	*ret_step_ns = TS_NEVER;
	ts_cover_reset(&s->cover);
	for (uint32_t round = 0; !err && round < rounds + FITTING; round++) {
		struct ts_outcome outcome;

		err = ts_cover_run(
		        &s->cover, options, s->program.share_until, &s->trial);
		if (!err)
			err = ts_program_compile(&s->program, &s->trial);
		if (err == -EINVAL)
			return 0;
		if (err)
			return err;
		if (!learn(s, bytes))
			continue;
		err = keep_what_fits(s, bytes, options->limit_bytes);
		if (!err)
			err = ts_search_offer(s, TS_WINDOWS_ROOM, &outcome);
		if (err || !outcome.fits || outcome.step_ns >= *ret_step_ns)
			return err;
		*ret_step_ns = outcome.step_ns;
		if (!--rounds)
			return 0;
		ts_cover_move_times(
		        &s->cover, ts_model_op_times(s->model), SHIFT);
	}
	return err;
}

/* Longest backward of a region; without regions a part of the step. */
static double region_ns(const struct ts_graph *g)
{
	const struct ts_profile *p = g->profile;
	double longest = 0;

	for (uint32_t i = 0; i < p->n_regions; i++) {
		const struct ts_region *r = &p->regions[i];
		double ns;

		if (r->backward_first_op == TS_NONE)
			continue;
		ns = (double)(g->start_ns[r->backward_end_op] -
		              g->start_ns[r->backward_first_op]);
		longest = ns > longest ? ns : longest;
	}
	return longest > 0 ? longest : 0.05 * (double)g->start_ns[g->n_ops];
}

static bool poor(const struct ts_search *s)
{
	double ideal = (double)s->graph->start_ns[s->graph->n_ops];

	return !s->best.outcome.fits ||
	       (double)s->best.outcome.step_ns > POOR * ideal;
}

int ts_search_cover(struct ts_search *s)
{
	uint64_t *bytes = calloc(s->graph->n_ops + UINT64_C(1), sizeof(*bytes));
	uint64_t step_ns[N_SETTINGS];
	double region = region_ns(s->graph);
	uint32_t best = 0;
	int err = bytes ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < N_SETTINGS + MORE; i++) {
		uint32_t at = i < N_SETTINGS ? i : best;
		const struct setting *setting = &settings[at];
		struct ts_cover_options options = {.no_swaps = s->no_swaps,
		        .no_replays = setting->no_replays,
		        .free_first = true,
		        .by_area = setting->by_area,
		        .reserve = setting->reserve,
		        .pull_ns = region * setting->pull,
		        .link_weight = 1,
		        .link_share = LINK_SHARE,
		        .limit_bytes = (uint64_t)((double)s->limit_bytes *
		                                  (1 - HEADROOM))};

		step_ns[at] = TS_NEVER;
		if (i + 1 != N_SETTINGS || poor(s))
			err = try_setting(s, &options,
			        i < N_SETTINGS ? 1 : MORE_ROUNDS, bytes,
			        &step_ns[at]);
		if (i + 1 < N_SETTINGS)
			continue;
		/* The best ones go on, each once. */
		if (i >= N_SETTINGS)
			step_ns[at] = TS_NEVER;
		for (uint32_t k = 0; k < N_SETTINGS; k++) {
			if (step_ns[k] < step_ns[best] || best == at)
				best = k;
		}
		if (step_ns[best] == TS_NEVER)
			break;
	}
	if (!err && s->best.outcome.fits)
		err = ts_search_refit(s, REFITS);
	free(bytes);
	return err;
}
