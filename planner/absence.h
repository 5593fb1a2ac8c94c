/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Over which ops gaps' values are off the device, while a pass marks one gap
 * after the other: memory by op follows, and what a replay reads is brought
 * back before it. Belongs to one pass; no locks.
 */
#ifndef TS_PLANNER_ABSENCE_H
#define TS_PLANNER_ABSENCE_H

#include "planner/passes.h"
#include "planner/segtree.h"

struct ts_absence {
	const struct ts_graph *graph;
	/* Its away and pos hold the ranges, [away, pos) by gap. */
	struct ts_pass *pass;
	const struct ts_choice *choice;
	struct ts_segtree *memory;
	uint32_t *stack; /* room for all gaps, and one */
	uint32_t most_pulled;
};

/* Replays that one may bring forward: ever fewer on long tapes. */
uint32_t ts_absence_most_pulled(const struct ts_graph *graph);

/* @op in the gap's own count, which goes on in the next step. */
static inline uint32_t ts_absence_own_op(
        const struct ts_absence *a, uint32_t gap, uint32_t op)
{
	return op > a->graph->gaps[gap].from_op ? op : op + a->graph->n_ops;
}

/* The gap's value is off the device over [away, pos) from now on. */
void ts_absence_set(
        struct ts_absence *a, uint32_t gap, uint32_t away, uint32_t pos);

/* Where the gap would end: its use, or a replay that reads it before. */
uint32_t ts_absence_end(const struct ts_absence *a, uint32_t gap);

/*
 * Whether a replay of @gap at @pos brings few replays forward, and none by
 * more than @pull_ns: chains of replays else unroll the whole tape at once.
 * @time_ns: when ops begin, n_ops + 1; NULL: that does not matter.
 */
bool ts_absence_may_pull(const struct ts_absence *a, uint32_t gap, uint32_t pos,
        const double *time_ns, double pull_ns);

/* Inputs of the replay of @gap have to be back when it runs, and theirs. */
void ts_absence_pull(struct ts_absence *a, uint32_t gap);

#endif
