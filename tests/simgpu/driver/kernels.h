/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel table (kernels.def) as its readers see it: kernels.c looks rows
 * up and makes an op's accesses, cost.c its time. Constant data; launches are
 * described under sg_lock.
 */
#ifndef SG_KERNELS_H
#define SG_KERNELS_H

#include "tests/simgpu/driver/sg.h"

/* How a kernel's operands and time are found. */
enum sg_rule {
	SG_RULE_BYTES,              /* operands listed; time by their bytes */
	SG_RULE_BLAS,               /* operands and sizes by simblas_params.h */
	SG_RULE_FLASH_FORWARD,      /* FlashAttention, Flash_fwd_params */
	SG_RULE_FLASH_BACKWARD,     /* FlashAttention, Flash_bwd_params */
	SG_RULE_EFFICIENT_FORWARD,  /* memory-efficient attention's Params */
	SG_RULE_EFFICIENT_BACKWARD, /* the same, backward */
	SG_RULE_CONCATENATE,        /* output, array of inputs; grid.y in use */
};

enum {
	SG_OPERAND_READ = 1,
	SG_OPERAND_WRITE = 2,
	SG_OPERAND_IF_LIVE = 4, /* may be no pointer: left out then */
};

/*
 * A pointer among the parameters: which parameter, where in it, and how it is
 * used. It reaches from there to the end of its block; a null pointer is an
 * operand left out.
 */
struct sg_operand {
	uint16_t param, offset_bytes;
	uint8_t roles;
};

struct sg_kernel_row {
	const char *pattern;        /* over the demangled name; * is any text */
	uint32_t first_param_bytes; /* 0: any */
	enum sg_rule rule;
	/* FlashAttention: which template argument says that it is causal,
	 * counted after the traits. Memory-efficient attention: offset of the
	 * kind of mask. BLAS: family * 16 + class. */
	int argument;
	const struct sg_operand *operands;
	unsigned n_operands;
};

/* Does all of text match pattern, * standing for any run of characters? */
bool sg_glob(const char *pattern, const char *text);

/* A kernel's time, the latency included. bytes: of the operands' ranges. */
uint64_t sg_cost_kernel_ns(const struct sg_kernel_row *row,
        const struct sg_launch *launch, const struct sg_model *model,
        uint64_t bytes);

/* Reads size bytes at offset of a parameter; zeros where it has none. */
void sg_param_read(const struct sg_launch *launch, unsigned param,
        uint32_t offset, void *out, size_t size);

/* Accesses and time of a launch of the simulated cuBLAS (kernels_blas.c). */
void sg_blas_describe(const struct sg_kernel_row *row,
        const struct sg_launch *launch, struct sg_op *op);

#endif
