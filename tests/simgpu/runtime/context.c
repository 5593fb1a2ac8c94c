/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which context a call works in. The runtime uses whatever context is current
 * in the driver; where none is, it makes the primary context of the thread's
 * device current. Primary contexts are retained once a process, under
 * primary_lock, which is not held across the driver: two threads may both
 * retain, and the second one's reference is given back.
 */
#include "context.h"

#include <pthread.h>

#include "rt.h"

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by primary_lock. */
static CUcontext primary[RT_MAX_DEVICES];

static __thread int thread_device __attribute__((tls_model("initial-exec")));

cudaError_t rt_enter_driver(void)
{
	return rt_fail(rt_driver_init());
}

cudaError_t rt_primary(int device, CUcontext *ret_ctx)
{
	CUcontext ctx;
	CUresult res;
	bool extra;

	if (device < 0 || device >= RT_MAX_DEVICES)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&primary_lock);
	ctx = primary[device];
	pthread_mutex_unlock(&primary_lock);
	if (ctx) {
		*ret_ctx = ctx;
		return cudaSuccess;
	}
	res = drv()->DevicePrimaryCtxRetain(&ctx, device);
	if (res != CUDA_SUCCESS)
		return rt_error_from(res);
	pthread_mutex_lock(&primary_lock);
	extra = primary[device] != NULL;
	primary[device] = ctx;
	pthread_mutex_unlock(&primary_lock);
	if (extra)
		drv()->DevicePrimaryCtxRelease(device);
	*ret_ctx = ctx;
	return cudaSuccess;
}

cudaError_t rt_enter(void)
{
	CUcontext ctx;

	return rt_enter_context(&ctx);
}

cudaError_t rt_enter_context(CUcontext *ret_ctx)
{
	CUcontext ctx = NULL;
	cudaError_t err = rt_driver_init();
	CUresult res;

	if (err)
		return rt_fail(err);
	res = drv()->CtxGetCurrent(&ctx);
	if (res != CUDA_SUCCESS)
		return rt_done(res);
	if (!ctx) {
		err = rt_primary(thread_device, &ctx);
		if (err)
			return rt_fail(err);
		res = drv()->CtxSetCurrent(ctx);
		if (res != CUDA_SUCCESS)
			return rt_done(res);
	}
	*ret_ctx = ctx;
	return cudaSuccess;
}

cudaError_t rt_current_device(int *ret_device)
{
	CUdevice device;
	CUresult res = drv()->CtxGetDevice(&device);

	if (res == CUDA_ERROR_INVALID_CONTEXT)
		device = thread_device; /* none is current */
	else if (res != CUDA_SUCCESS)
		return rt_error_from(res);
	*ret_device = device;
	return cudaSuccess;
}

cudaError_t rt_set_device(int device)
{
	CUcontext ctx;
	cudaError_t err;
	int count;
	CUresult res = drv()->DeviceGetCount(&count);

	if (res != CUDA_SUCCESS)
		return rt_error_from(res);
	if (device < 0 || device >= count)
		return cudaErrorInvalidDevice;
	err = rt_primary(device, &ctx);
	if (err)
		return err;
	res = drv()->CtxSetCurrent(ctx);
	if (res != CUDA_SUCCESS)
		return rt_error_from(res);
	thread_device = device;
	return cudaSuccess;
}

cudaError_t rt_reset_device(int device)
{
	CUresult res;

	if (device < 0 || device >= RT_MAX_DEVICES)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&primary_lock);
	primary[device] = NULL;
	pthread_mutex_unlock(&primary_lock);
	rt_functions_forget();
	res = drv()->DevicePrimaryCtxReset(device);
	if (res != CUDA_SUCCESS)
		return rt_error_from(res);
	return rt_error_from(drv()->CtxSetCurrent(NULL));
}
