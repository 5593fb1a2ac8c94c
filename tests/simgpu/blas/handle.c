/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Life of a handle and its workspace. A handle belongs to one thread at a time
 * and has no lock.
 */
#include "simblas.h"

#include <errno.h>
#include <stdlib.h>

struct sg_blas_handle *sg_blas_handle(const void *handle)
{
	struct sg_blas_handle *h = (struct sg_blas_handle *)handle;

	return h && h->magic == SG_BLAS_MAGIC ? h : NULL;
}

/* The current context, or the primary one of device 0 made current. */
static int context_get(const struct sg_blas_driver *driver, CUcontext *ret)
{
	CUcontext context = NULL;
	CUresult result;

	result = driver->cuCtxGetCurrent(&context);
	if (result == CUDA_SUCCESS && !context) {
		result = driver->cuDevicePrimaryCtxRetain(&context, 0);
		if (result == CUDA_SUCCESS)
			result = driver->cuCtxSetCurrent(context);
	}
	if (result != CUDA_SUCCESS)
		return sg_blas_errno(result);
	*ret = context;
	return 0;
}

int sg_blas_handle_create(struct sg_blas_handle **ret_handle)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	struct sg_blas_handle *h;
	int err;

	if (!driver)
		return -ENODEV;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	err = context_get(driver, &h->context);
	if (err) {
		free(h);
		return err;
	}
	h->magic = SG_BLAS_MAGIC;
	h->pointer_mode = CUBLAS_POINTER_MODE_HOST;
	h->math_mode = CUBLAS_DEFAULT_MATH;
	h->atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
	*ret_handle = h;
	return 0;
}

void sg_blas_handle_destroy(struct sg_blas_handle *handle)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	const struct sg_blas_context *context;

	if (!handle)
		return;
	if (handle->own_workspace && driver) {
		/* Whatever comes of it, the memory is not to stay behind. */
		sg_blas_enter(handle, &context);
		driver->cuMemFree(handle->own_workspace);
	}
	handle->magic = 0;
	free(handle);
}

/* Size of a handle's own workspace on the current device. */
static size_t own_bytes(const struct sg_blas_driver *driver)
{
	CUdevice device;
	int major = 0;

	if (driver->cuCtxGetDevice(&device) == CUDA_SUCCESS)
		driver->cuDeviceGetAttribute(&major,
		        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	return major >= 9 ? SG_BLAS_WORKSPACE_HOPPER_BYTES
	                  : SG_BLAS_WORKSPACE_BYTES;
}

/*
 * Allocation is no work of a stream, yet it would end a capture under way on
 * any stream unless the thread is in relaxed mode.
 */
static void own_allocate(
        const struct sg_blas_driver *driver, struct sg_blas_handle *handle)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	size_t bytes = own_bytes(driver);
	CUdeviceptr at;

	if (driver->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
		return;
	if (driver->cuMemAlloc(&at, bytes) == CUDA_SUCCESS) {
		handle->own_workspace = at;
		handle->own_workspace_bytes = bytes;
	}
	driver->cuThreadExchangeStreamCaptureMode(&mode);
}

void sg_blas_handle_workspace(
        struct sg_blas_handle *handle, CUdeviceptr *ret_at, size_t *ret_bytes)
{
	const struct sg_blas_driver *driver = sg_blas_driver();

	if (handle->workspace_lent) {
		*ret_at = handle->workspace;
		*ret_bytes = handle->workspace_bytes;
		return;
	}
	if (!handle->own_workspace && driver)
		own_allocate(driver, handle);
	*ret_at = handle->own_workspace;
	*ret_bytes = handle->own_workspace_bytes;
}
