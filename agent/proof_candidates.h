/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a planner may have made again: values whose closure was proved for the
 * last time that the step uses them after lying idle. What it is made from is
 * there all the time until then, so that it can be made at any earlier one as
 * well. Plain data; whoever has it owns it.
 */
#ifndef TS_PROOF_CANDIDATES_H
#define TS_PROOF_CANDIDATES_H

#include "agent/observed.h"

struct ts_replay_candidate {
	uint32_t value;
	uint32_t closure;       /* index; for ts_remake_by_plan() */
	uint64_t duration_ns;   /* of its ops, as they were measured */
	uint64_t scratch_bytes; /* for what else they make */
	/* Slices of the pool: its ops, ascending, and values it reads. */
	uint32_t first_op, n_ops;
	uint32_t first_read, n_reads;
};

struct ts_replay_candidates {
	struct ts_replay_candidate *list; /* ascending by value */
	uint32_t count;
	uint32_t *pool;
	uint32_t pool_count, pool_room;
};

/* One of them is given up after an op, and made again before another. */
struct ts_replay_choice {
	uint32_t closure;
	uint32_t from_op, make_op;
};

/*
 * Those of @step, none where nothing is proved of it or another recording of
 * the same ops was proved that has other values. 0 or -ENOMEM; the caller
 * finishes them after success. Takes the proof's lock.
 */
int ts_proof_candidates(const struct ts_observed *step,
        struct ts_replay_candidates *ret_candidates);
void ts_proof_candidates_finish(struct ts_replay_candidates *candidates);

/* The candidate whose value @value is, or NULL; of none (@all NULL), too. */
static inline const struct ts_replay_candidate *ts_replay_candidate_of(
        const struct ts_replay_candidates *all, uint32_t value)
{
	uint32_t low = 0, high = all ? all->count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (all->list[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return all && low < all->count && all->list[low].value == value
	               ? &all->list[low]
	               : NULL;
}

#endif
