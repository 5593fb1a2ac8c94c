/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PyTorch's kernels that move elements: indexing, gather, scatter, flip and
 * concatenation, by the closures of IndexKernel.cu and ScatterGatherKernel.cu
 * and the structs of Shape.cu. Which elements a look-up touches is not known
 * here: all that could be. Under sg_lock.
 */
#include "tests/simgpu/driver/kernel_calc.h"
#include "tests/simgpu/driver/tags.h"

#include <stdlib.h>
#include <string.h>

static const struct sg_type index_type = {8, SG_TYPE_I64};

/* Adds a tensor that shape and further steps, elements apart, lead into. */
static void touch_looked_up(struct sg_sketch *sketch, uint64_t va,
        struct sg_shape shape, const struct sg_shape *more, unsigned roles,
        struct sg_type type)
{
	for (unsigned i = 0; i < more->dims && shape.dims < SG_DIMS; i++) {
		shape.sizes[shape.dims] = more->sizes[i];
		shape.steps[shape.dims++] = more->steps[i];
	}
	sg_shape_scalars(sketch, &shape);
	sg_touch_shape(sketch, va, &shape, type, roles);
}

/*
 * index_elementwise_kernel<threads, per thread, closure>(long n, closure), the
 * closure of gpu_index_kernel: a calculator for output, input and indices with
 * steps in bytes; output, input; the number of indices, and for each of 25 a
 * pointer, a size and a step in bytes.
 */
#define INDEX_BYTES 1240
bool sg_rule_index(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_text name = sg_text(launch->fn->demangled);
	struct sg_type type = sg_type_of(
	        sg_template_argument(sg_text_after(name, "_kernel_impl"), 0));
	bool put = sg_text_after(name, "index_put_kernel_impl<").at;
	const struct sg_calculator at = {.param = 1, .args = 3};
	uint32_t out_at = sg_align8(sg_calculator_bytes(3));
	uint32_t arrays_at = out_at + 24;
	uint64_t out = sg_param_word(launch, 1, out_at);
	uint64_t in = sg_param_word(launch, 1, out_at + 8);
	uint64_t indices = sg_param_word(launch, 1, out_at + 16);
	struct sg_shape shapes[2], looked_up = {0};

	if (sg_param_bytes(launch, 1) != INDEX_BYTES || !type.bytes ||
	        indices > SG_DIMS ||
	        !sg_calculator_shape(sketch, &at, 0, 1, &shapes[0]) ||
	        !sg_calculator_shape(sketch, &at, 1, 1, &shapes[1]))
		return false;
	looked_up.dims = (unsigned)indices;
	for (unsigned i = 0; i < indices; i++) {
		looked_up.sizes[i] =
		        sg_param_word(launch, 1, arrays_at + (SG_DIMS + i) * 8);
		looked_up.steps[i] = (int64_t)sg_param_word(
		        launch, 1, arrays_at + (2 * SG_DIMS + i) * 8);
		sg_touch_argument(sketch, &at, 2, 1,
		        sg_param_word(launch, 1, arrays_at + i * 8),
		        SG_OPERAND_READ, index_type);
	}
	if (put) {
		touch_looked_up(sketch, out, shapes[0], &looked_up,
		        SG_OPERAND_READ | SG_OPERAND_WRITE, type);
		sg_touch_shape(sketch, in, &shapes[1], type, SG_OPERAND_READ);
	} else {
		sg_touch_shape(sketch, out, &shapes[0], type, SG_OPERAND_WRITE);
		touch_looked_up(sketch, in, shapes[1], &looked_up,
		        SG_OPERAND_READ, type);
	}
	return true;
}

/*
 * _scatter_gather_elementwise_kernel<threads, per thread, closure>(int n,
 * closure), the closure of _cuda_scatter_gather_internal_kernel<scatter, type,
 * index>::operator()<operation>: a calculator for self, source and indices
 * with steps in bytes; indices, size along the dimension, the operation, self,
 * step along the dimension in elements, number of elements, source.
 */
#define GATHER_BYTES 664
bool sg_rule_gather(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_text name = sg_text_after(sg_text(launch->fn->demangled),
	        "_scatter_gather_internal_kernel");
	bool scatter = sg_text_like(sg_template_argument(name, 0), "true");
	struct sg_type type = sg_type_of(sg_template_argument(name, 1));
	const struct sg_calculator at = {.param = 1, .args = 3};
	uint32_t from = sg_align8(sg_calculator_bytes(3));
	uint64_t self = sg_param_word(launch, 1, from + 24);
	uint64_t source = sg_param_word(launch, 1, from + 48);
	struct sg_shape shapes[2];
	struct sg_shape looked_up = {
	        .dims = 1,
	        .sizes = {sg_param_word(launch, 1, from + 8)},
	        .steps = {(int64_t)sg_param_word(launch, 1, from + 32) *
	                  type.bytes},
	};

	if (sg_param_bytes(launch, 1) != GATHER_BYTES || !type.bytes ||
	        !sg_calculator_shape(sketch, &at, 0, 1, &shapes[0]) ||
	        !sg_calculator_shape(sketch, &at, 1, 1, &shapes[1]))
		return false;
	sg_touch_argument(sketch, &at, 2, 1, sg_param_word(launch, 1, from),
	        SG_OPERAND_READ, index_type);
	if (scatter) {
		/* Anything but an assignment adds up in any order. */
		sketch->op->nondeterministic =
		        !sg_text_after(name, "TensorAssign>").at;
		touch_looked_up(sketch, self, shapes[0], &looked_up,
		        SG_OPERAND_READ | SG_OPERAND_WRITE, type);
		sg_touch_shape(
		        sketch, source, &shapes[1], type, SG_OPERAND_READ);
	} else {
		sg_touch_shape(
		        sketch, self, &shapes[0], type, SG_OPERAND_WRITE);
		touch_looked_up(sketch, source, shapes[1], &looked_up,
		        SG_OPERAND_READ, type);
	}
	return true;
}

/*
 * The same of _cuda_scatter_fill_internal_kernel<type, index>: a calculator for
 * self and indices; indices, size along the dimension, the operation, self,
 * step along the dimension in elements, number of elements, the value.
 */
bool sg_rule_scatter_fill(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_text name = sg_text_after(sg_text(launch->fn->demangled),
	        "_scatter_fill_internal_kernel");
	struct sg_type type = sg_type_of(sg_template_argument(name, 0));
	const struct sg_calculator at = {.param = 1, .args = 2};
	uint32_t from = sg_align8(sg_calculator_bytes(2));
	struct sg_shape shape;
	struct sg_shape looked_up = {
	        .dims = 1,
	        .sizes = {sg_param_word(launch, 1, from + 8)},
	        .steps = {(int64_t)sg_param_word(launch, 1, from + 32) *
	                  type.bytes},
	};
	uint8_t value[16];
	uint64_t number;

	if (sg_param_bytes(launch, 1) < from + 48 + type.bytes || !type.bytes ||
	        type.bytes > sizeof(value) ||
	        !sg_calculator_shape(sketch, &at, 0, 1, &shape))
		return false;
	sg_param_read(launch, 1, from + 48, value, type.bytes);
	sg_scalar(sketch, value, type.bytes);
	sg_touch_argument(sketch, &at, 1, 1, sg_param_word(launch, 1, from),
	        SG_OPERAND_READ, index_type);
	if (type.bytes == sizeof(number)) {
		memcpy(&number, value, sizeof(number));
		if (number < INT32_MAX) /* an integer, not a double */
			sketch->values.bound = number + 1;
	}
	touch_looked_up(sketch, sg_param_word(launch, 1, from + 24), shape,
	        &looked_up, SG_OPERAND_READ | SG_OPERAND_WRITE, type);
	sketch->values = (struct sg_values){0};
	return true;
}

/* index_elementwise_kernel of flip_kernel_impl<type>: a calculator for output
 * and input with signed steps in bytes; output, input. */
bool sg_rule_flip(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_text name = sg_text_after(
	        sg_text(launch->fn->demangled), "flip_kernel_impl");
	struct sg_type type = sg_type_of(sg_template_argument(name, 0));
	const struct sg_calculator at = {.param = 1, .args = 2};
	uint32_t from = sg_align8(sg_calculator_bytes(2));

	return type.bytes &&
	       sg_touch_argument(sketch, &at, 0, 1,
	               sg_param_word(launch, 1, from), SG_OPERAND_WRITE,
	               type) &&
	       sg_touch_argument(sketch, &at, 1, 1,
	               sg_param_word(launch, 1, from + 8), SG_OPERAND_READ,
	               type);
}

/*
 * write_indices<type>(long *indices, TensorDims<type> dims, int number, n):
 * places in a tensor, counted through, become coordinates, n for each of its
 * dimensions, behind one another.
 */
bool sg_rule_coordinates(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_text name = sg_text(launch->fn->demangled);
	uint32_t width = sg_type_of(sg_template_argument(name, 0)).bytes;
	uint64_t va = sg_param_word(launch, 0, 0), n = 0;
	unsigned dims = (unsigned)sg_param_int(launch, 2, 0);

	sg_param_read(launch, 3, 0, &n, width <= 8 ? width : 8);
	if ((width != 4 && width != 8) || dims > SG_DIMS)
		return false;
	for (unsigned i = 0; i < dims; i++) {
		uint64_t size = 0;

		sg_param_read(launch, 1, i * width, &size, width);
		sg_scalar(sketch, &size, sizeof(size));
		sketch->values = (struct sg_values){.bound = size};
		sg_touch(sketch, va + i * n * 8, n * 8,
		        i ? SG_OPERAND_WRITE
		          : SG_OPERAND_READ | SG_OPERAND_WRITE,
		        index_type);
		sketch->values = (struct sg_values){0};
	}
	return true;
}

static unsigned template_number(struct sg_text text, unsigned i)
{
	struct sg_text number = sg_template_argument(text, i);

	return number.at ? (unsigned)strtoul(number.at, NULL, 10) : 0;
}

/* Fields of CatArrInputTensorMetadata, arrays of as many entries. */
enum cat_field {
	CAT_OFFSET,
	CAT_SIZE,
	CAT_ELEMENTS,
	CAT_CONTIGUOUS,
};

static uint64_t cat_field(const struct sg_launch *launch, uint32_t capacity,
        uint32_t width, enum cat_field field, unsigned i)
{
	uint32_t at = capacity * (8 + (uint32_t)field * width);
	uint32_t bytes = field == CAT_CONTIGUOUS ? 1 : width;
	uint64_t value = 0;

	sg_param_read(launch, 1, at + i * bytes, &value, bytes);
	return value;
}

#define CAT_DIMS 4

/*
 * From the first to the last element of input @i, which does not lie side by
 * side: its sizes and steps come after all else, of as many inputs as the
 * template says. SG_TO_BLOCK_END where they are not there.
 */
static uint64_t strided_bytes(
        const struct sg_launch *launch, struct sg_type type, unsigned i)
{
	struct sg_text name = sg_text(launch->fn->demangled);
	uint32_t width = sg_type_of(sg_template_argument(name, 1)).bytes;
	uint32_t capacity = template_number(name, 3);
	uint32_t at = capacity * (9 + 3 * width) + i * 2 * CAT_DIMS * width;
	unsigned dims = template_number(name, 2);
	uint64_t elements = 1;

	if (i >= template_number(name, 4) || capacity % width ||
	        at + 2 * CAT_DIMS * width > sg_param_bytes(launch, 1))
		return SG_TO_BLOCK_END;
	for (unsigned d = 0; d < dims; d++) {
		uint64_t size = 0, apart = 0;

		sg_param_read(launch, 1, at + d * width, &size, width);
		sg_param_read(
		        launch, 1, at + (CAT_DIMS + d) * width, &apart, width);
		elements += size ? (size - 1) * apart : 0;
	}
	return elements * type.bytes;
}

/*
 * CatArrayBatchedCopy...<type, index, dims, capacity, ...>(output, inputs,
 * output's four sizes and four steps, dimension, its step). There is room for
 * more inputs than the grid has rows; the other slots are left from earlier
 * calls. Numbers count elements, but the output's sizes and steps vectors of
 * them in the vectorized one. A launch writes only the part of the output that
 * its inputs make up.
 */
bool sg_rule_concatenate(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_text name = sg_text(launch->fn->demangled);
	struct sg_type type = sg_type_of(sg_template_argument(name, 0));
	uint32_t width = sg_type_of(sg_template_argument(name, 1)).bytes;
	unsigned dims = template_number(name, 2);
	uint32_t capacity = template_number(name, 3), unit = type.bytes;
	unsigned along = (unsigned)sg_param_int(launch, 3, 0);
	struct sg_shape shape = {.dims = dims};
	uint64_t along_bytes = 0, step = 0, start;

	if (sg_text_after(name, "CatArrayBatchedCopy_vectorized<").at)
		unit *= template_number(name, 6);
	if (!unit || (width != 4 && width != 8) || !dims || dims > CAT_DIMS ||
	        along >= dims || launch->grid[1] > capacity ||
	        sg_param_bytes(launch, 1) < capacity * (9 + 3 * width))
		return false;
	sg_param_read(launch, 4, 0, &step, width);
	for (unsigned i = 0; i < launch->grid[1]; i++) {
		uint64_t n =
		        cat_field(launch, capacity, width, CAT_ELEMENTS, i);
		bool whole =
		        cat_field(launch, capacity, width, CAT_CONTIGUOUS, i);

		along_bytes += cat_field(launch, capacity, width, CAT_SIZE, i) *
		               step * type.bytes;
		sg_touch(sketch, sg_param_word(launch, 1, i * 8),
		        whole ? n * type.bytes : strided_bytes(launch, type, i),
		        SG_OPERAND_READ, type);
	}
	for (unsigned i = 0; i < dims; i++) {
		uint64_t size = 0, apart = 0;

		sg_param_read(launch, 2, i * width, &size, width);
		sg_param_read(launch, 2, (4 + i) * width, &apart, width);
		if (!apart)
			return false;
		shape.steps[i] = (int64_t)(apart * unit);
		shape.sizes[i] =
		        i == along ? along_bytes / (apart * unit) : size;
	}
	start = cat_field(launch, capacity, width, CAT_OFFSET, 0) * step;
	sg_scalar(sketch, &start, sizeof(start));
	sg_shape_scalars(sketch, &shape);
	sg_touch_shape(sketch, sg_param_word(launch, 0, 0) + start * type.bytes,
	        &shape, (struct sg_type){unit, type.piece}, SG_OPERAND_WRITE);
	return true;
}
