/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile.json: a recorded step as the planner reads it, and beside it what
 * people and tests want to know of it. Pure but for the process id.
 */
#ifndef TS_AGENT_PROFILE_H
#define TS_AGENT_PROFILE_H

#include <jansson.h>
#include <stdint.h>

#include "agent/device.h"
#include "agent/observed.h"

/* What is known beside the step itself. */
struct ts_profile_context {
	const struct ts_device_facts *facts; /* by device number */
	uint64_t steps;                      /* seen so far, of any shape */
	uint64_t same_steps;                 /* of the shape that is written */
	uint64_t timed_steps;                /* of those with times */
	uint64_t shapes;
};

/*
 * Of device @index of the step's. NULL without memory. The caller owns the
 * result.
 */
json_t *ts_profile_make(const struct ts_observed *observed, size_t index,
        const struct ts_profile_context *context);

#endif
