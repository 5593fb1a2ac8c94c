/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cublasLtMatmul: a described problem, its operands and its algorithm become
 * launches. No state of its own; any thread with its own descriptors.
 */
#include "lt.h"

#include <errno.h>

#define CUDA_PTR(p) ((uint64_t)(uintptr_t)(p))

/* alpha and beta by the descriptor's pointer mode. */
static int scalars(const struct sg_lt_desc *desc, struct simblas_gemm *p,
        const void *alpha, const void *beta)
{
	cudaDataType type = (cudaDataType)p->type_scale;
	int err = 0;

	if (!alpha ||
	        (!beta &&
	                desc->pointer_mode !=
	                        CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO))
		return -EINVAL;
	switch (desc->pointer_mode) {
	case CUBLASLT_POINTER_MODE_HOST:
		err = sg_blas_read_scalar(
		        alpha, type, &p->alpha_re, &p->alpha_im);
		if (!err)
			err = sg_blas_read_scalar(
			        beta, type, &p->beta_re, &p->beta_im);
		break;
	case CUBLASLT_POINTER_MODE_DEVICE_VECTOR:
		p->flags |= SIMBLAS_ALPHA_VECTOR;
		p->alpha_ptr = CUDA_PTR(alpha);
		p->beta_ptr = CUDA_PTR(beta);
		break;
	case CUBLASLT_POINTER_MODE_DEVICE:
		p->alpha_ptr = CUDA_PTR(alpha);
		p->beta_ptr = CUDA_PTR(beta);
		break;
	case CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST:
		err = sg_blas_read_scalar(beta, type, &p->beta_re, &p->beta_im);
		p->flags |= SIMBLAS_ALPHA_VECTOR;
		p->alpha_ptr = CUDA_PTR(alpha);
		break;
	default: /* beta is zero */
		p->flags |= SIMBLAS_ALPHA_VECTOR;
		p->alpha_ptr = CUDA_PTR(alpha);
		break;
	}
	return err;
}

static bool has_bias(uint32_t epilogue)
{
	const uint32_t bias = CUBLASLT_EPILOGUE_BIAS |
	                      CUBLASLT_EPILOGUE_BGRADA |
	                      CUBLASLT_EPILOGUE_BGRADB |
	                      (CUBLASLT_EPILOGUE_DRELU_BGRAD &
	                              ~(uint32_t)CUBLASLT_EPILOGUE_DRELU);

	return epilogue & bias;
}

static bool has_aux(uint32_t epilogue)
{
	return epilogue &
	       (CUBLASLT_EPILOGUE_RELU_AUX & ~(uint32_t)CUBLASLT_EPILOGUE_RELU);
}

static int epilogue_operands(
        const struct sg_lt_desc *desc, struct simblas_gemm *p)
{
	if (has_bias(desc->epilogue)) {
		if (!desc->bias)
			return -EINVAL;
		p->bias = desc->bias;
	}
	if (has_aux(desc->epilogue)) {
		/* A row of bits is whole in units of 128 rows. */
		if (!desc->aux || p->ldaux < (int64_t)p->m ||
		        (p->flags & SIMBLAS_AUX_BITS && p->ldaux % 128))
			return -EINVAL;
		p->aux = desc->aux;
	}
	return 0;
}

static int matmul(struct sg_blas_handle *h, const struct sg_lt_desc *desc,
        struct sg_lt_problem *problem, const struct sg_lt_algo *algo,
        uint64_t workspace, size_t workspace_bytes, CUstream stream)
{
	struct simblas_gemm *p = &problem->p;
	const struct sg_blas_context *context;
	struct sg_lt_algo own;
	int err = sg_blas_enter(h, &context);

	if (err)
		return err;
	if (!algo) {
		sg_lt_algo_choose(context, problem, desc->sm_count_target,
		        workspace ? workspace_bytes : 0, &own);
		algo = &own;
	}
	err = sg_lt_algo_check(problem, algo);
	if (err)
		return err;
	p->splits = (uint32_t)algo->splits;
	if (p->splits > 1) {
		if (!workspace ||
		        workspace_bytes < sg_blas_split_bytes(
		                                  p, problem->class, p->splits))
			return -EINVAL;
		p->workspace = workspace;
	}
	return sg_blas_gemm_launch(
	        context, p, problem->family, problem->class, stream);
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle,
        cublasLtMatmulDesc_t computeDesc, const void *alpha, const void *A,
        cublasLtMatrixLayout_t Adesc, const void *B,
        cublasLtMatrixLayout_t Bdesc, const void *beta, const void *C,
        cublasLtMatrixLayout_t Cdesc, void *D, cublasLtMatrixLayout_t Ddesc,
        const cublasLtMatmulAlgo_t *algo, void *workspace,
        size_t workspaceSizeInBytes, cudaStream_t stream)
{
	const struct sg_lt_desc *desc = (const void *)computeDesc;
	struct sg_blas_handle *h = sg_blas_handle(lightHandle);
	struct sg_lt_problem problem;
	int err;

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	err = sg_lt_problem_init(&problem, desc, (const void *)Adesc,
	        (const void *)Bdesc, (const void *)Cdesc, (const void *)Ddesc);
	if (!err && (!problem.p.m || !problem.p.n))
		return CUBLAS_STATUS_SUCCESS;
	if (!err && (!A || !B || !D || (uintptr_t)workspace % 16))
		err = -EINVAL;
	if (!err)
		err = scalars(desc, &problem.p, alpha, beta);
	problem.p.a = CUDA_PTR(A);
	problem.p.b = CUDA_PTR(B);
	problem.p.c = CUDA_PTR(C);
	problem.p.d = CUDA_PTR(D);
	if (!err && !C && simblas_beta_nonzero(&problem.p))
		err = -EINVAL;
	if (!err)
		err = epilogue_operands(desc, &problem.p);
	if (!err)
		err = matmul(h, desc, &problem, (const void *)algo,
		        CUDA_PTR(workspace), workspaceSizeInBytes,
		        (CUstream)stream);
	return sg_blas_status(err);
}
