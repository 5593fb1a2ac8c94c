/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/copyq.h"

#include <string.h>

void ts_copyq_init(struct ts_copyq *queue, const struct ts_gpu_ops *ops)
{
	memset(queue, 0, sizeof(*queue));
	queue->ops = ops;
}

void ts_copyq_finish(struct ts_copyq *queue, bool driver_alive)
{
	if (driver_alive) {
		for (int i = 0; i < TS_COPYQ_EVENTS; i++)
			if (queue->events[i])
				queue->ops->event_destroy(queue->events[i]);
		if (queue->stream)
			queue->ops->stream_destroy(queue->stream);
	}
	memset(queue->events, 0, sizeof(queue->events));
	queue->stream = NULL;
	queue->waits = (struct ts_fence){0};
}

CUresult ts_copyq_start(struct ts_copyq *queue)
{
	CUresult rc = CUDA_SUCCESS;

	/* It is made last. */
	if (queue->stream)
		return rc;
	for (int i = 0; i < TS_COPYQ_EVENTS && rc == CUDA_SUCCESS; i++)
		if (!queue->events[i])
			rc = ts_gpu_said("cuEventCreate",
			        queue->ops->event_create(&queue->events[i],
			                CU_EVENT_DISABLE_TIMING));
	/* Non-blocking: the program may well work on the legacy stream. */
	if (rc == CUDA_SUCCESS)
		rc = ts_gpu_said("cuStreamCreate",
		        queue->ops->stream_create(
		                &queue->stream, CU_STREAM_NON_BLOCKING));
	return rc;
}

static CUevent event_of(const struct ts_copyq *queue, uint64_t number)
{
	return queue->events[number % TS_COPYQ_EVENTS];
}

static bool is_done(
        const struct ts_copyq *queue, uint64_t number, struct ts_mutex *lock)
{
	bool done;

	ts_mutex_lock(lock);
	done = number <= queue->done;
	ts_mutex_unlock(lock);
	return done;
}

CUresult ts_copyq_close(struct ts_copyq *queue, struct ts_mutex *lock)
{
	uint64_t number = queue->issued + 1;
	CUresult rc = CUDA_SUCCESS;

	/* The event's last batch must be over before it stands for another. */
	if (number > TS_COPYQ_EVENTS &&
	        !is_done(queue, number - TS_COPYQ_EVENTS, lock))
		rc = ts_copyq_wait(queue,
		        number - TS_COPYQ_EVENTS + TS_COPYQ_WAITED, lock);
	if (rc == CUDA_SUCCESS)
		rc = ts_gpu_said("cuEventRecord",
		        queue->ops->event_record(
		                event_of(queue, number), queue->stream));
	if (rc != CUDA_SUCCESS) {
		/* Nobody could wait for it later. */
		queue->ops->stream_synchronize(queue->stream);
		return rc;
	}
	ts_mutex_lock(lock);
	queue->issued = number;
	ts_mutex_unlock(lock);
	return CUDA_SUCCESS;
}

/*
 * The event may by now stand for a later batch: then more than needed is
 * waited for. That batch was issued before, and cannot wait for @stream's
 * next op: there is no circle.
 */
CUresult ts_copyq_order(
        struct ts_copyq *queue, uint64_t number, CUstream stream)
{
	return ts_gpu_said("cuStreamWaitEvent",
	        queue->ops->stream_wait_event(stream, event_of(queue, number),
	                CU_EVENT_WAIT_DEFAULT));
}

static void note_done(
        struct ts_copyq *queue, uint64_t number, struct ts_mutex *lock)
{
	ts_mutex_lock(lock);
	if (number > queue->done)
		queue->done = number;
	ts_mutex_unlock(lock);
}

CUresult ts_copyq_wait(
        struct ts_copyq *queue, uint64_t number, struct ts_mutex *lock)
{
	CUresult rc;

	if (is_done(queue, number, lock))
		return CUDA_SUCCESS;
	rc = ts_gpu_said("cuEventSynchronize",
	        queue->ops->event_synchronize(event_of(queue, number)));
	if (rc == CUDA_SUCCESS)
		note_done(queue, number, lock);
	return rc;
}

void ts_copyq_poll(struct ts_copyq *queue, struct ts_mutex *lock)
{
	uint64_t number, issued;

	ts_mutex_lock(lock);
	number = queue->done + 1;
	issued = queue->issued;
	ts_mutex_unlock(lock);
	for (; number <= issued; number++) {
		if (queue->ops->event_query(event_of(queue, number)) !=
		        CUDA_SUCCESS)
			return;
		note_done(queue, number, lock);
	}
}
