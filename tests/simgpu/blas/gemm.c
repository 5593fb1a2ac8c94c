/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The classic GEMM call: argument checks, scalars, class and split; and the
 * entry points for one product. No state of its own.
 */
#include "simblas.h"

#include <errno.h>

#define CUDA_PTR(p) ((uint64_t)(uintptr_t)(p))

static bool op_valid(uint32_t op)
{
	return op <= CUBLAS_OP_C;
}

static int64_t at_least_one(uint32_t rows)
{
	return rows ? rows : 1;
}

static int check(const struct simblas_gemm *p)
{
	if (!op_valid(p->trans_a) || !op_valid(p->trans_b))
		return -EINVAL;
	if (p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX ||
	        p->batch > INT32_MAX)
		return -EINVAL;
	if (p->lda < at_least_one(p->trans_a ? p->k : p->m) ||
	        p->ldb < at_least_one(p->trans_b ? p->n : p->k) ||
	        p->ldc < at_least_one(p->m))
		return -EINVAL;
	return 0;
}

/* What the math mode makes of the compute type of an fp32 product. */
static cublasComputeType_t effective_compute(const struct sg_blas_handle *h,
        const struct simblas_gemm *p, cublasComputeType_t compute)
{
	if (compute != CUBLAS_COMPUTE_32F || p->type_a != CUDA_R_32F)
		return compute;
	/* Only the low bits are the mode; the others are flags. */
	switch ((int)h->math_mode & 7) {
	case CUBLAS_TENSOR_OP_MATH:
		return CUBLAS_COMPUTE_32F_FAST_16F;
	case CUBLAS_PEDANTIC_MATH:
		return CUBLAS_COMPUTE_32F_PEDANTIC;
	case CUBLAS_TF32_TENSOR_OP_MATH:
		return CUBLAS_COMPUTE_32F_FAST_TF32;
	default:
		return compute;
	}
}

static int scalars(const struct sg_blas_handle *h, struct simblas_gemm *p,
        const void *alpha, const void *beta)
{
	int err;

	if (h->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
		p->alpha_ptr = CUDA_PTR(alpha);
		p->beta_ptr = CUDA_PTR(beta);
		return 0;
	}
	err = sg_blas_read_scalar(
	        alpha, (cudaDataType)p->type_scale, &p->alpha_re, &p->alpha_im);
	if (err)
		return err;
	return sg_blas_read_scalar(
	        beta, (cudaDataType)p->type_scale, &p->beta_re, &p->beta_im);
}

/* Cuts the product along k where that pays and a workspace is to be had. */
static void split(struct sg_blas_handle *h,
        const struct sg_blas_context *context, struct simblas_gemm *p,
        enum simblas_class class)
{
	CUdeviceptr at;
	size_t bytes;
	int sm_count = context->sm_count;

	if (h->sm_count_target > 0 && h->sm_count_target < sm_count)
		sm_count = h->sm_count_target;
	/* The handle's own workspace is not made for a product that fits. */
	if (sg_blas_gemm_splits(p, class, sm_count, SIZE_MAX) <= 1)
		return;
	sg_blas_handle_workspace(h, &at, &bytes);
	p->splits = sg_blas_gemm_splits(p, class, sm_count, bytes);
	p->workspace = at;
}

int sg_blas_gemm(struct sg_blas_handle *handle, struct simblas_gemm *p,
        enum simblas_family family, const void *alpha, const void *beta,
        cublasComputeType_t compute)
{
	enum simblas_class class;
	const struct sg_blas_context *context;
	cudaDataType scale;
	int err;

	err = check(p);
	if (err)
		return err;
	if (!p->m || !p->n || !p->batch)
		return 0;
	if (!alpha || !beta)
		return -EINVAL;
	compute = effective_compute(handle, p, compute);
	err = sg_blas_gemm_class((cudaDataType)p->type_a,
	        (cudaDataType)p->type_b, (cudaDataType)p->type_c, compute,
	        &class, &scale);
	if (err)
		return sg_blas_unsupported(
		        "cublas", "GEMM with these data and compute types");
	p->compute = compute;
	p->type_scale = scale;
	p->type_d = p->type_c;
	p->d = p->c;
	p->ldd = p->ldc;
	p->stride_d = p->stride_c;
	p->splits = 1;
	p->epilogue = 1; /* CUBLASLT_EPILOGUE_DEFAULT */
	err = scalars(handle, p, alpha, beta);
	if (!err)
		err = sg_blas_enter(handle, &context);
	if (err)
		return err;
	if (family != SIMBLAS_GEMM_BATCHED)
		split(handle, context, p, class);
	return sg_blas_gemm_launch(context, p, family, class, handle->stream);
}

SG_BLAS_EXPORT cublasStatus_t cublasGemmEx(cublasHandle_t handle,
        cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
        const void *alpha, const void *A, cudaDataType Atype, int lda,
        const void *B, cudaDataType Btype, int ldb, const void *beta, void *C,
        cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
        cublasGemmAlgo_t algo)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);
	struct simblas_gemm p = {
	        .a = CUDA_PTR(A),
	        .b = CUDA_PTR(B),
	        .c = CUDA_PTR(C),
	        .lda = lda,
	        .ldb = ldb,
	        .ldc = ldc,
	        .m = (uint32_t)m,
	        .n = (uint32_t)n,
	        .k = (uint32_t)k,
	        .batch = 1,
	        .trans_a = transa,
	        .trans_b = transb,
	        .type_a = Atype,
	        .type_b = Btype,
	        .type_c = Ctype,
	};

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return sg_blas_status(
	        sg_blas_gemm(h, &p, SIMBLAS_GEMM, alpha, beta, computeType));
}

SG_BLAS_EXPORT cublasStatus_t cublasSgemmEx(cublasHandle_t handle,
        cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
        const float *alpha, const void *A, cudaDataType Atype, int lda,
        const void *B, cudaDataType Btype, int ldb, const float *beta, void *C,
        cudaDataType Ctype, int ldc)
{
	return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, Atype,
	        lda, B, Btype, ldb, beta, C, Ctype, ldc, CUBLAS_COMPUTE_32F,
	        CUBLAS_GEMM_DEFAULT);
}

#define GEMM(name, element, type, compute)                                     \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle,              \
	        cublasOperation_t transa, cublasOperation_t transb, int m,     \
	        int n, int k, const element *alpha, const element *A, int lda, \
	        const element *B, int ldb, const element *beta, element *C,    \
	        int ldc)                                                       \
	{                                                                      \
		return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, \
		        type, lda, B, type, ldb, beta, C, type, ldc, compute,  \
		        CUBLAS_GEMM_DEFAULT);                                  \
	}

GEMM(cublasSgemm_v2, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
GEMM(cublasDgemm_v2, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
GEMM(cublasCgemm_v2, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F)
GEMM(cublasZgemm_v2, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F)
GEMM(cublasHgemm, void, CUDA_R_16F, CUBLAS_COMPUTE_16F)
