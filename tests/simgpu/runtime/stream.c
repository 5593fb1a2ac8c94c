/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work and queries on streams that may be the default one: waits, callbacks,
 * events recorded, attributes, capture, graph launch, stream-ordered
 * allocation. Compiled twice, see rt.h.
 */
#include "rt.h"

cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamSynchronize(stream));
}

cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamQuery(stream));
}

cudaError_t CUDARTAPI cudaStreamWaitEvent(
        cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamWaitEvent(stream, event, flags));
}

cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t stream,
        cudaStreamCallback_t callback, void *user, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	/* The two callback types differ in the error's enumeration only. */
	return rt_done(drv()->StreamAddCallback(
	        stream, (CUstreamCallback)callback, user, flags));
}

cudaError_t CUDARTAPI cudaStreamAttachMemAsync(
        cudaStream_t stream, void *ptr, size_t bytes, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->StreamAttachMemAsync(stream, rt_dev(ptr), bytes, flags));
}

cudaError_t CUDARTAPI cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamGetPriority(stream, priority));
}

cudaError_t CUDARTAPI cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamGetFlags(stream, flags));
}

cudaError_t CUDARTAPI cudaStreamGetId(
        cudaStream_t stream, unsigned long long *id)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamGetId(stream, id));
}

cudaError_t CUDARTAPI cudaStreamGetDevice(cudaStream_t stream, int *device)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamGetDevice(stream, device));
}

cudaError_t CUDARTAPI cudaStreamCopyAttributes(
        cudaStream_t dst, cudaStream_t src)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamCopyAttributes(dst, src));
}

cudaError_t CUDARTAPI cudaStreamGetAttribute(
        cudaStream_t stream, cudaStreamAttrID attr, cudaStreamAttrValue *value)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamGetAttribute(
	        stream, (CUstreamAttrID)attr, (CUstreamAttrValue *)value));
}

cudaError_t CUDARTAPI cudaStreamSetAttribute(cudaStream_t stream,
        cudaStreamAttrID attr, const cudaStreamAttrValue *value)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamSetAttribute(stream, (CUstreamAttrID)attr,
	        (const CUstreamAttrValue *)value));
}

/* ------------------------------------------------------------------- events */

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->EventRecord(event, stream));
}

cudaError_t CUDARTAPI cudaEventRecordWithFlags(
        cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->EventRecordWithFlags(event, stream, flags));
}

/* ------------------------------------------------------ capture and graphs */

cudaError_t CUDARTAPI cudaStreamBeginCapture(
        cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->StreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

cudaError_t CUDARTAPI cudaStreamBeginCaptureToGraph(cudaStream_t stream,
        cudaGraph_t graph, const cudaGraphNode_t *dependencies,
        const cudaGraphEdgeData *edges, size_t count,
        enum cudaStreamCaptureMode mode)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamBeginCaptureToGraph(stream, graph,
	        dependencies, (const CUgraphEdgeData *)edges, count,
	        (CUstreamCaptureMode)mode));
}

cudaError_t CUDARTAPI cudaStreamEndCapture(
        cudaStream_t stream, cudaGraph_t *graph)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamEndCapture(stream, graph));
}

cudaError_t CUDARTAPI cudaStreamIsCapturing(
        cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamIsCapturing(
	        stream, (CUstreamCaptureStatus *)status));
}

cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t stream,
        enum cudaStreamCaptureStatus *status, unsigned long long *id,
        cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
        const cudaGraphEdgeData **edges, size_t *count)
{
	cuuint64_t driver_id = 0;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_done(drv()->StreamGetCaptureInfo(stream,
	        (CUstreamCaptureStatus *)status, id ? &driver_id : NULL, graph,
	        dependencies, (const CUgraphEdgeData **)edges, count));
	if (!err && id)
		*id = driver_id;
	return err;
}

cudaError_t CUDARTAPI cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
        cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
        size_t count, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamUpdateCaptureDependencies(stream,
	        dependencies, (const CUgraphEdgeData *)edges, count, flags));
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithParams(cudaGraphExec_t *exec,
        cudaGraph_t graph, cudaGraphInstantiateParams *params)
{
	_Static_assert(sizeof(cudaGraphInstantiateParams) ==
	                       sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS),
	        "instantiation parameters have one layout");
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphInstantiateWithParams(
	        exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params));
}

cudaError_t CUDARTAPI cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphUpload(exec, stream));
}

cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->GraphLaunch(exec, stream));
}

/* --------------------------------------------- stream-ordered allocation */

cudaError_t CUDARTAPI cudaMallocAsync(
        void **ptr, size_t bytes, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemAllocAsync((CUdeviceptr *)ptr, bytes, stream));
}

cudaError_t CUDARTAPI cudaMallocFromPoolAsync(
        void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemAllocFromPoolAsync(
	        (CUdeviceptr *)ptr, bytes, pool, stream));
}

cudaError_t CUDARTAPI cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemFreeAsync(rt_dev(ptr), stream));
}

cudaError_t CUDARTAPI cudaMemPrefetchAsync(const void *ptr, size_t bytes,
        struct cudaMemLocation location, unsigned flags, cudaStream_t stream)
{
	CUmemLocation driver_location = {
	        .type = (CUmemLocationType)location.type, .id = location.id};
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemPrefetchAsync(
	        rt_dev(ptr), bytes, driver_location, flags, stream));
}

/* ----------------------------------------------------- driver entry points */

/* Default: the stream this variant of the function is compiled for. */
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
enum { DEFAULT_STREAM_FLAG = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM };
#else
enum { DEFAULT_STREAM_FLAG = CU_GET_PROC_ADDRESS_LEGACY_STREAM };
#endif

cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char *symbol,
        void **function, unsigned version, unsigned long long flags,
        enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult driver_status;
	cuuint64_t driver_flags = flags;
	cudaError_t err = rt_enter_driver();
	CUresult res;

	if (err)
		return err;
	if (!symbol || !function)
		return rt_fail(cudaErrorInvalidValue);
	if (flags == cudaEnableDefault)
		driver_flags = DEFAULT_STREAM_FLAG;
	*function = NULL;
	res = rt_get_proc_address(symbol, function, (int)version, driver_flags,
	        status ? &driver_status : NULL);
	if (res == CUDA_SUCCESS && status)
		*status = (enum cudaDriverEntryPointQueryResult)driver_status;
	return rt_done(res);
}
