/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of waiting, of capture, and of what ends streams and contexts. */
#include "intercept/wrapper.h"

/* Waits for the stream with that key, 0 for the whole context. */
#define WAIT(symbol, parameters, arguments, key)                               \
	CUresult ts_hook_##symbol parameters                                   \
	{                                                                      \
		struct ts_sync sync;                                           \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol arguments;                \
		ts_agent_sync_begin(&sync);                                    \
		rc = ts_driver.fn_##symbol arguments;                          \
		if (rc == CUDA_SUCCESS)                                        \
			ts_agent_sync_end(key, &sync);                         \
		ts_leave();                                                    \
		return rc;                                                     \
	}

WAIT(cuCtxSynchronize, (void), (), 0)
WAIT(cuStreamSynchronize, (CUstream stream), (stream),
        ts_key(stream, TS_STREAM_LEGACY))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream),
        ts_key(stream, TS_STREAM_PER_THREAD))

/* Another context than the current one tells nothing of this device. */
CUresult ts_hook_cuCtxSynchronize_v2(CUcontext ctx)
{
	struct ts_sync sync;
	CUresult rc;

	if (ctx || !ts_enter())
		return ts_driver.fn_cuCtxSynchronize_v2(ctx);
	ts_agent_sync_begin(&sync);
	rc = ts_driver.fn_cuCtxSynchronize_v2(ctx);
	if (rc == CUDA_SUCCESS)
		ts_agent_sync_end(0, &sync);
	ts_leave();
	return rc;
}

/* The agent is done with @what before the driver is. */
#define DESTROY(symbol, type, what, tell)                                      \
	CUresult ts_hook_##symbol(type what)                                   \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol(what);                    \
		tell;                                                          \
		rc = ts_driver.fn_##symbol(what);                              \
		ts_agent_after_captures();                                     \
		ts_leave();                                                    \
		return rc;                                                     \
	}

DESTROY(cuStreamDestroy, CUstream, stream,
        ts_agent_stream_destroyed((ts_stream_key)(uintptr_t)stream))
DESTROY(cuStreamDestroy_v2, CUstream, stream,
        ts_agent_stream_destroyed((ts_stream_key)(uintptr_t)stream))
DESTROY(cuCtxDestroy, CUcontext, context, ts_agent_context_gone(context))
DESTROY(cuCtxDestroy_v2, CUcontext, context, ts_agent_context_gone(context))

/* Ends the context where nothing else is attached to it. */
CUresult ts_hook_cuCtxDetach(CUcontext ctx)
{
	unsigned int version;
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxDetach(ctx);
	rc = ts_driver.fn_cuCtxDetach(ctx);
	if (rc == CUDA_SUCCESS &&
	        ts_driver.fn_cuCtxGetApiVersion(ctx, &version) != CUDA_SUCCESS)
		ts_agent_context_gone(ctx);
	ts_agent_after_captures();
	ts_leave();
	return rc;
}

/* The context ends with its last holder: only then is it gone. */
static void after_release(CUdevice device)
{
	unsigned int flags;
	int active = 1;

	if (ts_driver.fn_cuDevicePrimaryCtxGetState(device, &flags, &active) ==
	                CUDA_SUCCESS &&
	        !active)
		ts_agent_primary_gone(device);
}

/* A device's primary context may go; @after looks at what became of it. */
#define PRIMARY(symbol, after)                                                 \
	CUresult ts_hook_##symbol(CUdevice device)                             \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol(device);                  \
		ts_agent_primary_release(device);                              \
		rc = ts_driver.fn_##symbol(device);                            \
		if (rc == CUDA_SUCCESS)                                        \
			after(device);                                         \
		ts_agent_after_captures();                                     \
		ts_leave();                                                    \
		return rc;                                                     \
	}

PRIMARY(cuDevicePrimaryCtxReset, ts_agent_primary_gone)
PRIMARY(cuDevicePrimaryCtxReset_v2, ts_agent_primary_gone)
PRIMARY(cuDevicePrimaryCtxRelease, after_release)
PRIMARY(cuDevicePrimaryCtxRelease_v2, after_release)

#define BEGIN_CAPTURE(call, parameters, arguments, zero)                       \
	CUresult ts_hook_cuStream##call parameters                             \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_cuStream##call arguments;          \
		ts_agent_before_capture();                                     \
		rc = ts_driver.fn_cuStream##call arguments;                    \
		if (rc == CUDA_SUCCESS)                                        \
			ts_agent_capture_begins(ts_key(stream, zero));         \
		ts_leave();                                                    \
		return rc;                                                     \
	}

#define BEGIN_CAPTURES(call, parameters, arguments)                            \
	BEGIN_CAPTURE(call, parameters, arguments, TS_STREAM_LEGACY)           \
	BEGIN_CAPTURE(call##_ptsz, parameters, arguments, TS_STREAM_PER_THREAD)

BEGIN_CAPTURES(BeginCapture, (CUstream stream), (stream))
BEGIN_CAPTURES(BeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
        (stream, mode))
BEGIN_CAPTURES(BeginCaptureToGraph,
        (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                const CUgraphEdgeData *edges, size_t count,
                CUstreamCaptureMode mode),
        (stream, graph, dependencies, edges, count, mode))

#define END_CAPTURE(symbol, zero)                                              \
	CUresult ts_hook_##symbol(CUstream stream, CUgraph *ret_graph)         \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol(stream, ret_graph);       \
		rc = ts_driver.fn_##symbol(stream, ret_graph);                 \
		if (rc == CUDA_SUCCESS && ret_graph)                           \
			ts_agent_graph_made(*ret_graph);                       \
		ts_agent_capture_ends(ts_key(stream, zero), rc);               \
		ts_leave();                                                    \
		return rc;                                                     \
	}

END_CAPTURE(cuStreamEndCapture, TS_STREAM_LEGACY)
END_CAPTURE(cuStreamEndCapture_ptsz, TS_STREAM_PER_THREAD)
