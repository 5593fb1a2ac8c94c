/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For the bound: the least time of replays of what is off the device at one op.
 * Belongs to one call of it; no locks.
 *
 * What is off there is made again after the op, and so is all that this reads
 * and that is dead by then, each launch once at least. What others need as well
 * costs each its share, by bytes: no more is ever charged for a launch than its
 * time. A rebuild that a launch for others would save is charged in full, and
 * that launch for so much less.
 *
 * But a replay before the op may have made what one after it reads, for scratch
 * of programs serves for a while (program.h). What may have been made so is
 * found by following reads from all gaps that can end in a replay at one of
 * these places: through dead values and through those that may be off there.
 * - The device then holds the scratch at the op, and as much more has to be
 *   off: the gaps that share it free so much less. Where the dearest of what a
 *   gap leans on costs it d of each byte, at least d is lost and at most the
 *   launches are saved that scratch up to d serves for. Of all d the cheapest
 *   counts, by the byte that is freed.
 * - What was made for the sake of a value that is off at the place and wanted
 *   after the op has brought that value back: it is not among those off at the
 *   op. So nobody is served by what is made through himself only, and what is
 *   held is shared by the others.
 * - In all of the step the launch has run as a replay either way, with those
 *   for what it reads, but for what was dead at the op and not yet at the first
 *   place.
 */
#ifndef TS_PLANNER_BOUND_REPLAYS_H
#define TS_PLANNER_BOUND_REPLAYS_H

#include "planner/graph.h"

/* Of a value: open gaps whose closure makes it. */
struct ts_bound_wanting {
	double bytes;
	double least_bytes; /* of one gap */
	uint32_t n;
};

struct ts_bound_replays {
	const struct ts_graph *graph;
	uint32_t *share_until; /* by op, as programs have it */
	uint32_t op;
	/*
	 * First and last op at or before op that replays can run for and leave
	 * scratch behind that outlasts op; TS_NONE: there is none.
	 */
	uint32_t first_place;
	uint32_t last_place;
	double *sharers; /* by op: bytes of the gaps whose closure runs it */
	/* By op: rebuilds, of what is open, that its launch would save. */
	double *rebuilt_ns;
	struct ts_bound_wanting *wanting; /* by value */
	uint8_t *open;                    /* by value: of a gap that is open */
	/* By value: see bound_replays.c. */
	uint8_t *made;
	uint32_t *through;
	uint32_t *marked; /* values that have been made */
	uint32_t n_marked;
};

/* What one byte of a gap costs; see above. */
struct ts_bound_price {
	double after_ns; /* after the op, by byte that is freed there */
	double whole_ns; /* in all of the step */
};

/* 0 or -ENOMEM. */
int ts_bound_replays_init(
        struct ts_bound_replays *replays, const struct ts_graph *graph);
void ts_bound_replays_finish(struct ts_bound_replays *replays);

/* @gaps can be replayed and are open at @op. Until the next call of _end. */
void ts_bound_replays_begin(struct ts_bound_replays *replays, uint32_t op,
        const uint32_t *gaps, uint32_t n_gaps);
struct ts_bound_price ts_bound_replays_price(
        const struct ts_bound_replays *replays, uint32_t gap);
void ts_bound_replays_end(struct ts_bound_replays *replays,
        const uint32_t *gaps, uint32_t n_gaps);

#endif
