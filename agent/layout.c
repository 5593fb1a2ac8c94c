/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/demangle.h"
#include "agent/funcs.h"

/*
 * An offset calculator has 25 dimensions: their number, divisors of 12 bytes
 * and a stride for each operand. Pointers to the operands follow.
 */
#define CALCULATOR_BYTES(operands) (304u + 100u * (operands))
#define CALCULATOR_DIMS            25u
#define OPERANDS_MAX               8u

/* ReduceOp<..., unsigned int, ...>: source, outputs, buffers, semaphores. */
#define REDUCE_SOURCE(bytes) ((bytes)-TS_REDUCE_TAIL)
#define REDUCE_SECOND(bytes) ((bytes)-48u) /* where there are two outputs */
#define REDUCE_END(bytes)    ((bytes)-16u)

/* Such a struct tells that it is one; beside the number of its outputs. */
#define REDUCE_PROVED (1u << 31)

/* Inputs of a concatenation: at most so many at once. */
#define CONCAT_INPUTS 128u

/* Lists of tensors in kernels with up to 4 KB of parameters, and 32 KB. */
#define SMALL_BLOCKS 320u
#define LARGE_BLOCKS 2240u
#define LISTS_MAX    5u
static const uint32_t list_tensors[LISTS_MAX] = {110, 64, 48, 36, 30};
static const uint32_t scalar_tensors[LISTS_MAX] = {96, 64, 48, 36, 30};
#define LARGE_FACTOR 7u

/*
 * TensorInfo: a pointer, sizes and strides of 4 or 8 bytes each, their number,
 * a flag.
 */
#define INFO_DIMS_MAX     25u
#define INFO_DIMS(index)  (8u + 2 * INFO_DIMS_MAX * (index))
#define INFO_WORDS(index) ((INFO_DIMS(index) + 8) / 8)

enum rule {
	RULE_WORDS,   /* those of the bit map */
	RULE_REDUCE,  /* and one where a second output is there */
	RULE_LISTS,   /* as many tensors as block_to_tensor names */
	RULE_CONCAT,  /* as many inputs as the grid is high */
	RULE_INFOS,   /* and sizes and strides of as many dimensions as told */
	RULE_OFFSETS, /* words; an offset calculator comes first, if proved */
};

struct words {
	uint64_t *bits; /* NULL: all words */
	uint32_t count;
};

struct ts_layout {
	enum rule rule;
	/* LISTS */
	uint32_t lists, tensors; /* how many, and room in each */
	uint32_t steps;          /* offset of a list of step counts, or 0 */
	uint32_t block_to_tensor, index_bytes, blocks;
	uint32_t param_bytes;
	bool sized; /* CONCAT: the struct has the size that it is to have */
	size_t param_count;
	struct words params[];
};

static uint32_t round8(uint32_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

static bool limit_words(struct ts_layout *layout, size_t param, uint32_t bytes)
{
	struct words *words = &layout->params[param];

	words->count = bytes / 8;
	words->bits = calloc(words->count / 64 + 1, sizeof(uint64_t));
	return words->bits;
}

static void keep_words(
        struct ts_layout *layout, size_t param, uint32_t from, uint32_t to)
{
	struct words *words = &layout->params[param];

	for (uint32_t i = from / 8; i < to / 8 && i < words->count; i++)
		words->bits[i / 64] |= 1ull << i % 64;
}

/* The struct of an iterator that calculates offsets: calculator, pointers. */
static bool limit_iterator(
        struct ts_layout *layout, uint32_t bytes, bool to_the_end)
{
	uint32_t first = 0, end = 0;

	for (uint32_t n = 1; n <= OPERANDS_MAX; n++) {
		uint32_t at = round8(CALCULATOR_BYTES(n));

		if (at + 8 * n > bytes)
			break;
		first = at;
		end = at + 8 * n;
	}
	if (!first)
		return false;
	/* Indexing adds an array of pointers whose length varies. */
	if (to_the_end) {
		first = round8(CALCULATOR_BYTES(3));
		end = bytes;
	}
	if (!limit_words(layout, 1, bytes))
		return false;
	keep_words(layout, 1, first, end);
	if (!to_the_end)
		layout->rule = RULE_OFFSETS;
	return true;
}

static bool limit_reduce(struct ts_layout *layout, uint32_t bytes)
{
	if ((bytes != 1040 && bytes != 1048) || !limit_words(layout, 0, bytes))
		return false;
	layout->rule = RULE_REDUCE;
	layout->param_bytes = bytes;
	keep_words(layout, 0, REDUCE_SOURCE(bytes), REDUCE_END(bytes));
	return true;
}

/* Offsets of operands in an attention kernel's one struct; 0 ends them. */
struct struct_words {
	const char *part;
	uint32_t bytes;
	uint16_t offsets[20];
};

#define LAST UINT16_MAX

static const struct struct_words known_structs[] = {
        {"flash_fwd_kernel", 472,
                {0, 8, 16, 112, 152, 160, 224, 232, 400, 408, 432, LAST}},
        {"flash_fwd_splitkv_kernel", 472,
                {0, 8, 16, 112, 120, 160, 168, 224, 232, LAST}},
        {"flash_fwd_splitkv_combine", 472, {112, 120, 160, 168, LAST}},
        {"flash_bwd_dot_do_o", 648, {112, 472, 504, 624, LAST}},
        {"flash_bwd_dq_dk_dv", 648,
                {0, 8, 16, 160, 224, 232, 400, 408, 432, 472, 488, 496, 504,
                        624, LAST}},
        {"flash_bwd_convert_dq", 648, {480, 504, LAST}},
        {"fmha_cutlassF_", 280,
                {0, 8, 16, 24, 32, 40, 48, 64, 72, 80, 232, 240, 264, 272,
                        LAST}},
        {"fmha_cutlassF_", 272,
                {0, 8, 16, 24, 32, 40, 48, 64, 72, 80, 224, 232, 256, 264,
                        LAST}},
        {"fmha_cutlassB_", 480,
                {0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112,
                        232, 240, LAST}},
        {"fmha_cutlassB_", 464,
                {0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112,
                        224, 232, LAST}},
};

static bool limit_struct(
        struct ts_layout *layout, const char *text, uint32_t bytes)
{
	size_t count = sizeof(known_structs) / sizeof(known_structs[0]);

	for (size_t i = 0; i < count; i++) {
		const struct struct_words *known = &known_structs[i];

		if (known->bytes != bytes || !strstr(text, known->part))
			continue;
		if (!limit_words(layout, 0, bytes))
			return false;
		for (const uint16_t *at = known->offsets; *at != LAST; at++)
			keep_words(layout, 0, *at, *at + 8u);
		return true;
	}
	return false;
}

/* The size of a list struct with scalars of @scalar_bytes; 0: no scalars. */
static bool fits_lists(struct ts_layout *layout, uint32_t extra_bytes,
        bool has_start, uint32_t bytes)
{
	uint32_t at = 8 * layout->tensors * (layout->lists + 1) +
	              layout->tensors * extra_bytes;

	layout->block_to_tensor = at;
	at += layout->blocks * (layout->index_bytes + 4);
	return round8(at + (has_start ? 4 : 0)) == bytes;
}

static bool limit_lists(
        struct ts_layout *layout, const char *text, uint32_t bytes)
{
	bool scalars = strstr(text, "ScalarListMetadata<");
	bool fused = strstr(text, "FusedOptimizerTensorListMetadata<");
	const char *at = strstr(text, "Metadata<");
	bool large = bytes > 4096;
	unsigned int lists;

	at = at ? strchr(at, '<') : NULL;
	if (at && scalars)
		at = strchr(at, ',');
	if (!at || sscanf(at + 1, " %u", &lists) != 1 || !lists ||
	        lists > LISTS_MAX)
		return false;
	layout->rule = RULE_LISTS;
	layout->lists = lists;
	layout->tensors = (scalars ? scalar_tensors : list_tensors)[lists - 1] *
	                  (large ? LARGE_FACTOR : 1);
	layout->blocks = large ? LARGE_BLOCKS : SMALL_BLOCKS;
	layout->index_bytes = large ? 2 : 1;
	if (fused)
		layout->steps = 8 * layout->tensors * (lists + 1);
	if (fused)
		return fits_lists(layout, 8, true, bytes);
	if (!scalars)
		return fits_lists(layout, 0, true, bytes);
	return fits_lists(layout, 4, false, bytes) ||
	       fits_lists(layout, 8, false, bytes);
}

/*
 * Pointers, three numbers and a flag of each input, then four sizes and strides
 * of one or of each.
 */
static bool fits_concat(uint32_t bytes)
{
	for (uint32_t n = CONCAT_INPUTS / 2; n <= CONCAT_INPUTS; n *= 2)
		for (uint32_t index = 4; index <= 8; index *= 2) {
			uint32_t each = n * (8 + 3 * index + 1);

			if (round8(each + 8 * index) == bytes ||
			        round8(each + n * 8 * index) == bytes)
				return true;
		}
	return false;
}

/* Tensors by value: a pointer first, then sizes and strides. */
static void limit_tensors(struct ts_layout *layout, const char *text,
        const struct ts_param *params, size_t count)
{
	bool infos = strstr(text, "TensorInfo<");
	bool accessors = strstr(text, "PackedTensorAccessor<");

	for (size_t i = 0; i < count; i++) {
		uint32_t bytes = params[i].bytes;
		/* A dropout's random state is smaller and may be pointers. */
		bool info = infos && (bytes == 216 || bytes == 416);
		bool accessor = accessors && bytes > 8 && bytes <= 88;

		if ((info || accessor) && limit_words(layout, i, bytes))
			keep_words(layout, i, 0, 8);
		if (info)
			layout->rule = RULE_INFOS;
	}
}

/* False: nothing is known. */
static bool fill(struct ts_layout *layout, const char *text,
        const struct ts_param *params, size_t count)
{
	if (strstr(text, "multi_tensor_apply_kernel"))
		return limit_lists(layout, text, params[0].bytes);
	if (strstr(text, "::CatArrayBatchedCopy") && count > 1) {
		layout->rule = RULE_CONCAT;
		layout->sized = fits_concat(params[1].bytes);
		return true;
	}
	if (strstr(text, "reduce_kernel<"))
		return limit_reduce(layout, params[0].bytes);
	if (strstr(text, "elementwise_kernel<") && count == 2)
		return limit_iterator(layout, params[1].bytes,
		        strstr(text, "index") || strstr(text, "scatter"));
	if (limit_struct(layout, text, params[0].bytes))
		return true;
	limit_tensors(layout, text, params, count);
	return true;
}

struct ts_layout *ts_layout_create(
        const char *name, const struct ts_param *params, size_t count)
{
	struct ts_layout *layout;
	char *text;

	if (!count)
		return NULL;
	layout = calloc(1, sizeof(*layout) + count * sizeof(*layout->params));
	text = ts_demangle(name);
	if (!layout || !text) {
		free(layout);
		free(text);
		return NULL;
	}
	layout->param_count = count;
	if (!fill(layout, text, params, count)) {
		ts_layout_destroy(layout);
		layout = NULL;
	}
	free(text);
	return layout;
}

void ts_layout_destroy(struct ts_layout *layout)
{
	if (!layout)
		return;
	for (size_t i = 0; i < layout->param_count; i++)
		free(layout->params[i].bits);
	free(layout);
}

static uint32_t tensors_used(const struct ts_layout *layout,
        const unsigned char *data, uint32_t blocks)
{
	uint32_t most = 0;

	if (blocks > layout->blocks)
		blocks = layout->blocks;
	data += layout->block_to_tensor;
	for (uint32_t i = 0; i < blocks; i++) {
		uint32_t tensor = data[i];

		if (layout->index_bytes == 2)
			tensor = data[2 * i] | (uint32_t)data[2 * i + 1] << 8;
		if (tensor > most)
			most = tensor;
	}
	return most + 1;
}

/* A divisor with the numbers that take its place: multiplier and shift. */
static bool is_divider(const uint32_t *divider)
{
	uint32_t divisor = divider[0], shift = 0;
	uint64_t excess;

	if (!divisor || divisor > INT32_MAX)
		return false;
	while (1u << shift < divisor)
		shift++;
	excess = (uint64_t)((1u << shift) - divisor) << 32;
	return divider[1] == (uint32_t)(excess / divisor + 1) &&
	       divider[2] == shift;
}

/* How many dimensions an offset calculator has; -1: it is none. */
static int dims_of(const char *data)
{
	uint32_t dims, divider[3];

	memcpy(&dims, data, sizeof(dims));
	if (dims > CALCULATOR_DIMS)
		return -1;
	for (uint32_t i = 0; i < dims; i++) {
		memcpy(divider, data + 4 + i * sizeof(divider),
		        sizeof(divider));
		if (!is_divider(divider))
			return -1;
	}
	return (int)dims;
}

/*
 * The calculators of input and outputs stand right before the source, but for
 * padding; what they hold comes about in no other way.
 */
static bool is_reduce(const char *data, uint32_t bytes)
{
	for (uint32_t pad = 0; pad < 8; pad += 4) {
		const char *out =
		        data + REDUCE_SOURCE(bytes) - pad - CALCULATOR_BYTES(2);
		int of_out = dims_of(out);
		int of_in = dims_of(out - CALCULATOR_BYTES(1));

		if (of_in >= 0 && of_out >= 0 && of_in + of_out)
			return true;
	}
	return false;
}

/* Bytes of a size or stride of a TensorInfo, by its words; 0: it is none. */
static uint32_t index_of_info(const struct words *words)
{
	if (!words->bits)
		return 0;
	return words->count == INFO_WORDS(4)   ? 4
	       : words->count == INFO_WORDS(8) ? 8
	                                       : 0;
}

/* The most dimensions that a TensorInfo of the launch has. */
static uint32_t dims_used(const struct ts_layout *layout, void *const *params)
{
	uint32_t most = 0;

	for (size_t i = 0; i < layout->param_count; i++) {
		uint32_t index = index_of_info(&layout->params[i]), dims;

		if (!index)
			continue;
		memcpy(&dims, (const char *)params[i] + INFO_DIMS(index),
		        sizeof(dims));
		if (dims > most)
			most = dims;
	}
	return most;
}

/* Sizes and strides of dimensions that there are not. */
static bool is_beyond_dims(
        const struct words *words, uint32_t dims, uint32_t offset)
{
	uint32_t index = index_of_info(words), strides;

	if (!index || offset < 8 || !dims || dims > INFO_DIMS_MAX)
		return false;
	strides = 8 + INFO_DIMS_MAX * index;
	if (offset + 8 <= strides)
		return (offset - 8) / index >= dims;
	return offset >= strides && offset + 8 <= INFO_DIMS(index) &&
	       (offset - strides) / index >= dims;
}

uint32_t ts_layout_used(const struct ts_layout *layout, void *const *params,
        const uint32_t *grid)
{
	uint32_t outputs;

	if (!layout || !params)
		return 0;
	switch (layout->rule) {
	case RULE_LISTS:
		return tensors_used(layout, params[0], grid[0]);
	case RULE_CONCAT:
		return grid[1];
	case RULE_REDUCE:
		memcpy(&outputs,
		        (const char *)params[0] + layout->param_bytes - 4,
		        sizeof(outputs));
		outputs &= ~REDUCE_PROVED;
		return is_reduce(params[0], layout->param_bytes)
		               ? outputs | REDUCE_PROVED
		               : outputs;
	case RULE_INFOS:
		return dims_used(layout, params);
	case RULE_OFFSETS:
		/* Divisors with what belongs to them come about no other way.
		 */
		return dims_of(params[1]) > 0;
	case RULE_WORDS:
		break;
	}
	return 0;
}

bool ts_layout_keeps(const struct ts_layout *layout, uint32_t used,
        uint16_t param, uint32_t offset)
{
	const struct words *words;
	uint32_t word = offset / 8;

	if (!layout || param >= layout->param_count)
		return true;
	if (layout->rule == RULE_CONCAT && param)
		return param == 1 && word < used;
	if (layout->rule == RULE_LISTS && !param) {
		if (layout->steps && offset >= layout->steps)
			return word - layout->steps / 8 < used;
		return word < layout->lists * layout->tensors &&
		       word % layout->tensors < used;
	}
	if (layout->rule == RULE_REDUCE && !param &&
	        (used & ~REDUCE_PROVED) != 2 &&
	        offset == REDUCE_SECOND(layout->param_bytes))
		return false;
	words = &layout->params[param];
	if (!words->bits)
		return true;
	return word < words->count && words->bits[word / 64] >> word % 64 & 1;
}

bool ts_layout_is_unused(const struct ts_layout *layout, uint32_t used,
        uint16_t param, uint32_t offset)
{
	if (!layout || ts_layout_keeps(layout, used, param, offset))
		return false;
	switch (layout->rule) {
	case RULE_LISTS:
		return !param;
	case RULE_CONCAT:
		return param == 1 && layout->sized;
	case RULE_REDUCE:
		return !param && used & REDUCE_PROVED;
	case RULE_INFOS:
		return is_beyond_dims(&layout->params[param], used, offset);
	case RULE_OFFSETS:
		/* However many operands there are, it has at least one's. */
		return param == 1 && used && offset + 8 <= CALCULATOR_BYTES(1);
	case RULE_WORDS:
		break;
	}
	return false;
}
