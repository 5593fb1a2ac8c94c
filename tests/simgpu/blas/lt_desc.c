/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Layouts, matmul descriptors and preferences of cublasLt: life and
 * attributes. A created one belongs to the caller until its Destroy.
 */
#include "lt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define ATTR(type, id, field)                                                  \
	{                                                                      \
		id, offsetof(type, field), sizeof(((type *)0)->field), false   \
	}

#define LAYOUT(name, field)                                                    \
	ATTR(struct sg_lt_layout, CUBLASLT_MATRIX_LAYOUT_##name, field)
static const struct sg_lt_attr layout_attrs[] = {
        LAYOUT(TYPE, type),
        LAYOUT(ORDER, order),
        LAYOUT(ROWS, rows),
        LAYOUT(COLS, cols),
        LAYOUT(LD, ld),
        LAYOUT(BATCH_COUNT, batch),
        LAYOUT(STRIDED_BATCH_OFFSET, stride),
        LAYOUT(PLANE_OFFSET, plane_offset),
        LAYOUT(BATCH_MODE, batch_mode),
};

#define DESC(name, field)                                                      \
	ATTR(struct sg_lt_desc, CUBLASLT_MATMUL_DESC_##name, field)
static const struct sg_lt_attr desc_attrs[] = {
        DESC(COMPUTE_TYPE, compute),
        DESC(SCALE_TYPE, scale_type),
        DESC(POINTER_MODE, pointer_mode),
        DESC(TRANSA, trans_a),
        DESC(TRANSB, trans_b),
        DESC(TRANSC, trans_c),
        DESC(FILL_MODE, fill_mode),
        DESC(EPILOGUE, epilogue),
        DESC(BIAS_POINTER, bias),
        DESC(BIAS_BATCH_STRIDE, bias_stride),
        DESC(EPILOGUE_AUX_POINTER, aux),
        DESC(EPILOGUE_AUX_LD, aux_ld),
        DESC(EPILOGUE_AUX_BATCH_STRIDE, aux_stride),
        DESC(ALPHA_VECTOR_BATCH_STRIDE, alpha_stride),
        DESC(SM_COUNT_TARGET, sm_count_target),
        DESC(A_SCALE_POINTER, a_scale),
        DESC(B_SCALE_POINTER, b_scale),
        DESC(C_SCALE_POINTER, c_scale),
        DESC(D_SCALE_POINTER, d_scale),
        DESC(AMAX_D_POINTER, amax_d),
        DESC(EPILOGUE_AUX_DATA_TYPE, aux_type),
        DESC(EPILOGUE_AUX_SCALE_POINTER, aux_scale),
        DESC(EPILOGUE_AUX_AMAX_POINTER, aux_amax),
        DESC(FAST_ACCUM, fast_accum),
        DESC(BIAS_DATA_TYPE, bias_type),
        DESC(A_SCALE_MODE, a_scale_mode),
        DESC(B_SCALE_MODE, b_scale_mode),
        DESC(C_SCALE_MODE, c_scale_mode),
        DESC(D_SCALE_MODE, d_scale_mode),
        DESC(EPILOGUE_AUX_SCALE_MODE, aux_scale_mode),
        DESC(D_OUT_SCALE_POINTER, d_out_scale),
        DESC(D_OUT_SCALE_MODE, d_out_scale_mode),
        DESC(EMULATION_DESCRIPTOR, emulation),
};

#define PREF(name, field)                                                      \
	ATTR(struct sg_lt_preference, CUBLASLT_MATMUL_PREF_##name, field)
static const struct sg_lt_attr preference_attrs[] = {
        PREF(SEARCH_MODE, search_mode),
        PREF(MAX_WORKSPACE_BYTES, max_workspace_bytes),
        PREF(REDUCTION_SCHEME_MASK, reduction_mask),
        PREF(MIN_ALIGNMENT_A_BYTES, align_a),
        PREF(MIN_ALIGNMENT_B_BYTES, align_b),
        PREF(MIN_ALIGNMENT_C_BYTES, align_c),
        PREF(MIN_ALIGNMENT_D_BYTES, align_d),
        PREF(MAX_WAVES_COUNT, max_waves),
        PREF(IMPL_MASK, impl_mask),
};

SG_BLAS_EXPORT cublasStatus_t cublasLtMatrixLayoutInit_internal(
        cublasLtMatrixLayout_t matLayout, size_t size, cudaDataType type,
        uint64_t rows, uint64_t cols, int64_t ld)
{
	struct sg_lt_layout *layout = (struct sg_lt_layout *)matLayout;

	if (!layout || size < sizeof(*matLayout))
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(matLayout, 0, sizeof(*matLayout));
	layout->type = type;
	layout->rows = rows;
	layout->cols = cols;
	layout->ld = ld;
	layout->order = CUBLASLT_ORDER_COL;
	layout->batch = 1;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(
        cublasLtMatrixLayout_t *matLayout, cudaDataType type, uint64_t rows,
        uint64_t cols, int64_t ld)
{
	if (!matLayout)
		return CUBLAS_STATUS_INVALID_VALUE;
	*matLayout = calloc(1, sizeof(**matLayout));
	if (!*matLayout)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return cublasLtMatrixLayoutInit_internal(
	        *matLayout, sizeof(**matLayout), type, rows, cols, ld);
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(
        cublasLtMatrixLayout_t matLayout)
{
	free(matLayout);
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(
        cublasLtMatrixLayout_t matLayout, cublasLtMatrixLayoutAttribute_t attr,
        const void *buf, size_t sizeInBytes)
{
	return sg_blas_status(sg_lt_attr_set(layout_attrs, COUNT(layout_attrs),
	        matLayout, (int)attr, buf, sizeInBytes));
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatrixLayoutGetAttribute(
        cublasLtMatrixLayout_t matLayout, cublasLtMatrixLayoutAttribute_t attr,
        void *buf, size_t sizeInBytes, size_t *sizeWritten)
{
	return sg_blas_status(sg_lt_attr_get(layout_attrs, COUNT(layout_attrs),
	        matLayout, (int)attr, buf, sizeInBytes, sizeWritten));
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulDescInit_internal(
        cublasLtMatmulDesc_t matmulDesc, size_t size,
        cublasComputeType_t computeType, cudaDataType_t scaleType)
{
	struct sg_lt_desc *desc = (struct sg_lt_desc *)matmulDesc;

	if (!desc || size < sizeof(*matmulDesc))
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(matmulDesc, 0, sizeof(*matmulDesc));
	desc->compute = computeType;
	desc->scale_type = scaleType;
	desc->pointer_mode = CUBLASLT_POINTER_MODE_HOST;
	desc->fill_mode = CUBLAS_FILL_MODE_FULL;
	desc->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	/* -1 stands for the type of D. */
	desc->aux_type = -1;
	desc->bias_type = -1;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulDescCreate(
        cublasLtMatmulDesc_t *matmulDesc, cublasComputeType_t computeType,
        cudaDataType_t scaleType)
{
	if (!matmulDesc)
		return CUBLAS_STATUS_INVALID_VALUE;
	*matmulDesc = calloc(1, sizeof(**matmulDesc));
	if (!*matmulDesc)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return cublasLtMatmulDescInit_internal(
	        *matmulDesc, sizeof(**matmulDesc), computeType, scaleType);
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulDescDestroy(
        cublasLtMatmulDesc_t matmulDesc)
{
	free(matmulDesc);
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(
        cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr,
        const void *buf, size_t sizeInBytes)
{
	return sg_blas_status(sg_lt_attr_set(desc_attrs, COUNT(desc_attrs),
	        matmulDesc, (int)attr, buf, sizeInBytes));
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulDescGetAttribute(
        cublasLtMatmulDesc_t matmulDesc, cublasLtMatmulDescAttributes_t attr,
        void *buf, size_t sizeInBytes, size_t *sizeWritten)
{
	return sg_blas_status(sg_lt_attr_get(desc_attrs, COUNT(desc_attrs),
	        matmulDesc, (int)attr, buf, sizeInBytes, sizeWritten));
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulPreferenceInit_internal(
        cublasLtMatmulPreference_t pref, size_t size)
{
	struct sg_lt_preference *p = (struct sg_lt_preference *)pref;

	if (!p || size < sizeof(*pref))
		return CUBLAS_STATUS_INVALID_VALUE;
	memset(pref, 0, sizeof(*pref));
	p->search_mode = CUBLASLT_SEARCH_BEST_FIT;
	p->reduction_mask = CUBLASLT_REDUCTION_SCHEME_MASK;
	p->impl_mask = UINT64_MAX;
	p->align_a = 256;
	p->align_b = 256;
	p->align_c = 256;
	p->align_d = 256;
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(
        cublasLtMatmulPreference_t *pref)
{
	if (!pref)
		return CUBLAS_STATUS_INVALID_VALUE;
	*pref = calloc(1, sizeof(**pref));
	if (!*pref)
		return CUBLAS_STATUS_ALLOC_FAILED;
	return cublasLtMatmulPreferenceInit_internal(*pref, sizeof(**pref));
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(
        cublasLtMatmulPreference_t pref)
{
	free(pref);
	return CUBLAS_STATUS_SUCCESS;
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
        cublasLtMatmulPreference_t pref,
        cublasLtMatmulPreferenceAttributes_t attr, const void *buf,
        size_t sizeInBytes)
{
	return sg_blas_status(sg_lt_attr_set(preference_attrs,
	        COUNT(preference_attrs), pref, (int)attr, buf, sizeInBytes));
}

SG_BLAS_EXPORT cublasStatus_t cublasLtMatmulPreferenceGetAttribute(
        cublasLtMatmulPreference_t pref,
        cublasLtMatmulPreferenceAttributes_t attr, void *buf,
        size_t sizeInBytes, size_t *sizeWritten)
{
	return sg_blas_status(
	        sg_lt_attr_get(preference_attrs, COUNT(preference_attrs), pref,
	                (int)attr, buf, sizeInBytes, sizeWritten));
}
