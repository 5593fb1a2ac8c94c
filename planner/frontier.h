/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What to keep of a region, after TapeSAC: sets of values priced jointly
 * against the save set (what two closures share is paid once), the frontier
 * of bytes against replay time by beam search, and a multiple-choice knapsack
 * that gives every block its point. Pure.
 */
#ifndef TS_PLANNER_FRONTIER_H
#define TS_PLANNER_FRONTIER_H

#include "planner/program.h"

/* Sets that go on to the next round, and candidates that a set may hold. */
#define TS_BEAM    24
#define TS_SET_MAX 12

/* A candidate: values of one region that are saved together or not at all. */
#define TS_GROUP_MAX 4
struct ts_candidate {
	uint32_t gaps[TS_GROUP_MAX];
	uint32_t n;
	uint64_t bytes;
};

struct ts_point {
	uint64_t bytes;    /* kept beyond the mandatory set */
	uint64_t saved_ns; /* replay time that this removes */
	uint32_t set;      /* bit mask of candidates */
};

/* One region's model: what its backward wants, and what may be kept. */
struct ts_frontier {
	uint32_t region;
	struct ts_candidate candidates[32];
	uint32_t n_candidates;
	/* Replay time of a region that keeps the mandatory set only. */
	uint64_t must_only_ns;
	/* Ascending bytes and time; the first keeps nothing. */
	struct ts_point points[TS_BEAM * TS_SET_MAX + 1];
	uint32_t n_points;
	/* Ops of the region whose launch the must-only replay skips. */
	uint32_t dead_ops;
};

/*
 * Replay time of region @region if @kept says (by gap) what is on hand at its
 * backward: the closure of all else that its backward reads, each launch
 * counted once. TS_NEVER where a value can neither be kept nor made.
 */
uint64_t ts_region_replay_ns(const struct ts_graph *graph, uint32_t region,
        const uint8_t *kept, uint32_t *ret_dead_ops);

/* Frontier of one region. 0 or -ENOMEM. */
int ts_frontier_make(const struct ts_graph *graph, uint32_t region,
        struct ts_frontier *ret_frontier);

/* The frontiers of all types of regions of one graph. */
struct ts_frontiers;

/* 0, -ENOENT without regions that have a backward, or -ENOMEM. */
int ts_frontiers_create(
        const struct ts_graph *graph, struct ts_frontiers **ret_frontiers);
void ts_frontiers_destroy(struct ts_frontiers *frontiers);

/*
 * Points for all regions within @capacity_bytes: regions of one type share a
 * frontier, and blocks of one type may take different points (later blocks
 * the larger ones, which they free first). Sets @choice: gaps of regions that
 * are not kept become TS_REPLAY. 0 or -ENOMEM.
 */
int ts_frontiers_choose(const struct ts_frontiers *frontiers,
        uint64_t capacity_bytes, struct ts_choice *choice);

/*
 * Peak-aware windows: the region whose backward @op lies in keeps its next
 * larger set from now on, beyond the capacity, for what it keeps it need not
 * make again just where memory is highest. False: no region, or no larger set.
 */
bool ts_frontiers_raise(struct ts_frontiers *frontiers, uint32_t op);
/* All regions have their points by capacity alone again. */
void ts_frontiers_lower(struct ts_frontiers *frontiers);

#endif
