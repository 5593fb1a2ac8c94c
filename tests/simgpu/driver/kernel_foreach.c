/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * multi_tensor_apply_kernel: PyTorch's foreach operators and fused optimizers,
 * by MultiTensorApply.cuh. Its structs have room for many more tensors than
 * they hold; the other slots are left from earlier calls, so only those that a
 * block of the grid is sent to count. Under sg_lock.
 */
#include "tests/simgpu/driver/kernels.h"
#include "tests/simgpu/driver/tags.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_ELEMENTS 65536u
#define MAX_DEPTH      5

/* The capacities a wheel was built with, and how wide its block table is. */
struct capacity {
	uint32_t tensors[MAX_DEPTH], with_scalars[MAX_DEPTH], blocks;
	uint32_t index_bytes;
};
static const struct capacity capacities[] = {
        {{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, 2240, 2},
        {{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, 320, 1},
};

enum metadata_kind {
	METADATA_PLAIN,   /* TensorListMetadata<depth> */
	METADATA_SCALARS, /* TensorListScalarListMetadata<scalar, depth> */
	METADATA_FUSED,   /* FusedOptimizerTensorListMetadata<depth> */
};
/* Where things lie in the struct. */
struct layout {
	unsigned depth;
	uint32_t tensors, numel_at, extra_at, extra_bytes, block_at, chunk_at;
	uint32_t index_bytes, bytes;
};

static uint32_t round_up(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

static struct layout layout_of(const struct capacity *capacity,
        enum metadata_kind kind, unsigned depth, uint32_t scalar_bytes)
{
	const uint32_t *tensors = kind == METADATA_SCALARS
	                                  ? capacity->with_scalars
	                                  : capacity->tensors;
	struct layout l = {
	        .depth = depth,
	        .tensors = tensors[depth - 1],
	        .index_bytes = capacity->index_bytes,
	};

	if (kind == METADATA_SCALARS)
		l.extra_bytes = scalar_bytes;
	else if (kind == METADATA_FUSED)
		l.extra_bytes = 8;
	l.numel_at = depth * l.tensors * 8;
	l.extra_at = l.numel_at + l.tensors * 8;
	l.block_at = l.extra_at + l.tensors * l.extra_bytes;
	l.chunk_at = round_up(
	        l.block_at + capacity->blocks * capacity->index_bytes, 4);
	l.bytes = l.chunk_at + capacity->blocks * 4;
	if (kind != METADATA_SCALARS)
		l.bytes += 4; /* start_tensor_this_launch */
	l.bytes = round_up(l.bytes, 8);
	return l;
}

/* The layout that has the parameter's size. */
static bool find_layout(const struct sg_sketch *sketch, struct sg_text metadata,
        enum metadata_kind *ret_kind, struct layout *ret_layout)
{
	enum metadata_kind kind = METADATA_PLAIN;
	struct sg_text depth = sg_template_argument(metadata, 0);
	uint32_t scalar_bytes = 0;
	unsigned n;

	if (sg_text_like(metadata, "*TensorListScalarListMetadata<*")) {
		kind = METADATA_SCALARS;
		scalar_bytes = sg_type_of(depth).bytes;
		depth = sg_template_argument(metadata, 1);
	} else if (sg_text_like(metadata, "*FusedOptimizer*")) {
		kind = METADATA_FUSED;
	}
	n = depth.at ? (unsigned)strtoul(depth.at, NULL, 10) : 0;
	if (n < 1 || n > MAX_DEPTH)
		return false;
	*ret_kind = kind;
	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]);
	        i++) {
		*ret_layout = layout_of(&capacities[i], kind, n, scalar_bytes);
		if (ret_layout->bytes == sg_param_bytes(sketch->launch, 0))
			return true;
	}
	return false;
}

/* What a functor does with each list. */
struct lists {
	unsigned roles[MAX_DEPTH];
	struct sg_type types[MAX_DEPTH];
};

static int template_number(struct sg_text text, unsigned i)
{
	struct sg_text number = sg_template_argument(text, i);

	return number.at ? (int)strtol(number.at, NULL, 10) : -1;
}

/* <type, depth, lists read, list written>, as most functors are; copies have
 * the source's type second. */
static bool plain_lists(
        struct sg_text functor, unsigned depth, struct lists *ret_lists)
{
	bool copy = sg_text_like(functor, "*CopyFunctor<*");
	unsigned at = copy ? 2 : 1;
	int reads, result;

	if (sg_text_like(functor, "*LpNormFunctor<*"))
		at = 3;
	reads = template_number(functor, at + 1);
	result = template_number(functor, at + 2);
	if (template_number(functor, at) != (int)depth || reads < 0 ||
	        result < 0 || result >= (int)depth)
		return false;
	if (sg_text_like(functor, "*ZeroFunctor<*"))
		reads = 0;
	for (unsigned i = 0; i < depth; i++) {
		ret_lists->types[i] = sg_type_of(sg_template_argument(
		        functor, copy && i != (unsigned)result ? 1 : 0));
		if ((int)i < reads)
			ret_lists->roles[i] |= SG_OPERAND_READ;
		if ((int)i == result && at != 3)
			ret_lists->roles[i] |= SG_OPERAND_WRITE;
	}
	return true;
}

/* Parameters of the fused optimizers' functors after struct and functor. */
struct fused {
	const char *functor;
	unsigned scale; /* grad_scale; found_inf follows */
	unsigned first_scalar, n_scalars, learning_rate;
};
static const struct fused fused[] = {
        {"*FusedAdamMathFunctor<*", 9, 3, 6, 2},
        {"*FusedSgdMathFunctor<*", 10, 2, 8, 4},
};

static bool fused_lists(struct sg_sketch *sketch, struct sg_text functor,
        unsigned depth, struct lists *ret_lists)
{
	static const struct sg_type number = {4, SG_TYPE_F32};
	const struct sg_launch *launch = sketch->launch;
	const struct fused *f = NULL;
	uint8_t value[8];

	for (size_t i = 0; i < sizeof(fused) / sizeof(fused[0]) && !f; i++)
		if (sg_text_like(functor, fused[i].functor))
			f = &fused[i];
	if (!f)
		return false;
	for (unsigned i = 0; i < depth; i++) {
		ret_lists->types[i] =
		        sg_type_of(sg_template_argument(functor, 0));
		ret_lists->roles[i] = SG_OPERAND_READ | SG_OPERAND_WRITE;
	}
	/* Gradients are written back only when they are unscaled. */
	if (!sg_param_word(launch, f->scale, 0))
		ret_lists->roles[1] = SG_OPERAND_READ;
	sg_touch(sketch, sg_param_word(launch, f->learning_rate, 0), 4,
	        SG_OPERAND_READ, number);
	sg_touch(sketch, sg_param_word(launch, f->scale, 0), 4, SG_OPERAND_READ,
	        number);
	sg_touch(sketch, sg_param_word(launch, f->scale + 1, 0), 4,
	        SG_OPERAND_READ, number);
	for (unsigned i = 0; i < f->n_scalars; i++) {
		uint32_t n = sg_param_bytes(launch, f->first_scalar + i);

		if (f->first_scalar + i == f->learning_rate ||
		        n > sizeof(value))
			continue;
		sg_param_read(launch, f->first_scalar + i, 0, value, n);
		sg_scalar(sketch, value, n);
	}
	return true;
}

/* No infinity is found but where SIMGPU_FOUND_INF says so. */
static struct sg_values found_inf(void)
{
	static uint64_t checks;

	checks++;
	if (sg_settings.found_inf && checks == sg_settings.found_inf)
		return (struct sg_values){
		        .series = SG_SERIES_SET, .bound = 0x3f800000u};
	return (struct sg_values){.series = SG_SERIES_KEPT};
}

/* Parameters after struct and functor: an empty operation, numbers, and what a
 * norm and unscaling write to. */
static void plain_params(struct sg_sketch *sketch, struct sg_text functor,
        const struct lists *lists)
{
	static const struct sg_type number = {4, SG_TYPE_F32};
	static const struct sg_type flag = {4, SG_TYPE_F32};
	const struct sg_launch *launch = sketch->launch;
	bool norm = sg_text_like(functor, "*LpNormFunctor<*");

	for (unsigned i = 2; i < launch->fn->n_params; i++) {
		uint32_t n = sg_param_bytes(launch, i);
		uint64_t word = sg_param_word(launch, i, 0);

		if (n == 24 && strstr(launch->fn->demangled,
		                       "_amp_foreach_non_finite_check_")) {
			sketch->values = found_inf();
			sg_touch(sketch, word, 4,
			        SG_OPERAND_READ | SG_OPERAND_WRITE, flag);
			sketch->values = (struct sg_values){0};
			sg_touch(sketch, sg_param_word(launch, i, 8), 4,
			        SG_OPERAND_READ, number);
		} else if (norm && i == 2) {
			/* A number for every chunk; others stay zero. */
			sg_touch(sketch, word, SG_TO_BLOCK_END,
			        SG_OPERAND_READ | SG_OPERAND_WRITE,
			        lists->types[0]);
		} else if (n == 8 && sg_is_device_va(word)) {
			sg_touch(sketch, word,
			        norm ? SG_TO_BLOCK_END : lists->types[0].bytes,
			        SG_OPERAND_READ, lists->types[0]);
		} else if (n == 4 || n == 8) {
			sg_param_read(launch, i, 0, &word, n);
			sg_scalar(sketch, &word, n);
		}
	}
}

/* Adds chunks [first, last] of one tensor. */
static void touch_tensor(struct sg_sketch *sketch, const struct layout *layout,
        const struct lists *lists, enum metadata_kind kind, uint32_t tensor,
        uint32_t first, uint32_t last)
{
	const struct sg_launch *launch = sketch->launch;
	uint64_t numel =
	        sg_param_word(launch, 0, layout->numel_at + tensor * 8);
	uint64_t from = (uint64_t)first * CHUNK_ELEMENTS;
	uint64_t to = ((uint64_t)last + 1) * CHUNK_ELEMENTS;
	uint32_t extra_at = layout->extra_at + tensor * layout->extra_bytes;
	uint8_t value[16];

	if (to > numel)
		to = numel;
	if (from >= to)
		return;
	for (unsigned i = 0; i < layout->depth; i++) {
		uint32_t at = (i * layout->tensors + tensor) * 8;
		uint64_t va = sg_param_word(launch, 0, at);
		struct sg_type type = lists->types[i];

		if (va)
			sg_touch(sketch, va + from * type.bytes,
			        (to - from) * type.bytes, lists->roles[i],
			        type);
	}
	if (kind == METADATA_FUSED) {
		sg_touch(sketch, sg_param_word(launch, 0, extra_at), 4,
		        SG_OPERAND_READ, (struct sg_type){4, 0});
	} else if (kind == METADATA_SCALARS) {
		sg_param_read(launch, 0, extra_at, value, layout->extra_bytes);
		sg_scalar(sketch, value, layout->extra_bytes);
	}
}

static uint32_t read_index(
        const struct sg_launch *launch, uint32_t offset, uint32_t bytes)
{
	uint32_t n = 0;

	sg_param_read(launch, 0, offset, &n, bytes);
	return n;
}

/* Goes through the grid; blocks of one tensor stand together. */
static void touch_tensors(struct sg_sketch *sketch, const struct layout *layout,
        const struct lists *lists, enum metadata_kind kind)
{
	const struct sg_launch *launch = sketch->launch;
	uint32_t tensor = 0, first = 0, last = 0;

	for (uint32_t b = 0; b < launch->grid[0]; b++) {
		uint32_t t = read_index(launch,
		        layout->block_at + b * layout->index_bytes,
		        layout->index_bytes);
		uint32_t chunk =
		        read_index(launch, layout->chunk_at + b * 4, 4);

		if (b && (t != tensor || chunk != last + 1)) {
			touch_tensor(sketch, layout, lists, kind, tensor, first,
			        last);
			first = chunk;
		} else if (!b) {
			first = chunk;
		}
		tensor = t;
		last = chunk;
	}
	touch_tensor(sketch, layout, lists, kind, tensor, first, last);
}

/* multi_tensor_apply_kernel<metadata, functor, ...>(metadata, functor, ...) */
bool sg_rule_foreach(struct sg_sketch *sketch)
{
	struct sg_text name = sg_text(sketch->launch->fn->demangled);
	struct sg_text functor = sg_template_argument(name, 1);
	struct lists lists = {{0}};
	enum metadata_kind kind;
	struct layout layout;

	if (!find_layout(sketch, sg_template_argument(name, 0), &kind, &layout))
		return false;
	if (!fused_lists(sketch, functor, layout.depth, &lists)) {
		if (!plain_lists(functor, layout.depth, &lists))
			return false;
		plain_params(sketch, functor, &lists);
	}
	for (unsigned i = 0; i < layout.depth; i++)
		if (!lists.types[i].bytes)
			return false;
	touch_tensors(sketch, &layout, &lists, kind);
	return true;
}
