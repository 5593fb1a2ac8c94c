/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_say.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "agent/base/log.h"
#include "agent/base/units.h"

static bool said, said_none;

void ts_planned_say_plan(const struct ts_plan *plan)
{
	if (said)
		return;
	said = true;
	ts_log(TS_LOG_INFO,
	        "plan: step %.1f ms, %.1f unlimited; %s of %s leaves and comes "
	        "back a step",
	        (double)plan->predicted_step_ns * 1e-6,
	        (double)plan->unlimited_step_ns * 1e-6,
	        ts_size(plan->swap_bytes).text,
	        ts_size(plan->unlimited_peak_bytes).text);
}

void ts_planned_say_none(uint64_t least_bytes)
{
	char remedy[64] = "";

	if (said_none)
		return;
	said_none = true;
	/* In whole MiB, as limits are named elsewhere. */
	if (least_bytes)
		snprintf(remedy, sizeof(remedy),
		        "; for one: TAPESWAP_LIMIT=%" PRIu64 "MiB",
		        (least_bytes + (1u << 20) - 1) >> 20);
	ts_log(TS_LOG_INFO,
	        "plan: none fits under the limit, the pager goes on alone%s",
	        remedy);
}

void ts_planned_say_unwritten(const char *path)
{
	ts_log(TS_LOG_INFO, "plan: none was made%s: %.200s is not written",
	        said_none ? "" : ", for no step was timed that comes again",
	        path);
}
