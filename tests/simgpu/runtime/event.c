/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams and events as objects: those calls that have no per-thread form. */
#include <cuda_profiler_api.h>

#include "rt.h"

cudaError_t CUDARTAPI cudaStreamCreateWithPriority(
        cudaStream_t *stream, unsigned flags, int priority)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->StreamCreateWithPriority(stream, flags, priority));
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(
        cudaStream_t *stream, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamCreate(stream, flags));
}

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->StreamDestroy(stream));
}

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(
        enum cudaStreamCaptureMode *mode)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->ThreadExchangeStreamCaptureMode(
	        (CUstreamCaptureMode *)mode));
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(
        cudaEvent_t *event, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->EventCreate(event, flags));
}

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->EventDestroy(event));
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->EventQuery(event));
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->EventSynchronize(event));
}

cudaError_t CUDARTAPI cudaEventElapsedTime(
        float *ms, cudaEvent_t start, cudaEvent_t end)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->EventElapsedTime(ms, start, end));
}

cudaError_t CUDARTAPI cudaProfilerStart(void)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->ProfilerStart());
}

cudaError_t CUDARTAPI cudaProfilerStop(void)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->ProfilerStop());
}
