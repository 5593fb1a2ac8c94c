/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which ops the program's streams still have to finish. Ops are numbered in
 * the order they were issued; before a page loses its memory every op up to
 * its last use must be done, since unmapping waits for no kernel.
 *
 * Guarded by the pager's lock; waiting is done without it.
 */
#ifndef TS_STREAMS_H
#define TS_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/lock.h"
#include "runtime/fence.h"
#include "runtime/ops.h"

/*
 * A stream's handle as a number. Each context has a legacy stream and streams
 * of threads: these are the context's handle with one of the two bits below,
 * which are never set in a handle; bits alone mean the pager's own context.
 */
typedef uint64_t ts_stream_key;

#define TS_STREAM_LEGACY     ((ts_stream_key)1)
#define TS_STREAM_PER_THREAD ((ts_stream_key)2)
#define TS_STREAM_KIND       (TS_STREAM_LEGACY | TS_STREAM_PER_THREAD)

/* The streams of the current thread, told apart by @context. */
static inline ts_stream_key ts_stream_in(ts_stream_key key, CUcontext context)
{
	return key & TS_STREAM_KIND ? key | (uint64_t)(uintptr_t)context : key;
}

/* True where it is told already which context's the streams are. */
static inline bool ts_stream_is_in(ts_stream_key key)
{
	return !(key & TS_STREAM_KIND) || key & ~TS_STREAM_KIND;
}

/* As the driver knows it, in the context that @key is in. */
static inline CUstream ts_stream_handle(ts_stream_key key)
{
	return (CUstream)(uintptr_t)(key & TS_STREAM_KIND ? key & TS_STREAM_KIND
	                                                  : key);
}

/* For waits: everything in @context. */
static inline ts_stream_key ts_stream_whole(CUcontext context)
{
	return TS_STREAM_PER_THREAD | (uint64_t)(uintptr_t)context;
}

/* A point in a stream that can be waited for. */
struct ts_mark {
	CUevent event;   /* NULL: not created yet */
	uint64_t number; /* of the last op before it; 0: not recorded */
};

#define TS_STREAM_MARKS  64
#define TS_STREAM_STRIDE 16 /* ops between marks */

/* The key of an entry that is free. */
#define TS_STREAM_NONE UINT64_MAX

struct ts_stream {
	/*
	 * With TS_STREAM_PER_THREAD what cannot be waited for one by one: the
	 * streams of threads and the destroyed ones of a context.
	 */
	ts_stream_key key;
	CUcontext context; /* of a handle; NULL: not asked for yet */
	uint64_t issued;   /* number of its last op */
	uint64_t done;     /* every op up to this number is finished */

	struct ts_mark marks[TS_STREAM_MARKS];
	CUcontext marks_context; /* that the events belong to */
	unsigned int next_mark, since_mark;
	bool marking; /* some thread records one */
	/* What its ops wait for already, see ts_pager_begin(). */
	struct ts_fence waits;
};

struct ts_streams {
	const struct ts_gpu_ops *ops;
	CUcontext own; /* the pager's, current while it waits */
	struct ts_stream *streams;
	size_t count, capacity;
	bool marks;     /* somebody will ask for exact points */
	uint64_t moved; /* how often ops went over to another entry */
};

void ts_streams_init(struct ts_streams *streams, const struct ts_gpu_ops *ops,
        CUcontext own);
void ts_streams_finish(struct ts_streams *streams, bool driver_alive);

/*
 * Op @number was issued on @key. Lock held. Without host memory for a new
 * stream -ENOMEM: then the op has to be waited for at once.
 */
int ts_streams_issued(
        struct ts_streams *streams, ts_stream_key key, uint64_t number);

/* @key, of @context, is about to be destroyed; its ops may run. Lock held. */
void ts_streams_destroyed(
        struct ts_streams *streams, ts_stream_key key, CUcontext context);

/*
 * The program waited for @key, or for all of a context (ts_stream_whole()):
 * ops up to @number, taken before it began to wait, are done. Streams whose
 * context was never asked for stay. Lock held.
 */
void ts_streams_synchronized(
        struct ts_streams *streams, ts_stream_key key, uint64_t number);

/*
 * Waits for every stream that may be waited for while others capture: those
 * that do not capture themselves. The lock is held, and let go meanwhile.
 */
void ts_streams_wait_beside_capture(
        struct ts_streams *streams, struct ts_mutex *lock);
/* A context is gone, and all it ran: its streams are forgotten. Lock held. */
void ts_streams_context_gone(struct ts_streams *streams, CUcontext context);

/* Asks for contexts not known yet. @lock is held, and let go meanwhile. */
void ts_streams_ask_contexts(struct ts_streams *streams, struct ts_mutex *lock);

/* True where every op up to @number is known to be done. Lock held. */
bool ts_streams_done(const struct ts_streams *streams, uint64_t number);

/*
 * True where the op just issued on @key should be followed by a mark: the
 * caller then calls ts_streams_mark() from the thread that issued it.
 */
bool ts_streams_mark_due(struct ts_streams *streams, ts_stream_key key);

/*
 * Records a mark behind op @number of @key, in the current context. Without
 * one waits are longer, that is all. Lock not held.
 */
void ts_streams_mark(struct ts_streams *streams, ts_stream_key key,
        uint64_t number, struct ts_mutex *lock);

/*
 * Records a mark behind all that was issued so far, on every stream that has
 * none there. Nothing may be capturing. Lock held, and let go meanwhile.
 */
void ts_streams_mark_all(struct ts_streams *streams, struct ts_mutex *lock);

/*
 * Makes @waiter, a stream of the current context, wait for every op up to
 * @number but those of @except (0: none); waits on the host for what no event
 * can stand for. Nothing may be capturing. The lock is held, and let go
 * meanwhile.
 */
CUresult ts_streams_order(struct ts_streams *streams, uint64_t number,
        ts_stream_key except, CUstream waiter, struct ts_mutex *lock);

/* Finds out, without waiting, what is done. Lock held, and let go. */
void ts_streams_poll(struct ts_streams *streams, struct ts_mutex *lock);

/* The entry of @key, made where there is none; NULL without memory. */
struct ts_stream *ts_streams_entry(
        struct ts_streams *streams, ts_stream_key key);

/*
 * Waits until every op up to @number is done. @lock is held at call and
 * return, and let go while waiting.
 */
CUresult ts_streams_wait(
        struct ts_streams *streams, uint64_t number, struct ts_mutex *lock);

/*
 * The same without waiting: CUDA_ERROR_NOT_READY where some op is not done.
 * Only ops that no mark is behind are waited for (ts_streams_mark_all()).
 */
CUresult ts_streams_check(
        struct ts_streams *streams, uint64_t number, struct ts_mutex *lock);

#endif
