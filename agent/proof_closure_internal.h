/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Closures as those who launch them share them: proof_closure.c, which tries
 * them beside what is there, and remake.c, which makes again what was given
 * up. Guarded by proof.lock.
 */
#ifndef TS_PROOF_CLOSURE_INTERNAL_H
#define TS_PROOF_CLOSURE_INTERNAL_H

#include "agent/places.h"
#include "agent/proof_closure.h"
#include "agent/proof_internal.h"
#include "planner/graph.h"

#define TS_CLOSURE_LEAVES (4 * TS_CLOSURE_MAX)

/* A use of an op that is kept: where it lay, and what was there. */
struct ts_kept_use {
	uint64_t serial, address, bytes;
	/* What there was a sum of after the op; TS_PROOF_NO_SLOT: of nothing.
	 */
	uint64_t sum_address, sum_bytes;
	uint32_t slot;
	uint32_t block; /* of the step that was proved: it had this place */
};

struct ts_kept_op {
	struct ts_replay_launch launch;
	struct ts_kept_use *uses; /* as the step recorded them */
	bool there;
};

struct ts_closure {
	uint32_t value, to_op;
	uint32_t first_op, op_count; /* in op_list, ascending */
	uint64_t bytes;
	unsigned int agreed;
	enum ts_verdict verdict;
	/* Of the step that goes on. */
	bool tried;
	enum ts_verdict failed;
	uint32_t compared;               /* slot */
	uint32_t first_pair, pair_count; /* sums of what is read: then, now */
};

struct ts_closures {
	const struct ts_observed *step;
	struct ts_closure *list; /* by to_op */
	uint32_t count;
	uint32_t *op_list;
	uint32_t op_list_count;
	uint32_t next;           /* the first that was not reached yet */
	bool *wanted;            /* by op */
	struct ts_kept_op *kept; /* by op */
	uint32_t *pairs;         /* two slots each */
	uint32_t pair_count, pair_room;
	struct ts_graph graph;
	struct ts_profile profile; /* with verdicts; shares the rest */
};

/* One closure on its way. */
struct ts_making {
	struct ts_closures *closures;
	struct ts_closure *closure;
	ts_stream_key stream;
	struct ts_places places;
	uint64_t *buffers; /* by place; 0: none */
	uint64_t final[2]; /* the value itself, from the two fills */
	const struct ts_kept_use *original;
	const struct ts_kept_use *leaves[TS_CLOSURE_LEAVES];
	struct ts_range ranges[TS_CLOSURE_LEAVES + 1];
	unsigned int leaf_count;
};

/* Op @at was issued and is wanted: what it takes to launch it again. */
int ts_closures_keep(
        struct ts_closures *closures, const struct ts_op *op, uint32_t at);

/* What was kept of this step is no longer needed. */
void ts_closures_forget(struct ts_closures *closures);

/* The block lies where it lay, and nobody else has it. */
bool ts_kept_is_alive(const struct ts_kept_use *use);

/* All of it runs in the order of one stream. */
bool ts_closure_is_on_one_stream(
        const struct ts_closures *closures, const struct ts_closure *closure);

/*
 * Fills in leaves and original of @making, of which closures, closure and
 * stream are set. TS_VERDICT_OPEN, or why it cannot be launched now.
 */
enum ts_verdict ts_making_leaves(struct ts_making *making);

#endif
