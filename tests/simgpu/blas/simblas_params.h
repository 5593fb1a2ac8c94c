/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters of the kernels of the simulated cuBLAS.
 *
 * Owns the one description of every kernel that libcublas.so.13 and
 * libcublasLt.so.13 of the simulated GPU launch: its name, its family, its
 * arithmetic class and the order of its parameters. The libraries make their
 * PTX text and their launch arrays from it, and the simulated driver reads
 * sizes, types and operands from it, so the two cannot drift apart.
 *
 * Each parameter is one PTX parameter. They are sorted by size, largest
 * first, so the parameter buffer of a launch is exactly the C struct below:
 * a driver may copy the buffer over the struct.
 *
 * Pure data and arithmetic; no thread, no lock, no CUDA call.
 */
#ifndef SIMBLAS_PARAMS_H
#define SIMBLAS_PARAMS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Element types, compute types, epilogues and transpose codes are the
 * numbers of the public headers: cudaDataType, cublasComputeType_t,
 * cublasLtEpilogue_t and cublasOperation_t (0 N, 1 T, 2 C).
 */

/* Arithmetic class: which peak rate of the device a GEMM is held to. */
enum simblas_class {
	SIMBLAS_F32,  /* fp32 on the plain cores */
	SIMBLAS_TF32, /* fp32 operands on the tensor cores */
	SIMBLAS_F16,
	SIMBLAS_BF16,
	SIMBLAS_F64,
	SIMBLAS_I8,
	SIMBLAS_C32, /* complex of two fp32 */
	SIMBLAS_C64, /* complex of two fp64 */
	SIMBLAS_CLASSES
};

enum simblas_family {
	SIMBLAS_GEMM,          /* struct simblas_gemm, one product */
	SIMBLAS_GEMM_STRIDED,  /* the same, batch products by strides */
	SIMBLAS_GEMM_BATCHED,  /* a, b, c, d: device arrays of pointers */
	SIMBLAS_GEMM_SPLITK,   /* partial sums into workspace only */
	SIMBLAS_SPLITK_REDUCE, /* workspace, c, bias, aux -> d */
	SIMBLAS_GEMV,          /* struct simblas_gemv */
	SIMBLAS_VEC            /* struct simblas_vec */
};

/* Flags of struct simblas_gemm. */
#define SIMBLAS_ROW_A (1u << 0) /* row-major; a to d in this order */
#define SIMBLAS_ROW_B (1u << 1)
#define SIMBLAS_ROW_C (1u << 2)
#define SIMBLAS_ROW_D (1u << 3)
#define SIMBLAS_ALPHA_VECTOR                                                   \
	(1u << 4)                   /* alpha_ptr, beta_ptr: one per row of d */
#define SIMBLAS_BIAS_OUT  (1u << 5) /* bias is written: a gradient */
#define SIMBLAS_AUX_OUT   (1u << 6) /* aux is written, else read */
#define SIMBLAS_AUX_BITS  (1u << 7) /* aux: one bit an element */
#define SIMBLAS_BIAS_COLS (1u << 8) /* bias: one per column of d */

/*
 * d = epilogue(alpha * op(a) * op(b) + beta * c + bias), column-major unless
 * flagged: op(a) is m x k, op(b) k x n, c and d m x n.
 *
 * A pointer that the kernel does not touch is 0. c is set even if beta is 0,
 * as in the real library; simblas_gemm_reads_c() tells. alpha_ptr and beta_ptr
 * are set in device pointer mode and then alpha_* and beta_* are 0. Leading
 * dimensions and strides count elements. workspace_bytes is what the launch
 * uses, not what the caller lent.
 */
#define SIMBLAS_GEMM_PARAMS(PTR, S64, U64, F64, U32, SEP)                      \
	PTR(a) SEP PTR(b)                                                      \
	SEP PTR(c)                                                             \
	SEP PTR(d)                                                             \
	SEP PTR(bias)                                                          \
	SEP PTR(aux)                                                           \
	SEP PTR(workspace)                                                     \
	SEP PTR(alpha_ptr)                                                     \
	SEP PTR(beta_ptr)                                                      \
	SEP S64(lda)                                                           \
	SEP S64(ldb)                                                           \
	SEP S64(ldc)                                                           \
	SEP S64(ldd)                                                           \
	SEP S64(ldaux)                                                         \
	SEP S64(stride_a)                                                      \
	SEP S64(stride_b)                                                      \
	SEP S64(stride_c)                                                      \
	SEP S64(stride_d)                                                      \
	SEP S64(stride_bias)                                                   \
	SEP S64(stride_aux)                                                    \
	SEP U64(workspace_bytes)                                               \
	SEP F64(alpha_re)                                                      \
	SEP F64(alpha_im)                                                      \
	SEP F64(beta_re)                                                       \
	SEP F64(beta_im)                                                       \
	SEP U32(m)                                                             \
	SEP U32(n)                                                             \
	SEP U32(k)                                                             \
	SEP U32(batch)                                                         \
	SEP U32(splits)                                                        \
	SEP U32(trans_a)                                                       \
	SEP U32(trans_b)                                                       \
	SEP U32(type_a)                                                        \
	SEP U32(type_b)                                                        \
	SEP U32(type_c)                                                        \
	SEP U32(type_d)                                                        \
	SEP U32(type_bias)                                                     \
	SEP U32(type_aux)                                                      \
	SEP U32(type_scale)                                                    \
	SEP U32(compute)                                                       \
	SEP U32(epilogue)                                                      \
	SEP U32(flags)

/* y = alpha * op(a) * x + beta * y; a is m x n as stored. */
#define SIMBLAS_GEMV_PARAMS(PTR, S64, U64, F64, U32, SEP)                      \
	PTR(a) SEP PTR(x)                                                      \
	SEP PTR(y)                                                             \
	SEP PTR(alpha_ptr)                                                     \
	SEP PTR(beta_ptr)                                                      \
	SEP S64(lda)                                                           \
	SEP S64(incx)                                                          \
	SEP S64(incy)                                                          \
	SEP F64(alpha_re)                                                      \
	SEP F64(alpha_im)                                                      \
	SEP F64(beta_re)                                                       \
	SEP F64(beta_im)                                                       \
	SEP U32(m)                                                             \
	SEP U32(n)                                                             \
	SEP U32(trans)                                                         \
	SEP U32(type)

/* Vector kernels; the name says which of x, y and result are touched. */
#define SIMBLAS_VEC_PARAMS(PTR, S64, U64, F64, U32, SEP)                       \
	PTR(x) SEP PTR(y)                                                      \
	SEP PTR(result)                                                        \
	SEP PTR(alpha_ptr)                                                     \
	SEP S64(n)                                                             \
	SEP S64(incx)                                                          \
	SEP S64(incy)                                                          \
	SEP F64(alpha_re)                                                      \
	SEP F64(alpha_im)                                                      \
	SEP U32(type)                                                          \
	SEP U32(conjugate)

#define SIMBLAS_FIELD_U64(name) uint64_t name;
#define SIMBLAS_FIELD_S64(name) int64_t name;
#define SIMBLAS_FIELD_F64(name) double name;
#define SIMBLAS_FIELD_U32(name) uint32_t name;
#define SIMBLAS_FIELDS(LIST)                                                   \
	LIST(SIMBLAS_FIELD_U64, SIMBLAS_FIELD_S64, SIMBLAS_FIELD_U64,          \
	        SIMBLAS_FIELD_F64, SIMBLAS_FIELD_U32, )

struct simblas_gemm {
	SIMBLAS_FIELDS(SIMBLAS_GEMM_PARAMS)
};

struct simblas_gemv {
	SIMBLAS_FIELDS(SIMBLAS_GEMV_PARAMS)
};

struct simblas_vec {
	SIMBLAS_FIELDS(SIMBLAS_VEC_PARAMS)
};

/*
 * Bytes of a parameter buffer. That of a GEMM ends before the padding at the
 * end of its struct: not all of the struct may be read from it.
 */
#define SIMBLAS_GEMM_BYTES ((size_t)(25 * 8 + 17 * 4))
#define SIMBLAS_GEMV_BYTES sizeof(struct simblas_gemv)
#define SIMBLAS_VEC_BYTES  sizeof(struct simblas_vec)

static_assert(SIMBLAS_GEMM_BYTES ==
                      offsetof(struct simblas_gemm, flags) + sizeof(uint32_t),
        "the parameter buffer is the struct, but for padding at its end");
static_assert(sizeof(struct simblas_gemv) == 12 * 8 + 4 * 4,
        "the parameter buffer is the struct");
static_assert(sizeof(struct simblas_vec) == 9 * 8 + 2 * 4,
        "the parameter buffer is the struct");

/*
 * Every kernel: K(name, family, class). Vector kernels have their element
 * type as a parameter; their class here is not meaningful. What they touch:
 *   axpy  x read, y read and written     scal  x read and written
 *   copy  x read, y written              swap  x and y read and written
 *   dot   x and y read, result written   nrm2, asum  x read, result written
 */
#define SIMBLAS_GEMM_KERNELS(K, suffix, class)                                 \
	K(simblas_gemm_##suffix, SIMBLAS_GEMM, class)                          \
	K(simblas_gemm_strided_##suffix, SIMBLAS_GEMM_STRIDED, class)          \
	K(simblas_gemm_batched_##suffix, SIMBLAS_GEMM_BATCHED, class)          \
	K(simblas_gemm_splitk_##suffix, SIMBLAS_GEMM_SPLITK, class)            \
	K(simblas_splitk_reduce_##suffix, SIMBLAS_SPLITK_REDUCE, class)

#define SIMBLAS_KERNELS(K)                                                     \
	SIMBLAS_GEMM_KERNELS(K, f32, SIMBLAS_F32)                              \
	SIMBLAS_GEMM_KERNELS(K, tf32, SIMBLAS_TF32)                            \
	SIMBLAS_GEMM_KERNELS(K, f16, SIMBLAS_F16)                              \
	SIMBLAS_GEMM_KERNELS(K, bf16, SIMBLAS_BF16)                            \
	SIMBLAS_GEMM_KERNELS(K, f64, SIMBLAS_F64)                              \
	SIMBLAS_GEMM_KERNELS(K, i8, SIMBLAS_I8)                                \
	SIMBLAS_GEMM_KERNELS(K, c32, SIMBLAS_C32)                              \
	SIMBLAS_GEMM_KERNELS(K, c64, SIMBLAS_C64)                              \
	K(simblas_gemv_f32, SIMBLAS_GEMV, SIMBLAS_F32)                         \
	K(simblas_gemv_f64, SIMBLAS_GEMV, SIMBLAS_F64)                         \
	K(simblas_gemv_c32, SIMBLAS_GEMV, SIMBLAS_C32)                         \
	K(simblas_gemv_c64, SIMBLAS_GEMV, SIMBLAS_C64)                         \
	K(simblas_axpy, SIMBLAS_VEC, SIMBLAS_F32)                              \
	K(simblas_scal, SIMBLAS_VEC, SIMBLAS_F32)                              \
	K(simblas_copy, SIMBLAS_VEC, SIMBLAS_F32)                              \
	K(simblas_swap, SIMBLAS_VEC, SIMBLAS_F32)                              \
	K(simblas_dot, SIMBLAS_VEC, SIMBLAS_F32)                               \
	K(simblas_nrm2, SIMBLAS_VEC, SIMBLAS_F32)                              \
	K(simblas_asum, SIMBLAS_VEC, SIMBLAS_F32)

/* How a launch touches an operand. */
#define SIMBLAS_READ  1u
#define SIMBLAS_WRITE 2u

/*
 * One operand of a launch: count ranges of bytes, the i-th at
 * address + i * step_bytes. With indirect set, address is a device array of
 * count pointers, each to bytes. step_bytes may be negative. Of each range,
 * payload_bytes are touched; the rest are gaps between columns.
 */
struct simblas_operand {
	uint64_t address;
	uint64_t bytes, payload_bytes;
	int64_t step_bytes;
	uint32_t count;
	uint32_t roles;
	bool indirect;
};

#define SIMBLAS_MAX_OPERANDS 9

/* Bytes of one element of a cudaDataType; 0 for a type not used here. */
static inline uint32_t simblas_type_bytes(uint32_t type)
{
	switch (type) {
	case 3: /* CUDA_R_8I */
	case 8: /* CUDA_R_8U */
		return 1;
	case 2:  /* CUDA_R_16F */
	case 14: /* CUDA_R_16BF */
		return 2;
	case 0:  /* CUDA_R_32F */
	case 6:  /* CUDA_C_16F */
	case 10: /* CUDA_R_32I */
	case 15: /* CUDA_C_16BF */
		return 4;
	case 1: /* CUDA_R_64F */
	case 4: /* CUDA_C_32F */
		return 8;
	case 5: /* CUDA_C_64F */
		return 16;
	default:
		return 0;
	}
}

/* Bytes from the first to past the last element of a strided matrix. */
static inline uint64_t simblas_matrix_bytes(
        uint64_t rows, uint64_t cols, int64_t ld, bool row_major, uint32_t type)
{
	uint64_t inner = row_major ? cols : rows;
	uint64_t outer = row_major ? rows : cols;

	if (!inner || !outer)
		return 0;
	return ((outer - 1) * (uint64_t)ld + inner) * simblas_type_bytes(type);
}

/* Whether beta may be other than zero; in device memory it may. */
static inline bool simblas_beta_nonzero(const struct simblas_gemm *p)
{
	return p->beta_ptr || p->beta_re != 0 || p->beta_im != 0;
}

/* Whether the old content of c matters to the result. */
static inline bool simblas_gemm_reads_c(const struct simblas_gemm *p)
{
	return p->c && simblas_beta_nonzero(p);
}

/*
 * Floating-point operations of a launch of this family: two for a
 * multiply-add, eight if complex. The reduction after a split is bound by
 * bytes and counts one addition an element and split.
 */
static inline double simblas_gemm_flops(const struct simblas_gemm *p,
        enum simblas_family family, enum simblas_class rate)
{
	double mn = (double)p->m * p->n * p->batch;
	bool is_complex = rate == SIMBLAS_C32 || rate == SIMBLAS_C64;

	if (family == SIMBLAS_SPLITK_REDUCE)
		return mn * p->splits;
	return mn * p->k * (is_complex ? 8 : 2);
}

/* An operand that is one range without gaps. */
static inline struct simblas_operand simblas_range(
        uint64_t address, uint64_t bytes, uint32_t roles)
{
	return (struct simblas_operand){
	        .address = address,
	        .bytes = bytes,
	        .payload_bytes = bytes,
	        .count = 1,
	        .roles = roles,
	};
}

/* A matrix of each product of p; stride counts elements. */
static inline struct simblas_operand simblas_matrix(
        const struct simblas_gemm *p, uint64_t address, uint64_t rows,
        uint64_t cols, int64_t ld, int64_t stride, bool row_major,
        uint32_t type, uint32_t roles)
{
	uint32_t element = simblas_type_bytes(type);

	return (struct simblas_operand){
	        .address = address,
	        .bytes = simblas_matrix_bytes(rows, cols, ld, row_major, type),
	        .payload_bytes = rows * cols * element,
	        .step_bytes = stride * (int64_t)element,
	        .count = p->batch,
	        .roles = roles,
	};
}

/* Bias and auxiliary matrix; returns how many of the two there are. */
static inline unsigned simblas_epilogue_operands(
        const struct simblas_gemm *p, struct simblas_operand *out)
{
	uint32_t bias_role =
	        p->flags & SIMBLAS_BIAS_OUT ? SIMBLAS_WRITE : SIMBLAS_READ;
	uint32_t aux_role =
	        p->flags & SIMBLAS_AUX_OUT ? SIMBLAS_WRITE : SIMBLAS_READ;
	unsigned count = 0;

	if (p->bias)
		out[count++] = simblas_matrix(p, p->bias,
		        p->flags & SIMBLAS_BIAS_COLS ? p->n : p->m, 1, 0,
		        p->stride_bias, false, p->type_bias, bias_role);
	if (p->aux && p->flags & SIMBLAS_AUX_BITS) {
		out[count] = simblas_range(
		        p->aux, (uint64_t)p->ldaux / 8 * p->n, aux_role);
		out[count].step_bytes = p->stride_aux / 8;
		out[count++].count = p->batch;
	} else if (p->aux) {
		out[count++] = simblas_matrix(p, p->aux, p->m, p->n, p->ldaux,
		        p->stride_aux, false, p->type_aux, aux_role);
	}
	return count;
}

/*
 * Writes the operands of a GEMM launch of this family to out, which has room
 * for SIMBLAS_MAX_OPERANDS, and returns how many there are. An operand that
 * is read and written in place (c is d) is listed once for each.
 */
static inline unsigned simblas_gemm_operands(const struct simblas_gemm *p,
        enum simblas_family family, struct simblas_operand *out)
{
	bool partial = family == SIMBLAS_GEMM_SPLITK;
	uint64_t scale_bytes = simblas_type_bytes(p->type_scale);
	unsigned count = 0, matrices, i;

	if (family != SIMBLAS_SPLITK_REDUCE) {
		out[count++] = simblas_matrix(p, p->a, p->trans_a ? p->k : p->m,
		        p->trans_a ? p->m : p->k, p->lda, p->stride_a,
		        p->flags & SIMBLAS_ROW_A, p->type_a, SIMBLAS_READ);
		out[count++] = simblas_matrix(p, p->b, p->trans_b ? p->n : p->k,
		        p->trans_b ? p->k : p->n, p->ldb, p->stride_b,
		        p->flags & SIMBLAS_ROW_B, p->type_b, SIMBLAS_READ);
	}
	if (!partial && simblas_gemm_reads_c(p))
		out[count++] = simblas_matrix(p, p->c, p->m, p->n, p->ldc,
		        p->stride_c, p->flags & SIMBLAS_ROW_C, p->type_c,
		        SIMBLAS_READ);
	if (!partial)
		out[count++] = simblas_matrix(p, p->d, p->m, p->n, p->ldd,
		        p->stride_d, p->flags & SIMBLAS_ROW_D, p->type_d,
		        SIMBLAS_WRITE);
	matrices = count;
	for (i = 0; i < matrices; i++)
		out[i].indirect = family == SIMBLAS_GEMM_BATCHED;
	if (p->workspace)
		out[count++] = simblas_range(p->workspace, p->workspace_bytes,
		        partial ? SIMBLAS_WRITE : SIMBLAS_READ);
	if (partial)
		return count;
	count += simblas_epilogue_operands(p, out + count);
	if (p->flags & SIMBLAS_ALPHA_VECTOR)
		scale_bytes *= p->m;
	if (p->alpha_ptr)
		out[count++] =
		        simblas_range(p->alpha_ptr, scale_bytes, SIMBLAS_READ);
	if (p->beta_ptr)
		out[count++] =
		        simblas_range(p->beta_ptr, scale_bytes, SIMBLAS_READ);
	return count;
}

#endif
