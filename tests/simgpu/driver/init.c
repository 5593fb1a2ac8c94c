/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Start of the simulated driver and its entry guard. Owns the one lock.
 * Called by every exported function, on any thread.
 */
#include "tests/simgpu/driver/sg.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void sg_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sg_unlock(void)
{
	pthread_mutex_unlock(&lock);
}
