/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_drift.h"

/* A step is off where it is by more than one part in so many. */
#define OFF_PART 20
/* Fewer steps in a row may be chance; so often twice as many are asked for. */
#define OFF_STEPS 3u
#define TIMES_MAX 12

bool ts_planned_drift_note(
        struct ts_planned_drift *drift, const struct ts_planned_clock *clock)
{
	uint64_t expected = drift->expected_ns, took = clock->last_ns;
	bool slower = took > expected, met = drift->met;

	if (clock->steps <= drift->seen || !expected) {
		drift->seen = clock->steps;
		return false;
	}
	drift->seen = clock->steps;
	if ((slower ? took - expected : expected - took) <=
	        expected / OFF_PART) {
		drift->off = 0;
		drift->met = true;
		return false;
	}
	if (slower != drift->slower)
		drift->off = 0;
	drift->slower = slower;
	if (++drift->off < OFF_STEPS << drift->times)
		return false;
	drift->off = 0;
	drift->slower_ns = slower ? took - expected : 0;
	drift->expected_ns = took;
	drift->met = true;
	if (!met && drift->again)
		return false;
	drift->times += drift->times < TIMES_MAX;
	return true;
}
