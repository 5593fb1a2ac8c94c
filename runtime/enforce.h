/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Carries out a page plan on one pager's pages, op by op, with the pager's own
 * means: before an op the pages that the plan lets go leave by one batch of
 * copies, those that it wants come by another, and each comes to the chunk
 * that stays mapped under it. So a step that goes by the plan maps nothing and
 * waits on the host for nothing.
 *
 * A wrong plan costs time, never a result: pages leave and come as the pager
 * has them leave and come, with their content and in order, and an op that
 * finds a page missing gets it from the pager. There is nothing to undo where
 * the plan ends.
 *
 * Guarded by the pager's gate, and by its lock where pages change. A pager has
 * at most one plan; the caller sees to it that its calls do not overlap.
 */
#ifndef TS_ENFORCE_H
#define TS_ENFORCE_H

#include "planner/page_plan.h"
#include "runtime/driver_calls.h"
#include "runtime/pager.h"

/* What a page plan has to reckon with. */
struct ts_enforce_survey {
	struct ts_plan_segment *segments; /* pages that can leave; owned */
	uint32_t n_segments;
	uint64_t page_bytes; /* of the plan's pages: the pager's unit */
	uint64_t limit_bytes;
	uint64_t other_bytes; /* not the agent's */
	/* That stay: those of small allocations, if not asked for, and pinned
	 * ones. */
	uint64_t fixed_pages;
	uint64_t small_pages; /* that small allocations share */
	bool small_stay;      /* there are some, among the fixed ones */
};

/* What moves before one op is copied in batches: smaller ones cost calls. */
#define TS_ENFORCE_BATCH_BYTES (4ull << 20)

/*
 * @small_move: what small allocations share is to move, too. 0 or a negative
 * errno. The caller frees ret_survey->segments.
 */
int ts_enforce_survey(struct ts_pager *pager, bool small_move,
        struct ts_enforce_survey *ret_survey);

/*
 * Puts @plan, which is copied, into force, in the place of one that is.
 * Waits for the device: pages are cut, every one gets its chunk under it, and
 * those that the plan has there before op @index come. 0; -ENOSPC where the
 * chunks do not suffice, -EAGAIN where the device is not done in
 * TS_WAIT_NS (what is issued may wait for the program), or another
 * negative errno: then no plan is in force.
 */
int ts_enforce_adopt(struct ts_pager *pager, const struct ts_page_plan *plan,
        uint32_t index);

/* True while a plan is in force. */
bool ts_enforce_is_on(struct ts_pager *pager);

/*
 * Waits for all that the program has issued on the pager's memory, and for the
 * pager's own copies. 0; -EAGAIN where that is not done in TS_WAIT_NS,
 * as it may wait for the program; or another negative errno.
 */
int ts_enforce_wait_idle(struct ts_pager *pager);

/*
 * Op @index of the step comes next: moves what the plan moves before it. True
 * where there is something.
 */
bool ts_enforce_op(struct ts_pager *pager, uint32_t index);

/*
 * Op @index comes next, after other work: moves what is not where it belongs.
 */
void ts_enforce_resume(struct ts_pager *pager, uint32_t index);

/* What was done so far; of the pager's copies whoever they were for. */
struct ts_enforce_work {
	uint64_t pages; /* that left or came by the plan in force */
	uint64_t copies, copied_bytes;
	uint64_t batches; /* of copies, which have one event each */
	/* Of pages, copied or not: what the program had issued is marked. */
	uint64_t departures;
	/* Of the process, for moves and what waits for them. */
	struct ts_driver_calls calls;
};

/* For who sees to it that no plan comes into force, or ends, meanwhile. */
void ts_enforce_work(struct ts_pager *pager, struct ts_enforce_work *ret_work);

/*
 * How often pages could not come to their chunks since last asked: others had
 * them, or they were given back to the driver. Then it takes an adoption to
 * have them there again.
 */
uint64_t ts_enforce_astray(struct ts_pager *pager);

/*
 * How many pages have lost the chunk under them since the plan was adopted: the
 * pager needed it, off the plan.
 */
uint64_t ts_enforce_disturbed(struct ts_pager *pager);

/*
 * What others have of the device's memory by now, in bytes: the driver is
 * asked. 0 or a negative errno.
 */
int ts_enforce_others(struct ts_pager *pager, uint64_t *ret_bytes);

/* That, as it was when last asked. */
uint64_t ts_enforce_known_others(struct ts_pager *pager);

/*
 * The pages in the pager's list of missing ones, which an op of the step with
 * @ranges needs though the plan has them away: what is in their chunks goes, as
 * far as it can, so that nothing has to be mapped, and comes back before the
 * next op. Gate and lock held, the lock let go meanwhile.
 */
void ts_enforce_make_way(
        struct ts_pager *pager, const struct ts_range *ranges, size_t count);

/*
 * How many ops since last asked found missing what they use for certain, not
 * by doubtful ranges alone.
 */
uint64_t ts_enforce_missed(struct ts_pager *pager);

/* What is mapped at a page is taken away. Gate held. */
void ts_enforce_disturb(struct ts_pager *pager);

/* No plan is in force any more. */
void ts_enforce_end(struct ts_pager *pager);

#endif
