/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entry points of libcublasLt around the handle: life, version, statuses.
 */
#include <cublasLt.h>

#include "simblas.h"

#include <errno.h>

SG_BLAS_EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *lightHandle)
{
	struct sg_blas_handle *h;
	int err;

	if (!lightHandle)
		return CUBLAS_STATUS_INVALID_VALUE;
	err = sg_blas_handle_create(&h);
	if (err)
		return err == -ENOMEM ? CUBLAS_STATUS_ALLOC_FAILED
		                      : CUBLAS_STATUS_NOT_INITIALIZED;
	*lightHandle = (cublasLtHandle_t)h;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle)
{
	struct sg_blas_handle *h = sg_blas_handle(lightHandle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	sg_blas_handle_destroy(h);
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

SG_BLAS_EXPORT size_t cublasLtGetCudartVersion(void)
{
	return CUDA_VERSION;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtGetProperty(
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

SG_BLAS_EXPORT const char *cublasLtGetStatusName(cublasStatus_t status)
{
	return sg_blas_status_name(status);
}

SG_BLAS_EXPORT const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return sg_blas_status_string(status);
}
