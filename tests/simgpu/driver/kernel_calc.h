/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PyTorch's OffsetCalculator as it stands among a kernel's parameters: dims,
 * 25 dividers of three words, then for each dimension a step for each argument.
 * Only its first dims entries are set; the rest is left from earlier calls.
 * Under sg_lock.
 */
#ifndef SG_KERNEL_CALC_H
#define SG_KERNEL_CALC_H

#include "tests/simgpu/driver/kernels.h"

/* Where a calculator lies: parameter, offset in it, number of arguments. */
struct sg_calculator {
	unsigned param;
	uint32_t offset;
	unsigned args;
};

uint32_t sg_calculator_bytes(unsigned args);
/* Reads the shape of one argument; its steps count units of so many bytes.
 * False if this is no calculator. */
bool sg_calculator_shape(const struct sg_sketch *sketch,
        const struct sg_calculator *at, unsigned arg, uint32_t unit_bytes,
        struct sg_shape *ret_shape);
uint64_t sg_shape_elements(const struct sg_shape *shape);
/* The shape enters the result. */
void sg_shape_scalars(struct sg_sketch *sketch, const struct sg_shape *shape);
/* Adds one argument at va as an operand, shape and all. False: no calculator.
 */
bool sg_touch_argument(struct sg_sketch *sketch, const struct sg_calculator *at,
        unsigned arg, uint32_t unit_bytes, uint64_t va, unsigned roles,
        struct sg_type type);
/* Enters a functor's values into the result; it lies at offset of a parameter
 * and takes bytes there. */
void sg_functor_scalars(struct sg_sketch *sketch,
        const struct sg_functor *functor, unsigned param, uint32_t offset,
        uint32_t bytes);

static inline uint32_t sg_align8(uint32_t n)
{
	return (n + 7) & ~7u;
}

#endif
