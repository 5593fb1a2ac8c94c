/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life of a plan in the process: a step that was observed often enough is
 * planned for, ops are followed, and the runtime enforces the plan from the
 * next step on. What does not go by the plan goes through the pager; where a
 * whole step went as planned the plan goes on.
 *
 * Functions run on the program's threads inside its CUDA calls; one lock,
 * taken before the pager's gate, keeps them in order. Pages are moved with
 * it; a plan comes into force, for which the device is waited for, and others'
 * memory is asked for without.
 */
#ifndef TS_PLANNED_H
#define TS_PLANNED_H

#include <jansson.h>

#include "agent/observed.h"
#include "agent/op.h"
#include "runtime/enforce.h"

/* Before ts_profiler_init(). */
void ts_planned_init(void);

/* @op comes next, on the pager of a device; before it is made resident. */
void ts_planned_op(struct ts_op *op);

/* @op did not find all its pages resident. */
void ts_planned_missed(const struct ts_op *op);

/*
 * The agent itself had room made, which it has given back: a plan in force that
 * has lost chunks by that comes into force anew with the next op. Any thread.
 */
void ts_planned_lost(void);

/*
 * What may be made again of a step is known: a plan for it that makes use of
 * that takes the place of the one there is. Where something @demoted was relied
 * on that one goes in any case. On a thread without any lock.
 */
void ts_planned_proved(const struct ts_observed *observed, bool demoted);

struct ts_planned_figures {
	uint64_t plans; /* that were made */
	/* Of those: that are no faster than the pager alone. */
	uint64_t declined;
	/* And that took another one's place: the device was not what it was. */
	uint64_t remade;
	uint64_t adopted; /* how often one was put into force */
	uint64_t joins;   /* how often a step was found to go by it */
	uint64_t left;    /* how often it was left in the middle */
	uint64_t steps;   /* that went by it to their end */
	uint64_t missed;  /* ops on them that the pager had to help */
	uint64_t doubted; /* of those, with words taken for no operands */
	uint64_t astray;  /* pages on them that could not come in time */
	uint64_t weighed; /* with values made again, against others */
	uint64_t replays; /* of these: that took another one's place */
	/* Or might have been, were it known of several steps as one. */
	uint64_t in_turns;
	/*
	 * Steps by it that came right after two others, and the VMM calls from
	 * the end of the step before to their ends.
	 */
	uint64_t steady_steps, steady_vmm_calls;
	/* And what moved meanwhile. */
	struct ts_enforce_work steady;
};

/* plan.json with what was measured; NULL where there is no plan. */
json_t *ts_planned_json(void);

struct ts_planned_outcome {
	uint64_t steps; /* that went by a plan to their ends */
	/* Of the last ones by the plan that was last, where those were timed:
	 * their median, and what it says. Else 0. */
	uint64_t step_ns, predicted_ns;
	bool weighed; /* plans with values made again were, against others */
	bool replays; /* one took another's place */
	bool turns;   /* none could: steps take turns in where blocks lie */
};

/* At the end. */
void ts_planned_outcome(struct ts_planned_outcome *ret);

/* For the status file; NULL without a plan. */
json_t *ts_planned_status(void);

#endif
