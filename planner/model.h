/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The event model of one training step: compute, one copy engine each way,
 * and a memory limit. It does at run time what the agent does: copies out
 * first come first served, copies in by deadline and admitted by memory, no
 * op waits for a copy it does not need. Pure; one model per thread.
 */
#ifndef TS_PLANNER_MODEL_H
#define TS_PLANNER_MODEL_H

#include "planner/program.h"

struct ts_model_options {
	/* An op waits for all copies of the op before (vDNN). */
	bool barriers;
	/* Nothing is copied out before memory is short (reactive policies). */
	bool lazy_copies;
	/* Copies begin when the gap begins, not when the value is written. */
	bool late_copies;
};

struct ts_outcome {
	/* False: does not fit, or the plan asks for the impossible. */
	bool fits;
	uint64_t step_ns;
	uint64_t peak_bytes;
	uint64_t replay_ns;
	uint64_t d2h_bytes;
	uint64_t h2d_bytes;
	/* Compute waited for a copy in; for memory that a copy out frees. */
	uint64_t wait_in_ns;
	uint64_t wait_memory_ns;
	/* Of both together, the part before the first turn. */
	uint64_t wait_forward_ns;
	/* Prefetched values that had to leave again. */
	uint32_t evictions;
	/* Where it did not fit: the op, and the bytes it asked for. */
	uint32_t stuck_op;
	uint64_t stuck_bytes;
};

/* One interval of an engine, for Figure 5 and timelines. */
enum ts_lane {
	TS_LANE_COMPUTE,
	TS_LANE_REPLAY,
	TS_LANE_D2H,
	TS_LANE_H2D,
};
typedef void (*ts_trace_fn)(void *data, enum ts_lane lane, uint32_t index,
        double begin_ns, double end_ns);

struct ts_model;

/* Created for one graph; @limit_bytes may be changed between runs. */
int ts_model_create(const struct ts_graph *graph, uint64_t limit_bytes,
        struct ts_model **ret_model);
void ts_model_destroy(struct ts_model *model);
void ts_model_set_limit(struct ts_model *model, uint64_t limit_bytes);
void ts_model_set_options(
        struct ts_model *model, const struct ts_model_options *options);
void ts_model_set_trace(struct ts_model *model, ts_trace_fn fn, void *data);

/*
 * Runs the step under @choice. 0 (look at ret_outcome->fits) or -ENOMEM.
 * @wait_ns, where not NULL, gets per gap how long compute waited for it.
 */
int ts_model_run(struct ts_model *model, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome, uint64_t *wait_ns);

/*
 * As ts_model_run(), and remembers states on the way: later calls of
 * ts_model_try() with a choice that differs only late start from there.
 */
int ts_model_anchor(struct ts_model *model, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome);
int ts_model_try(struct ts_model *model, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome);
/*
 * As ts_model_try(), faster where one step leans on the one before: what comes
 * before the first difference, and the steps before, are the anchor's. Good
 * enough to tell what is worth a run. Steps longer than @most_ns do not fit.
 */
int ts_model_guess(struct ts_model *model, const struct ts_choice *choice,
        uint64_t most_ns, struct ts_outcome *ret_outcome);

/*
 * Per gap, of the last run: the op during or after which its value left the
 * device, and the op before or during which it began to come back. TS_NONE: it
 * did not leave. Of replayed gaps: first and last op around it.
 */
const uint32_t *ts_model_left(const struct ts_model *model);
const uint32_t *ts_model_back(const struct ts_model *model);

/*
 * When each op of the last run began, in ns from the start of the step, waits
 * and replays included; n_ops + 1 entries, the last is the end.
 */
const double *ts_model_op_times(const struct ts_model *model);

/* Runs since creation, and ops that they simulated. */
uint64_t ts_model_runs(const struct ts_model *model);
uint64_t ts_model_instrs(const struct ts_model *model);

/* The program of the last run. Valid until the next one. */
const struct ts_program *ts_model_program(const struct ts_model *model);

#endif
