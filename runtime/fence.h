/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A point in the work of a device: the program's ops up to one number, and the
 * agent's copies each way up to one number. Plain data.
 */
#ifndef TS_FENCE_H
#define TS_FENCE_H

#include <stdint.h>

struct ts_fence {
	uint64_t op;  /* see streams.h */
	uint64_t out; /* see copyq.h */
	uint64_t in;
};

/* Makes @fence stand for what both stand for. */
static inline void ts_fence_join(
        struct ts_fence *fence, const struct ts_fence *other)
{
	if (other->op > fence->op)
		fence->op = other->op;
	if (other->out > fence->out)
		fence->out = other->out;
	if (other->in > fence->in)
		fence->in = other->in;
}

#endif
