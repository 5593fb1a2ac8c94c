/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether it is worth proving what of a step can be made again: the program
 * runs some steps more slowly for that. Asks the planner for one more plan.
 * Under the lock of who makes plans.
 */
#ifndef TS_PLANNED_WORTH_H
#define TS_PLANNED_WORTH_H

#include "agent/planned_make.h"

/*
 * True where a plan would be shorter than @plan, which was made of @step, if
 * all could be made again that no rule refuses. Leaves in @plan's view what may
 * be made again as it was.
 */
bool ts_planned_worth_proof(
        const struct ts_planned_step *step, struct ts_planned_plan *plan);

#endif
