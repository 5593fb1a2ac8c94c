/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/ops.h"

#include <errno.h>

int ts_gpu_errno(CUresult result)
{
	switch (result) {
	case CUDA_SUCCESS:
		return 0;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case CUDA_ERROR_INVALID_VALUE:
		return -EINVAL;
	case CUDA_ERROR_NOT_SUPPORTED:
		return -ENOSYS;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_DEINITIALIZED:
	case CUDA_ERROR_INVALID_CONTEXT:
		return -ENODEV;
	default:
		return -EIO;
	}
}

static __thread struct {
	const char *call;
	CUresult result;
} failed __attribute__((tls_model("initial-exec")));

CUresult ts_gpu_said(const char *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		return result;
	failed.call = call;
	failed.result = result;
	return result;
}

CUresult ts_gpu_said_last(void)
{
	return failed.result;
}

const char *ts_gpu_call_that_said(CUresult result)
{
	return failed.result == result ? failed.call : NULL;
}
