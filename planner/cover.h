/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pass for tapes whose memory is not activations alone: every gap, those
 * that wrap into the next step too, competes for the time of both copy
 * engines and for the cheapest replays, op by op, until the memory of every
 * op is within the limit. Scratch belongs to one planner call.
 */
#ifndef TS_PLANNER_COVER_H
#define TS_PLANNER_COVER_H

#include "planner/absence.h"
#include "planner/heap.h"
#include "planner/segtree.h"
#include "planner/slots.h"

struct ts_cover_options {
	/* What every op has to fit into. */
	uint64_t limit_bytes;
	/* Nothing is replayed; nothing is swapped. */
	bool no_replays;
	bool no_swaps;
	/* Price per byte and per time above the limit that a gap spans. */
	bool by_area;
	/* Memory is set aside while a copy back is on its way. */
	bool reserve;
	/* Longest time that a replay may bring what it reads back early. */
	double pull_ns;
	/* Share of the link's speed that is counted on. */
	double link_share;
	/*
	 * Replays over the peak that take at most this share of the time of a
	 * copy are taken before any copy.
	 */
	double peak_price;
};

struct ts_cover {
	struct ts_pass *pass;
	struct ts_slots out, in;
	struct ts_segtree memory;
	/* By op: what the replays of an earlier round took beside the rest. */
	uint64_t *extra_bytes;
	uint64_t *start_bytes;
	double *over_ns;
	/* By op and at the end: when it begins, as far as is known. */
	double *time_ns;
	/* Ops that the closure of a gap runs, and the reverse. */
	uint32_t *closure_first, *closure_ops;
	uint32_t *user_first, *users;
	/* By op: end of the stretch of ops that a replay of it serves. */
	uint32_t *paid_until;
	/* By gap: the next gap of the same version, TS_NONE. */
	uint32_t *later;
	double *key; /* by gap */
	struct ts_heap heap;
	uint32_t *stack;
};

/* Works on @pass: its graph, prices, and positions. 0 or -ENOMEM. */
int ts_cover_init(struct ts_cover *cover, struct ts_pass *pass);
void ts_cover_finish(struct ts_cover *cover);

/* Forgets what earlier rounds took beside the rest, and their times. */
void ts_cover_reset(struct ts_cover *cover);
/*
 * From the next round on ops begin nearer to these times (n_ops + 1), by
 * @share of the way.
 */
void ts_cover_move_times(
        struct ts_cover *cover, const double *time_ns, double share);
/*
 * Marks gaps of @choice until all ops fit, or nothing can help the others.
 * cover->memory then is the memory by op as this pass sees it. @share_until: by
 * op, last op that shares what is replayed for it (struct ts_program). 0 or
 * -ENOMEM.
 */
int ts_cover_run(struct ts_cover *cover, const struct ts_cover_options *options,
        const uint32_t *share_until, struct ts_choice *choice);

#endif
