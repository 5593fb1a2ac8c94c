/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Algorithms of cublasLt: heuristic, configuration and check. There are two:
 * one pass, and one that cuts k into parts and adds them up. The tile of an
 * algorithm is told but changes nothing. No state.
 */
#include "lt.h"

#include <errno.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

#define ALGO_ONE_PASS 6
#define ALGO_SPLIT    21
#define SPLIT_MAX     16

static const uint32_t tiles[] = {CUBLASLT_MATMUL_TILE_256x128,
        CUBLASLT_MATMUL_TILE_128x128, CUBLASLT_MATMUL_TILE_128x64,
        CUBLASLT_MATMUL_TILE_64x64};

#define CONFIG(name, field, fixed)                                             \
	{                                                                      \
		CUBLASLT_ALGO_CONFIG_##name,                                   \
		        offsetof(struct sg_lt_algo, field),                    \
		        sizeof(((struct sg_lt_algo *)0)->field), fixed         \
	}
static const struct sg_lt_attr config_attrs[] = {
        CONFIG(ID, id, true),
        CONFIG(TILE_ID, tile, false),
        CONFIG(SPLITK_NUM, splits, false),
        CONFIG(REDUCTION_SCHEME, reduction, false),
        CONFIG(CTA_SWIZZLING, swizzle, false),
        CONFIG(CUSTOM_OPTION, custom, false),
        CONFIG(STAGES_ID, stages, false),
        CONFIG(INNER_SHAPE_ID, inner_shape, false),
        CONFIG(CLUSTER_SHAPE_ID, cluster_shape, false),
};

/* What both algorithms can do, for CapGetAttribute. */
struct caps {
	int32_t split, strided, out_of_place, uplo, custom_max, custom_order;
	int32_t ld_negative, pointer_array, emulation;
	uint32_t reduction, swizzle, pointer_modes, epilogues;
	uint32_t align_a, align_b, align_c, align_d;
	uint64_t numerical;
};
#define CAP(name, field)                                                       \
	{                                                                      \
		CUBLASLT_ALGO_CAP_##name, offsetof(struct caps, field),        \
		        sizeof(((struct caps *)0)->field), true                \
	}
static const struct sg_lt_attr cap_attrs[] = {
        CAP(SPLITK_SUPPORT, split),
        CAP(REDUCTION_SCHEME_MASK, reduction),
        CAP(CTA_SWIZZLING_SUPPORT, swizzle),
        CAP(STRIDED_BATCH_SUPPORT, strided),
        CAP(OUT_OF_PLACE_RESULT_SUPPORT, out_of_place),
        CAP(UPLO_SUPPORT, uplo),
        CAP(CUSTOM_OPTION_MAX, custom_max),
        CAP(CUSTOM_MEMORY_ORDER, custom_order),
        CAP(POINTER_MODE_MASK, pointer_modes),
        CAP(EPILOGUE_MASK, epilogues),
        CAP(LD_NEGATIVE, ld_negative),
        CAP(NUMERICAL_IMPL_FLAGS, numerical),
        CAP(MIN_ALIGNMENT_A_BYTES, align_a),
        CAP(MIN_ALIGNMENT_B_BYTES, align_b),
        CAP(MIN_ALIGNMENT_C_BYTES, align_c),
        CAP(MIN_ALIGNMENT_D_BYTES, align_d),
        CAP(POINTER_ARRAY_BATCH_SUPPORT, pointer_array),
        CAP(FLOATING_POINT_EMULATION_SUPPORT, emulation),
};

static void algo_fill(
        struct sg_lt_algo *algo, int32_t id, unsigned splits, uint32_t tile)
{
	*algo = (struct sg_lt_algo){
	        .id = id,
	        .splits = (int32_t)splits,
	        .tile = tile,
	        .reduction = splits > 1 ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
	                                : CUBLASLT_REDUCTION_SCHEME_NONE,
	        .stages = CUBLASLT_MATMUL_STAGES_64x3,
	};
}

void sg_lt_algo_choose(const struct sg_blas_context *context,
        const struct sg_lt_problem *problem, int32_t sm_target,
        size_t workspace_bytes, struct sg_lt_algo *ret_algo)
{
	unsigned splits = 1;
	int sm_count = context->sm_count;

	if (sm_target > 0 && sm_target < sm_count)
		sm_count = sm_target;
	if (problem->family != SIMBLAS_GEMM_BATCHED)
		splits = sg_blas_gemm_splits(
		        &problem->p, problem->class, sm_count, workspace_bytes);
	algo_fill(ret_algo, splits > 1 ? ALGO_SPLIT : ALGO_ONE_PASS, splits,
	        tiles[0]);
}

static void result_fill(cublasLtMatmulHeuristicResult_t *result,
        const struct sg_blas_context *context,
        const struct sg_lt_problem *problem, const struct sg_lt_algo *algo)
{
	const struct simblas_gemm *p = &problem->p;

	memset(result, 0, sizeof(*result));
	memcpy(&result->algo, algo, sizeof(*algo));
	result->workspaceSize =
	        sg_blas_split_bytes(p, problem->class, (unsigned)algo->splits);
	result->state = CUBLAS_STATUS_SUCCESS;
	result->wavesCount =
	        (float)((double)((p->m + 127) / 128) * ((p->n + 127) / 128) *
	                p->batch * algo->splits / context->sm_count);
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
        cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
        cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
        cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
        cublasLtMatmulPreference_t preference, int requestedAlgoCount,
        cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
        int *returnAlgoCount)
{
	const struct sg_lt_desc *desc = (const void *)operationDesc;
	const struct sg_lt_preference *pref = (const void *)preference;
	struct sg_blas_handle *h = sg_blas_handle(lightHandle);
	const struct sg_blas_context *context;
	struct sg_lt_problem problem;
	struct sg_lt_algo algo;
	size_t workspace;
	size_t i;
	int count = 0;
	int err;

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!pref || requestedAlgoCount <= 0 || !heuristicResultsArray ||
	        !returnAlgoCount)
		return CUBLAS_STATUS_INVALID_VALUE;
	*returnAlgoCount = 0;
	err = sg_lt_problem_init(&problem, desc, (const void *)Adesc,
	        (const void *)Bdesc, (const void *)Cdesc, (const void *)Ddesc);
	if (!err)
		err = sg_blas_enter(h, &context);
	if (err)
		return sg_blas_status(err);
	workspace =
	        pref->reduction_mask & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
	                ? pref->max_workspace_bytes
	                : 0;
	sg_lt_algo_choose(
	        context, &problem, desc->sm_count_target, workspace, &algo);
	if (algo.id == ALGO_SPLIT)
		result_fill(&heuristicResultsArray[count++], context, &problem,
		        &algo);
	for (i = 0; i < COUNT(tiles) && count < requestedAlgoCount; i++) {
		algo_fill(&algo, ALGO_ONE_PASS, 1, tiles[i]);
		result_fill(&heuristicResultsArray[count++], context, &problem,
		        &algo);
	}
	*returnAlgoCount = count;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulAlgoGetIds(
        cublasLtHandle_t lightHandle, cublasComputeType_t computeType,
        cudaDataType_t scaleType, cudaDataType_t Atype, cudaDataType_t Btype,
        cudaDataType_t Ctype, cudaDataType_t Dtype, int requestedAlgoCount,
        int algoIdsArray[], int *returnAlgoCount)
{
	static const int ids[] = {ALGO_ONE_PASS, ALGO_SPLIT};
	enum simblas_class class;
	cudaDataType scale;
	int count;
	int err;

	if (!sg_blas_handle(lightHandle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (requestedAlgoCount <= 0 || !algoIdsArray)
		return CUBLAS_STATUS_INVALID_VALUE;
	err = sg_blas_gemm_class(
	        Atype, Btype, Dtype, computeType, &class, &scale);
	if (err)
		return sg_blas_status(err);
	for (count = 0; count < requestedAlgoCount && count < (int)COUNT(ids);
	        count++)
		algoIdsArray[count] = ids[count];
	if (returnAlgoCount)
		*returnAlgoCount = count;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulAlgoInit(
        cublasLtHandle_t lightHandle, cublasComputeType_t computeType,
        cudaDataType_t scaleType, cudaDataType_t Atype, cudaDataType_t Btype,
        cudaDataType_t Ctype, cudaDataType_t Dtype, int algoId,
        cublasLtMatmulAlgo_t *algo)
{
	enum simblas_class class;
	cudaDataType scale;
	int err;

	if (!sg_blas_handle(lightHandle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!algo || (algoId != ALGO_ONE_PASS && algoId != ALGO_SPLIT))
		return CUBLAS_STATUS_INVALID_VALUE;
	err = sg_blas_gemm_class(
	        Atype, Btype, Dtype, computeType, &class, &scale);
	if (err)
		return sg_blas_status(err);
	memset(algo, 0, sizeof(*algo));
	algo_fill((struct sg_lt_algo *)algo, algoId, 1,
	        CUBLASLT_MATMUL_TILE_UNDEFINED);
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulAlgoCheck(
        cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
        cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
        cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
        const cublasLtMatmulAlgo_t *algo,
        cublasLtMatmulHeuristicResult_t *result)
{
	struct sg_blas_handle *h = sg_blas_handle(lightHandle);
	const struct sg_lt_algo *chosen = (const void *)algo;
	const struct sg_blas_context *context;
	struct sg_lt_problem problem;
	int err;

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!chosen || !result)
		return CUBLAS_STATUS_INVALID_VALUE;
	err = sg_lt_problem_init(&problem, (const void *)operationDesc,
	        (const void *)Adesc, (const void *)Bdesc, (const void *)Cdesc,
	        (const void *)Ddesc);
	if (!err)
		err = sg_blas_enter(h, &context);
	if (err)
		return sg_blas_status(err);
	if (sg_lt_algo_check(&problem, chosen))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	result_fill(result, context, &problem, chosen);
	return CUBLAS_STATUS_SUCCESS;
}

int sg_lt_algo_check(
        const struct sg_lt_problem *problem, const struct sg_lt_algo *algo)
{
	if (algo->id != ALGO_ONE_PASS && algo->id != ALGO_SPLIT)
		return -EINVAL;
	if (algo->splits < 1 || algo->splits > SPLIT_MAX)
		return -EINVAL;
	if (algo->splits == 1)
		return 0;
	if (algo->id == ALGO_ONE_PASS ||
	        problem->family == SIMBLAS_GEMM_BATCHED ||
	        algo->reduction != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
		return -ENOTSUP;
	return 0;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(
        cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attr,
        const void *buf, size_t sizeInBytes)
{
	return sg_blas_status(sg_lt_attr_set(config_attrs, COUNT(config_attrs),
	        algo, (int)attr, buf, sizeInBytes));
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
        const cublasLtMatmulAlgo_t *algo,
        cublasLtMatmulAlgoConfigAttributes_t attr, void *buf,
        size_t sizeInBytes, size_t *sizeWritten)
{
	return sg_blas_status(sg_lt_attr_get(config_attrs, COUNT(config_attrs),
	        algo, (int)attr, buf, sizeInBytes, sizeWritten));
}

/* Lists of ids come in as many elements as the buffer holds. */
static cublasStatus_t list_get(const uint32_t *ids, size_t count, void *buf,
        size_t bytes, size_t *ret_written)
{
	size_t all = count * sizeof(*ids);

	if (!bytes && !ret_written)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (bytes && !buf)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (bytes)
		memcpy(buf, ids, bytes < all ? bytes : all);
	if (ret_written)
		*ret_written = bytes && bytes < all ? bytes : all;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(
        const cublasLtMatmulAlgo_t *algo,
        cublasLtMatmulAlgoCapAttributes_t attr, void *buf, size_t sizeInBytes,
        size_t *sizeWritten)
{
	static const uint32_t stages[] = {CUBLASLT_MATMUL_STAGES_64x3};
	const struct sg_lt_algo *chosen = (const void *)algo;
	struct caps caps = {
	        .strided = 1,
	        .out_of_place = 1,
	        .pointer_array = 1,
	        .pointer_modes = 0x1f,
	        .epilogues = 0x3ff,
	        .align_a = 1,
	        .align_b = 1,
	        .align_c = 1,
	        .align_d = 1,
	};

	if (!chosen)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (attr == CUBLASLT_ALGO_CAP_TILE_IDS)
		return list_get(
		        tiles, COUNT(tiles), buf, sizeInBytes, sizeWritten);
	if (attr == CUBLASLT_ALGO_CAP_STAGES_IDS)
		return list_get(
		        stages, COUNT(stages), buf, sizeInBytes, sizeWritten);
	if (chosen->id == ALGO_SPLIT) {
		caps.split = 1;
		caps.reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	}
	return sg_blas_status(sg_lt_attr_get(cap_attrs, COUNT(cap_attrs), &caps,
	        (int)attr, buf, sizeInBytes, sizeWritten));
}
