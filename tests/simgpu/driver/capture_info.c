/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a capturing stream tells and is told by the program, in all the forms
 * the API has had. Guarded by the lock.
 */
#include "tests/simgpu/driver/capture.h"
#include "tests/simgpu/driver/sg.h"

#include <string.h>

static CUresult is_capturing(
        CUstream stream, bool per_thread, CUstreamCaptureStatus *status)
{
	struct sg_capture_info info;
	CUresult r;

	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_capture_info(stream, per_thread, &info);
	if (!r)
		*status = info.status;
	return r;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	SG_API(cuStreamIsCapturing, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return is_capturing(stream, false, status);
}

CUresult cuStreamIsCapturing_ptsz(
        CUstream stream, CUstreamCaptureStatus *status)
{
	SG_API(cuStreamIsCapturing_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return is_capturing(stream, true, status);
}

/* No edge carries data here: an array of zeros that lasts. */
static const CUgraphEdgeData *no_edge_data(size_t count)
{
	static CUgraphEdgeData *zeros;
	static size_t room;

	if (count > room) {
		zeros = sg_xrealloc(zeros, count * sizeof(*zeros));
		memset(zeros, 0, count * sizeof(*zeros));
		room = count;
	}
	return zeros;
}

static CUresult get_info(CUstream stream, bool per_thread,
        CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
        const CUgraphNode **deps, const CUgraphEdgeData **data, size_t *n_deps)
{
	struct sg_capture_info info;
	CUresult r;

	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_capture_info(stream, per_thread, &info);
	if (r)
		return r;
	*status = info.status;
	if (info.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (id)
		*id = info.id;
	if (graph)
		*graph = info.graph;
	if (deps)
		*deps = info.deps;
	if (data)
		*data = no_edge_data(info.n_deps);
	if (n_deps)
		*n_deps = info.n_deps;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(
        CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	SG_API(cuStreamGetCaptureInfo, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_info(stream, false, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_ptsz(
        CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	SG_API(cuStreamGetCaptureInfo_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_info(stream, true, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream,
        CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
        const CUgraphNode **deps, size_t *n_deps)
{
	SG_API(cuStreamGetCaptureInfo_v2, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_info(stream, false, status, id, graph, deps, NULL, n_deps);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream,
        CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
        const CUgraphNode **deps, size_t *n_deps)
{
	SG_API(cuStreamGetCaptureInfo_v2_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_info(stream, true, status, id, graph, deps, NULL, n_deps);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream,
        CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
        const CUgraphNode **deps, const CUgraphEdgeData **data, size_t *n_deps)
{
	SG_API(cuStreamGetCaptureInfo_v3, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_info(stream, false, status, id, graph, deps, data, n_deps);
}

CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream,
        CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
        const CUgraphNode **deps, const CUgraphEdgeData **data, size_t *n_deps)
{
	SG_API(cuStreamGetCaptureInfo_v3_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_info(stream, true, status, id, graph, deps, data, n_deps);
}

CUresult cuStreamUpdateCaptureDependencies(
        CUstream stream, CUgraphNode *deps, size_t n_deps, unsigned flags)
{
	SG_API(cuStreamUpdateCaptureDependencies, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return sg_capture_set_deps(stream, false, deps, n_deps, flags);
}

CUresult cuStreamUpdateCaptureDependencies_ptsz(
        CUstream stream, CUgraphNode *deps, size_t n_deps, unsigned flags)
{
	SG_API(cuStreamUpdateCaptureDependencies_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return sg_capture_set_deps(stream, true, deps, n_deps, flags);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream,
        CUgraphNode *deps, const CUgraphEdgeData *data, size_t n_deps,
        unsigned flags)
{
	SG_API(cuStreamUpdateCaptureDependencies_v2, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return sg_capture_set_deps(stream, false, deps, n_deps, flags);
}

CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream,
        CUgraphNode *deps, const CUgraphEdgeData *data, size_t n_deps,
        unsigned flags)
{
	SG_API(cuStreamUpdateCaptureDependencies_v2_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return sg_capture_set_deps(stream, true, deps, n_deps, flags);
}
