/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A planned step as a timeline, for `trace` and `report`. Single-threaded. */
#ifndef TS_CLI_TRACE_H
#define TS_CLI_TRACE_H

#include <jansson.h>

#include "planner/graph.h"
#include "planner/plan.h"

/*
 * Runs @plan, of the file @plan_path, on the event model. To *@ret_trace goes
 * what Perfetto reads: slices by lane (tid: enum ts_lane), counters "memory"
 * and "limit" in GiB, times in microseconds. An exit status; what is wrong is
 * reported. The caller owns the result.
 */
int ts_cli_make_trace(const struct ts_graph *graph, const struct ts_plan *plan,
        const char *plan_path, json_t **ret_trace);

#endif
