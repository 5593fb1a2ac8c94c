/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One policy at one limit, for the commands that compare: sweep and tables.
 * Single-threaded.
 */
#ifndef TS_CLI_POLICIES_H
#define TS_CLI_POLICIES_H

#include "planner/graph.h"
#include "planner/model.h"

/*
 * Names beside the baselines': "tapeswap" (the planner), "no-replay" (the
 * planner, as mode plan asks it before anything is proved), "two-pass".
 */
#define TS_POLICY_PLANNER   "tapeswap"
#define TS_POLICY_NO_REPLAY "no-replay"
#define TS_POLICY_TWO_PASS  "two-pass"

struct ts_cli_result {
	struct ts_outcome outcome;
	/* Bytes of values that bridge the turn, by what happens to them. */
	uint64_t keep_bytes;
	uint64_t swap_bytes;
	uint64_t replay_bytes;
	uint64_t bound_ns;
	/*
	 * Least limit of a run that goes by it, in pages. 0: not known, as of
	 * baselines and where the caller did not ask for quick plans.
	 */
	uint64_t run_bytes;
};

/*
 * Knows the names above and every baseline; @quick as in struct
 * ts_plan_options. The bound is one for all of them. 0, -ENOENT or -ENOMEM.
 */
int ts_cli_policy_run(const struct ts_graph *graph, uint64_t limit_bytes,
        const char *policy, bool quick, struct ts_cli_result *ret_result);

/*
 * A run under @limit_bytes of the step that @profile was recorded of and that
 * @run_graph tells the pages of (planning.h): as a run plans, and where
 * @replays what it may make again by then. Where it has no plan the outcome
 * does not fit, and run_bytes is what the nearest one takes, or 0. The bound is
 * not set. 0 or a negative errno.
 */
int ts_cli_policy_of_run(const struct ts_profile *profile,
        const struct ts_graph *run_graph, uint64_t limit_bytes, bool replays,
        struct ts_cli_result *ret_result);

/* Bytes that are alive across the first turn: what the papers call A. */
uint64_t ts_cli_saved_bytes(const struct ts_graph *graph);

#endif
