/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes with ranks. A thread takes them in rising order of rank only; builds
 * without NDEBUG assert it. No lock but the first four is held across a call
 * into the driver.
 */
#ifndef TS_LOCK_H
#define TS_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

enum ts_rank {
	/* Where the program stands in its plan; held while pages are moved by
	 * it, too. */
	TS_RANK_PLAN,
	TS_RANK_PROOF, /* where the program stands in a shadow step; likewise */
	/*
	 * The mover's gate of one device (runtime/pager.c): one thread at a
	 * time moves pages, with driver calls. A launch that finds its blocks
	 * resident never takes it, and no driver callback may (the driver
	 * forbids CUDA calls there).
	 */
	TS_RANK_GATE,
	TS_RANK_PINNING, /* who has the driver pin host memory for one device */
	TS_RANK_GRAPHS,  /* graphs that exist */
	TS_RANK_VIRTUAL, /* the program's own virtual memory */
	TS_RANK_STATUS,  /* pagers are there while figures are read */
	TS_RANK_PAGER,   /* pages, chunks, streams of one device */
	TS_RANK_BLOCKS,  /* block registry */
	TS_RANK_FUNCS,   /* functions and their parameter layouts */
	TS_RANK_CODE,    /* code that was loaded, where the driver tells none */
	TS_RANK_TAPE,    /* ops recorded, step tracker */
	TS_RANK_RECORD,  /* the step that is recorded for the profile */
	TS_RANK_CUPTI,   /* records not told yet */
	TS_RANK_TIMING,  /* pool of timers */
	TS_RANK_AGENT,   /* device list and other small state of the agent */
	TS_RANK_HELPER,  /* what the agent's helper threads are asked to do */
	TS_RANK_COUNT,
};

struct ts_mutex {
	pthread_mutex_t mutex;
	enum ts_rank rank;
};

void ts_mutex_init(struct ts_mutex *mutex, enum ts_rank rank);
void ts_mutex_finish(struct ts_mutex *mutex);
void ts_mutex_lock(struct ts_mutex *mutex);
bool ts_mutex_try_lock(struct ts_mutex *mutex);
void ts_mutex_unlock(struct ts_mutex *mutex);

/* Waits for @cond with @mutex, which the caller holds. */
void ts_cond_wait(pthread_cond_t *cond, struct ts_mutex *mutex);

/* The same up to a time of the condition's clock: ETIMEDOUT afterwards. */
int ts_cond_wait_until(pthread_cond_t *cond, struct ts_mutex *mutex,
        const struct timespec *until);

#endif
