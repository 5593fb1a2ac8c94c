/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors: the driver's results as the runtime's codes, the last error of each
 * thread, names and texts.
 *
 * An ordinary error is kept per thread until cudaGetLastError takes it. A
 * sticky one (the context is lost) is kept for the process and every thread
 * sees it ever after, as documented: the process must be started again.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "rt.h"

static __thread cudaError_t last_error
        __attribute__((tls_model("initial-exec")));
static atomic_int sticky_error; /* synchronization: atomic */

/* Since CUDA 10.1 the two numberings agree where both have a code. */
#define SAME(driver, runtime)                                                  \
	_Static_assert((int)CUDA_ERROR_##driver == (int)cudaError##runtime,    \
	        "driver and runtime codes differ: " #driver)
SAME(INVALID_VALUE, InvalidValue);
SAME(OUT_OF_MEMORY, MemoryAllocation);
SAME(NOT_INITIALIZED, InitializationError);
SAME(DEINITIALIZED, CudartUnloading);
SAME(NO_DEVICE, NoDevice);
SAME(INVALID_DEVICE, InvalidDevice);
SAME(INVALID_IMAGE, InvalidKernelImage);
SAME(INVALID_CONTEXT, DeviceUninitialized);
SAME(NO_BINARY_FOR_GPU, NoKernelImageForDevice);
SAME(INVALID_HANDLE, InvalidResourceHandle);
SAME(NOT_FOUND, SymbolNotFound);
SAME(NOT_READY, NotReady);
SAME(ILLEGAL_ADDRESS, IllegalAddress);
SAME(LAUNCH_FAILED, LaunchFailure);
SAME(NOT_SUPPORTED, NotSupported);
SAME(STREAM_CAPTURE_UNSUPPORTED, StreamCaptureUnsupported);
SAME(INVALID_RESOURCE_CONFIGURATION, InvalidResourceConfiguration);
#undef SAME

struct text {
	cudaError_t code;
	const char *name, *text;
};

static const struct text texts[] = {
#define RT_ERROR(code, text) {code, #code, text},
#include "error.def"
#undef RT_ERROR
};

static const struct text *find(cudaError_t err)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].code == err)
			return &texts[i];
	return NULL;
}

static bool is_sticky(cudaError_t err)
{
	switch (err) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorTensorMemoryLeak:
		return true;
	default:
		return false;
	}
}

cudaError_t rt_error_from(CUresult res)
{
	if (res == CUDA_SUCCESS)
		return cudaSuccess;
	return find((cudaError_t)res) ? (cudaError_t)res : cudaErrorUnknown;
}

cudaError_t rt_fail(cudaError_t err)
{
	if (err == cudaSuccess)
		return err;
	last_error = err;
	if (is_sticky(err))
		atomic_store(&sticky_error, err);
	return err;
}

cudaError_t rt_done(CUresult res)
{
	if (res == CUDA_SUCCESS)
		return cudaSuccess;
	return rt_fail(rt_error_from(res));
}

cudaError_t rt_missing(const char *name, bool *said)
{
	if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
		fprintf(stderr, "simgpu: %s is not supported\n", name);
	return rt_fail(cudaErrorNotSupported);
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void)
{
	cudaError_t sticky = (cudaError_t)atomic_load(&sticky_error);

	return sticky != cudaSuccess ? sticky : last_error;
}

cudaError_t CUDARTAPI cudaGetLastError(void)
{
	cudaError_t err = cudaPeekAtLastError();

	last_error = cudaSuccess;
	return err;
}

const char *CUDARTAPI cudaGetErrorName(cudaError_t err)
{
	const struct text *text = find(err);

	return text ? text->name : "unrecognized error code";
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t err)
{
	const struct text *text = find(err);

	return text ? text->text : "unrecognized error code";
}
