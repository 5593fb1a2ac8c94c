/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Device memory of the agent's own for what launches do again: buffers by
 * size, kept for the next one that wants as much. Each is a driver allocation
 * of its own, so that a kernel that runs past one is noticed where that can be.
 *
 * Belongs to the context that was current at the first buffer. Not locked: the
 * caller's calls do not overlap.
 */
#ifndef TS_SCRATCH_H
#define TS_SCRATCH_H

#include "runtime/ops.h"
#include "runtime/streams.h"

struct ts_scratch_buffer;

struct ts_scratch {
	const struct ts_gpu_ops *ops;
	/* Sees to it that the limit leaves @bytes more: 0 or a negative errno.
	 * NULL: nothing is to be asked. */
	int (*make_room)(uint64_t bytes, void *data);
	void *data;
	uint64_t most_bytes; /* that are held at once */
	/* The rest is the file's own. */
	struct ts_scratch_buffer *buffers;
	uint64_t held_bytes, peak_bytes;
};

/*
 * A buffer of @bytes, content undefined, that may be used on @stream; waits on
 * the host where it was used on another. 0; -ENOSPC where most_bytes or the
 * limit do not leave so much; or another negative errno.
 */
int ts_scratch_get(struct ts_scratch *scratch, uint64_t bytes,
        ts_stream_key stream, uint64_t *ret_address);

/* Done with the buffer, but for what was issued on @stream. */
void ts_scratch_put(
        struct ts_scratch *scratch, uint64_t address, ts_stream_key stream);

/* Gives all buffers back that nobody has; waits for the device. */
void ts_scratch_trim(struct ts_scratch *scratch);

/* Forgets all buffers; frees them where @driver_alive. */
void ts_scratch_finish(struct ts_scratch *scratch, bool driver_alive);

#endif
