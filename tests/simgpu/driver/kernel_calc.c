/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Offset calculators and the functors beside them. No state; under sg_lock.
 */
#include "tests/simgpu/driver/kernel_calc.h"

#include <string.h>

#define CALCULATOR_SIZES 4
#define CALCULATOR_STEPS (CALCULATOR_SIZES + SG_DIMS * 12)
uint32_t sg_calculator_bytes(unsigned args)
{
	return CALCULATOR_STEPS + SG_DIMS * 4 * args;
}

bool sg_calculator_shape(const struct sg_sketch *sketch,
        const struct sg_calculator *at, unsigned arg, uint32_t unit_bytes,
        struct sg_shape *ret_shape)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_shape shape = {
	        .dims = (unsigned)sg_param_int(launch, at->param, at->offset),
	};

	if (shape.dims > SG_DIMS)
		return false;
	for (unsigned i = 0; i < shape.dims; i++) {
		uint32_t size_at = at->offset + CALCULATOR_SIZES + i * 12;
		uint32_t step_at = at->offset + CALCULATOR_STEPS +
		                   (i * at->args + arg) * 4;

		shape.sizes[i] =
		        (uint32_t)sg_param_int(launch, at->param, size_at);
		shape.steps[i] = sg_param_int(launch, at->param, step_at) *
		                 (int64_t)unit_bytes;
		if (!shape.sizes[i])
			return false;
	}
	*ret_shape = shape;
	return true;
}

uint64_t sg_shape_elements(const struct sg_shape *shape)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < shape->dims; i++)
		n *= shape->sizes[i];
	return n;
}

void sg_shape_scalars(struct sg_sketch *sketch, const struct sg_shape *shape)
{
	sg_scalar(sketch, shape->sizes, shape->dims * sizeof(shape->sizes[0]));
	sg_scalar(sketch, shape->steps, shape->dims * sizeof(shape->steps[0]));
}

bool sg_touch_argument(struct sg_sketch *sketch, const struct sg_calculator *at,
        unsigned arg, uint32_t unit_bytes, uint64_t va, unsigned roles,
        struct sg_type type)
{
	struct sg_shape shape;

	if (!sg_calculator_shape(sketch, at, arg, unit_bytes, &shape))
		return false;
	sg_shape_scalars(sketch, &shape);
	sg_touch_shape(sketch, va, &shape, type, roles);
	return true;
}

/* Comparisons have their kind first; the last value is the operand. */
static void note_value(const struct sg_functor *functor, unsigned i,
        const void *value, uint32_t n, struct sg_action *action)
{
	bool compares = action->meaning == SG_MEANS_EQUAL ||
	                action->meaning == SG_MEANS_ORDER;

	if (compares && i == 0) {
		memcpy(&action->operation, value, sizeof(action->operation));
	} else if (action->meaning == SG_MEANS_ADD && n == 16) {
		/* A number and its factor, of the type long. */
		int64_t pair[2];

		memcpy(pair, value, n);
		action->bytes = sizeof(action->value);
		action->value = (uint64_t)pair[0] * (uint64_t)pair[1];
	} else if (n <= sizeof(action->value) &&
	           n == functor->types[functor->n_types - 1].bytes) {
		action->bytes = (uint8_t)n;
		memcpy(&action->value, value, n);
	}
}

void sg_functor_scalars(struct sg_sketch *sketch,
        const struct sg_functor *functor, unsigned param, uint32_t offset,
        uint32_t bytes)
{
	/* A lambda's last pointer is no value, and may be all there is. */
	if (functor->lambda)
		bytes = bytes >= 8 ? bytes - 8 : 0;
	sketch->op->action.meaning = functor->meaning;
	sketch->op->action.value_left = functor->value_left;
	for (unsigned i = 0; i < functor->n_scalars; i++) {
		uint32_t n = functor->scalars[i].bytes;
		int32_t at = functor->scalars[i].offset;
		uint8_t value[64];

		if (n > sizeof(value) || n > bytes)
			continue;
		if (at < 0)
			at += (int32_t)bytes;
		if ((uint32_t)at + n > bytes)
			continue;
		sg_param_read(
		        sketch->launch, param, offset + (uint32_t)at, value, n);
		sg_scalar(sketch, value, n);
		note_value(functor, i, value, n, &sketch->op->action);
	}
}
