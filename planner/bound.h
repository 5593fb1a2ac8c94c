/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A lower bound on the step time of any plan that plan.json can express. Pure.
 *
 * Such a plan runs the ops of the step in their order and does one thing with
 * each gap of a storage: it keeps, swaps or replays it. A replay is the static
 * closure of the value that the gap ends with (graph.h: at most
 * TS_CLOSURE_MAX launches, from what is on hand where it runs) and runs where
 * the gap ends, or before that for another replay that reads the value. Not
 * covered, for no plan can say it: launching again well ahead of the use, from
 * inputs that are overwritten before the gap ends; longer closures; other
 * orders of ops; values copied in part; copies that are compressed.
 *
 * At every op i, m(i) - limit bytes have to be off the device, and each of them
 * is a byte that the step wrote (own), one that came from the step before, or
 * one that is dropped and replayed. Copies and replays of these bound the step
 * in several ways, which hold at once; the highest counts:
 *
 *  - Up to i: the ops before it with the windows before it (below), and the
 *    link, which has to copy out the own bytes that are off. From i on: the
 *    ops, the replays that have to run after i (bound_replays.h), and the link,
 *    which brings back all but what is wanted in the next step only. The two
 *    parts follow one another and add up. Windows count from ends_op on only,
 *    and then replays for gaps that end before that: later ones may run within
 *    a window's time.
 *  - Replays that may have run before i, for others, can be hidden by copies
 *    that the own bytes wait for. They count in the whole step beside its ops,
 *    without any copy.
 *  - What the step before changed and i does not find is copied out between
 *    its change (tail_op, of the step before) and i, with the own bytes. From i
 *    to tail_op of this step the ops and the replays that end by then take
 *    their time; steps are alike, so that both stretches make one.
 *  - All that moves comes back once in a step.
 *
 * How many bytes are dropped is the plan's choice: the bound goes by the best
 * one, fractions included, and that is the cheapest by each way on its own.
 */
#ifndef TS_PLANNER_BOUND_H
#define TS_PLANNER_BOUND_H

#include "planner/graph.h"

/*
 * The highest of what single ops ask for and of what windows ask for together.
 * 0 or -ENOMEM; *ret_step_ns is TS_NEVER where no plan can fit.
 */
int ts_bound_step(const struct ts_graph *graph, uint64_t limit_bytes,
        uint64_t *ret_step_ns);

/* Moments at which windows may begin and end. */
#define TS_BOUND_CUTS 128

/*
 * What the traffic of windows of the tape asks for beyond the time of their
 * ops: what nothing can replay and a window reads was on the device when it
 * began, as far as the limit allows, or is copied in during it; the same,
 * turned round, for what it writes. Disjoint windows add up.
 */
struct ts_bound_windows {
	/* 0: the tape is too long, or no window asks for anything. */
	uint32_t n;
	uint32_t ops[TS_BOUND_CUTS + 1];     /* ascending: 0 ... n_ops */
	double before_ns[TS_BOUND_CUTS + 1]; /* of windows that end there */
	double after_ns[TS_BOUND_CUTS + 1];  /* of windows from there on */
};

/* 0 or -ENOMEM. */
int ts_bound_windows(const struct ts_graph *graph, uint64_t limit_bytes,
        struct ts_bound_windows *ret_windows);

/* Beyond the time of ops, before @op begins; from then on. */
double ts_bound_before_ns(const struct ts_bound_windows *windows, uint32_t op);
double ts_bound_after_ns(const struct ts_bound_windows *windows, uint32_t op);

#endif
