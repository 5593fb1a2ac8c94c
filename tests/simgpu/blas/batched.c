/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entry points for many products at once: by strides, and by device arrays of
 * pointers, whose addresses alone are parameters of the launch, so that the
 * operands stay hidden as they are with the real library. No state of its own.
 */
#include "simblas.h"

#define CUDA_PTR(p) ((uint64_t)(uintptr_t)(p))

SG_BLAS_EXPORT cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle,
        cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
        const void *alpha, const void *A, cudaDataType Atype, int lda,
        long long int strideA, const void *B, cudaDataType Btype, int ldb,
        long long int strideB, const void *beta, void *C, cudaDataType Ctype,
        int ldc, long long int strideC, int batchCount,
        cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);
	struct simblas_gemm p = {
	        .a = CUDA_PTR(A),
	        .b = CUDA_PTR(B),
	        .c = CUDA_PTR(C),
	        .lda = lda,
	        .ldb = ldb,
	        .ldc = ldc,
	        .stride_a = strideA,
	        .stride_b = strideB,
	        .stride_c = strideC,
	        .m = (uint32_t)m,
	        .n = (uint32_t)n,
	        .k = (uint32_t)k,
	        .batch = (uint32_t)batchCount,
	        .trans_a = transa,
	        .trans_b = transb,
	        .type_a = Atype,
	        .type_b = Btype,
	        .type_c = Ctype,
	};

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return sg_blas_status(sg_blas_gemm(
	        h, &p, SIMBLAS_GEMM_STRIDED, alpha, beta, computeType));
}

#define STRIDED(name, element, type, compute)                                  \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle,              \
	        cublasOperation_t transa, cublasOperation_t transb, int m,     \
	        int n, int k, const element *alpha, const element *A, int lda, \
	        long long int strideA, const element *B, int ldb,              \
	        long long int strideB, const element *beta, element *C,        \
	        int ldc, long long int strideC, int batchCount)                \
	{                                                                      \
		return cublasGemmStridedBatchedEx(handle, transa, transb, m,   \
		        n, k, alpha, A, type, lda, strideA, B, type, ldb,      \
		        strideB, beta, C, type, ldc, strideC, batchCount,      \
		        compute, CUBLAS_GEMM_DEFAULT);                         \
	}

STRIDED(cublasSgemmStridedBatched, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
STRIDED(cublasDgemmStridedBatched, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
STRIDED(cublasCgemmStridedBatched, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F)
STRIDED(cublasZgemmStridedBatched, cuDoubleComplex, CUDA_C_64F,
        CUBLAS_COMPUTE_64F)
STRIDED(cublasHgemmStridedBatched, void, CUDA_R_16F, CUBLAS_COMPUTE_16F)

SG_BLAS_EXPORT cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle,
        cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
        const void *alpha, const void *const Aarray[], cudaDataType Atype,
        int lda, const void *const Barray[], cudaDataType Btype, int ldb,
        const void *beta, void *const Carray[], cudaDataType Ctype, int ldc,
        int batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
	struct sg_blas_handle *h = sg_blas_handle(handle);
	struct simblas_gemm p = {
	        .a = CUDA_PTR(Aarray),
	        .b = CUDA_PTR(Barray),
	        .c = CUDA_PTR(Carray),
	        .lda = lda,
	        .ldb = ldb,
	        .ldc = ldc,
	        .m = (uint32_t)m,
	        .n = (uint32_t)n,
	        .k = (uint32_t)k,
	        .batch = (uint32_t)batchCount,
	        .trans_a = transa,
	        .trans_b = transb,
	        .type_a = Atype,
	        .type_b = Btype,
	        .type_c = Ctype,
	};

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return sg_blas_status(sg_blas_gemm(
	        h, &p, SIMBLAS_GEMM_BATCHED, alpha, beta, computeType));
}

#define BATCHED(name, element, type, compute)                                  \
	SG_BLAS_EXPORT cublasStatus_t name(cublasHandle_t handle,              \
	        cublasOperation_t transa, cublasOperation_t transb, int m,     \
	        int n, int k, const element *alpha,                            \
	        const element *const Aarray[], int lda,                        \
	        const element *const Barray[], int ldb, const element *beta,   \
	        element *const Carray[], int ldc, int batchCount)              \
	{                                                                      \
		return cublasGemmBatchedEx(handle, transa, transb, m, n, k,    \
		        alpha, (const void *const *)Aarray, type, lda,         \
		        (const void *const *)Barray, type, ldb, beta,          \
		        (void *const *)Carray, type, ldc, batchCount, compute, \
		        CUBLAS_GEMM_DEFAULT);                                  \
	}

BATCHED(cublasSgemmBatched, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
BATCHED(cublasDgemmBatched, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
BATCHED(cublasCgemmBatched, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F)
BATCHED(cublasZgemmBatched, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F)
BATCHED(cublasHgemmBatched, void, CUDA_R_16F, CUBLAS_COMPUTE_16F)
