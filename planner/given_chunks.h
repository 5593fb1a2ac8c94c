/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chunks that were decided before the pages' stays were: taken over, and held
 * against these. Pure; called by page_plan.c.
 */
#ifndef TS_PLANNER_GIVEN_CHUNKS_H
#define TS_PLANNER_GIVEN_CHUNKS_H

#include "planner/page_plan.h"

/*
 * By @in's places, into @plan, which has its strips and stays. 0, -ENOMEM,
 * -EINVAL where a page has no place or one that is not there, or -EBUSY where
 * two that have the same are there for the same op.
 */
int ts_given_chunks_take(
        const struct ts_page_plan_input *in, struct ts_page_plan *plan);

#endif
