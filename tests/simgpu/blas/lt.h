/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of cublasLt's semi-opaque structures. Callers may keep them on
 * their stack and copy them, so all state lies within the public size and none
 * of it is a pointer to our memory. No lock: callers do not share one that
 * they change.
 */
#ifndef SG_LT_H
#define SG_LT_H

#include <cublasLt.h>

#include "simblas.h"

struct sg_lt_layout {
	uint64_t rows, cols;
	int64_t ld, stride, plane_offset;
	uint32_t type;
	int32_t order, batch, batch_mode;
};
_Static_assert(
        sizeof(struct sg_lt_layout) <= sizeof(cublasLtMatrixLayoutOpaque_t),
        "fits into the public structure");

struct sg_lt_desc {
	uint64_t bias, aux, a_scale, b_scale, c_scale, d_scale, amax_d;
	uint64_t aux_scale, aux_amax, d_out_scale, emulation;
	int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
	int32_t compute, scale_type, pointer_mode, trans_a, trans_b, trans_c;
	int32_t fill_mode, sm_count_target, aux_type, bias_type;
	int32_t a_scale_mode, b_scale_mode, c_scale_mode, d_scale_mode;
	int32_t aux_scale_mode, d_out_scale_mode;
	uint32_t epilogue;
	int8_t fast_accum;
};
_Static_assert(sizeof(struct sg_lt_desc) <= sizeof(cublasLtMatmulDescOpaque_t),
        "fits into the public structure");

struct sg_lt_preference {
	uint64_t max_workspace_bytes, impl_mask;
	uint32_t search_mode, reduction_mask;
	uint32_t align_a, align_b, align_c, align_d;
	float max_waves;
};
_Static_assert(sizeof(struct sg_lt_preference) <=
                       sizeof(cublasLtMatmulPreferenceOpaque_t),
        "fits into the public structure");

struct sg_lt_algo {
	int32_t id, splits;
	uint32_t tile, reduction, swizzle, custom, stages;
	uint16_t inner_shape, cluster_shape;
};
_Static_assert(sizeof(struct sg_lt_algo) <= sizeof(cublasLtMatmulAlgo_t),
        "fits into the public structure");

/* One attribute: where it lies in its structure and how large it is. */
struct sg_lt_attr {
	int id;
	size_t offset, bytes;
	bool read_only;
};

/*
 * Sets or reads an attribute of a structure by its table, with the errors that
 * cublasLt documents: -EINVAL for an unknown attribute, a NULL buffer or a
 * wrong size. To read with bytes 0 asks for the size alone.
 */
int sg_lt_attr_set(const struct sg_lt_attr *table, size_t count, void *at,
        int id, const void *buf, size_t bytes);
int sg_lt_attr_get(const struct sg_lt_attr *table, size_t count, const void *at,
        int id, void *buf, size_t bytes, size_t *ret_written);

/* A matmul as cublasLtMatmul and the heuristics see it, without addresses. */
struct sg_lt_problem {
	struct simblas_gemm p;
	enum simblas_family family;
	enum simblas_class class;
};

/*
 * Fills everything but the addresses of the operands and the scalars.
 * -EINVAL if descriptor and layouts contradict each other, -ENOTSUP for what
 * is missing here (named once).
 */
int sg_lt_problem_init(struct sg_lt_problem *problem,
        const struct sg_lt_desc *desc, const struct sg_lt_layout *a,
        const struct sg_lt_layout *b, const struct sg_lt_layout *c,
        const struct sg_lt_layout *d);

/*
 * The best algorithm for the problem in this much workspace. sm_target is the
 * descriptor's SM_COUNT_TARGET, 0 for all.
 */
void sg_lt_algo_choose(const struct sg_blas_context *context,
        const struct sg_lt_problem *problem, int32_t sm_target,
        size_t workspace_bytes, struct sg_lt_algo *ret_algo);

/* Whether an algorithm can run the problem: 0, -EINVAL or -ENOTSUP. */
int sg_lt_algo_check(
        const struct sg_lt_problem *problem, const struct sg_lt_algo *algo);

#endif
