/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile.json: a recorded step as the planner reads it, and beside it what
 * people and tests want to know of it. Pure but for the file.
 */
#ifndef TS_AGENT_PROFILE_H
#define TS_AGENT_PROFILE_H

#include <jansson.h>
#include <stdint.h>

#include "agent/bandwidth.h"
#include "agent/recording.h"

/* What is known beside the step itself. */
struct ts_profile_context {
	char device_name[256];
	uint64_t device_bytes;
	uint64_t outside_bytes; /* on the device beside allocations; context */
	struct ts_bandwidth link;
	bool link_measured;
	uint64_t steps;       /* seen so far, of any shape */
	uint64_t same_steps;  /* of the shape that is written */
	uint64_t timed_steps; /* of those with times */
	uint64_t peak_bytes;  /* of reported blocks, in the whole run */
	uint64_t shapes;
};

/* NULL without memory. The caller owns the result. */
json_t *ts_profile_make(const struct ts_recording *step,
        const struct ts_profile_context *context);

#endif
