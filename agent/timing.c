/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/timing.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/base/lock.h"
#include "agent/base/log.h"
#include "agent/cupti_timing.h"

#define SLAB_TIMERS 1024
#define SLABS_MAX   128
#define TIMERS_MAX  (SLAB_TIMERS * SLABS_MAX)

/* Events belong to the context that was current when they were made. */
struct timer {
	CUevent begin, end;
	CUcontext context;
	int32_t next_free;
	bool by_cupti;
	bool pushed; /* the op may still be issued */
	/* Guarded by pool.lock: what records told of it; end 0: nothing. */
	uint64_t number, start_ns, end_ns;
};

static struct {
	const struct ts_gpu_ops *ops;
	struct ts_mutex lock;
	/* Guarded by lock. Slabs stay where they are once made. */
	struct timer *slabs[SLABS_MAX];
	int32_t count;
	int32_t free;     /* first free one, or TS_NO_TIMER */
	uint64_t numbers; /* timers given out so far */
	uint64_t flushed; /* of those the first so many are told, or lost */

	bool wants_cupti; /* constant after start */
	pthread_once_t cupti_once;
} pool = {.cupti_once = PTHREAD_ONCE_INIT};

void ts_timing_init(const struct ts_gpu_ops *ops, bool cupti)
{
	pool.ops = ops;
	pool.free = TS_NO_TIMER;
	pool.wants_cupti = cupti;
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

/* The number of a timer and its place: an id for CUPTI. */
static uint64_t id_of(int32_t place)
{
	return timer_at(place)->number * TIMERS_MAX + (uint64_t)place;
}

static void on_told(uint64_t id, uint64_t start_ns, uint64_t end_ns)
{
	struct timer *timer;

	ts_mutex_lock(&pool.lock);
	/* One that was handed back, and maybe given out anew, is no more. */
	if (id % TIMERS_MAX < (uint64_t)pool.count) {
		timer = timer_at((int32_t)(id % TIMERS_MAX));
		if (id == id_of((int32_t)(id % TIMERS_MAX))) {
			if (!timer->end_ns || start_ns < timer->start_ns)
				timer->start_ns = start_ns;
			if (end_ns > timer->end_ns)
				timer->end_ns = end_ns;
		}
	}
	ts_mutex_unlock(&pool.lock);
}

static void take_cupti(void)
{
	int rc = ts_cupti_start(on_told);

	if (rc)
		ts_log(TS_LOG_WARN,
		        "TAPESWAP_TIMING=cupti: %s: ops are timed by pairs of "
		        "events",
		        rc == -ENOENT  ? "there is no CUPTI"
		        : rc == -EBUSY ? "another tool uses CUPTI"
		                       : "CUPTI refuses");
}

void ts_timing_yield_cupti(void)
{
	if (!ts_cupti_stop())
		return;
	ts_mutex_lock(&pool.lock);
	pool.flushed = pool.numbers;
	ts_mutex_unlock(&pool.lock);
	ts_log(TS_LOG_WARN,
	        "TAPESWAP_TIMING=cupti: the program uses CUPTI: ops are timed "
	        "by pairs of events from now on");
}

int32_t ts_timing_begin(ts_stream_key stream)
{
	CUcontext context = NULL;
	struct timer *timer;
	int32_t place;

	if (pool.ops->ctx_get_current(&context) != CUDA_SUCCESS || !context)
		return TS_NO_TIMER;
	if (pool.wants_cupti)
		pthread_once(&pool.cupti_once, take_cupti);
	ts_mutex_lock(&pool.lock);
	place = take_place();
	if (place != TS_NO_TIMER) {
		timer = timer_at(place);
		timer->number = ++pool.numbers;
		timer->start_ns = 0;
		timer->end_ns = 0;
		timer->by_cupti = ts_cupti_is_on();
		timer->pushed = timer->by_cupti;
	}
	ts_mutex_unlock(&pool.lock);
	if (place == TS_NO_TIMER)
		return TS_NO_TIMER;
	if (timer->by_cupti) {
		ts_cupti_push(id_of(place));
		return place;
	}
	if (make_events(timer_at(place), context) &&
	        pool.ops->event_record(timer_at(place)->begin,
	                (CUstream)(uintptr_t)stream) == CUDA_SUCCESS)
		return place;
	ts_timing_release(place);
	return TS_NO_TIMER;
}

static void pop(int32_t timer)
{
	if (timer_at(timer)->pushed)
		ts_cupti_pop();
	timer_at(timer)->pushed = false;
}

void ts_timing_end(int32_t timer, ts_stream_key stream)
{
	if (timer == TS_NO_TIMER)
		return;
	if (timer_at(timer)->by_cupti)
		pop(timer);
	else
		pool.ops->event_record(
		        timer_at(timer)->end, (CUstream)(uintptr_t)stream);
}

/* Ops that were issued before have their records then, or get none. */
static void wait_for_records(void)
{
	uint64_t issued;

	ts_mutex_lock(&pool.lock);
	issued = pool.numbers;
	ts_mutex_unlock(&pool.lock);
	pool.ops->ctx_synchronize();
	ts_cupti_flush();
	ts_mutex_lock(&pool.lock);
	if (pool.flushed < issued)
		pool.flushed = issued;
	ts_mutex_unlock(&pool.lock);
}

void ts_timing_wait(int32_t timer)
{
	if (timer == TS_NO_TIMER)
		return;
	if (timer_at(timer)->by_cupti)
		wait_for_records();
	else
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

/* False where the records may still come. */
static bool read_record(int32_t timer, uint64_t *ret_start_ns, uint64_t *ret_ns)
{
	const struct timer *at = timer_at(timer);
	bool known;

	ts_mutex_lock(&pool.lock);
	known = at->end_ns || at->number <= pool.flushed;
	*ret_start_ns = at->start_ns;
	*ret_ns = at->end_ns ? at->end_ns - at->start_ns : UINT64_MAX;
	ts_mutex_unlock(&pool.lock);
	return known;
}

bool ts_timing_read(int32_t timer, uint64_t *ret_ns)
{
	uint64_t start_ns;

	if (timer == TS_NO_TIMER)
		return false;
	if (timer_at(timer)->by_cupti)
		return read_record(timer, &start_ns, ret_ns);
	return elapsed(timer_at(timer)->begin, timer_at(timer)->end, ret_ns);
}

bool ts_timing_between(int32_t from, int32_t to, uint64_t *ret_ns)
{
	uint64_t from_ns, to_ns, duration_ns;

	if (from == TS_NO_TIMER || to == TS_NO_TIMER ||
	        timer_at(from)->by_cupti != timer_at(to)->by_cupti)
		return false;
	if (!timer_at(from)->by_cupti)
		return elapsed(
		        timer_at(from)->begin, timer_at(to)->begin, ret_ns);
	if (!read_record(from, &from_ns, &duration_ns) ||
	        duration_ns == UINT64_MAX ||
	        !read_record(to, &to_ns, &duration_ns) ||
	        duration_ns == UINT64_MAX || to_ns < from_ns)
		return false;
	*ret_ns = to_ns - from_ns;
	return true;
}

void ts_timing_release(int32_t timer)
{
	if (timer == TS_NO_TIMER)
		return;
	if (timer_at(timer)->by_cupti)
		pop(timer);
	ts_mutex_lock(&pool.lock);
	timer_at(timer)->next_free = pool.free;
	pool.free = timer;
	ts_mutex_unlock(&pool.lock);
}
