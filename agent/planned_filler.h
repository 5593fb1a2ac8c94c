/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A step that takes more memory than it does: what fills it up is there
 * wherever an op needs less than the largest one. Planned for the limit that
 * the largest op needs, all others have to do with less; under a lower limit
 * there would be no plan at all. Pure.
 */
#ifndef TS_PLANNED_FILLER_H
#define TS_PLANNED_FILLER_H

#include <stdint.h>

#include "planner/graph.h"

struct ts_planned_filler {
	/* The step's, and then a value for ops in a row with as much to fill;
	 * has only values, ops, uses and dirties of its own. */
	struct ts_profile profile;
	uint8_t *dirties; /* as in graph.h */
	struct ts_graph graph;
};

/*
 * Of the step of @graph, so that ops that can do with @low_bytes have that of
 * the graph's floor. 0 or -ENOMEM; after success the caller finishes
 * @ret_filler, and keeps the graph's profile until then.
 */
int ts_planned_filler_make(const struct ts_graph *graph, uint64_t low_bytes,
        struct ts_planned_filler *ret_filler);
void ts_planned_filler_finish(struct ts_planned_filler *filler);

#endif
