/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streams, as the control part's files see them. Guarded by the lock.
 */
#ifndef SG_STREAM_H
#define SG_STREAM_H

#include "tests/simgpu/driver/sg.h"

#define SG_PRIORITY_LEAST    0
#define SG_PRIORITY_GREATEST -5

enum sg_stream_kind {
	SG_STREAM_BLOCKING,
	SG_STREAM_NON_BLOCKING,
	SG_STREAM_LEGACY,
	SG_STREAM_PER_THREAD,
};
/* A new stream of ctx, in its list. Never NULL. */
struct sg_stream *sg_stream_new(
        struct sg_ctx *ctx, enum sg_stream_kind kind, int priority);
/* Leaves the list and dies; work under way goes on. */
void sg_stream_destroy(struct sg_stream *stream);
/* All streams of a dying context. */
void sg_streams_destroy(struct sg_ctx *ctx);
/* The next op of stream depends on op too. */
void sg_stream_add_wait(struct sg_stream *stream, struct sg_op *op);

#endif
