/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Matrix by vector: gemv of the four classic types, one launch each. No state
 * of its own.
 */
#include "simblas.h"

#include <errno.h>

#define CUDA_PTR(p) ((uint64_t)(uintptr_t)(p))

#define THREADS 128u

static int gemv(struct sg_blas_handle *h, enum sg_blas_kernel kernel,
        struct simblas_gemv *p, const void *alpha, const void *beta)
{
	const unsigned rows = p->trans ? p->n : p->m;
	const unsigned grid[3] = {(rows + THREADS - 1) / THREADS, 1, 1};
	const struct sg_blas_context *context;
	int err = 0;

	if (p->trans > CUBLAS_OP_C || p->m > INT32_MAX || p->n > INT32_MAX ||
	        p->lda < (p->m ? p->m : 1) || !p->incx || !p->incy)
		return -EINVAL;
	if (!p->m || !p->n)
		return 0;
	if (!alpha || !beta)
		return -EINVAL;
	if (h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
		p->alpha_ptr = CUDA_PTR(alpha);
		p->beta_ptr = CUDA_PTR(beta);
	} else {
		err = sg_blas_read_scalar(alpha, (cudaDataType)p->type,
		        &p->alpha_re, &p->alpha_im);
		if (!err)
			err = sg_blas_read_scalar(beta, (cudaDataType)p->type,
			        &p->beta_re, &p->beta_im);
	}
	if (!err)
		err = sg_blas_enter(h, &context);
	if (err)
		return err;
	return sg_blas_launch(context, kernel, h->stream, grid, THREADS, p);
}

#define GEMV(name, kernel, element, data_type)                                 \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle,              \
	        cublasOperation_t trans, int m, int n, const element *alpha,   \
	        const element *A, int lda, const element *x, int incx,         \
	        const element *beta, element *y, int incy)                     \
	{                                                                      \
		struct sg_blas_handle *h = sg_blas_handle(handle);             \
		struct simblas_gemv p = {                                      \
		        .a = CUDA_PTR(A),                                      \
		        .x = CUDA_PTR(x),                                      \
		        .y = CUDA_PTR(y),                                      \
		        .lda = lda,                                            \
		        .incx = incx,                                          \
		        .incy = incy,                                          \
		        .m = (uint32_t)m,                                      \
		        .n = (uint32_t)n,                                      \
		        .trans = trans,                                        \
		        .type = data_type,                                     \
		};                                                             \
                                                                               \
		if (!h)                                                        \
			return CUBLAS_STATUS_NOT_INITIALIZED;                  \
		return sg_blas_status(gemv(h, kernel, &p, alpha, beta));       \
	}

GEMV(cublasSgemv_v2, SG_BLAS_K_simblas_gemv_f32, float, CUDA_R_32F)
GEMV(cublasDgemv_v2, SG_BLAS_K_simblas_gemv_f64, double, CUDA_R_64F)
GEMV(cublasCgemv_v2, SG_BLAS_K_simblas_gemv_c32, cuComplex, CUDA_C_32F)
GEMV(cublasZgemv_v2, SG_BLAS_K_simblas_gemv_c64, cuDoubleComplex, CUDA_C_64F)
