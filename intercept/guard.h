/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a wrapper begins and ends. Calls a driver or the agent makes from inside
 * a wrapped call go straight through: the agent takes part in the outermost
 * call of a thread only.
 */
#ifndef TS_GUARD_H
#define TS_GUARD_H

#include <stdbool.h>

#include "agent/base/inside.h"
#include "agent/base/stack.h"

enum ts_phase {
	TS_PHASE_FRESH,   /* no CUDA call seen */
	TS_PHASE_ACTIVE,  /* the agent takes part */
	TS_PHASE_OFF,     /* every call goes straight to the driver */
	TS_PHASE_REFUSED, /* off, and CUDA initialisation fails */
};

extern _Atomic int ts_phase; /* enum ts_phase */

/* Starts the agent at the first CUDA call of the process. Cheap afterwards. */
void ts_start(void);

/*
 * True where the agent takes part in this call; ts_leave() must follow then.
 * The driver's table is filled in either case, where there is a driver.
 */
static inline bool ts_enter(void)
{
	if (ts_inside)
		return false;
	if (ts_phase == TS_PHASE_FRESH)
		ts_start();
	if (ts_phase != TS_PHASE_ACTIVE)
		return false;
	ts_inside = true;
	return true;
}

static inline void ts_leave(void)
{
	ts_inside = false;
	ts_stack_wipe();
}

#endif
