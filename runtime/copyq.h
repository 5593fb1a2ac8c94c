/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's copies of one direction: a non-blocking stream of its own, on
 * which copies run one after the other, in numbered batches. Who needs a batch
 * done waits for its event: on the device where that can be, else on the host.
 *
 * Copies are issued and batches closed by the holder of the pager's gate; any
 * thread may wait. The counters are guarded by the pager's lock.
 */
#ifndef TS_COPYQ_H
#define TS_COPYQ_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/lock.h"
#include "runtime/fence.h"
#include "runtime/ops.h"

#define TS_COPYQ_EVENTS 256 /* batches that can be under way at once */
/* Where they are, so many more are waited for: not for one at each batch. */
#define TS_COPYQ_WAITED 64

struct ts_copyq {
	const struct ts_gpu_ops *ops;
	CUstream stream; /* NULL until first needed; guarded by gate */
	CUevent events[TS_COPYQ_EVENTS]; /* of batch n: events[n % size] */
	uint64_t issued;                 /* number of the last batch */
	uint64_t done; /* every batch up to this one is known to be done */
	/* What comes next on the stream waits for already; guarded by gate. */
	struct ts_fence waits;
};

void ts_copyq_init(struct ts_copyq *queue, const struct ts_gpu_ops *ops);
void ts_copyq_finish(struct ts_copyq *queue, bool driver_alive);

/* Creates the stream and its events, in the current context. Gate held. */
CUresult ts_copyq_start(struct ts_copyq *queue);

/*
 * Closes a batch: what was put on the stream since the last one. Its number is
 * queue->issued afterwards. After a failure the stream was waited for where
 * that is possible, and no batch was added. Gate held, lock not.
 */
CUresult ts_copyq_close(struct ts_copyq *queue, struct ts_mutex *lock);

/*
 * Makes @stream, of the current context, wait for all batches up to @number.
 * Lock not held.
 */
CUresult ts_copyq_order(
        struct ts_copyq *queue, uint64_t number, CUstream stream);

/* Waits on the host for all batches up to @number. Lock not held. */
CUresult ts_copyq_wait(
        struct ts_copyq *queue, uint64_t number, struct ts_mutex *lock);

/* Finds out, without waiting, what is done. Lock not held. */
void ts_copyq_poll(struct ts_copyq *queue, struct ts_mutex *lock);

#endif
