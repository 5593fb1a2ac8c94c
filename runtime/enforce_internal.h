/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What enforce.c (a step by the plan), enforce_build.c (what it does when) and
 * enforce_adopt.c (how it comes into force) share.
 */
#ifndef TS_ENFORCE_INTERNAL_H
#define TS_ENFORCE_INTERNAL_H

#include <stdatomic.h>

#include "runtime/enforce.h"
#include "runtime/pager_internal.h"

/*
 * Pages side by side that leave or come together. They are looked up each
 * time: the pager may cut and join what is not resident.
 */
struct ts_plan_move {
	uint64_t address;
	struct ts_segment *segment; /* NULL: not looked up */
	uint32_t pages;
	uint32_t tick; /* orders those of one op */
	uint32_t gap;  /* that begins or ends with it; TS_NO_GAP: none */
	bool take;
};

#define TS_NO_GAP UINT32_MAX

/* A strip is away: after one of its stays, the last one's up to the first. */
struct ts_plan_gap {
	uint32_t leave_op, come_op; /* whose moves begin and end it */
	bool alone;                 /* no other strip has its chunks then */
	/*
	 * It stays all the same: it is alone, and nothing was in it that would
	 * have to be copied. Moving it would be work for nothing.
	 */
	bool kept;
};

struct ts_enforce {
	struct ts_plan_move *moves; /* by op, those that leave first */
	uint32_t *first_move;       /* n_ops + 1 offsets */
	uint32_t n_ops;
	/* The op that comes if nothing comes between, and what had moved then.
	 */
	uint32_t next;
	uint64_t seen;
	bool uneven;      /* some page could not leave, or come, of late */
	uint32_t *due;    /* moves by op, without those of gaps that are kept */
	uint64_t removed; /* segments, when those of the moves were looked up */
	/* All; take: resident before the op last asked for. */
	struct ts_plan_move *strips;
	uint32_t n_strips;
	/* Of the strips, as in the page plan. */
	struct ts_plan_stay *stays;
	uint32_t *first_stay;     /* n_strips + 1 offsets */
	struct ts_plan_gap *gaps; /* by the stay before */
	/*
	 * Pages that had to make way for what the plan does not have there,
	 * as moves; they come back before the next op of the step.
	 */
	struct ts_plan_move *displaced;
	size_t displaced_room;
	_Atomic size_t n_displaced; /* may be read without the gate */
	uint64_t moved;             /* pages, ever */
	uint64_t departures;        /* times that some left */
	uint64_t astray;
	uint64_t missed; /* ops that found missing what they use for certain */
	uint64_t disturbed; /* pages that lost what was mapped under them */
};

/* What @plan, which is copied, comes to; 0 or -ENOMEM. No lock. */
int ts_enforce_build(
        const struct ts_page_plan *plan, struct ts_enforce **ret_enforce);
void ts_enforce_destroy(struct ts_enforce *enforce);

/* The strip that the page at @address is in, of units so large, or NULL. */
const struct ts_plan_move *ts_enforce_strip_at(const struct ts_enforce *enforce,
        uint64_t unit_bytes, uint64_t address);

/* Which strips are resident before op @index, into their moves. */
void ts_enforce_state(struct ts_enforce *enforce, uint32_t index);

/*
 * Lets the pages of @moves that are to leave go, or has those come that are to
 * come. Gate and lock held, the lock let go meanwhile.
 */
int ts_enforce_move(struct ts_pager *pager, struct ts_enforce *enforce,
        struct ts_plan_move *moves, uint32_t count, bool take);

#endif
