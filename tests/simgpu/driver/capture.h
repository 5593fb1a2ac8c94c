/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stream capture, as the control part's files see it. Guarded by the lock; the
 * capture mode of a thread belongs to it.
 */
#ifndef SG_CAPTURE_H
#define SG_CAPTURE_H

#include "tests/simgpu/driver/sg.h"

/* An event is recorded in, or waited for by, a capturing stream; or an event
 * recorded in a capture is waited for. */
CUresult sg_capture_record_event(
        struct sg_stream *stream, struct sg_event *event, unsigned flags);
CUresult sg_capture_wait_event(
        struct sg_stream *stream, struct sg_event *event, unsigned flags);
/* The null stream is used: would it have to wait for a capture? */
CUresult sg_capture_implicit(struct sg_ctx *ctx);
/* Marks that capture invalid, if it still goes on; returns error. */
CUresult sg_capture_break_id(uint64_t id, CUresult error);
/* A stream is being destroyed. */
void sg_capture_stream_gone(struct sg_stream *stream);

struct sg_capture_info {
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUgraph graph;
	const CUgraphNode *deps; /* until the stream captures more */
	size_t n_deps;
};
/* Public streams in; errors as the API has them. */
CUresult sg_capture_info(
        CUstream stream, bool per_thread, struct sg_capture_info *ret_info);
CUresult sg_capture_set_deps(CUstream stream, bool per_thread,
        CUgraphNode *deps, size_t n_deps, unsigned flags);

#endif
