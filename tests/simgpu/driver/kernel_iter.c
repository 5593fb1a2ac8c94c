/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels that PyTorch makes of a TensorIterator: elementwise ones and
 * reductions, by the layouts of CUDALoops.cuh, OffsetCalculator.cuh and
 * Reduce.cuh. Under sg_lock.
 */
#include "tests/simgpu/driver/kernel_calc.h"
#include "tests/simgpu/driver/tags.h"

#include <string.h>

/* The functor's facts, looked up once per function. */
static const struct sg_functor *functor_of(
        struct sg_sketch *sketch, struct sg_text text)
{
	struct sg_function *fn = sketch->launch->fn;

	if (!fn->functor) {
		fn->functor = sg_xcalloc(1, sizeof(*fn->functor));
		*fn->functor = sg_functor_of(text);
	}
	return fn->functor;
}

/* An array of pointers, the outputs first, to n elements each. */
static void touch_arrays(struct sg_sketch *sketch,
        const struct sg_functor *functor, unsigned outputs, uint64_t n)
{
	unsigned arrays = sg_param_bytes(sketch->launch, 2) / 8;

	for (unsigned i = 0; i < arrays; i++) {
		struct sg_type type = {0};

		if (i < functor->n_types)
			type = functor->types[i];
		sg_touch(sketch, sg_param_word(sketch->launch, 2, i * 8),
		        type.bytes ? n * type.bytes : SG_TO_BLOCK_END,
		        i < outputs ? SG_OPERAND_WRITE : SG_OPERAND_READ, type);
	}
}

/* vectorized_elementwise_kernel<vec, func>(int n, func, array<char *, k>) */
bool sg_rule_vectorized(struct sg_sketch *sketch)
{
	struct sg_text name = sg_text(sketch->launch->fn->demangled);
	const struct sg_functor *functor =
	        functor_of(sketch, sg_template_argument(name, 1));
	uint64_t n = (uint64_t)sg_param_int(sketch->launch, 0, 0);

	if (functor->n_types != sg_param_bytes(sketch->launch, 2) / 8)
		return false;
	sg_scalar(sketch, &n, sizeof(n));
	sg_functor_scalars(
	        sketch, functor, 1, 0, sg_param_bytes(sketch->launch, 1));
	touch_arrays(sketch, functor, 1, n);
	return true;
}

/* ----------------------------------------------------- unrolled elementwise */

/* LoadWithCast<n>, StoreWithCast<n>: a byte for each element type, then its
 * size in a word. */
static struct sg_type cast_type(
        const struct sg_sketch *sketch, unsigned param, unsigned i)
{
	uint8_t number;

	sg_param_read(sketch->launch, param, i, &number, sizeof(number));
	return sg_type_of_scalar(number);
}

/*
 * unrolled_elementwise_kernel<func, array, per thread, input calculator, output
 * calculator, loader, storer>(n, func, array, ...), and the one for several
 * outputs, <outputs, func, array, ...>(n, func, array, calculators). A
 * calculator of one byte means that everything is contiguous; steps of the
 * others count elements.
 */
bool sg_rule_unrolled(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_text name = sg_text(launch->fn->demangled);
	bool several = strstr(name.at, "_for_multi_outputs<") != NULL;
	const struct sg_functor *functor =
	        functor_of(sketch, sg_template_argument(name, several ? 1 : 0));
	unsigned arrays = sg_param_bytes(launch, 2) / 8, outputs = 1;
	uint64_t n = (uint64_t)sg_param_int(launch, 0, 0);

	if (several)
		outputs = (unsigned)(*sg_template_argument(name, 0).at - '0');
	if (functor->n_types != arrays || outputs >= arrays)
		return false;
	sg_scalar(sketch, &n, sizeof(n));
	sg_functor_scalars(sketch, functor, 1, 0, sg_param_bytes(launch, 1));
	for (unsigned i = 0; i < arrays; i++) {
		bool output = i < outputs;
		unsigned arg = output ? i : i - outputs;
		struct sg_calculator at = {
		        .param = output ? 4 : 3,
		        .args = output ? outputs : arrays - outputs,
		};
		unsigned cast = output ? 6 : 5;
		unsigned roles = output ? SG_OPERAND_WRITE : SG_OPERAND_READ;
		uint64_t va = sg_param_word(launch, 2, i * 8);
		struct sg_type type = functor->types[i];

		if (sg_param_bytes(launch, cast) > 1)
			type = cast_type(sketch, cast, arg);
		if (sg_param_bytes(launch, at.param) <= 1)
			sg_touch(sketch, va,
			        type.bytes ? n * type.bytes : SG_TO_BLOCK_END,
			        roles, type);
		else if (!type.bytes || !sg_touch_argument(sketch, &at, arg,
		                                type.bytes, va, roles, type))
			return false;
	}
	return true;
}

/* ------------------------------------------------------- legacy elementwise */

/* The bytes a functor takes in a closure, as far as its values tell. */
static uint32_t functor_bytes(const struct sg_functor *functor)
{
	uint32_t bytes = 1;

	for (unsigned i = 0; i < functor->n_scalars; i++) {
		int32_t at = functor->scalars[i].offset;
		uint32_t end =
		        functor->scalars[i].bytes + (uint32_t)(at < 0 ? 0 : at);

		if (end > bytes)
			bytes = end;
	}
	return bytes;
}

/*
 * Where the functor of a closure with conversions ends and a byte for each
 * tensor's element type begins. The closure ends with a pointer to its host
 * twin; a functor may have one of its own.
 */
static uint32_t dtypes_offset(const struct sg_functor *functor,
        uint32_t functor_at, uint32_t closure_bytes)
{
	uint32_t bytes = functor_bytes(functor);

	if (sg_align8(functor_at + bytes + functor->n_types) + 8 <
	        closure_bytes)
		bytes = sg_align8(bytes - 1) + 8;
	return functor_at + bytes;
}

/*
 * elementwise_kernel<threads, per thread, closure>(int n, closure), the closure
 * of gpu_kernel_impl<func> or gpu_kernel_impl_nocast<func>: a calculator with
 * steps in bytes, the array of pointers, the functor, with conversions the
 * element types, and a pointer that the device does not use.
 */
bool sg_rule_legacy(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	struct sg_text closure =
	        sg_template_argument(sg_text(launch->fn->demangled), 2);
	bool casts = !sg_text_like(closure, "*gpu_kernel_impl_nocast<*");
	const struct sg_functor *functor =
	        functor_of(sketch, sg_template_argument(closure, 0));
	uint32_t bytes = sg_param_bytes(launch, 1);
	struct sg_calculator at = {.param = 1, .args = functor->n_types};
	uint32_t data_at = sg_align8(sg_calculator_bytes(at.args));
	uint32_t functor_at = data_at + 8 * at.args;
	uint32_t dtypes_at = dtypes_offset(functor, functor_at, bytes);
	uint64_t n = (uint64_t)sg_param_int(launch, 0, 0);

	if (!at.args || functor_at + 8 > bytes ||
	        sg_param_int(launch, 1, 0) > SG_DIMS)
		return false;
	sg_scalar(sketch, &n, sizeof(n));
	sg_functor_scalars(
	        sketch, functor, 1, functor_at, bytes - functor_at - 8);
	for (unsigned i = 0; i < at.args; i++) {
		uint64_t va = sg_param_word(launch, 1, data_at + i * 8);
		struct sg_type type = functor->types[i];
		uint8_t number;

		if (casts) {
			sg_param_read(launch, 1, dtypes_at + i, &number, 1);
			type = sg_type_of_scalar(number);
		}
		if (!type.bytes ||
		        !sg_touch_argument(sketch, &at, i, 1, va,
		                i ? SG_OPERAND_READ : SG_OPERAND_WRITE, type))
			return false;
	}
	return true;
}

/* --------------------------------------------------------------- reductions */

/* The end of struct ReduceOp, from src on. */
struct reduce_tail {
	uint64_t src, dst[2], acc_buf, cta_buf, semaphores;
	int64_t base_idx;
	uint8_t accumulate, final_output;
	int32_t noutputs;
};
#define CONFIG_BYTES 64 /* struct ReduceConfig: 16 words */

/* Finds the calculators: they stand before the tail, with a gap or none. */
static bool find_calculators(const struct sg_sketch *sketch, uint32_t tail_at,
        struct sg_calculator *input, struct sg_calculator *output)
{
	for (uint32_t gap = 0; gap <= 4; gap += 4) {
		uint32_t at = tail_at - gap - sg_calculator_bytes(2);
		uint32_t config;
		struct sg_shape in, out;

		*output = (struct sg_calculator){0, at, 2};
		*input = (struct sg_calculator){
		        0, at - sg_calculator_bytes(1), 1};
		config = input->offset - CONFIG_BYTES;
		if (!sg_calculator_shape(sketch, input, 0, 1, &in) ||
		        !sg_calculator_shape(sketch, output, 0, 1, &out))
			continue;
		if (sg_shape_elements(&in) ==
		                (uint64_t)sg_param_int(
		                        sketch->launch, 0, config + 4) &&
		        sg_shape_elements(&out) ==
		                (uint64_t)sg_param_int(
		                        sketch->launch, 0, config + 8))
			return true;
	}
	return false;
}

/* The input's elements: those of one result, for every result. */
static void touch_reduced(struct sg_sketch *sketch, uint64_t va,
        const struct sg_calculator *input, const struct sg_calculator *output,
        struct sg_type type)
{
	struct sg_shape shape, results;

	sg_calculator_shape(sketch, input, 0, 1, &shape);
	sg_calculator_shape(sketch, output, 1, 1, &results);
	for (unsigned i = 0; i < results.dims && shape.dims < SG_DIMS; i++) {
		shape.sizes[shape.dims] = results.sizes[i];
		shape.steps[shape.dims++] = results.steps[i];
	}
	sg_shape_scalars(sketch, &shape);
	sg_touch_shape(sketch, va, &shape, type, SG_OPERAND_READ);
}

/* What the integers are that elements of the input come to. */
static struct sg_values reduced(struct sg_text operator, uint64_t elements)
{
	if (sg_text_like(operator, "at::native::Arg*Ops<*"))
		return (struct sg_values){.bound = elements};
	if (sg_text_after(operator, "sum_functor<").at)
		return (struct sg_values){.count = elements};
	return (struct sg_values){0};
}

/* One or two results; the second of a maximum or minimum is its place. */
static void touch_results(struct sg_sketch *sketch,
        const struct reduce_tail *tail, const struct sg_calculator *output,
        struct sg_type type, struct sg_text operator, uint64_t elements)
{
	unsigned roles = tail->accumulate ? SG_OPERAND_READ | SG_OPERAND_WRITE
	                                  : SG_OPERAND_WRITE;
	struct sg_shape shape;

	sketch->values = reduced(operator, elements);
	sg_touch_argument(sketch, output, 0, 1, tail->dst[0], roles, type);
	sketch->values = (struct sg_values){0};
	if (tail->noutputs < 2)
		return;
	sg_calculator_shape(sketch, output, 0, 1, &shape);
	if (sg_text_like(operator, "at::native::MaxOps<*") ||
	        sg_text_like(operator, "at::native::MinOps<*")) {
		for (unsigned i = 0; i < shape.dims; i++)
			shape.steps[i] = shape.steps[i] / type.bytes * 8;
		type = (struct sg_type){8, SG_TYPE_I64};
		sketch->values.bound = elements;
	}
	sg_touch_shape(sketch, tail->dst[1], &shape, type, roles);
	sketch->values = (struct sg_values){0};
}

/* What a reduction's operator holds. */
static void operator_scalars(struct sg_sketch *sketch, struct sg_text operator)
{
	static const char *const with_factor[] = {"at::native::MeanOps<*",
	        "at::native::NormOps<*", "at::native::WelfordOps<*"};
	uint32_t value;

	for (size_t i = 0; i < sizeof(with_factor) / sizeof(with_factor[0]);
	        i++) {
		if (!sg_text_like(operator, with_factor[i]))
			continue;
		sg_param_read(sketch->launch, 0, 0, &value, sizeof(value));
		sg_scalar(sketch, &value, sizeof(value));
	}
}

/* reduce_kernel<threads, per thread, ReduceOp<input, operator, uint, output,
 * ...>>(ReduceOp) */
bool sg_rule_reduce(struct sg_sketch *sketch)
{
	struct sg_text name = sg_text(sketch->launch->fn->demangled);
	struct sg_text reduce = sg_template_argument(name, 2);
	struct sg_type from = sg_type_of(sg_template_argument(reduce, 0));
	struct sg_type to = sg_type_of(sg_template_argument(reduce, 3));
	uint32_t bytes = sg_param_bytes(sketch->launch, 0);
	uint32_t tail_at = bytes - (uint32_t)sizeof(struct reduce_tail);
	struct sg_calculator input, output;
	struct sg_shape elements;
	struct reduce_tail tail;

	if (!from.bytes || !to.bytes || bytes < 1000 ||
	        !find_calculators(sketch, tail_at, &input, &output))
		return false;
	sg_param_read(sketch->launch, 0, tail_at, &tail, sizeof(tail));
	operator_scalars(sketch, sg_template_argument(reduce, 1));
	touch_reduced(sketch, tail.src, &input, &output, from);
	sg_calculator_shape(sketch, &input, 0, 1, &elements);
	touch_results(sketch, &tail, &output, to,
	        sg_template_argument(reduce, 1), sg_shape_elements(&elements));
	sg_touch(sketch, tail.acc_buf, SG_TO_BLOCK_END,
	        SG_OPERAND_READ | SG_OPERAND_WRITE, to);
	/* Partial results are written before they are read. */
	sg_touch(sketch, tail.cta_buf, SG_TO_BLOCK_END, SG_OPERAND_WRITE, to);
	sg_touch(sketch, tail.semaphores, sketch->launch->grid[0] * 4,
	        SG_OPERAND_READ | SG_OPERAND_WRITE, (struct sg_type){4, 0});
	return true;
}
