/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Launches of the simulated cuBLAS: accesses and time from the parameters as
 * simblas_params.h describes them. Called under sg_lock.
 */
#include "tests/simgpu/blas/simblas_params.h"
#include "tests/simgpu/driver/code.h"
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/kernels.h"

#include <stdlib.h>
#include <string.h>

static const enum sg_dtype peak_type[SIMBLAS_CLASSES] = {
        [SIMBLAS_F32] = SG_F32,
        [SIMBLAS_TF32] = SG_TF32,
        [SIMBLAS_F16] = SG_F16,
        [SIMBLAS_BF16] = SG_BF16,
        [SIMBLAS_F64] = SG_F64,
        [SIMBLAS_I8] = SG_I8,
        [SIMBLAS_C32] = SG_F32,
        [SIMBLAS_C64] = SG_F64,
};

static void touch(struct sg_op *op, uint64_t va, uint64_t bytes, unsigned roles)
{
	if (va && bytes)
		sg_op_add_access(op, va, bytes, roles & SIMBLAS_READ,
		        roles & SIMBLAS_WRITE, true);
}

/* A table of pointers and what they lead to; without content not known. */
static void follow(struct sg_op *op, const struct simblas_operand *x)
{
	uint64_t *words = sg_xcalloc(x->count, sizeof(*words));
	bool known = sg_content_words(x->address, x->count, words);

	touch(op, x->address, (uint64_t)x->count * 8, SIMBLAS_READ);
	op->accesses[op->n_accesses - 1].addresses = true;
	for (unsigned i = 0; known && i < x->count; i++)
		touch(op, words[i], x->bytes, x->roles);
	free(words);
}

/*
 * One operand: a single range from its first to its last byte, which takes in
 * the gaps of a strided batch. Returns the bytes really moved; the same range
 * for every product of a batch (step 0) is moved once.
 */
static uint64_t add_operand(struct sg_op *op, const struct simblas_operand *x)
{
	int64_t reach = x->step_bytes * (int64_t)(x->count ? x->count - 1 : 0);

	if (!x->count)
		return 0;
	if (x->indirect) {
		follow(op, x);
		return x->payload_bytes * x->count;
	}
	touch(op, reach < 0 ? x->address + (uint64_t)reach : x->address,
	        x->bytes + (uint64_t)(reach < 0 ? -reach : reach), x->roles);
	return x->step_bytes ? x->payload_bytes * x->count : x->payload_bytes;
}

static void describe_gemm(enum simblas_family family, enum simblas_class class,
        const struct sg_launch *launch, struct sg_op *op)
{
	struct simblas_operand operands[SIMBLAS_MAX_OPERANDS];
	const struct sg_model *model = &op->dev->model;
	struct simblas_gemm gemm;
	uint64_t bytes = 0;
	unsigned n;

	memcpy(&gemm, launch->params, SIMBLAS_GEMM_BYTES);
	n = simblas_gemm_operands(&gemm, family, operands);
	for (unsigned i = 0; i < n; i++)
		bytes += add_operand(op, &operands[i]);
	op->fixed_ns = sg_cost_roofline_ns(model,
	        simblas_gemm_flops(&gemm, family, class), peak_type[class],
	        model->gemm_efficiency, (double)bytes);
}

/* Bytes from the first to past the last of n elements inc apart. */
static uint64_t vector_bytes(int64_t n, int64_t inc, uint32_t element)
{
	if (n <= 0)
		return 0;
	return ((uint64_t)(n - 1) * (uint64_t)(inc < 0 ? -inc : inc) + 1) *
	       element;
}

static void describe_gemv(enum simblas_class class,
        const struct sg_launch *launch, struct sg_op *op)
{
	const struct sg_model *model = &op->dev->model;
	bool is_complex = class == SIMBLAS_C32 || class == SIMBLAS_C64;
	uint64_t matrix, x, y, elements;
	struct simblas_gemv gemv;
	uint32_t element;
	bool reads_y;

	memcpy(&gemv, launch->params, sizeof(gemv));
	element = simblas_type_bytes(gemv.type);
	elements = (uint64_t)gemv.m * gemv.n;
	matrix = simblas_matrix_bytes(
	        gemv.m, gemv.n, gemv.lda, false, gemv.type);
	x = vector_bytes(gemv.trans ? gemv.m : gemv.n, gemv.incx, element);
	y = vector_bytes(gemv.trans ? gemv.n : gemv.m, gemv.incy, element);
	reads_y = gemv.beta_ptr || gemv.beta_re != 0 || gemv.beta_im != 0;
	touch(op, gemv.a, matrix, SIMBLAS_READ);
	touch(op, gemv.x, x, SIMBLAS_READ);
	touch(op, gemv.y, y,
	        reads_y ? SIMBLAS_READ | SIMBLAS_WRITE : SIMBLAS_WRITE);
	touch(op, gemv.alpha_ptr, element, SIMBLAS_READ);
	touch(op, gemv.beta_ptr, element, SIMBLAS_READ);
	op->fixed_ns = sg_cost_roofline_ns(model,
	        (double)elements * (is_complex ? 8 : 2), peak_type[class],
	        model->gemm_efficiency,
	        (double)(elements * element + x + y * (reads_y ? 2 : 1)));
}

static void describe_vec(const struct sg_launch *launch, struct sg_op *op)
{
	static const struct {
		const char *name;
		unsigned x, y, result;
	} uses[] = {
	        {"simblas_axpy", SIMBLAS_READ, SIMBLAS_READ | SIMBLAS_WRITE, 0},
	        {"simblas_scal", SIMBLAS_READ | SIMBLAS_WRITE, 0, 0},
	        {"simblas_copy", SIMBLAS_READ, SIMBLAS_WRITE, 0},
	        {"simblas_swap", SIMBLAS_READ | SIMBLAS_WRITE,
	                SIMBLAS_READ | SIMBLAS_WRITE, 0},
	        {"simblas_dot", SIMBLAS_READ, SIMBLAS_READ, SIMBLAS_WRITE},
	        {"simblas_nrm2", SIMBLAS_READ, 0, SIMBLAS_WRITE},
	        {"simblas_asum", SIMBLAS_READ, 0, SIMBLAS_WRITE},
	};
	struct simblas_vec vec;
	uint32_t element;
	uint64_t x, y;

	memcpy(&vec, launch->params, sizeof(vec));
	element = simblas_type_bytes(vec.type);
	x = vector_bytes(vec.n, vec.incx, element);
	y = vector_bytes(vec.n, vec.incy, element);
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		unsigned moves_x, moves_y;

		if (strcmp(uses[i].name, launch->fn->name))
			continue;
		if (uses[i].x)
			touch(op, vec.x, x, uses[i].x);
		if (uses[i].y)
			touch(op, vec.y, y, uses[i].y);
		if (uses[i].result)
			touch(op, vec.result, element, uses[i].result);
		/* A range that is read and written moves twice. */
		moves_x = (uses[i].x & 1) + (uses[i].x >> 1);
		moves_y = (uses[i].y & 1) + (uses[i].y >> 1);
		op->fixed_ns = sg_cost_bytes_ns(
		        &op->dev->model, (double)(x * moves_x + y * moves_y));
	}
	touch(op, vec.alpha_ptr, element, SIMBLAS_READ);
}

void sg_blas_describe(const struct sg_kernel_row *row,
        const struct sg_launch *launch, struct sg_op *op)
{
	enum simblas_family family = row->argument / 16;
	enum simblas_class class = row->argument % 16;
	uint32_t need = family == SIMBLAS_VEC    ? SIMBLAS_VEC_BYTES
	                : family == SIMBLAS_GEMV ? SIMBLAS_GEMV_BYTES
	                                         : SIMBLAS_GEMM_BYTES;

	/* Another program's kernel of that name. */
	if (launch->fn->params_bytes < need) {
		op->fixed_ns = sg_cost_bytes_ns(&op->dev->model, 0);
		return;
	}
	if (family == SIMBLAS_VEC)
		describe_vec(launch, op);
	else if (family == SIMBLAS_GEMV)
		describe_gemv(class, launch, op);
	else
		describe_gemm(family, class, launch, op);
}
