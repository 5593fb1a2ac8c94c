/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Host functions and callbacks as stream work. Guarded by the lock.
 */
#include "tests/simgpu/driver/sg.h"

#include <stdlib.h>

struct callback {
	CUstreamCallback fn;
	CUstream stream;
	CUresult status;
	void *arg;
};

static void call_back(void *arg)
{
	struct callback *callback = arg;

	callback->fn(callback->stream, callback->status, callback->arg);
	free(callback);
}

static CUresult host_func(
        CUstream handle, bool per_thread, CUhostFn fn, void *arg)
{
	struct sg_node_work work = {.kind = SG_NODE_HOST};
	struct sg_stream *stream;
	struct sg_op *op;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture) {
		work.host.fn = fn;
		work.host.arg = arg;
		return sg_capture_add(stream, &work);
	}
	op = sg_op_new(SG_OP_HOST_FN, stream);
	op->host_fn = fn;
	op->host_arg = arg;
	return sg_op_enqueue(op);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg)
{
	SG_API(cuLaunchHostFunc, SG_COST_LAUNCH, SG_NEED_INIT | SG_NEED_CTX);
	return host_func(stream, false, fn, arg);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void *arg)
{
	SG_API(cuLaunchHostFunc_ptsz, SG_COST_LAUNCH,
	        SG_NEED_INIT | SG_NEED_CTX);
	return host_func(stream, true, fn, arg);
}

static CUresult add_callback(CUstream handle, bool per_thread,
        CUstreamCallback fn, void *arg, unsigned flags)
{
	struct callback *callback;
	struct sg_stream *stream;
	struct sg_op *op;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (!fn || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture)
		return sg_capture_break(
		        stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	callback = sg_xcalloc(1, sizeof(*callback));
	callback->fn = fn;
	callback->stream = handle;
	callback->arg = arg;
	op = sg_op_new(SG_OP_HOST_FN, stream);
	op->host_fn = call_back;
	op->host_arg = callback;
	r = sg_op_enqueue(op);
	if (r)
		free(callback);
	return r;
}

CUresult cuStreamAddCallback(
        CUstream stream, CUstreamCallback fn, void *arg, unsigned flags)
{
	SG_API(cuStreamAddCallback, SG_COST_LAUNCH, SG_NEED_INIT | SG_NEED_CTX);
	return add_callback(stream, false, fn, arg, flags);
}

CUresult cuStreamAddCallback_ptsz(
        CUstream stream, CUstreamCallback fn, void *arg, unsigned flags)
{
	SG_API(cuStreamAddCallback_ptsz, SG_COST_LAUNCH,
	        SG_NEED_INIT | SG_NEED_CTX);
	return add_callback(stream, true, fn, arg, flags);
}
