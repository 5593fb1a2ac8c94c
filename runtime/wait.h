/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for the device where what was issued may itself wait for the program,
 * which comes to a stand meanwhile: only looks, and not for ever. The state is
 * the caller's, of one thread.
 */
#ifndef TS_WAIT_H
#define TS_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/lock.h"

/* Steps are shorter, and the program's own waits at their ends with them. */
#define TS_WAIT_NS 1000000000ull

struct ts_wait {
	uint64_t until_ns; /* of the host's clock */
	unsigned int looks;
};

/* A wait that is over after @most_ns. */
struct ts_wait ts_wait_begin(uint64_t most_ns);

/*
 * After each look that found the device busy: false where the time is up. So
 * many times in a row at once, then after a pause; without @lock, if there is
 * one, which the caller holds.
 */
bool ts_wait_again(struct ts_wait *wait, struct ts_mutex *lock);

#endif
