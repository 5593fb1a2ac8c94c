/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/lock.h"

#include "agent/base/log.h"

/* One bit for each rank the thread holds. */
static __thread unsigned int held_ranks
        __attribute__((tls_model("initial-exec")));

void ts_mutex_init(struct ts_mutex *mutex, enum ts_rank rank)
{
	pthread_mutex_init(&mutex->mutex, NULL);
	mutex->rank = rank;
}

void ts_mutex_finish(struct ts_mutex *mutex)
{
	pthread_mutex_destroy(&mutex->mutex);
}

void ts_mutex_lock(struct ts_mutex *mutex)
{
	ts_assert(held_ranks >> mutex->rank == 0);
	pthread_mutex_lock(&mutex->mutex);
	held_ranks |= 1u << mutex->rank;
}

bool ts_mutex_try_lock(struct ts_mutex *mutex)
{
	ts_assert(held_ranks >> mutex->rank == 0);
	if (pthread_mutex_trylock(&mutex->mutex))
		return false;
	held_ranks |= 1u << mutex->rank;
	return true;
}

void ts_mutex_unlock(struct ts_mutex *mutex)
{
	ts_assert(held_ranks & 1u << mutex->rank);
	held_ranks &= ~(1u << mutex->rank);
	pthread_mutex_unlock(&mutex->mutex);
}

void ts_cond_wait(pthread_cond_t *cond, struct ts_mutex *mutex)
{
	ts_assert(held_ranks >> mutex->rank == 1);
	pthread_cond_wait(cond, &mutex->mutex);
}

int ts_cond_wait_until(pthread_cond_t *cond, struct ts_mutex *mutex,
        const struct timespec *until)
{
	ts_assert(held_ranks >> mutex->rank == 1);
	return pthread_cond_timedwait(cond, &mutex->mutex, until);
}
