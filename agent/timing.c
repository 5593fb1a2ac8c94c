/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/timing.h"

#include <pthread.h>
#include <stdlib.h>

#include "agent/base/lock.h"

#define SLAB_TIMERS 1024
#define SLABS_MAX   128

/* Events belong to the context that was current when they were made. */
struct timer {
	CUevent begin, end;
	CUcontext context;
	int32_t next_free;
};

static struct {
	const struct ts_gpu_ops *ops;
	struct ts_mutex lock;
	/* Guarded by lock. Slabs stay where they are once made. */
	struct timer *slabs[SLABS_MAX];
	int32_t count;
	int32_t free; /* first free one, or TS_NO_TIMER */
} pool;

void ts_timing_init(const struct ts_gpu_ops *ops)
{
	pool.ops = ops;
	pool.free = TS_NO_TIMER;
	ts_mutex_init(&pool.lock, TS_RANK_TIMING);
}

static struct timer *timer_at(int32_t timer)
{
	return &pool.slabs[timer / SLAB_TIMERS][timer % SLAB_TIMERS];
}

/* Lock held. */
static int32_t take_place(void)
{
	int32_t place = pool.free;

	if (place != TS_NO_TIMER) {
		pool.free = timer_at(place)->next_free;
		return place;
	}
	if (pool.count == SLABS_MAX * SLAB_TIMERS)
		return TS_NO_TIMER;
	if (pool.count % SLAB_TIMERS == 0) {
		struct timer *slab = calloc(SLAB_TIMERS, sizeof(*slab));

		if (!slab)
			return TS_NO_TIMER;
		pool.slabs[pool.count / SLAB_TIMERS] = slab;
	}
	return pool.count++;
}

/* An event of another context cannot be recorded: it is made anew. */
static bool make_events(struct timer *timer, CUcontext context)
{
	if (timer->begin && timer->context == context)
		return true;
	if (timer->begin) {
		pool.ops->event_destroy(timer->begin);
		pool.ops->event_destroy(timer->end);
		timer->begin = NULL;
	}
	if (pool.ops->event_create(&timer->begin, CU_EVENT_DEFAULT) !=
	        CUDA_SUCCESS) {
		timer->begin = NULL;
		return false;
	}
	if (pool.ops->event_create(&timer->end, CU_EVENT_DEFAULT) !=
	        CUDA_SUCCESS) {
		pool.ops->event_destroy(timer->begin);
		timer->begin = NULL;
		return false;
	}
	timer->context = context;
	return true;
}

int32_t ts_timing_begin(ts_stream_key stream)
{
	CUcontext context = NULL;
	int32_t place;

	if (pool.ops->ctx_get_current(&context) != CUDA_SUCCESS || !context)
		return TS_NO_TIMER;
	ts_mutex_lock(&pool.lock);
	place = take_place();
	ts_mutex_unlock(&pool.lock);
	if (place == TS_NO_TIMER)
		return TS_NO_TIMER;
	if (make_events(timer_at(place), context) &&
	        pool.ops->event_record(timer_at(place)->begin,
	                (CUstream)(uintptr_t)stream) == CUDA_SUCCESS)
		return place;
	ts_timing_release(place);
	return TS_NO_TIMER;
}

void ts_timing_end(int32_t timer, ts_stream_key stream)
{
	if (timer != TS_NO_TIMER)
		pool.ops->event_record(
		        timer_at(timer)->end, (CUstream)(uintptr_t)stream);
}

void ts_timing_wait(int32_t timer)
{
	if (timer != TS_NO_TIMER)
		pool.ops->event_synchronize(timer_at(timer)->end);
}

static bool elapsed(CUevent from, CUevent to, uint64_t *ret_ns)
{
	float ms;

	if (pool.ops->event_elapsed(&ms, from, to) != CUDA_SUCCESS || ms < 0)
		return false;
	*ret_ns = (uint64_t)((double)ms * 1e6 + 0.5);
	return true;
}

bool ts_timing_read(int32_t timer, uint64_t *ret_ns)
{
	return timer != TS_NO_TIMER &&
	       elapsed(timer_at(timer)->begin, timer_at(timer)->end, ret_ns);
}

bool ts_timing_between(int32_t from, int32_t to, uint64_t *ret_ns)
{
	return from != TS_NO_TIMER && to != TS_NO_TIMER &&
	       elapsed(timer_at(from)->begin, timer_at(to)->begin, ret_ns);
}

void ts_timing_release(int32_t timer)
{
	if (timer == TS_NO_TIMER)
		return;
	ts_mutex_lock(&pool.lock);
	timer_at(timer)->next_free = pool.free;
	pool.free = timer;
	ts_mutex_unlock(&pool.lock);
}
