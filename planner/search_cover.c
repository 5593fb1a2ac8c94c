/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings of the pass over all gaps. Called by ts_plan_make(). */
#include "planner/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rounds in which replays show what they take. */
#define ROUNDS 6

/* How far times move to those that a run had. */
#define SHIFT 0.4

/* What copies on their way may take beside the plan, in parts of the limit. */
static const double headrooms[] = {0.01, 0.03, 0.08};
/* How far replays may reach ahead, in lengths of a region's backward. */
static const double pulls[] = {1.1, 2.5, 8};

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

/* Rounds of one setting: first until all ops fit, then with later times. */
static int try_setting(struct ts_search *s,
        const struct ts_cover_options *options, uint64_t *bytes)
{
	uint64_t before = TS_NEVER;
	int err = 0;

	ts_cover_reset(&s->cover);
	for (uint32_t round = 0; !err && round < ROUNDS; round++) {
		struct ts_outcome outcome;

		err = ts_cover_run(&s->cover, options, s->program.share_until,
		        &s->trial);
		if (!err)
			err = ts_program_compile(&s->program, &s->trial);
		if (err == -EINVAL)
			return 0;
		if (err)
			return err;
		if (!learn(s, bytes))
			continue;
		err = ts_search_offer(s, TS_WINDOWS_ROOM, &outcome);
		if (err || !outcome.fits || outcome.step_ns >= before)
			return err;
		before = outcome.step_ns;
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

int ts_search_cover(struct ts_search *s)
{
	uint64_t *bytes = calloc(s->graph->n_ops + UINT64_C(1), sizeof(*bytes));
	double region = region_ns(s->graph);
	int err = bytes ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < 24; i++) {
		struct ts_cover_options options = {.no_swaps = s->no_swaps,
		        .free_first = true,
		        .by_area = i & 1,
		        .reserve = i / 2 & 1,
		        .pull_ns = region * pulls[i / 4 % 3],
		        .link_weight = 1,
		        .link_share = 0.97,
		        .limit_bytes = (uint64_t)((double)s->limit_bytes *
		                                  (1 - headrooms[i / 12]))};

		err = try_setting(s, &options, bytes);
	}
	free(bytes);
	return err;
}
