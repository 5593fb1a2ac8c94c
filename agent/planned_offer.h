/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A plan that was made before, for the step at hand as pages see it. Pure.
 */
#ifndef TS_PLANNED_OFFER_H
#define TS_PLANNED_OFFER_H

#include "planner/graph.h"
#include "planner/plan.h"

/*
 * A copy of @offered without what it makes again, with the values' numbers in
 * @graph. One that was made @of_profile, the step's, knows nothing of pages: of
 * it, what @graph has a gap for is taken over. 0, -EINVAL where it is for
 * another step, or -ENOMEM. The caller finishes @ret_plan after success.
 */
int ts_planned_offer_copy(const struct ts_plan *offered,
        const struct ts_graph *graph, bool of_profile,
        struct ts_plan *ret_plan);

#endif
