/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the planner decides: per value and gap keep, swap or replay, and the
 * points at which it happens. Plain data without locks; the runtime reads it.
 */
#ifndef TS_PLANNER_PLAN_H
#define TS_PLANNER_PLAN_H

#include "planner/profile.h"
#include "planner/program.h"

struct ts_decision {
	uint32_t value;
	enum ts_action action;
	/* The gap: last use before, next use after (above n_ops: next step). */
	uint32_t from_op;
	uint32_t to_op;
	/*
	 * Which operand of from_op and of to_op the value's storage is: reads
	 * first, then writes. For values that no op of the step wrote these
	 * are all there is to find them by.
	 */
	uint32_t from_operand;
	uint32_t to_operand;
	/* Swap: op after which the copy out is queued; TS_NONE: clean. */
	uint32_t offload_op;
	/* Swap: first op from whose start the copy back may run. */
	uint32_t prefetch_op;
	/* Swap: op that waits for it; replay: op before which it runs. */
	uint32_t due_op;
	/* Replay time that this decision alone answers for; swap: waiting. */
	uint64_t cost_ns;
};

/* One launch to repeat; those of one op run in the order of the list. */
struct ts_replay {
	uint32_t before_op;
	/* Value that it makes, by its producer or its rebuild. */
	uint32_t value;
	/* Op to launch again; TS_NONE: the value's rebuild. */
	uint32_t op;
	uint64_t duration_ns;
};

struct ts_plan {
	char *profile_name; /* Owned. */
	uint64_t limit_bytes;
	uint64_t predicted_step_ns;
	uint64_t predicted_peak_bytes;
	uint64_t bound_step_ns;
	uint64_t unlimited_step_ns;
	uint64_t unlimited_peak_bytes;
	uint64_t swap_bytes; /* out, per step */
	uint64_t replay_ns;
	uint64_t smallest_feasible_limit_bytes;
	/* Page assignment (pages.h). */
	uint64_t page_bytes;
	uint32_t page_chunks;
	uint32_t page_peak;
	uint32_t page_static_chunks;
	uint64_t page_remaps;
	/* Of the profile that it was made from. */
	uint32_t n_ops;
	uint32_t n_values;
	struct ts_decision *decisions;
	uint32_t n_decisions;
	struct ts_replay *replays;
	uint32_t n_replays;
};

void ts_plan_finish(struct ts_plan *plan);
/* 0 or -ENOMEM; the caller finishes @ret_plan after success. */
int ts_plan_copy(const struct ts_plan *plan, struct ts_plan *ret_plan);

/* How much a call of the planner did; no clock is read here. */
struct ts_plan_stats {
	uint64_t evaluations;
	uint64_t simulated_instrs;
	/* All of it, in steps of about the time of a simulated instruction. */
	uint64_t work;
};

#define TS_SEARCH_AUTO UINT32_MAX

struct ts_plan_options {
	/*
	 * Evaluations of the local search; 0: none; TS_SEARCH_AUTO: a number
	 * that depends on the length of the tape alone.
	 */
	uint32_t search_evaluations;
	/* Values below are never moved; 0: the planner's own threshold. */
	uint64_t min_gap_bytes;
	/* Plans of the baselines are tried as well. */
	bool baselines;
	/* Pages are assigned statically. */
	bool pages;
	/* Values are kept or swapped, never replayed. */
	bool no_replay;
	/* Reads that make the host's copy old, as in graph.h; or NULL. */
	const uint8_t *dirties;
	/*
	 * For who waits for the plan: a fifth of the time, for a plan that is a
	 * few percent slower at most where parameters have to leave as well.
	 */
	bool quick;
	/*
	 * For tests: the local search looks at no short tape's combinations
	 * one and all, so that it can be held against them.
	 */
	bool no_enumeration;
};

/* What ts_plan_make() does unless told otherwise. */
struct ts_plan_options ts_plan_default_options(void);

/*
 * Makes a plan for @limit_bytes. 0; -ENOSPC where no plan fits (then only
 * limit, unlimited_* and smallest_feasible_limit_bytes of ret_plan are set);
 * -ENOMEM. The caller finishes the plan in the first two cases.
 */
int ts_plan_make(const struct ts_profile *profile, uint64_t limit_bytes,
        const struct ts_plan_options *options, struct ts_plan *ret_plan,
        struct ts_plan_stats *ret_stats);

/*
 * Writes @choice, which @program was compiled from, into the decisions and
 * replays of @plan. @wait_ns by gap: what is waited for it, or NULL. 0 or
 * -ENOMEM.
 */
int ts_plan_tell(struct ts_plan *plan, const struct ts_graph *graph,
        const struct ts_choice *choice, const struct ts_program *program,
        const uint64_t *wait_ns);

/* What @program makes again, into the replays of @plan. 0 or -ENOMEM. */
int ts_plan_tell_replays(
        struct ts_plan *plan, const struct ts_program *program);

struct ts_search;

/* The search alone: fills search->best (fits == false: nothing fits). */
int ts_plan_search(
        struct ts_search *search, const struct ts_plan_options *options);

#endif
