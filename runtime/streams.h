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
#include "runtime/ops.h"

/* CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or the handle, as a number. */
typedef uint64_t ts_stream_key;

#define TS_STREAM_LEGACY     ((ts_stream_key)1)
#define TS_STREAM_PER_THREAD ((ts_stream_key)2)
#define TS_STREAMS_MAX       64

struct ts_stream {
	ts_stream_key key;
	uint64_t issued; /* number of its last op */
	uint64_t done;   /* every op up to this number is finished */
};

struct ts_streams {
	const struct ts_gpu_ops *ops;
	struct ts_stream streams[TS_STREAMS_MAX];
	size_t count;
	/*
	 * Last op of streams that cannot be waited for one by one: per-thread
	 * default streams, destroyed ones, and those beyond TS_STREAMS_MAX.
	 */
	struct ts_stream others;
};

void ts_streams_init(struct ts_streams *streams, const struct ts_gpu_ops *ops);

/* Op @number was issued on @key. Lock held. */
void ts_streams_issued(
        struct ts_streams *streams, ts_stream_key key, uint64_t number);

/* @key is about to be destroyed; its ops may still run. Lock held. */
void ts_streams_destroyed(struct ts_streams *streams, ts_stream_key key);

/*
 * The program waited for @key, or for everything where @key is 0: ops up to
 * @number, taken before it began to wait, are done. Lock held.
 */
void ts_streams_synchronized(
        struct ts_streams *streams, ts_stream_key key, uint64_t number);

/*
 * Waits for every stream that may be waited for while others capture: those
 * that do not capture themselves. The lock is held, and let go meanwhile.
 */
void ts_streams_wait_beside_capture(
        struct ts_streams *streams, struct ts_mutex *lock);

/* True where every op up to @number is known to be done. Lock held. */
bool ts_streams_done(const struct ts_streams *streams, uint64_t number);

/*
 * Waits until every op up to @number is done. @lock is held at call and
 * return, and let go while waiting.
 */
CUresult ts_streams_wait(
        struct ts_streams *streams, uint64_t number, struct ts_mutex *lock);

#endif
