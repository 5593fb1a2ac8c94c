/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside of the event model, shared by model.c (runs, snapshots) and
 * engines.c (what happens at one instruction). Not for other files.
 */
#ifndef TS_PLANNER_MODEL_INTERNAL_H
#define TS_PLANNER_MODEL_INTERNAL_H

#include "planner/due_heap.h"
#include "planner/model.h"

/* Where a swapped gap stands. */
enum ts_gap_status {
	/* Not begun, or over: the value is where ops expect it. */
	RESIDENT,
	/* Begun; the device copy goes when the copy out is done. */
	OUTGOING,
	OUT,
	INCOMING,
	/* Back (or never gone) and waiting for its use. */
	BACK,
};

/* Prefetches leave room for what so many instructions allocate. */
#define TS_LOOK_AHEAD 3
/* States that ts_model_anchor() remembers. */
#define TS_SNAPSHOTS 24

/* A copy engine; the work of a copy includes its latency, as bytes. */
struct ts_engine {
	uint32_t busy; /* version (D2H) or gap (H2D), TS_NONE: idle */
	double left;
	double alone; /* bytes per ns */
	double both;
	double begun;
};

/* All that changes while a step runs; arrays are copied by snapshots. */
struct ts_run_state {
	double t;
	uint64_t used;
	uint64_t peak;
	/* Inputs of this step that its first instruction makes room for. */
	uint64_t arriving;
	uint32_t iteration;
	uint32_t instr;
	struct ts_engine d2h;
	struct ts_engine h2d;
	bool d2h_old; /* what it copies has changed since it began */
	uint32_t queue_head;
	uint32_t queue_count;
	struct ts_outcome outcome;

	uint8_t *status;  /* by gap */
	uint32_t *due;    /* by gap: op it is needed at, over all steps */
	uint8_t *opened;  /* by gap: its window is open */
	uint8_t *host;    /* by value: the host has it */
	uint8_t *queued;  /* by value */
	uint32_t *gap_of; /* by value: gap that is open, TS_NONE */
	uint32_t *queue;  /* ring of versions to copy out */
	struct ts_due_heap heap; /* gaps to copy in, earliest first */
	/*
	 * Gaps that are BACK and that the host has; latest deadline first while
	 * they are sorted, which few steps ever ask for.
	 */
	struct ts_due_heap spare;
	bool spare_sorted;
	uint32_t spare_changes; /* since it was asked for */
};

struct ts_model {
	const struct ts_graph *graph;
	uint64_t limit;
	struct ts_model_options options;
	ts_trace_fn trace;
	void *trace_data;
	struct ts_program program;
	const struct ts_choice *choice;
	uint64_t *ahead;  /* by instr: most that the next ones add */
	double *after_ns; /* by instr: time of it and of all that follow */
	uint32_t ahead_room;
	/* What comes with every step from outside, and its bytes. */
	uint32_t *inputs;
	uint32_t n_inputs;
	uint64_t input_bytes;
	/* By value: the older version in its storage, TS_NONE. */
	uint32_t *older;
	/* Copies and windows by op: heads of lists linked through next. */
	uint32_t *copy_head, *copy_next;
	uint32_t *window_head, *window_next;
	struct ts_run_state state;
	uint64_t *wait_ns;
	/* By op: when it began in the last step, and when that step began. */
	double *op_ns;
	double begun_ns;
	/* By gap: where the value left the device and came back. */
	uint32_t *left, *back_op;
	/* Of gaps that wrap: the same in the step before. */
	uint32_t *left_before;
	/* Scratch, by gap: a list of what is spare but in use. */
	uint32_t *spare_next;
	/* Compute is at work, and not waiting for what it needs. */
	bool running;
	/* Compute is short of memory: lazy copies may start. */
	bool pressed;
	/* A step that must take longer is not run to its end. */
	double most_ns;
	uint64_t runs;
	uint64_t instrs;

	struct ts_choice anchor;
	uint32_t *anchor_need, *anchor_copy;
	struct ts_instr *anchor_instrs;
	uint32_t anchor_n_instrs;
	uint32_t anchor_room;
	bool anchored;
	/* States are of its last step, which began then. */
	bool anchor_cyclic;
	double anchor_begun_ns;
	uint32_t n_snapshots;
	struct ts_run_state snapshots[TS_SNAPSHOTS];
};

/* Opens the windows of the instruction's op, waits, runs. False: stuck. */
bool ts_engines_run_instr(struct ts_model *model, uint32_t k);
/* Frees the device copy of an open gap whose version the host has. */
void ts_engines_release(struct ts_model *model, uint32_t gap);
/* Puts a gap that is out among those to copy in. */
void ts_engines_want(struct ts_model *model, uint32_t gap);

#endif
