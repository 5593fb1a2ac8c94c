/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two passes that make a plan, after SlackSwap: first the link budget
 * goes to what is dearest to replay, then the cheapest replays cover what is
 * still above the limit. Scratch belongs to one planner call.
 */
#ifndef TS_PLANNER_PASSES_H
#define TS_PLANNER_PASSES_H

#include "planner/program.h"

#define TS_LOOKS 4

/* What repair has learned about a gap. */
enum ts_verdict {
	TS_MAY,
	TS_NEVER_SWAP,
	TS_MUST_REPLAY,
};

/* In which order pass 1 looks at gaps. */
enum ts_swap_order {
	/* Dearest replay per byte first. */
	TS_ORDER_COST,
	/* First produced first (the ablation "swap-first"). */
	TS_ORDER_AGE,
};

struct ts_pass {
	const struct ts_graph *graph;
	uint64_t limit_bytes;
	/* Share of the time before the pivot that copies must not use. */
	double guard;
	enum ts_swap_order order;
	/* Op that the swapped gaps have to bridge; TS_NONE: pick it. */
	uint32_t pivot_op;
	uint8_t *verdict; /* by gap, enum ts_verdict */
	/* Replay cost by gap as priced now (TS_NEVER: none). */
	uint64_t *price_ns;

	/* Which gaps the static closure of a gap reads, and the reverse. */
	uint32_t *input_first, *inputs;
	uint32_t *reader_first, *readers;

	/*
	 * What the passes have looked at since they were set up, as a measure
	 * of their work: the event model takes about TS_LOOKS for an op.
	 */
	uint64_t looks;

	/* Scratch of the passes. */
	uint32_t *order_by_cost; /* gaps, dearest per byte first */
	uint32_t *order_by_age;
	uint32_t *set;
	uint32_t *pos;  /* by gap: op of return */
	uint32_t *away; /* by gap: first op at which it is off the device */
};

int ts_pass_init(struct ts_pass *pass, const struct ts_graph *graph);
void ts_pass_finish(struct ts_pass *pass);

/* Marks gaps TS_SWAP until the link is full or the deficit covered. */
int ts_pass_swap(struct ts_pass *pass, struct ts_choice *choice);
/* Marks gaps TS_REPLAY (where nothing else helps TS_SWAP) down to the limit. */
int ts_pass_squeeze(struct ts_pass *pass, struct ts_choice *choice);

enum ts_window_mode {
	/* From the turn that the gap crosses on; others by deadline. */
	TS_WINDOWS_TURN,
	/* As late as the link allows. */
	TS_WINDOWS_LATE,
	/* Not before compute asks (reactive policies). */
	TS_WINDOWS_NEED,
	/* How many there are that need the graph and the clock alone. */
	TS_WINDOW_MODES,
	/* As late as the link allows, but not while memory has no room. */
	TS_WINDOWS_ROOM,
};
/* Any mode but TS_WINDOWS_ROOM, for which see below. */
void ts_windows_set(const struct ts_graph *graph, struct ts_choice *choice,
        enum ts_window_mode mode);
/*
 * TS_WINDOWS_ROOM for the choice that @program was compiled from. Where it ran
 * before: when its ops began (n_ops + 1), and after which op each gap's value
 * had left; else NULL. 0 or -ENOMEM.
 */
int ts_windows_fit(const struct ts_program *program, struct ts_choice *choice,
        uint64_t limit_bytes, const double *time_ns, const uint32_t *left);

#endif
