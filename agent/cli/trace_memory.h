/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What of the device's memory is in use over the last step of a model's run,
 * from the run's events. Single-threaded.
 */
#ifndef TS_CLI_TRACE_MEMORY_H
#define TS_CLI_TRACE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/model.h"

/* One event of the run, times in ns since it began. */
struct ts_trace_event {
	enum ts_lane lane;
	uint32_t index;
	double begin, end;
};

struct ts_trace_events {
	struct ts_trace_event *items;
	size_t count, capacity;
	bool failed;
};

/* Bytes that come or go at a time. */
struct ts_trace_change {
	double ns, bytes;
};

/*
 * All changes from @start_ns on, when the last step began, in their order; the
 * caller frees them. *@ret_bytes: what is in use before the first, told by
 * @peak_bytes, the highest. 0 or -ENOMEM.
 */
int ts_trace_memory(const struct ts_trace_events *events,
        const struct ts_program *program, const struct ts_choice *choice,
        double start_ns, uint64_t peak_bytes,
        struct ts_trace_change **ret_changes, size_t *ret_count,
        double *ret_bytes);

#endif
