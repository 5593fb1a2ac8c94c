/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Validation and repair: plans are run on the event model, and what goes
 * wrong there is mended. Scratch belongs to one planner call.
 */
#ifndef TS_PLANNER_REPAIR_H
#define TS_PLANNER_REPAIR_H

#include "planner/cover.h"
#include "planner/model.h"
#include "planner/passes.h"

/* Evaluations that a good plan gets which is not the best. */
#define TS_CLOSE_EVALUATIONS 26
/* The best choice seen, and how it ran. */
struct ts_best {
	struct ts_choice choice;
	enum ts_window_mode windows;
	struct ts_outcome outcome;
};

/* One planner call at work: graph, model, passes, the best plan so far. */
struct ts_search {
	const struct ts_graph *graph;
	struct ts_model *model;
	struct ts_pass pass;
	/* Made by the first ts_search_cover(); long tapes do without. */
	struct ts_cover cover;
	/*
	 * The trial compiled, for windows that depend on memory; made where
	 * it is first asked for.
	 */
	struct ts_program program;
	struct ts_choice trial;
	struct ts_best best;
	/* The best of those noted, whose windows are where copies began. */
	struct ts_best settled;
	/* Runs of the model up to one of the best plan; 0: none was. */
	uint64_t best_run;
	uint64_t *wait_ns;
	uint64_t limit_bytes;
	/* Which parts of the algorithm to leave out (ablations). */
	bool no_swaps;
	/* Replays are out of the question. */
	bool swap_only;
	/* See struct ts_plan_options. */
	bool no_enumeration, quick;
	/* What searches on other graphs of the tape did (ts_model_runs()...).
	 */
	uint64_t runs_before, instrs_before, work_before;
	/* Most that ts_search_work() may come to; no limit unless set. */
	uint64_t budget;
	/* Of the local search that is to follow; 0: there is none. */
	uint32_t evaluations;
	/* Rounds of repair; six unless changed. */
	uint32_t rounds;
	/* Of the limit, that the first round plans for; all of it. */
	double first_share;
	enum ts_swap_order order;
};

int ts_search_init(struct ts_search *search, const struct ts_graph *graph,
        uint64_t limit_bytes);
void ts_search_finish(struct ts_search *search);

/*
 * What the search has done so far, in steps of about the time that the event
 * model takes for an op: the same on every machine, unlike time.
 */
uint64_t ts_search_work(const struct ts_search *search);

/* Of one run of the best plan, at most. */
uint64_t ts_search_run_work(const struct ts_search *search);

/* Does the budget have so much left? */
bool ts_search_may(const struct ts_search *search, uint64_t work);

/* Adds what @other did, a search on another graph of the tape. */
void ts_search_count(struct ts_search *search, const struct ts_search *other);

/*
 * How much of @most is right for what it takes to run the best plan: all of it
 * up to the longest tapes that were recorded, then ever less, but not nothing.
 */
uint32_t ts_search_effort(const struct ts_search *search, uint32_t most);

/* Sets the windows of search->trial, runs it; keeps it where it is the best. */
int ts_search_offer(struct ts_search *search, enum ts_window_mode windows,
        struct ts_outcome *ret_outcome);

/* The same with the windows that search->trial has, of mode @windows. */
int ts_search_offer_as_is(struct ts_search *search, enum ts_window_mode windows,
        struct ts_outcome *ret_outcome);

/* Sets the windows of search->trial. 0, -ENOMEM, or -EINVAL: impossible. */
int ts_search_windows(struct ts_search *search, enum ts_window_mode windows);

/*
 * Fits the windows of the best plan to when its ops began and its values left
 * in the last run, so many times.
 */
int ts_search_refit(struct ts_search *search, uint32_t rounds);

/*
 * The pass over all gaps (cover.h) in several settings, each corrected by
 * what its replays turn out to take.
 */
int ts_search_cover(struct ts_search *search);

/* SlackSwap's planner: both passes, at most six rounds of repair. */
int ts_search_two_pass(struct ts_search *search, uint32_t pivot_op,
        enum ts_window_mode windows);

/*
 * The two passes with parts left out, apart from search->best: the best
 * choice and its outcome. *ret_plain is set: the planner's runtime rules.
 */
int ts_search_ablation(struct ts_search *search, enum ts_swap_order order,
        bool no_swaps, struct ts_choice *ret_choice,
        struct ts_outcome *ret_outcome, bool *ret_plain);

/*
 * From here to ts_search_end_apart() nothing counts that was found before, in
 * @before; the better of both is the best plan then. 0 or -ENOMEM, and then
 * there is nothing to end.
 */
int ts_search_begin_apart(struct ts_search *search, struct ts_best *ret_before);
void ts_search_end_apart(struct ts_search *search, struct ts_best *before);

/*
 * Lets every copy in of the best plan start where it last started on the
 * model, so that nothing comes back too early to stay; how much that gives
 * cannot be told from the step before, so that good plans on the way are noted
 * too.
 */
int ts_search_note_settled(struct ts_search *search);

/*
 * Notes the best plan, and makes the best of all noted the best plan where the
 * step gets no slower, if the budget allows. The model then holds the run of
 * the best plan.
 */
int ts_search_settle(struct ts_search *search);

/*
 * Save sets of regions from their frontiers, with the swaps of the best plan
 * so far, at the largest capacity that still runs within the limit; and where
 * blocks that set the peak keep more, beyond it.
 */
int ts_search_frontier(struct ts_search *search);

/* Everything off the device between its uses: fits if anything does. */
int ts_search_emergency(struct ts_search *search);

/* Local search from search->best, of so many evaluations. */
int ts_search_improve(struct ts_search *search, uint32_t evaluations);

#endif
