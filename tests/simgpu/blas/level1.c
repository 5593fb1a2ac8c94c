/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Vector calls: dot products, norms, sums, axpy, scal, copy, swap. Each is one
 * launch; a result asked for on the host is made in the first bytes of the
 * workspace and copied out, and the call then waits, as documented. No state
 * of its own.
 */
#include "simblas.h"

#include <errno.h>

#define CUDA_PTR(p) ((uint64_t)(uintptr_t)(p))

#define THREADS       256u
#define VECTOR_BLOCKS 4096u /* grids stride over longer vectors */

static int vec_launch(struct sg_blas_handle *h,
        const struct sg_blas_context *context, enum sg_blas_kernel kernel,
        struct simblas_vec *p)
{
	uint64_t blocks = ((uint64_t)p->n + THREADS - 1) / THREADS;
	const unsigned grid[3] = {
	        blocks > VECTOR_BLOCKS ? VECTOR_BLOCKS : (unsigned)blocks, 1,
	        1};

	return sg_blas_launch(context, kernel, h->stream, grid, THREADS, p);
}

/* A reduction of an empty vector is 0, made without a kernel on the host. */
static int reduce_empty(
        struct sg_blas_handle *h, void *result, cudaDataType type)
{
	size_t i;

	if (h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
		return sg_blas_unsupported(
		        "cublas", "reduction of nothing in device memory");
	for (i = 0; i < simblas_type_bytes(type); i++)
		((char *)result)[i] = 0;
	return 0;
}

static int reduce(struct sg_blas_handle *h, enum sg_blas_kernel kernel,
        struct simblas_vec *p, void *result, cudaDataType result_type)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	const struct sg_blas_context *context;
	size_t bytes;
	CUresult status;
	int err;

	if (!result)
		return -EINVAL;
	if (p->n <= 0)
		return reduce_empty(h, result, result_type);
	err = sg_blas_enter(h, &context);
	if (err)
		return err;
	if (h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
		p->result = CUDA_PTR(result);
		return vec_launch(h, context, kernel, p);
	}
	sg_blas_handle_workspace(h, (CUdeviceptr *)&p->result, &bytes);
	if (bytes < simblas_type_bytes(result_type))
		return -ENOMEM;
	err = vec_launch(h, context, kernel, p);
	if (err)
		return err;
	status = driver->cuMemcpyDtoHAsync(
	        result, p->result, simblas_type_bytes(result_type), h->stream);
	if (status == CUDA_SUCCESS)
		status = driver->cuStreamSynchronize(h->stream);
	return sg_blas_errno(status);
}

static int dot(struct sg_blas_handle *h, int64_t n, const void *x, int64_t incx,
        const void *y, int64_t incy, cudaDataType type, bool conjugate,
        void *result)
{
	struct simblas_vec p = {
	        .x = CUDA_PTR(x),
	        .y = CUDA_PTR(y),
	        .n = n,
	        .incx = incx,
	        .incy = incy,
	        .type = type,
	        .conjugate = conjugate,
	};

	return reduce(h, SG_BLAS_K_simblas_dot, &p, result, type);
}

static int norm(struct sg_blas_handle *h, enum sg_blas_kernel kernel, int64_t n,
        const void *x, int64_t incx, cudaDataType type, void *result)
{
	struct simblas_vec p = {
	        .x = CUDA_PTR(x),
	        .n = n,
	        .incx = incx,
	        .type = type,
	};
	cudaDataType real = type;

	if (type == CUDA_C_32F)
		real = CUDA_R_32F;
	else if (type == CUDA_C_64F)
		real = CUDA_R_64F;
	return reduce(h, kernel, &p, result, real);
}

/* axpy, scal, copy and swap; alpha is NULL for the last two. */
static int update(struct sg_blas_handle *h, enum sg_blas_kernel kernel,
        int64_t n, const void *alpha, cudaDataType alpha_type, const void *x,
        int64_t incx, const void *y, int64_t incy, cudaDataType type)
{
	struct simblas_vec p = {
	        .x = CUDA_PTR(x),
	        .y = CUDA_PTR(y),
	        .n = n,
	        .incx = incx,
	        .incy = incy,
	        .type = type,
	};
	const struct sg_blas_context *context;
	int err = 0;

	if (n <= 0)
		return 0;
	if (alpha && h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
		p.alpha_ptr = CUDA_PTR(alpha);
	else if (alpha)
		err = sg_blas_read_scalar(
		        alpha, alpha_type, &p.alpha_re, &p.alpha_im);
	if (!err)
		err = sg_blas_enter(h, &context);
	if (err)
		return err;
	return vec_launch(h, context, kernel, &p);
}

SG_BLAS_EXPORT cublasStatus_t cublasDotEx(cublasHandle_t handle, int n,
        const void *x, cudaDataType xType, int incx, const void *y,
        cudaDataType yType, int incy, void *result, cudaDataType resultType,
        cudaDataType executionType)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (xType != yType || xType != resultType || !simblas_type_bytes(xType))
		return sg_blas_status(sg_blas_unsupported(
		        "cublas", "cublasDotEx with these types"));
	return sg_blas_status(
	        dot(h, n, x, incx, y, incy, xType, false, result));
}

#define DOT(name, element, type, conjugate)                                    \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle, int n,       \
	        const element *x, int incx, const element *y, int incy,        \
	        element *result)                                               \
	{                                                                      \
		struct sg_blas_handle *h = sg_blas_handle(handle);             \
                                                                               \
		if (!h)                                                        \
			return CUBLAS_STATUS_NOT_INITIALIZED;                  \
		return sg_blas_status(                                         \
		        dot(h, n, x, incx, y, incy, type, conjugate, result)); \
	}

DOT(cublasSdot_v2, float, CUDA_R_32F, false)
DOT(cublasDdot_v2, double, CUDA_R_64F, false)
DOT(cublasCdotu_v2, cuComplex, CUDA_C_32F, false)
DOT(cublasCdotc_v2, cuComplex, CUDA_C_32F, true)
DOT(cublasZdotu_v2, cuDoubleComplex, CUDA_C_64F, false)
DOT(cublasZdotc_v2, cuDoubleComplex, CUDA_C_64F, true)

#define NORM(name, kernel, element, real, type)                                \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle, int n,       \
	        const element *x, int incx, real *result)                      \
	{                                                                      \
		struct sg_blas_handle *h = sg_blas_handle(handle);             \
                                                                               \
		if (!h)                                                        \
			return CUBLAS_STATUS_NOT_INITIALIZED;                  \
		return sg_blas_status(                                         \
		        norm(h, kernel, n, x, incx, type, result));            \
	}

NORM(cublasSnrm2_v2, SG_BLAS_K_simblas_nrm2, float, float, CUDA_R_32F)
NORM(cublasDnrm2_v2, SG_BLAS_K_simblas_nrm2, double, double, CUDA_R_64F)
NORM(cublasScnrm2_v2, SG_BLAS_K_simblas_nrm2, cuComplex, float, CUDA_C_32F)
NORM(cublasDznrm2_v2, SG_BLAS_K_simblas_nrm2, cuDoubleComplex, double,
        CUDA_C_64F)
NORM(cublasSasum_v2, SG_BLAS_K_simblas_asum, float, float, CUDA_R_32F)
NORM(cublasDasum_v2, SG_BLAS_K_simblas_asum, double, double, CUDA_R_64F)
NORM(cublasScasum_v2, SG_BLAS_K_simblas_asum, cuComplex, float, CUDA_C_32F)
NORM(cublasDzasum_v2, SG_BLAS_K_simblas_asum, cuDoubleComplex, double,
        CUDA_C_64F)

#define AXPY(name, element, type)                                              \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle, int n,       \
	        const element *alpha, const element *x, int incx, element *y,  \
	        int incy)                                                      \
	{                                                                      \
		struct sg_blas_handle *h = sg_blas_handle(handle);             \
                                                                               \
		if (!h)                                                        \
			return CUBLAS_STATUS_NOT_INITIALIZED;                  \
		if (!alpha)                                                    \
			return CUBLAS_STATUS_INVALID_VALUE;                    \
		return sg_blas_status(update(h, SG_BLAS_K_simblas_axpy, n,     \
		        alpha, type, x, incx, y, incy, type));                 \
	}

AXPY(cublasSaxpy_v2, float, CUDA_R_32F)
AXPY(cublasDaxpy_v2, double, CUDA_R_64F)
AXPY(cublasCaxpy_v2, cuComplex, CUDA_C_32F)
AXPY(cublasZaxpy_v2, cuDoubleComplex, CUDA_C_64F)

#define SCAL(name, scalar, scalar_type, element, type)                         \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle, int n,       \
	        const scalar *alpha, element *x, int incx)                     \
	{                                                                      \
		struct sg_blas_handle *h = sg_blas_handle(handle);             \
                                                                               \
		if (!h)                                                        \
			return CUBLAS_STATUS_NOT_INITIALIZED;                  \
		if (!alpha)                                                    \
			return CUBLAS_STATUS_INVALID_VALUE;                    \
		return sg_blas_status(update(h, SG_BLAS_K_simblas_scal, n,     \
		        alpha, scalar_type, x, incx, NULL, 0, type));          \
	}

SCAL(cublasSscal_v2, float, CUDA_R_32F, float, CUDA_R_32F)
SCAL(cublasDscal_v2, double, CUDA_R_64F, double, CUDA_R_64F)
SCAL(cublasCscal_v2, cuComplex, CUDA_C_32F, cuComplex, CUDA_C_32F)
SCAL(cublasZscal_v2, cuDoubleComplex, CUDA_C_64F, cuDoubleComplex, CUDA_C_64F)
SCAL(cublasCsscal_v2, float, CUDA_R_32F, cuComplex, CUDA_C_32F)
SCAL(cublasZdscal_v2, double, CUDA_R_64F, cuDoubleComplex, CUDA_C_64F)

#define MOVE(name, kernel, source, element, type)                              \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle, int n,       \
	        source *x, int incx, element *y, int incy)                     \
	{                                                                      \
		struct sg_blas_handle *h = sg_blas_handle(handle);             \
                                                                               \
		if (!h)                                                        \
			return CUBLAS_STATUS_NOT_INITIALIZED;                  \
		return sg_blas_status(update(                                  \
		        h, kernel, n, NULL, type, x, incx, y, incy, type));    \
	}

MOVE(cublasScopy_v2, SG_BLAS_K_simblas_copy, const float, float, CUDA_R_32F)
MOVE(cublasDcopy_v2, SG_BLAS_K_simblas_copy, const double, double, CUDA_R_64F)
MOVE(cublasCcopy_v2, SG_BLAS_K_simblas_copy, const cuComplex, cuComplex,
        CUDA_C_32F)
MOVE(cublasZcopy_v2, SG_BLAS_K_simblas_copy, const cuDoubleComplex,
        cuDoubleComplex, CUDA_C_64F)
MOVE(cublasSswap_v2, SG_BLAS_K_simblas_swap, float, float, CUDA_R_32F)
MOVE(cublasDswap_v2, SG_BLAS_K_simblas_swap, double, double, CUDA_R_64F)
MOVE(cublasCswap_v2, SG_BLAS_K_simblas_swap, cuComplex, cuComplex, CUDA_C_32F)
MOVE(cublasZswap_v2, SG_BLAS_K_simblas_swap, cuDoubleComplex, cuDoubleComplex,
        CUDA_C_64F)
