/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which ways of planning a tape gets, and the best of what they offer. All
 * candidates run on the whole graph in the end, those of the other policies
 * too: a plan is never slower than one of them. Called by ts_plan_make().
 */
#include "planner/baselines/baseline.h"
#include "planner/bound.h"
#include "planner/plan.h"
#include "planner/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Values below share pages with others. */
#define SMALL_PAGE_BYTES (UINT64_C(2) << 20)
/* What is left out of a search may be so small a part of the peak. */
#define SMALL_SHARE 50
/* Evaluations of the search: so many ops in all, and never more than that. */
#define SEARCH_OPS      800000
#define MAX_EVALUATIONS 6000
/* The same where parameters may leave: a run takes three steps to settle. */
#define WIDE_SEARCH_OPS 2500000
/* Rounds of repair there, where the two passes are not what counts. */
#define WIDE_ROUNDS 2
/* Runs that they take, and the pass over all gaps after them. */
#define WIDE_RUNS 12
/* Longest tape that this pass plans in less time than a user may wait for. */
#define MOST_COVER_OPS 600000
/*
 * Share of the limit that the two passes plan for on longer ones: there is no
 * time for a second round where the first does not fit.
 */
#define LONG_SHARE 0.99
/* A plan for a long tape that is so many times slower than the ideal. */
#define POOR 1.25
/*
 * What a search may do in all (ts_search_work()), and what more where there is
 * a local search. Both are less on longer tapes, down to nothing on the
 * longest, for what every tape gets takes ever more there: so planning time has
 * no steps.
 */
#define BASE_WORK   6000000
#define SEARCH_WORK 100000000
#define LONGEST_OPS 1000000
/* Runs that it may take to hold one more policy against a plan. */
#define BASELINE_RUNS 8
/* Up to so many gaps the local search alone finds what there is. */
#define FEW_GAPS 64

static bool any_replay(const struct ts_choice *choice)
{
	return memchr(choice->action, TS_REPLAY, choice->n_gaps) != NULL;
}

/* What other policies would do, under this planner's runtime rules. */
static int try_baselines(struct ts_search *s)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < ts_n_baselines; i++) {
		struct ts_baseline_result result;
		struct ts_outcome outcome;

		if (ts_baselines[i].dominated ||
		        !ts_search_may(
		                s, BASELINE_RUNS * ts_search_run_work(s)))
			continue;
		err = ts_baseline_run(s, ts_baselines[i].fn, &result);
		if (err)
			break;
		if (s->swap_only && any_replay(&result.choice)) {
			ts_choice_finish(&result.choice);
			continue;
		}
		memset(s->trial.late, 0, s->trial.n_gaps);
		memcpy(s->trial.action, result.choice.action, s->trial.n_gaps);
		if (!result.plain ||
		        result.outcome.step_ns < s->best.outcome.step_ns)
			err = ts_search_offer(s, TS_WINDOWS_TURN, &outcome);
		/* Reactive policies move only what turned out to be in the way.
		 */
		if (!err && result.reactive) {
			ts_choice_copy(&s->trial, &result.choice);
			for (uint32_t w = 0; !err && w < 2 * TS_WINDOW_MODES;
			        w++) {
				memset(s->trial.late, w >= TS_WINDOW_MODES,
				        s->trial.n_gaps);
				err = ts_search_offer(s,
				        (enum ts_window_mode)(
				                w % TS_WINDOW_MODES),
				        &outcome);
			}
		}
		ts_choice_finish(&result.choice);
	}
	return err;
}

/* The same apart from what was found: settled, one of them may be better. */
static int try_baselines_apart(struct ts_search *s)
{
	struct ts_best before;
	int err = ts_search_begin_apart(s, &before);

	if (err)
		return err;
	err = try_baselines(s);
	if (!err && s->evaluations && s->best.outcome.fits)
		err = ts_search_improve(
		        s, ts_search_effort(s, TS_CLOSE_EVALUATIONS));
	if (!err)
		err = ts_search_note_settled(s);
	ts_search_end_apart(s, &before);
	return err;
}

/* About as long for every tape: long ones get fewer evaluations. */
static uint32_t evaluations(const struct ts_graph *g,
        const struct ts_plan_options *options, uint32_t ops)
{
	uint32_t n = ops / (g->n_ops + 1);

	if (options->search_evaluations != TS_SEARCH_AUTO)
		return options->search_evaluations;
	return n < MAX_EVALUATIONS ? n : MAX_EVALUATIONS;
}

/* Belady's rule, where there is no time for more than one other plan. */
static int seek_belady(struct ts_search *s)
{
	double ideal = (double)s->graph->start_ns[s->graph->n_ops];
	struct ts_outcome outcome;
	int err;

	if (s->best.outcome.fits &&
	        (double)s->best.outcome.step_ns <= POOR * ideal)
		return 0;
	err = ts_baseline_choose_swapadvisor(s, &s->trial);
	return err ? err : ts_search_offer(s, TS_WINDOWS_TURN, &outcome);
}

/* Variants of the two passes beside the first, each of which took @work. */
static int seek_variants(struct ts_search *s, uint64_t work)
{
	const struct ts_graph *g = s->graph;
	bool turn_is_peak =
	        g->profile->n_turns && g->peak_op == g->profile->turns[0];
	int err = 0;

	for (uint32_t k = 0; !err && k < 2 && !turn_is_peak; k++) {
		if (ts_search_may(s, work))
			err = ts_search_two_pass(s, g->peak_op,
			        k ? TS_WINDOWS_LATE : TS_WINDOWS_TURN);
	}
	if (!err && ts_search_may(s, work)) {
		s->no_swaps = true;
		err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_LATE);
		s->no_swaps = false;
	}
	return err;
}

/* Tapes of activations alone: all variants of the two passes. */
static int seek_narrow(struct ts_search *s, uint32_t evaluations)
{
	const struct ts_graph *g = s->graph;
	uint64_t work = ts_search_work(s);
	int err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_TURN);

	work = ts_search_work(s) - work;
	if (!err && ts_search_may(s, work))
		err = seek_variants(s, work);
	else if (!err)
		err = seek_belady(s);
	if (!err && g->n_gaps > FEW_GAPS && !s->best.outcome.fits)
		err = ts_search_cover(s);
	if (!err && s->best.outcome.fits && !s->swap_only && evaluations &&
	        ts_search_may(s, work))
		err = ts_search_frontier(s);
	return err;
}

/* Tapes whose parameters and optimizer state may have to leave as well. */
static int seek_wide(struct ts_search *s)
{
	bool both = ts_search_may(s, WIDE_RUNS * ts_search_run_work(s));
	bool two_pass = both || s->graph->n_ops > MOST_COVER_OPS;
	int err = 0;

	s->rounds = WIDE_ROUNDS;
	if (!both)
		s->first_share = LONG_SHARE;
	/* Where there is no time for both, the pass over all gaps is better. */
	if (two_pass)
		err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_TURN);
	if (!err && (both || !s->best.outcome.fits))
		err = ts_search_cover(s);
	if (!err && !two_pass && !s->best.outcome.fits)
		err = ts_search_two_pass(s, TS_NONE, TS_WINDOWS_TURN);
	return err;
}

static bool is_wide(const struct ts_graph *g)
{
	return g->n_gaps > FEW_GAPS && ts_graph_wraps(g);
}

static int seek(struct ts_search *s, uint32_t evaluations)
{
	s->evaluations = evaluations;
	return is_wide(s->graph) ? seek_wide(s) : seek_narrow(s, evaluations);
}

/* Most bytes in open gaps of less than @size each, at any op. */
static uint64_t small_bytes(
        const struct ts_graph *g, uint64_t size, uint64_t *change)
{
	uint64_t bytes = 0, most = 0;

	memset(change, 0, (g->n_ops + UINT64_C(1)) * sizeof(*change));
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		if (gap->size_bytes >= size)
			continue;
		change[gap->from_op + 1] += gap->size_bytes;
		if (gap->to_op <= g->n_ops) {
			change[gap->to_op] -= gap->size_bytes;
		} else {
			bytes += gap->size_bytes;
			change[gap->to_op - g->n_ops] -= gap->size_bytes;
		}
	}
	for (uint32_t i = 0; i < g->n_ops; i++) {
		bytes += change[i];
		if (bytes > most)
			most = bytes;
	}
	return most;
}

/*
 * Size from which on values are worth moving: the largest power of two, up to
 * 2 MiB (smaller ones share pages), below which all of them together are next
 * to nothing at every op. 1 where too few are below it.
 */
static int worth_moving(const struct ts_graph *g, uint64_t *ret_size)
{
	uint64_t *change = calloc(g->n_ops + UINT64_C(1), sizeof(*change));
	uint64_t size = SMALL_PAGE_BYTES;
	uint32_t dropped = 0;

	if (!change)
		return -ENOMEM;
	while (size > 1 &&
	        small_bytes(g, size, change) > g->peak_bytes / SMALL_SHARE)
		size /= 2;
	free(change);
	for (uint32_t i = 0; i < g->n_gaps; i++)
		dropped += g->gaps[i].size_bytes < size;
	/* Too few to be worth a second graph. */
	*ret_size = dropped > g->n_gaps / 10 ? size : 1;
	return 0;
}

/* The best choice of a search on fewer gaps of the same tape. */
static int lift(struct ts_search *s, const struct ts_search *coarse)
{
	const struct ts_graph *g = s->graph, *c = coarse->graph;
	const struct ts_choice *from = &coarse->best.choice;
	struct ts_outcome outcome;
	uint32_t at = 0;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		/* Both have their gaps in the same order. */
		bool there = at < c->n_gaps &&
		             c->gaps[at].object == g->gaps[i].object &&
		             c->gaps[at].from_op == g->gaps[i].from_op;

		s->trial.action[i] = there ? from->action[at] : TS_KEEP;
		s->trial.window[i] = there ? from->window[at] : 0;
		s->trial.late[i] = there ? from->late[at] : 0;
		at += there;
	}
	return ts_search_offer_as_is(s, coarse->best.windows, &outcome);
}

static uint64_t left_of(const struct ts_search *s)
{
	uint64_t done = ts_search_work(s);

	return done < s->budget ? s->budget - done : 0;
}

/*
 * Looks for plans with small values left where they are. *ret_done: it found
 * one that fits, and it is search->best.
 */
static int seek_coarse(struct ts_search *s, uint64_t min_gap_bytes,
        const struct ts_plan_options *options, uint32_t evaluations,
        bool *ret_done)
{
	struct ts_search search = {0};
	struct ts_graph coarse;
	int err = ts_graph_init(&coarse, s->graph->profile,
	        &(struct ts_graph_options){.min_gap_bytes = min_gap_bytes,
	                .no_replays = s->swap_only,
	                .dirties = s->graph->dirties});

	if (err)
		return err;
	if (coarse.floor_bytes > s->limit_bytes)
		goto out_finish;
	err = ts_search_init(&search, &coarse, s->limit_bytes);
	if (err)
		goto out_finish;
	search.swap_only = s->swap_only;
	search.no_enumeration = s->no_enumeration;
	search.quick = s->quick;
	search.budget = left_of(s);
	err = seek(&search, evaluations);
	if (!err && options->baselines)
		err = is_wide(&coarse) ? try_baselines_apart(&search)
		                       : try_baselines(&search);
	if (!err && search.best.outcome.fits)
		err = ts_search_improve(
		        &search, ts_search_effort(&search, evaluations));
	if (!err && search.best.outcome.fits)
		err = ts_search_settle(&search);
	if (!err && search.best.outcome.fits)
		err = lift(s, &search);
	ts_search_count(s, &search);
	ts_search_finish(&search);
out_finish:
	ts_graph_finish(&coarse);
	*ret_done = s->best.outcome.fits;
	return err;
}

static int seek_all(struct ts_search *s, const struct ts_plan_options *options)
{
	const struct ts_graph *g = s->graph;
	uint32_t n = evaluations(g, options,
	        is_wide(g) && !options->quick ? WIDE_SEARCH_OPS : SEARCH_OPS);
	uint64_t size = options->min_gap_bytes;
	struct ts_outcome outcome;
	uint64_t step_ns;
	bool done = false;
	int err = 0;

	if (g->peak_bytes <= s->limit_bytes) {
		memset(s->trial.action, TS_KEEP, s->trial.n_gaps);
		return ts_search_offer(s, TS_WINDOWS_TURN, &outcome);
	}
	if (!size)
		err = worth_moving(g, &size);
	if (!err && !options->min_gap_bytes && size > 1)
		err = seek_coarse(s, size, options, n, &done);
	if (!err && !done)
		err = seek(s, n);
	if (!err && (!s->best.outcome.fits ||
	                    (!is_wide(g) &&
	                            ts_search_may(s, ts_search_run_work(s)))))
		err = ts_search_emergency(s);
	if (err)
		return err;
	step_ns = s->best.outcome.step_ns;
	if (options->baselines)
		err = is_wide(g) ? try_baselines_apart(s) : try_baselines(s);
	/* What is done was improved before, unless it was beaten now. */
	if (!err && s->best.outcome.fits &&
	        (!done || s->best.outcome.step_ns < step_ns))
		err = ts_search_improve(s, ts_search_effort(s, n));
	return err;
}

/*
 * The search without replays finds other plans, where replays hardly help
 * better ones: it is run where its bound does not rule that out.
 */
static int try_swap_only(
        struct ts_search *s, const struct ts_plan_options *options)
{
	struct ts_plan_options own = *options;
	struct ts_search search = {0};
	struct ts_graph g;
	uint64_t bound_ns;
	int err = ts_graph_init(&g, s->graph->profile,
	        &(struct ts_graph_options){
	                .min_gap_bytes = options->min_gap_bytes,
	                .no_replays = true,
	                .dirties = s->graph->dirties});

	if (err)
		return err;
	err = ts_bound_step(&g, s->limit_bytes, &bound_ns);
	if (err || bound_ns >= s->best.outcome.step_ns)
		goto out_finish;
	err = ts_search_init(&search, &g, s->limit_bytes);
	if (err)
		goto out_finish;
	own.no_replay = true;
	search.swap_only = true;
	search.no_enumeration = s->no_enumeration;
	search.quick = s->quick;
	search.budget = left_of(s);
	err = seek_all(&search, &own);
	if (!err && search.best.outcome.fits)
		err = ts_search_settle(&search);
	if (!err && search.best.outcome.fits)
		err = lift(s, &search);
	ts_search_count(s, &search);
	ts_search_finish(&search);
out_finish:
	ts_graph_finish(&g);
	return err;
}

static uint64_t budget(
        const struct ts_search *s, const struct ts_plan_options *options)
{
	uint64_t ops = s->graph->n_ops, work = BASE_WORK;

	if (options->search_evaluations)
		work += SEARCH_WORK;
	work = ops < LONGEST_OPS ? work / LONGEST_OPS * (LONGEST_OPS - ops) : 0;
	/* Who asks for a number of evaluations gets it. */
	if (options->search_evaluations != TS_SEARCH_AUTO)
		work += options->search_evaluations * ts_search_run_work(s);
	return work;
}

int ts_plan_search(struct ts_search *s, const struct ts_plan_options *options)
{
	int err;

	s->budget = budget(s, options);
	err = seek_all(s, options);
	/* It begins with plans for all of the tape, and ends with one more. */
	if (!err && !s->swap_only && is_wide(s->graph) &&
	        ts_search_may(s, BASELINE_RUNS * ts_search_run_work(s)))
		err = try_swap_only(s, options);
	return err;
}
