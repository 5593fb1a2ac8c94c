/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recording driver; see blas_recorder.h. Owns the record. One thread, no
 * lock.
 */
#include "blas_recorder.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Any address will do: nothing is read or written there. */
#define CONTEXT   ((CUcontext)(uintptr_t)0x1000)
#define ALLOCATED ((CUdeviceptr)0x7f0000000000)

EXPORT struct recorder recorder = {.sm_count = 108, .compute_major = 8};

static const char *ptx;

/* A kernel is where its parameter list begins in the PTX text. */
static char *entry_find(const char *name)
{
	char pattern[80];
	char *at;

	snprintf(pattern, sizeof(pattern), ".entry %s(", name);
	at = strstr(ptx, pattern);
	return at ? at + strlen(pattern) : NULL;
}

/* Whether this call is the one that shall fail. Cleaning up never does. */
static bool call_fails(void)
{
	return recorder.fail_after && !--recorder.fail_after;
}

/* Whether a call that is no work of a stream is out of place now. */
static bool ends_capture(void)
{
	return recorder.capturing &&
	       recorder.capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
}

static CUresult rec_init(unsigned flags)
{
	return CUDA_SUCCESS;
}

static CUcontext current;

static CUresult rec_get_current(CUcontext *context)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	*context = current;
	return CUDA_SUCCESS;
}

static CUresult rec_set_current(CUcontext context)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	current = context;
	return CUDA_SUCCESS;
}

static CUresult rec_get_device(CUdevice *device)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	*device = 0;
	return CUDA_SUCCESS;
}

static CUresult rec_get_id(CUcontext context, unsigned long long *id)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	*id = 1;
	return CUDA_SUCCESS;
}

static CUresult rec_attribute(
        int *value, CUdevice_attribute attribute, CUdevice device)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*value = recorder.sm_count;
	else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
		*value = recorder.compute_major;
	else
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

static CUresult rec_retain(CUcontext *context, CUdevice device)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	*context = CONTEXT;
	return CUDA_SUCCESS;
}

static CUresult rec_module(CUmodule *module, const void *image)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	if (ends_capture())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	recorder.module_count++;
	ptx = image;
	*module = (CUmodule)(uintptr_t)image;
	return CUDA_SUCCESS;
}

static CUresult rec_function(
        CUfunction *function, CUmodule module, const char *name)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	*function = (CUfunction)(void *)entry_find(name);
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult rec_unload(CUmodule module)
{
	recorder.unload_count++;
	return CUDA_SUCCESS;
}

static void kernel_name(const char *params, char *out, size_t out_bytes)
{
	const char *end = params - 1;
	const char *start = end;

	while (start[-1] != ' ')
		start--;
	snprintf(out, out_bytes, "%.*s", (int)(end - start), start);
}

static CUresult rec_launch(CUfunction function, unsigned grid_x,
        unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
        unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
        void **extra)
{
	const char *at = (const char *)function;
	const char *end = strchr(at, ')');
	struct recorder_launch *launch;
	size_t bytes = 0;

	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	if (recorder.launch_count == RECORDER_LAUNCHES || !params || extra)
		return CUDA_ERROR_INVALID_VALUE;
	launch = &recorder.launches[recorder.launch_count++];
	kernel_name(at, launch->kernel, sizeof(launch->kernel));
	launch->grid[0] = grid_x;
	launch->grid[1] = grid_y;
	launch->grid[2] = grid_z;
	launch->threads = block_x * block_y * block_z;
	launch->stream = stream;
	while ((at = strstr(at, ".param .")) && at < end) {
		size_t size = atoi(at + 9) == 32 ? 4 : 8;

		bytes = (bytes + size - 1) / size * size;
		memcpy(launch->params + bytes, *params++, size);
		bytes += size;
		at += 9;
	}
	launch->params_bytes = bytes;
	return CUDA_SUCCESS;
}

static CUresult rec_alloc(CUdeviceptr *at, size_t bytes)
{
	if (ends_capture())
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (recorder.no_memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	recorder.alloc_count++;
	recorder.alloc_bytes = bytes;
	*at = ALLOCATED;
	return CUDA_SUCCESS;
}

static CUresult rec_free(CUdeviceptr at)
{
	recorder.free_count++;
	return at == ALLOCATED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult rec_to_host(
        void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	recorder.copies_to_host++;
	memset(to, 0, bytes);
	return CUDA_SUCCESS;
}

static CUresult rec_synchronize(CUstream stream)
{
	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	recorder.synchronizations++;
	return CUDA_SUCCESS;
}

/* What the same table has for others than cuBLAS. */
static CUresult rec_unused(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult rec_capture_mode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = recorder.capture_mode;

	if (call_fails())
		return CUDA_ERROR_UNKNOWN;
	recorder.capture_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

static const struct {
	const char *name;
	void *function;
} functions[] = {
        {"cuInit", (void *)rec_init},
        {"cuCtxGetCurrent", (void *)rec_get_current},
        {"cuCtxSetCurrent", (void *)rec_set_current},
        {"cuCtxGetDevice", (void *)rec_get_device},
        {"cuCtxGetId", (void *)rec_get_id},
        {"cuDeviceGetAttribute", (void *)rec_attribute},
        {"cuDevicePrimaryCtxRetain", (void *)rec_retain},
        {"cuModuleLoadData", (void *)rec_module},
        {"cuModuleGetFunction", (void *)rec_function},
        {"cuModuleUnload", (void *)rec_unload},
        {"cuLaunchKernel", (void *)rec_launch},
        {"cuMemAlloc", (void *)rec_alloc},
        {"cuMemFree", (void *)rec_free},
        {"cuMemcpyDtoHAsync", (void *)rec_to_host},
        {"cuEventCreate", (void *)rec_unused},
        {"cuEventDestroy", (void *)rec_unused},
        {"cuEventRecord", (void *)rec_unused},
        {"cuStreamIsCapturing", (void *)rec_unused},
        {"cuStreamWaitEvent", (void *)rec_unused},
        {"cuStreamSynchronize", (void *)rec_synchronize},
        {"cuThreadExchangeStreamCaptureMode", (void *)rec_capture_mode},
};

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function,
        int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	size_t i;

	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, symbol))
			continue;
		*function = functions[i].function;
		if (status)
			*status = CU_GET_PROC_ADDRESS_SUCCESS;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}
