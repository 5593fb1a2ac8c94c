/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel table (kernels.def) as its readers see it: kernels.c looks rows
 * up and makes an op's accesses, cost.c its time. Constant data; launches are
 * described under sg_lock.
 */
#ifndef SG_KERNELS_H
#define SG_KERNELS_H

#include "tests/simgpu/driver/kernel_names.h"
#include "tests/simgpu/driver/sg.h"

/* How a kernel's operands and time are found. */
enum sg_rule {
	SG_RULE_LISTED,             /* operands listed; time by their bytes */
	SG_RULE_BLAS,               /* operands and sizes by simblas_params.h */
	SG_RULE_FLASH_FORWARD,      /* FlashAttention, Flash_fwd_params */
	SG_RULE_FLASH_BACKWARD,     /* FlashAttention, Flash_bwd_params */
	SG_RULE_EFFICIENT_FORWARD,  /* memory-efficient attention's Params */
	SG_RULE_EFFICIENT_BACKWARD, /* the same, backward */
	SG_RULE_VECTORIZED,         /* TensorIterator, contiguous */
	SG_RULE_UNROLLED,           /* the same with conversions, strides */
	SG_RULE_LEGACY,             /* TensorIterator, any strides */
	SG_RULE_INDEX,              /* indexing by tensors */
	SG_RULE_GATHER,             /* gather and scatter */
	SG_RULE_SCATTER_FILL,       /* scatter of one value */
	SG_RULE_FLIP,               /* reversed dimensions */
	SG_RULE_CONCATENATE,        /* CatArrayBatchedCopy */
	SG_RULE_REDUCE,             /* ReduceOp */
	SG_RULE_FOREACH,            /* multi_tensor_apply */
	SG_RULE_SCALE,              /* listed; a gradient scaler's factor */
	SG_RULE_COORDINATES,        /* write_indices of nonzero */
	SG_RULE_PROOF,              /* looks at memory; kernel_proof.h */
	SG_RULE_COLLECTIVE,         /* ranks exchange memory; collective.h */
};

enum {
	SG_OPERAND_READ = 1,
	SG_OPERAND_WRITE = 2,
	SG_OPERAND_IF_LIVE = 4, /* may be no pointer: left out then */
};
#define SG_TO_BLOCK_END UINT64_MAX

struct sg_kernel_row {
	const char *pattern;        /* over the demangled name; * is any text */
	uint32_t first_param_bytes; /* 0: any */
	enum sg_rule rule;
	/* FlashAttention: which template argument says that it is causal,
	 * counted after the traits. Memory-efficient attention: offset of the
	 * kind of mask. BLAS: family * 16 + class. */
	int argument;
	const char *operands; /* kernels.def has the notation */
};

/* A kernel without a row, or with parameters its row does not know. Lives as
 * long as the process: modules keep their code. */
struct sg_unknown {
	const char *mangled, *name;
	int device;
	uint64_t launches;
	struct sg_unknown *next, *next_of_hash;
};
const struct sg_unknown *sg_unknown_first(void);

/* A launch whose operands are being found. */
struct sg_sketch {
	const struct sg_launch *launch;
	struct sg_op *op;
	uint64_t bytes;          /* moved, so far */
	struct sg_values values; /* of what is touched next */
};
/* Adds an operand. No memory at all where va is 0; it ends with its block, and
 * is uncertain if it was said to reach further. */
void sg_touch(struct sg_sketch *sketch, uint64_t va, uint64_t bytes,
        unsigned roles, struct sg_type type);
/* A value that enters the result. */
void sg_scalar(struct sg_sketch *sketch, const void *value, size_t bytes);

#define SG_DIMS 25 /* as PyTorch has at most */
struct sg_shape {
	unsigned dims;
	uint64_t sizes[SG_DIMS];
	int64_t steps[SG_DIMS]; /* in bytes */
};
/* Adds an operand whose elements lie apart: run by run, or, if there are many,
 * as one uncertain range, which a writer then also reads: the gaps stay. */
void sg_touch_shape(struct sg_sketch *sketch, uint64_t va,
        const struct sg_shape *shape, struct sg_type type, unsigned roles);

/* Finds the operands a row lists (kernel_operands.c). What a function's name
 * decides of them is found once and kept with it. */
void sg_list_operands(
        const struct sg_kernel_row *row, struct sg_sketch *sketch);
/* Rules of PyTorch's kernel templates (kernel_iter.c, kernel_index.c,
 * kernel_foreach.c). False: parameters are not as expected. */
bool sg_rule_vectorized(struct sg_sketch *sketch);
bool sg_rule_unrolled(struct sg_sketch *sketch);
bool sg_rule_legacy(struct sg_sketch *sketch);
bool sg_rule_index(struct sg_sketch *sketch);
bool sg_rule_gather(struct sg_sketch *sketch);
bool sg_rule_scatter_fill(struct sg_sketch *sketch);
bool sg_rule_flip(struct sg_sketch *sketch);
bool sg_rule_concatenate(struct sg_sketch *sketch);
bool sg_rule_coordinates(struct sg_sketch *sketch);
bool sg_rule_reduce(struct sg_sketch *sketch);
bool sg_rule_foreach(struct sg_sketch *sketch);

/* A kernel's time, the latency included. bytes: of the operands' ranges. */
uint64_t sg_cost_kernel_ns(const struct sg_kernel_row *row,
        const struct sg_launch *launch, const struct sg_model *model,
        uint64_t bytes);

/* Reads size bytes at offset of a parameter; zeros where it has none. */
void sg_param_read(const struct sg_launch *launch, unsigned param,
        uint32_t offset, void *out, size_t size);
/* The same as a number: int32_t, or 8 bytes. */
int64_t sg_param_int(
        const struct sg_launch *launch, unsigned param, uint32_t offset);
uint64_t sg_param_word(
        const struct sg_launch *launch, unsigned param, uint32_t offset);
/* A parameter's size; 0 if there is none. */
uint32_t sg_param_bytes(const struct sg_launch *launch, unsigned param);

/* Accesses and time of a launch of the simulated cuBLAS (kernels_blas.c). */
void sg_blas_describe(const struct sg_kernel_row *row,
        const struct sg_launch *launch, struct sg_op *op);

/* The tensor map that begins at params, of which bytes are left: how far the
 * tensor reaches from *ret_va on; 0: none. */
uint64_t sg_tensor_map_at(
        const unsigned char *params, uint32_t bytes, uint64_t *ret_va);

#endif
