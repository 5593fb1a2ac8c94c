/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/wait.h"

#include <unistd.h>

#include "agent/base/clock.h"

#define LOOKS    64
#define PAUSE_US 50

struct ts_wait ts_wait_begin(uint64_t most_ns)
{
	return (struct ts_wait){.until_ns = ts_now_ns() + most_ns};
}

bool ts_wait_again(struct ts_wait *wait, struct ts_mutex *lock)
{
	if (ts_now_ns() >= wait->until_ns)
		return false;
	if (lock)
		ts_mutex_unlock(lock);
	if (++wait->looks % LOOKS == 0)
		usleep(PAUSE_US);
	if (lock)
		ts_mutex_lock(lock);
	return true;
}
