/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From cublasLt's descriptor and layouts to a product: checks that they agree,
 * names what is missing, and translates epilogues to operands. No state.
 */
#include "lt.h"

#include <errno.h>

static int missing(const char *what)
{
	return sg_blas_unsupported("cublasLt", what);
}

static int layout_check(const struct sg_lt_layout *l)
{
	uint64_t inner = l->order == CUBLASLT_ORDER_ROW ? l->cols : l->rows;

	if (!simblas_type_bytes(l->type))
		return missing("matmul with this data type");
	if (l->order != CUBLASLT_ORDER_COL && l->order != CUBLASLT_ORDER_ROW)
		return missing("matmul with this memory order");
	if (l->plane_offset)
		return missing("matmul with planar complex data");
	if (l->rows > INT32_MAX || l->cols > INT32_MAX)
		return missing("matmul with more than 2^31 rows or columns");
	if (l->batch < 1 || l->ld < 0 || (uint64_t)l->ld < inner)
		return -EINVAL;
	return 0;
}

static int desc_check(const struct sg_lt_desc *desc)
{
	if (desc->trans_a < 0 || desc->trans_a > CUBLAS_OP_C ||
	        desc->trans_b < 0 || desc->trans_b > CUBLAS_OP_C)
		return -EINVAL;
	if (desc->trans_c != CUBLAS_OP_N)
		return missing("matmul with a transposed C");
	if (desc->fill_mode != CUBLAS_FILL_MODE_FULL)
		return missing("matmul of a part of D (fill mode)");
	if (desc->a_scale || desc->b_scale || desc->c_scale || desc->d_scale ||
	        desc->amax_d || desc->aux_scale || desc->aux_amax ||
	        desc->d_out_scale)
		return missing("matmul with scale or amax pointers");
	if (desc->alpha_stride)
		return missing("matmul with a batch of alpha vectors");
	if (desc->emulation)
		return missing("matmul with an emulation descriptor");
	if (desc->pointer_mode < CUBLASLT_POINTER_MODE_HOST ||
	        desc->pointer_mode >
	                CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST)
		return -EINVAL;
	return 0;
}

/* Flags of the operands that an epilogue brings; -EINVAL if it is none. */
static int epilogue_flags(uint32_t epilogue, uint32_t *ret_flags)
{
	switch (epilogue) {
	case CUBLASLT_EPILOGUE_DEFAULT:
	case CUBLASLT_EPILOGUE_RELU:
	case CUBLASLT_EPILOGUE_BIAS:
	case CUBLASLT_EPILOGUE_RELU_BIAS:
	case CUBLASLT_EPILOGUE_GELU:
	case CUBLASLT_EPILOGUE_GELU_BIAS:
	case CUBLASLT_EPILOGUE_DGELU:
		*ret_flags = 0;
		return 0;
	case CUBLASLT_EPILOGUE_RELU_AUX:
	case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
		*ret_flags = SIMBLAS_AUX_OUT | SIMBLAS_AUX_BITS;
		return 0;
	case CUBLASLT_EPILOGUE_DRELU:
		*ret_flags = SIMBLAS_AUX_BITS;
		return 0;
	case CUBLASLT_EPILOGUE_DRELU_BGRAD:
		*ret_flags = SIMBLAS_AUX_BITS | SIMBLAS_BIAS_OUT;
		return 0;
	case CUBLASLT_EPILOGUE_GELU_AUX:
	case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
		*ret_flags = SIMBLAS_AUX_OUT;
		return 0;
	case CUBLASLT_EPILOGUE_DGELU_BGRAD:
	case CUBLASLT_EPILOGUE_BGRADA:
		*ret_flags = SIMBLAS_BIAS_OUT;
		return 0;
	case CUBLASLT_EPILOGUE_BGRADB:
		*ret_flags = SIMBLAS_BIAS_OUT | SIMBLAS_BIAS_COLS;
		return 0;
	default:
		return -EINVAL;
	}
}

static bool same_batch(
        const struct sg_lt_layout *l, const struct sg_lt_layout *d)
{
	return l->batch == d->batch && l->batch_mode == d->batch_mode;
}

/* Sizes of op(a), op(b), c and d must fit together. */
static int sizes_check(const struct sg_lt_desc *desc,
        const struct sg_lt_layout *a, const struct sg_lt_layout *b,
        const struct sg_lt_layout *c, const struct sg_lt_layout *d)
{
	uint64_t rows_a = desc->trans_a ? a->cols : a->rows;
	uint64_t cols_a = desc->trans_a ? a->rows : a->cols;
	uint64_t rows_b = desc->trans_b ? b->cols : b->rows;
	uint64_t cols_b = desc->trans_b ? b->rows : b->cols;

	if (rows_a != d->rows || cols_b != d->cols || cols_a != rows_b ||
	        c->rows != d->rows || c->cols != d->cols)
		return -EINVAL;
	if (!same_batch(a, d) || !same_batch(b, d) || !same_batch(c, d))
		return -EINVAL;
	return 0;
}

/* The descriptor's scale type must be one that the class takes. */
static bool scale_fits(
        cudaDataType natural, int32_t given, enum simblas_class class)
{
	return given == (int32_t)natural ||
	       (class == SIMBLAS_I8 && given == CUDA_R_32F);
}

/* -1 stands for the type of d. */
static uint32_t type_or(int32_t type, const struct sg_lt_layout *d)
{
	return type < 0 ? d->type : (uint32_t)type;
}

/* layouts are those of a, b, c and d. */
static void product_fill(struct simblas_gemm *p, const struct sg_lt_desc *desc,
        const struct sg_lt_layout *const *layouts, uint32_t flags)
{
	const struct sg_lt_layout *a = layouts[0], *b = layouts[1];
	const struct sg_lt_layout *c = layouts[2], *d = layouts[3];

	*p = (struct simblas_gemm){
	        .lda = a->ld,
	        .ldb = b->ld,
	        .ldc = c->ld,
	        .ldd = d->ld,
	        .ldaux = desc->aux_ld,
	        .stride_a = a->stride,
	        .stride_b = b->stride,
	        .stride_c = c->stride,
	        .stride_d = d->stride,
	        .stride_bias = desc->bias_stride,
	        .stride_aux = desc->aux_stride,
	        .m = (uint32_t)d->rows,
	        .n = (uint32_t)d->cols,
	        .k = (uint32_t)(desc->trans_a ? a->rows : a->cols),
	        .batch = (uint32_t)d->batch,
	        .splits = 1,
	        .trans_a = (uint32_t)desc->trans_a,
	        .trans_b = (uint32_t)desc->trans_b,
	        .type_a = a->type,
	        .type_b = b->type,
	        .type_c = c->type,
	        .type_d = d->type,
	        .type_bias = type_or(desc->bias_type, d),
	        .type_aux = type_or(desc->aux_type, d),
	        .type_scale = (uint32_t)desc->scale_type,
	        .compute = (uint32_t)desc->compute,
	        .epilogue = desc->epilogue,
	        .flags = flags,
	};
}

int sg_lt_problem_init(struct sg_lt_problem *problem,
        const struct sg_lt_desc *desc, const struct sg_lt_layout *a,
        const struct sg_lt_layout *b, const struct sg_lt_layout *c,
        const struct sg_lt_layout *d)
{
	const struct sg_lt_layout *layouts[] = {a, b, c, d};
	enum simblas_class class;
	cudaDataType scale;
	uint32_t flags;
	unsigned i;
	int err;

	if (!desc || !a || !b || !c || !d)
		return -EINVAL;
	err = desc_check(desc);
	for (i = 0; i < 4 && !err; i++)
		err = layout_check(layouts[i]);
	if (!err)
		err = sizes_check(desc, a, b, c, d);
	if (!err)
		err = epilogue_flags(desc->epilogue, &flags);
	if (err)
		return err;
	err = sg_blas_gemm_class((cudaDataType)a->type, (cudaDataType)b->type,
	        (cudaDataType)d->type, (cublasComputeType_t)desc->compute,
	        &class, &scale);
	if (err || !scale_fits(scale, desc->scale_type, class))
		return missing("matmul with these data and compute types");
	for (i = 0; i < 4; i++)
		if (layouts[i]->order == CUBLASLT_ORDER_ROW)
			flags |= SIMBLAS_ROW_A << i;
	problem->class = class;
	problem->family = SIMBLAS_GEMM;
	product_fill(&problem->p, desc, layouts, flags);
	if (d->batch_mode == CUBLASLT_BATCH_MODE_POINTER_ARRAY)
		problem->family = SIMBLAS_GEMM_BATCHED;
	else if (d->batch > 1)
		problem->family = SIMBLAS_GEMM_STRIDED;
	return 0;
}
