/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether steps by a plan take what the plan says: where so many in a row are
 * off by more than one part in twenty, the same way, what was measured of the
 * device is old. Each time twice as many steps have to be: of a device that is
 * never the same for long it is not to be measured for ever. Pure; guarded by
 * its owner's lock.
 */
#ifndef TS_PLANNED_DRIFT_H
#define TS_PLANNED_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/planned_clock.h"

struct ts_planned_drift {
	uint64_t expected_ns; /* a step; 0: not known */
	uint64_t seen;        /* steps of the clock that were looked at */
	unsigned int off;     /* steps in a row */
	bool slower;          /* these are */
	uint64_t slower_ns;   /* in the end by so much; 0: they are faster */
	bool met;             /* a step took what was expected */
	bool again;           /* the plan was made because of an earlier one */
	unsigned int times;   /* it was told, of this plan or those before it */
};

/*
 * What the clock has timed by now. True where the plan's device is not what it
 * was, once; from then on what was timed is what is expected. A plan that was
 * made for this reason and whose steps never took what it says is taken as it
 * is: to measure once more would tell the same.
 */
bool ts_planned_drift_note(
        struct ts_planned_drift *drift, const struct ts_planned_clock *clock);

#endif
