/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Operands as rows of the kernel table list them (the notation stands in
 * kernels.def). A list is read once per function and kept with it, template
 * arguments filled in; each launch then only evaluates it. Under sg_lock.
 */
#include "tests/simgpu/driver/kernels.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum factor_kind {
	FACTOR_CONSTANT,
	FACTOR_PARAM,
	FACTOR_WORD, /* a whole parameter, or 4 bytes in it */
	FACTOR_GRID,
	FACTOR_ELEMENTS, /* of a TensorInfo */
};
struct factor {
	char op; /* '*', '/', '+' before it */
	enum factor_kind kind;
	uint64_t value; /* constant, parameter or axis */
	uint32_t offset;
};

enum item_kind {
	ITEM_RANGE,
	ITEM_TENSOR_INFO, /* at::cuda::detail::TensorInfo */
	ITEM_ACCESSOR,    /* PackedTensorAccessor */
	ITEM_SCALAR,
	ITEM_PHILOX, /* at::PhiloxCudaState */
	ITEM_NONDETERMINISTIC,
};
#define MAX_FACTORS 12
struct sum {
	struct factor factors[MAX_FACTORS];
	unsigned n;
};
struct item {
	enum item_kind kind;
	unsigned roles;
	int repeat; /* axis of the grid, or -1 */
	unsigned param, dims;
	uint32_t offset, bytes;
	struct sg_type type;
	struct sum extent;
	enum sg_series series;
	struct sum bound, count; /* of what is written */
};
struct sg_operands {
	struct item *items;
	unsigned n;
};

/* ------------------------------------------------------------------ reading */

static bool take(const char **p, char c)
{
	if (**p != c)
		return false;
	++*p;
	return true;
}

static unsigned take_number(const char **p)
{
	char *end;
	unsigned long n = strtoul(*p, &end, 10);

	*p = end;
	return (unsigned)n;
}

/* tN or {tN}; {NAME#N}: argument N of the first template called NAME; or
 * {TYPE}. */
static struct sg_type take_type(const char **p, const char *name)
{
	struct sg_text all = sg_text(name), list;
	const char *end, *mark;
	char *prefix;

	if (take(p, 't'))
		return sg_type_of(sg_template_argument(all, take_number(p)));
	if (!take(p, '{'))
		return (struct sg_type){0};
	end = strchr(*p, '}');
	if (**p == 't' && isdigit((unsigned char)(*p)[1])) {
		++*p;
		all = sg_template_argument(all, take_number(p));
		*p = end + 1;
		return sg_type_of(all);
	}
	mark = memchr(*p, '#', (size_t)(end - *p));
	if (!mark) {
		list = (struct sg_text){*p, (size_t)(end - *p)};
		*p = end + 1;
		return sg_type_of(list);
	}
	prefix = sg_xcalloc(1, (size_t)(mark - *p) + 1);
	memcpy(prefix, *p, (size_t)(mark - *p));
	list = sg_text_after(all, prefix);
	free(prefix);
	*p = mark + 1;
	all = sg_template_argument(list, take_number(p));
	*p = end + 1;
	return sg_type_of(all);
}

static void take_factor(const char **p, char op, const char *name,
        struct item *item, struct sum *sum)
{
	struct factor *factor;

	if (sum->n == MAX_FACTORS)
		abort();
	factor = &sum->factors[sum->n++];
	factor->op = op;
	if (take(p, 'n')) {
		factor->kind = FACTOR_ELEMENTS;
		factor->value = take_number(p);
	} else if (take(p, 'q')) {
		factor->kind = FACTOR_WORD;
		factor->value = take_number(p);
		if (take(p, '.'))
			factor->offset = take_number(p);
	} else if (take(p, 'p')) {
		factor->kind = FACTOR_PARAM;
		factor->value = take_number(p);
		factor->offset = UINT32_MAX;
		if (take(p, '.'))
			factor->offset = take_number(p);
	} else if (take(p, 'g')) {
		factor->kind = FACTOR_GRID;
		factor->value = (uint64_t)(*(*p)++ - 'x');
	} else if (isdigit((unsigned char)**p)) {
		factor->value = take_number(p);
	} else {
		struct sg_type type = take_type(p, name);

		factor->value = type.bytes;
		/* The first type is the elements'. */
		if (!item->type.bytes)
			item->type = type;
	}
}

static void take_sum(
        const char **p, const char *name, struct item *item, struct sum *sum)
{
	char op = '+';

	do {
		take_factor(p, op, name, item, sum);
		op = **p;
	} while (take(p, '*') || take(p, '/') || take(p, '+'));
}

/* What the integers are that are written: before the colon. */
static void take_values(const char **p, const char *name, struct item *item)
{
	if (take(p, '~')) {
		item->series = SG_SERIES_PERMUTED;
		return;
	}
	if (take(p, '<'))
		item->series = SG_SERIES_FREE;
	else if (take(p, '^'))
		item->series = SG_SERIES_DISTINCT;
	else if (take(p, '%'))
		item->series = SG_SERIES_SHARES;
	else if (take(p, '@'))
		item->series = SG_SERIES_LINEAR;
	else
		return;
	take_sum(p, name, item, &item->bound);
	if (take(p, ','))
		take_sum(p, name, item, &item->count);
}

/* How far an operand reaches: after the colon. */
static void take_extent(const char **p, const char *name, struct item *item)
{
	if (take(p, 'I')) {
		item->kind = ITEM_TENSOR_INFO;
		item->type = take_type(p, name);
		return;
	}
	if (take(p, 'A')) {
		item->kind = ITEM_ACCESSOR;
		item->dims = take_number(p);
		item->type = take_type(p, name);
		return;
	}
	take_sum(p, name, item, &item->extent);
}

static void take_item(const char **p, const char *name, struct item *item)
{
	item->repeat = -1;
	if (take(p, '!')) {
		item->kind = ITEM_NONDETERMINISTIC;
		return;
	}
	if (take(p, 'g')) {
		item->repeat = *(*p)++ - 'x';
		take(p, '*');
	}
	switch (*(*p)++) {
	case 'r':
		item->roles = SG_OPERAND_READ;
		break;
	case 'w':
		item->roles = SG_OPERAND_WRITE;
		break;
	case 'm':
		item->roles = SG_OPERAND_READ | SG_OPERAND_WRITE;
		break;
	case 's':
		item->kind = ITEM_SCALAR;
		break;
	case 'P':
		item->kind = ITEM_PHILOX;
		break;
	default:
		abort();
	}
	if (take(p, '?'))
		item->roles |= SG_OPERAND_IF_LIVE;
	item->param = take_number(p);
	if (take(p, '.'))
		item->offset = take_number(p);
	if (take(p, '+'))
		item->bytes = take_number(p);
	if (**p == '{')
		item->type = take_type(p, name);
	take_values(p, name, item);
	if (take(p, ':'))
		take_extent(p, name, item);
}

static struct sg_operands *read_list(const char *list, const char *name)
{
	struct sg_operands *operands = sg_xcalloc(1, sizeof(*operands));

	while (*list) {
		operands->items = sg_xrealloc(operands->items,
		        (operands->n + 1) * sizeof(*operands->items));
		memset(&operands->items[operands->n], 0,
		        sizeof(*operands->items));
		take_item(&list, name, &operands->items[operands->n++]);
		list += strspn(list, " ");
	}
	return operands;
}

/* --------------------------------------------------------------- evaluation */

/* data, 25 sizes, 25 strides, dims; 32 or 64 bits wide. False: too many. */
static bool tensor_info(const struct sg_launch *launch, unsigned param,
        uint32_t element_bytes, struct sg_shape *ret_shape)
{
	bool wide = sg_param_bytes(launch, param) > 216;
	uint32_t width = wide ? 8 : 4, at = 8 + SG_DIMS * 2 * width;
	struct sg_shape shape = {
	        .dims = (unsigned)sg_param_int(launch, param, at),
	};

	if (shape.dims > SG_DIMS)
		return false;
	for (unsigned i = 0; i < shape.dims; i++) {
		uint64_t size = 0, step = 0;

		sg_param_read(launch, param, 8 + i * width, &size, width);
		sg_param_read(
		        launch, param, 8 + (SG_DIMS + i) * width, &step, width);
		shape.sizes[i] = size;
		shape.steps[i] = (int64_t)step * element_bytes;
	}
	*ret_shape = shape;
	return true;
}

static uint64_t elements(const struct sg_launch *launch, unsigned param)
{
	struct sg_shape shape;
	uint64_t n = 1;

	if (!tensor_info(launch, param, 1, &shape))
		return 0;
	for (unsigned i = 0; i < shape.dims; i++)
		n *= shape.sizes[i];
	return n;
}

static uint64_t factor_value(
        const struct factor *factor, const struct sg_launch *launch)
{
	unsigned param = (unsigned)factor->value;

	switch (factor->kind) {
	case FACTOR_PARAM:
		if (factor->offset != UINT32_MAX)
			return (uint64_t)sg_param_int(
			        launch, param, factor->offset);
		if (sg_param_bytes(launch, param) == 8)
			return sg_param_word(launch, param, 0);
		return (uint64_t)sg_param_int(launch, param, 0);
	case FACTOR_WORD:
		return sg_param_word(launch, param, factor->offset);
	case FACTOR_GRID:
		return launch->grid[factor->value];
	case FACTOR_ELEMENTS:
		return elements(launch, param);
	default:
		return factor->value;
	}
}

/* Products and quotients from left to right, and their sum. */
static uint64_t total(const struct sum *sum_, const struct sg_launch *launch)
{
	uint64_t sum = 0, product = 0;

	for (unsigned i = 0; i < sum_->n; i++) {
		const struct factor *factor = &sum_->factors[i];
		uint64_t value = factor_value(factor, launch);

		if (factor->op == '*') {
			product *= value;
		} else if (factor->op == '/') {
			product = value ? product / value : 0;
		} else {
			sum += product;
			product = value;
		}
	}
	return sum + product;
}

static void touch_tensor_info(const struct item *item, struct sg_sketch *sketch)
{
	uint64_t va = sg_param_word(sketch->launch, item->param, 0);
	struct sg_shape shape;

	if (!va || !tensor_info(sketch->launch, item->param, item->type.bytes,
	                   &shape))
		return;
	sg_touch_shape(sketch, va, &shape, item->type, item->roles);
}

/* data, sizes, strides. */
static void touch_accessor(const struct item *item, struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	uint32_t bytes = sg_param_bytes(launch, item->param);
	uint64_t va = sg_param_word(launch, item->param, 0);
	struct sg_shape shape = {.dims = item->dims};
	uint32_t width = bytes == 8 + item->dims * 8 ? 4 : 8;

	if (!va || bytes != 8 + item->dims * 2 * width)
		return;
	for (unsigned i = 0; i < item->dims; i++) {
		uint64_t size = 0, step = 0;

		sg_param_read(launch, item->param, 8 + i * width, &size, width);
		sg_param_read(launch, item->param, 8 + (item->dims + i) * width,
		        &step, width);
		shape.sizes[i] = size;
		shape.steps[i] = (int64_t)step * item->type.bytes;
	}
	sg_touch_shape(sketch, va, &shape, item->type, item->roles);
}

/* Seed, offset and their place in a graph: numbers, or pointers to them. */
static void add_philox(const struct item *item, struct sg_sketch *sketch)
{
	static const struct sg_type number = {8, 0};
	uint64_t words[3];
	uint8_t captured;

	sg_param_read(sketch->launch, item->param, item->offset, words,
	        sizeof(words));
	sg_param_read(sketch->launch, item->param, item->offset + 24, &captured,
	        sizeof(captured));
	if (captured) {
		sg_touch(sketch, words[0], 8, SG_OPERAND_READ, number);
		sg_touch(sketch, words[1], 8, SG_OPERAND_READ, number);
		sg_scalar(sketch, &words[2], 8);
	} else {
		sg_scalar(sketch, words, 16);
	}
}

static void add_scalar(const struct item *item, struct sg_sketch *sketch)
{
	uint32_t all = sg_param_bytes(sketch->launch, item->param);
	uint32_t bytes = item->bytes ? item->bytes : all;
	uint8_t value[64];

	if (bytes > sizeof(value) || item->offset + bytes > all)
		return;
	sg_param_read(sketch->launch, item->param, item->offset, value, bytes);
	sg_scalar(sketch, value, bytes);
}

/* Until the next operand. */
static void set_values(const struct item *item, struct sg_sketch *sketch)
{
	sketch->values = (struct sg_values){
	        .series = item->series,
	        .bound = total(&item->bound, sketch->launch),
	        .count = total(&item->count, sketch->launch),
	};
	/* Nothing can lie in no slice, or be no share. */
	if (!sketch->values.count && (item->series == SG_SERIES_DISTINCT ||
	                                     item->series == SG_SERIES_SHARES))
		sketch->values = (struct sg_values){0};
}

static void add_item(const struct item *item, struct sg_sketch *sketch)
{
	unsigned n = item->repeat < 0 ? 1 : sketch->launch->grid[item->repeat];
	uint64_t bytes = SG_TO_BLOCK_END;

	set_values(item, sketch);
	if (item->extent.n)
		bytes = total(&item->extent, sketch->launch);

	switch (item->kind) {
	case ITEM_TENSOR_INFO:
		touch_tensor_info(item, sketch);
		break;
	case ITEM_ACCESSOR:
		touch_accessor(item, sketch);
		break;
	case ITEM_SCALAR:
		add_scalar(item, sketch);
		break;
	case ITEM_PHILOX:
		add_philox(item, sketch);
		break;
	case ITEM_NONDETERMINISTIC:
		sketch->op->nondeterministic = true;
		break;
	case ITEM_RANGE:
		for (unsigned i = 0; i < n; i++)
			sg_touch(sketch,
			        sg_param_word(sketch->launch, item->param,
			                item->offset + i * 8),
			        bytes, item->roles, item->type);
		break;
	}
	sketch->values = (struct sg_values){0};
}

void sg_list_operands(const struct sg_kernel_row *row, struct sg_sketch *sketch)
{
	struct sg_function *fn = sketch->launch->fn;

	if (!fn->operands)
		fn->operands = read_list(row->operands, fn->demangled);
	for (unsigned i = 0; i < fn->operands->n; i++)
		add_item(&fn->operands->items[i], sketch);
}
