/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a described product to its kernels: arithmetic class by types, scalars,
 * the split along k, grids and launches. Used by the classic calls and by
 * cublasLtMatmul; no state of its own.
 */
#include "simblas.h"

#include <errno.h>
#include <string.h>

/* Rows and columns of d that one thread block makes. */
#define TILE_ROWS      128u
#define TILE_ROWS_HALF 256u
#define TILE_COLS      128u

#define THREADS 256u
/* Hardware bound of the second and third grid dimension. */
#define GRID_MAX 65535u

#define SPLIT_MAX   16u
#define SPLIT_MIN_K 1024u /* k of one part */

static double half_to_double(uint16_t bits)
{
	uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
	uint32_t exponent = bits >> 10 & 0x1f;
	uint32_t fraction = bits & 0x3ff;
	uint32_t word;
	float value;

	if (exponent == 0) {
		value = (float)fraction / 16777216.0f; /* 2^-24 each */
		return sign ? -(double)value : (double)value;
	}
	exponent = exponent == 31 ? 255 : exponent + 112;
	word = sign | exponent << 23 | fraction << 13;
	memcpy(&value, &word, sizeof(value));
	return value;
}

static double bfloat_to_double(uint16_t bits)
{
	uint32_t word = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &word, sizeof(value));
	return value;
}

int sg_blas_read_scalar(
        const void *at, cudaDataType type, double *real, double *imag)
{
	double im = 0;

	switch (type) {
	case CUDA_R_16F:
		*real = half_to_double(*(const uint16_t *)at);
		break;
	case CUDA_R_16BF:
		*real = bfloat_to_double(*(const uint16_t *)at);
		break;
	case CUDA_R_32F:
		*real = *(const float *)at;
		break;
	case CUDA_R_64F:
		*real = *(const double *)at;
		break;
	case CUDA_R_32I:
		*real = *(const int32_t *)at;
		break;
	case CUDA_C_32F:
		*real = ((const float *)at)[0];
		im = ((const float *)at)[1];
		break;
	case CUDA_C_64F:
		*real = ((const double *)at)[0];
		im = ((const double *)at)[1];
		break;
	default:
		return -ENOTSUP;
	}
	if (imag)
		*imag = im;
	return 0;
}

static bool is_single(cublasComputeType_t compute)
{
	switch (compute) {
	case CUBLAS_COMPUTE_32F:
	case CUBLAS_COMPUTE_32F_PEDANTIC:
	case CUBLAS_COMPUTE_32F_FAST_16F:
	case CUBLAS_COMPUTE_32F_FAST_16BF:
	case CUBLAS_COMPUTE_32F_FAST_TF32:
		return true;
	default:
		return false;
	}
}

static bool is_pedantic(cublasComputeType_t compute)
{
	return compute == CUBLAS_COMPUTE_16F_PEDANTIC ||
	       compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
	       compute == CUBLAS_COMPUTE_64F_PEDANTIC ||
	       compute == CUBLAS_COMPUTE_32I_PEDANTIC;
}

/* Class of operands of fp32 by what the compute type allows. */
static enum simblas_class single_class(cublasComputeType_t compute)
{
	switch (compute) {
	case CUBLAS_COMPUTE_32F_FAST_TF32:
		return SIMBLAS_TF32;
	case CUBLAS_COMPUTE_32F_FAST_16F:
		return SIMBLAS_F16;
	case CUBLAS_COMPUTE_32F_FAST_16BF:
		return SIMBLAS_BF16;
	default:
		return SIMBLAS_F32;
	}
}

int sg_blas_gemm_class(cudaDataType a, cudaDataType b, cudaDataType d,
        cublasComputeType_t compute, enum simblas_class *ret_class,
        cudaDataType *ret_scale)
{
	bool single = is_single(compute);
	bool half = compute == CUBLAS_COMPUTE_16F ||
	            compute == CUBLAS_COMPUTE_16F_PEDANTIC;
	bool twice = compute == CUBLAS_COMPUTE_64F ||
	             compute == CUBLAS_COMPUTE_64F_PEDANTIC;
	bool whole = compute == CUBLAS_COMPUTE_32I ||
	             compute == CUBLAS_COMPUTE_32I_PEDANTIC;

	if (a != b)
		return -ENOTSUP;
	if (a == CUDA_R_32F && d == a && single) {
		*ret_class = single_class(compute);
		*ret_scale = CUDA_R_32F;
	} else if (a == CUDA_R_16F && d == a && half) {
		*ret_class = SIMBLAS_F16;
		*ret_scale = CUDA_R_16F;
	} else if (a == CUDA_R_16F && (d == a || d == CUDA_R_32F) && single) {
		*ret_class = SIMBLAS_F16;
		*ret_scale = CUDA_R_32F;
	} else if (a == CUDA_R_16BF && (d == a || d == CUDA_R_32F) && single) {
		*ret_class = SIMBLAS_BF16;
		*ret_scale = CUDA_R_32F;
	} else if (a == CUDA_R_64F && d == a && twice) {
		*ret_class = SIMBLAS_F64;
		*ret_scale = CUDA_R_64F;
	} else if (a == CUDA_R_8I && d == CUDA_R_32I && whole) {
		*ret_class = SIMBLAS_I8;
		*ret_scale = CUDA_R_32I;
	} else if (a == CUDA_R_8I &&
	           ((d == CUDA_R_8I && whole) || (d == CUDA_R_32F && single))) {
		*ret_class = SIMBLAS_I8;
		*ret_scale = CUDA_R_32F;
	} else if (a == CUDA_C_32F && d == a && single) {
		*ret_class = SIMBLAS_C32;
		*ret_scale = CUDA_C_32F;
	} else if (a == CUDA_C_64F && d == a && twice) {
		*ret_class = SIMBLAS_C64;
		*ret_scale = CUDA_C_64F;
	} else {
		return -ENOTSUP;
	}
	return 0;
}

static unsigned tile_rows(enum simblas_class class)
{
	return class == SIMBLAS_F16 || class == SIMBLAS_BF16 ? TILE_ROWS_HALF
	                                                     : TILE_ROWS;
}

static unsigned pieces(unsigned size, unsigned piece)
{
	return size / piece + (size % piece != 0);
}

/* Bytes of a partial sum. */
static size_t partial_bytes(enum simblas_class class)
{
	switch (class) {
	case SIMBLAS_F64:
	case SIMBLAS_C32:
		return 8;
	case SIMBLAS_C64:
		return 16;
	default:
		return 4;
	}
}

size_t sg_blas_split_bytes(
        const struct simblas_gemm *p, enum simblas_class class, unsigned splits)
{
	return splits > 1 ? (size_t)p->m * p->n * p->batch * splits *
	                            partial_bytes(class)
	                  : 0;
}

unsigned sg_blas_gemm_splits(const struct simblas_gemm *p,
        enum simblas_class class, int sm_count, size_t workspace_bytes)
{
	uint64_t tiles = (uint64_t)pieces(p->m, tile_rows(class)) *
	                 pieces(p->n, TILE_COLS) * p->batch;
	uint64_t part_bytes =
	        (uint64_t)p->m * p->n * p->batch * partial_bytes(class);
	uint64_t splits;

	if (!tiles || class == SIMBLAS_I8 ||
	        is_pedantic((cublasComputeType_t)p->compute))
		return 1;
	splits = (uint64_t)sm_count / tiles;
	if (splits > SPLIT_MAX)
		splits = SPLIT_MAX;
	if (splits > p->k / SPLIT_MIN_K)
		splits = p->k / SPLIT_MIN_K;
	if (splits > workspace_bytes / part_bytes)
		splits = workspace_bytes / part_bytes;
	return splits > 1 ? (unsigned)splits : 1;
}

static unsigned grid_clip(uint64_t blocks)
{
	return blocks > GRID_MAX ? GRID_MAX : (unsigned)blocks;
}

/* The partial kernel reads the factors and fills the workspace. */
static int launch_partial(const struct sg_blas_context *context,
        const struct simblas_gemm *p, enum simblas_class class, CUstream stream)
{
	struct simblas_gemm part = *p;
	const unsigned grid[3] = {pieces(p->m, tile_rows(class)),
	        grid_clip(pieces(p->n, TILE_COLS)),
	        grid_clip((uint64_t)p->batch * p->splits)};

	part.c = 0;
	part.d = 0;
	part.bias = 0;
	part.aux = 0;
	part.alpha_ptr = 0;
	part.beta_ptr = 0;
	return sg_blas_launch(context,
	        sg_blas_gemm_kernel(SIMBLAS_GEMM_SPLITK, class), stream, grid,
	        THREADS, &part);
}

/* The reduction adds the parts up and does all that follows the product. */
static int launch_reduce(const struct sg_blas_context *context,
        const struct simblas_gemm *p, enum simblas_class class, CUstream stream)
{
	struct simblas_gemm part = *p;
	const unsigned grid[3] = {
	        pieces(p->m, THREADS), grid_clip(p->n), grid_clip(p->batch)};

	part.a = 0;
	part.b = 0;
	return sg_blas_launch(context,
	        sg_blas_gemm_kernel(SIMBLAS_SPLITK_REDUCE, class), stream, grid,
	        THREADS, &part);
}

int sg_blas_gemm_launch(const struct sg_blas_context *context,
        struct simblas_gemm *p, enum simblas_family family,
        enum simblas_class class, CUstream stream)
{
	const unsigned grid[3] = {pieces(p->m, tile_rows(class)),
	        grid_clip(pieces(p->n, TILE_COLS)), grid_clip(p->batch)};
	int err;

	if (p->splits <= 1) {
		p->splits = 1;
		p->workspace = 0;
		p->workspace_bytes = 0;
		return sg_blas_launch(context,
		        sg_blas_gemm_kernel(family, class), stream, grid,
		        THREADS, p);
	}
	p->workspace_bytes = sg_blas_split_bytes(p, class, p->splits);
	err = launch_partial(context, p, class, stream);
	if (err)
		return err;
	return launch_reduce(context, p, class, stream);
}
