/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clock that all of the agent's own times are taken from. */
#ifndef TS_CLOCK_H
#define TS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Any thread; from some point in the past on, never set. */
static inline uint64_t ts_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
