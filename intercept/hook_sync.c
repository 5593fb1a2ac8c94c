/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of waiting, of capture, and of what ends streams and contexts. */
#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

CUresult ts_hook_cuCtxSynchronize(void)
{
	struct ts_sync sync;
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxSynchronize();
	ts_agent_sync_begin(&sync);
	rc = ts_driver.fn_cuCtxSynchronize();
	if (rc == CUDA_SUCCESS)
		ts_agent_sync_end(0, &sync);
	ts_leave();
	return rc;
}

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

CUresult ts_hook_cuStreamSynchronize(CUstream stream)
{
	struct ts_sync sync;
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamSynchronize(stream);
	ts_agent_sync_begin(&sync);
	rc = ts_driver.fn_cuStreamSynchronize(stream);
	if (rc == CUDA_SUCCESS)
		ts_agent_sync_end(ts_key(stream, TS_STREAM_LEGACY), &sync);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamSynchronize_ptsz(CUstream stream)
{
	struct ts_sync sync;
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamSynchronize_ptsz(stream);
	ts_agent_sync_begin(&sync);
	rc = ts_driver.fn_cuStreamSynchronize_ptsz(stream);
	if (rc == CUDA_SUCCESS)
		ts_agent_sync_end(ts_key(stream, TS_STREAM_PER_THREAD), &sync);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamDestroy(CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamDestroy(stream);
	ts_agent_stream_destroyed((ts_stream_key)(uintptr_t)stream);
	rc = ts_driver.fn_cuStreamDestroy(stream);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamDestroy_v2(CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamDestroy_v2(stream);
	ts_agent_stream_destroyed((ts_stream_key)(uintptr_t)stream);
	rc = ts_driver.fn_cuStreamDestroy_v2(stream);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuCtxDestroy(CUcontext ctx)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxDestroy(ctx);
	ts_agent_context_gone(ctx);
	rc = ts_driver.fn_cuCtxDestroy(ctx);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxDestroy_v2(ctx);
	ts_agent_context_gone(ctx);
	rc = ts_driver.fn_cuCtxDestroy_v2(ctx);
	ts_leave();
	return rc;
}

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
	ts_leave();
	return rc;
}

CUresult ts_hook_cuDevicePrimaryCtxReset(CUdevice dev)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuDevicePrimaryCtxReset(dev);
	ts_agent_primary_release(dev);
	rc = ts_driver.fn_cuDevicePrimaryCtxReset(dev);
	if (rc == CUDA_SUCCESS)
		ts_agent_primary_gone(dev);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuDevicePrimaryCtxReset_v2(dev);
	ts_agent_primary_release(dev);
	rc = ts_driver.fn_cuDevicePrimaryCtxReset_v2(dev);
	if (rc == CUDA_SUCCESS)
		ts_agent_primary_gone(dev);
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

CUresult ts_hook_cuDevicePrimaryCtxRelease(CUdevice dev)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuDevicePrimaryCtxRelease(dev);
	ts_agent_primary_release(dev);
	rc = ts_driver.fn_cuDevicePrimaryCtxRelease(dev);
	if (rc == CUDA_SUCCESS)
		after_release(dev);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuDevicePrimaryCtxRelease_v2(dev);
	ts_agent_primary_release(dev);
	rc = ts_driver.fn_cuDevicePrimaryCtxRelease_v2(dev);
	if (rc == CUDA_SUCCESS)
		after_release(dev);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBeginCapture(CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBeginCapture(stream);
	rc = ts_driver.fn_cuStreamBeginCapture(stream);
	if (rc == CUDA_SUCCESS)
		ts_agent_capture_begins(ts_key(stream, TS_STREAM_LEGACY));
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBeginCapture_ptsz(CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBeginCapture_ptsz(stream);
	rc = ts_driver.fn_cuStreamBeginCapture_ptsz(stream);
	if (rc == CUDA_SUCCESS)
		ts_agent_capture_begins(ts_key(stream, TS_STREAM_PER_THREAD));
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBeginCapture_v2(
        CUstream stream, CUstreamCaptureMode mode)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBeginCapture_v2(stream, mode);
	rc = ts_driver.fn_cuStreamBeginCapture_v2(stream, mode);
	if (rc == CUDA_SUCCESS)
		ts_agent_capture_begins(ts_key(stream, TS_STREAM_LEGACY));
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBeginCapture_v2_ptsz(
        CUstream stream, CUstreamCaptureMode mode)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBeginCapture_v2_ptsz(stream, mode);
	rc = ts_driver.fn_cuStreamBeginCapture_v2_ptsz(stream, mode);
	if (rc == CUDA_SUCCESS)
		ts_agent_capture_begins(ts_key(stream, TS_STREAM_PER_THREAD));
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
        const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
        size_t dependency_count, CUstreamCaptureMode mode)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBeginCaptureToGraph(stream, graph,
		        dependencies, edges, dependency_count, mode);
	rc = ts_driver.fn_cuStreamBeginCaptureToGraph(
	        stream, graph, dependencies, edges, dependency_count, mode);
	if (rc == CUDA_SUCCESS)
		ts_agent_capture_begins(ts_key(stream, TS_STREAM_LEGACY));
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBeginCaptureToGraph_ptsz(CUstream stream,
        CUgraph graph, const CUgraphNode *dependencies,
        const CUgraphEdgeData *edges, size_t dependency_count,
        CUstreamCaptureMode mode)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBeginCaptureToGraph_ptsz(stream,
		        graph, dependencies, edges, dependency_count, mode);
	rc = ts_driver.fn_cuStreamBeginCaptureToGraph_ptsz(
	        stream, graph, dependencies, edges, dependency_count, mode);
	if (rc == CUDA_SUCCESS)
		ts_agent_capture_begins(ts_key(stream, TS_STREAM_PER_THREAD));
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamEndCapture(CUstream stream, CUgraph *ret_graph)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamEndCapture(stream, ret_graph);
	rc = ts_driver.fn_cuStreamEndCapture(stream, ret_graph);
	ts_agent_capture_ends(ts_key(stream, TS_STREAM_LEGACY), rc);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *ret_graph)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamEndCapture_ptsz(stream, ret_graph);
	rc = ts_driver.fn_cuStreamEndCapture_ptsz(stream, ret_graph);
	ts_agent_capture_ends(ts_key(stream, TS_STREAM_PER_THREAD), rc);
	ts_leave();
	return rc;
}
