/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entry points of libcublas around the handle: life, version, stream,
 * workspace and modes. A handle belongs to one thread at a time.
 */
#include "simblas.h"

#include <errno.h>

SG_BLAS_EXPORT cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	struct sg_blas_handle *h;
	int err;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	err = sg_blas_handle_create(&h);
	if (err)
		return err == -ENOMEM ? CUBLAS_STATUS_ALLOC_FAILED
		                      : CUBLAS_STATUS_NOT_INITIALIZED;
	*handle = (cublasHandle_t)h;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	sg_blas_handle_destroy(h);
	return CUBLAS_STATUS_SUCCESS;
}

/* A handle is optional here: the real library answers without one, too. */
SG_BLAS_EXPORT cublasStatus_t cublasGetVersion_v2(
        cublasHandle_t handle, int *version)
{
	if (!version)
		return CUBLAS_STATUS_INVALID_VALUE;
	*version = CUBLAS_VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasGetProperty(
        libraryPropertyType type, int *value)
{
	if (!value)
		return CUBLAS_STATUS_INVALID_VALUE;
	switch (type) {
	case MAJOR_VERSION:
		*value = CUBLAS_VER_MAJOR;
		return CUBLAS_STATUS_SUCCESS;
	case MINOR_VERSION:
		*value = CUBLAS_VER_MINOR;
		return CUBLAS_STATUS_SUCCESS;
	case PATCH_LEVEL:
		*value = CUBLAS_VER_PATCH;
		return CUBLAS_STATUS_SUCCESS;
	}
	return CUBLAS_STATUS_INVALID_VALUE;
}

SG_BLAS_EXPORT size_t cublasGetCudartVersion(void)
{
	return CUDA_VERSION;
}

SG_BLAS_EXPORT const char *cublasGetStatusName(cublasStatus_t status)
{
	return sg_blas_status_name(status);
}

SG_BLAS_EXPORT const char *cublasGetStatusString(cublasStatus_t status)
{
	return sg_blas_status_string(status);
}

/* As documented, a new stream takes the lent workspace away. */
SG_BLAS_EXPORT cublasStatus_t cublasSetStream_v2(
        cublasHandle_t handle, cudaStream_t streamId)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	h->stream = (CUstream)streamId;
	h->workspace_lent = false;
	h->workspace = 0;
	h->workspace_bytes = 0;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasGetStream_v2(
        cublasHandle_t handle, cudaStream_t *streamId)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!streamId)
		return CUBLAS_STATUS_INVALID_VALUE;
	*streamId = (cudaStream_t)h->stream;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasSetWorkspace_v2(
        cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	/* 256 bytes of alignment are documented as required. */
	if ((uintptr_t)workspace % 256 || (!workspace && workspaceSizeInBytes))
		return CUBLAS_STATUS_INVALID_VALUE;
	h->workspace_lent = true;
	h->workspace = (CUdeviceptr)(uintptr_t)workspace;
	h->workspace_bytes = workspaceSizeInBytes;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasSetPointerMode_v2(
        cublasHandle_t handle, cublasPointerMode_t mode)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (mode != CUBLAS_POINTER_MODE_HOST &&
	        mode != CUBLAS_POINTER_MODE_DEVICE)
		return CUBLAS_STATUS_INVALID_VALUE;
	h->pointer_mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasGetPointerMode_v2(
        cublasHandle_t handle, cublasPointerMode_t *mode)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = h->pointer_mode;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasSetAtomicsMode(
        cublasHandle_t handle, cublasAtomicsMode_t mode)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (mode != CUBLAS_ATOMICS_NOT_ALLOWED &&
	        mode != CUBLAS_ATOMICS_ALLOWED)
		return CUBLAS_STATUS_INVALID_VALUE;
	h->atomics_mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasGetAtomicsMode(
        cublasHandle_t handle, cublasAtomicsMode_t *mode)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = h->atomics_mode;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasSetMathMode(
        cublasHandle_t handle, cublasMath_t mode)
{
	const int flags = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
	struct sg_blas_handle *h = sg_blas_handle(handle);
	int base = (int)mode & ~flags;

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (base < 0 || base > CUBLAS_TF32_TENSOR_OP_MATH) {
		sg_blas_unsupported("cublas", "this math mode");
		return CUBLAS_STATUS_NOT_SUPPORTED;
	}
	h->math_mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasGetMathMode(
        cublasHandle_t handle, cublasMath_t *mode)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = h->math_mode;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasSetSmCountTarget(
        cublasHandle_t handle, int smCountTarget)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);
	const struct sg_blas_context *context;
	int err;

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	err = sg_blas_enter(h, &context);
	if (err)
		return sg_blas_status(err);
	if (smCountTarget < 0 || smCountTarget > context->sm_count)
		return CUBLAS_STATUS_INVALID_VALUE;
	h->sm_count_target = smCountTarget;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasGetSmCountTarget(
        cublasHandle_t handle, int *smCountTarget)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!smCountTarget)
		return CUBLAS_STATUS_INVALID_VALUE;
	*smCountTarget = h->sm_count_target;
	return CUBLAS_STATUS_SUCCESS;
}
