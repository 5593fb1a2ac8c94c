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
 * At every op i, m(i) - limit bytes have to be off the device. Bytes that the
 * step itself wrote can be off only as far as the link could copy them out
 * before i, stalls included; bytes that came from the step before (parameters,
 * optimizer state) have to cross the link at some time in every step, back
 * always and out where the step changes them. The rest was dropped, and each
 * dropped byte costs at least its share of the launches that only it and its
 * likes need. The cheapest fractional choice, for the worst op, is the bound.
 */
#ifndef TS_PLANNER_BOUND_H
#define TS_PLANNER_BOUND_H

#include "planner/graph.h"

/* The higher of both kinds. 0 or -ENOMEM; *ret_step_ns is TS_NEVER where no
 * plan can fit. */
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
	uint32_t n;                          /* 0: the tape is too long */
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
