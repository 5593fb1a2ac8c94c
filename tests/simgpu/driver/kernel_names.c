/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Demangled kernel names taken apart. Owns the table of functors
 * (functors.def). Constant data; used under sg_lock, once per function.
 */
#include "tests/simgpu/driver/kernel_names.h"
#include "tests/simgpu/driver/kernels.h"
#include "tests/simgpu/driver/tags.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- texts */

struct sg_text sg_text(const char *name)
{
	return (struct sg_text){name, strlen(name)};
}

bool sg_text_like(struct sg_text text, const char *pattern)
{
	const char *p = text.at, *end = p + text.n;
	const char *star = NULL, *resume = NULL;

	if (!text.at)
		return false;
	while (p < end) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = p;
		} else if (*pattern == *p) {
			pattern++;
			p++;
		} else if (star) {
			/* Let the last star take one character more. */
			pattern = star;
			p = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

struct sg_text sg_text_after(struct sg_text text, const char *prefix)
{
	const char *at = NULL;

	if (text.at)
		at = memmem(text.at, text.n, prefix, strlen(prefix));
	if (!at)
		return (struct sg_text){0};
	at += strlen(prefix);
	return (struct sg_text){at, (size_t)(text.at + text.n - at)};
}

static struct sg_text trim(struct sg_text text)
{
	while (text.n && *text.at == ' ') {
		text.at++;
		text.n--;
	}
	while (text.n && text.at[text.n - 1] == ' ')
		text.n--;
	return text;
}

/* The i-th of the parts between commas up to the closing bracket. */
static struct sg_text list_item(struct sg_text list, unsigned i)
{
	const char *from = list.at, *end = list.at + list.n;
	int depth = 0;

	for (const char *p = from; list.at && p < end; p++) {
		bool closes = strchr(">)}]", *p), ends = closes && !depth;

		if (ends || (*p == ',' && !depth)) {
			if (!i)
				return trim((struct sg_text){
				        from, (size_t)(p - from)});
			if (ends)
				break;
			i--;
			from = p + 1;
		} else if (closes) {
			depth--;
		} else if (strchr("<({[", *p)) {
			depth++;
		}
	}
	return (struct sg_text){0};
}

struct sg_text sg_template_argument(struct sg_text text, unsigned i)
{
	return list_item(sg_text_after(text, "<"), i);
}

struct sg_text sg_lambda_parameter(struct sg_text text, unsigned i)
{
	struct sg_text last = {0}, next = text;
	struct sg_text item;

	while ((next = sg_text_after(next, "{lambda(")).at)
		last = next;
	item = list_item(last, i);
	return item.n ? item : (struct sg_text){0};
}

/* ------------------------------------------------------------------- types */

static const struct {
	const char *name;
	struct sg_type type;
} type_names[] = {
        {"float", {4, SG_TYPE_F32}},
        {"double", {8, SG_TYPE_F64}},
        {"c10::BFloat16", {2, SG_TYPE_BF16}},
        {"c10::Half", {2, SG_TYPE_F16}},
        {"__half", {2, SG_TYPE_F16}},
        {"__nv_bfloat16", {2, SG_TYPE_BF16}},
        {"cutlass::bfloat16_t", {2, SG_TYPE_BF16}},
        {"cutlass::half_t", {2, SG_TYPE_F16}},
        {"bool", {1, SG_TYPE_I8}},
        {"char", {1, SG_TYPE_I8}},
        {"signed char", {1, SG_TYPE_I8}},
        {"unsigned char", {1, SG_TYPE_I8}},
        {"short", {2, SG_TYPE_I16}},
        {"unsigned short", {2, SG_TYPE_MOVED}},
        {"int", {4, SG_TYPE_I32}},
        {"unsigned int", {4, SG_TYPE_MOVED}},
        {"long", {8, SG_TYPE_I64}},
        {"unsigned long", {8, SG_TYPE_I64}},
        {"long long", {8, SG_TYPE_I64}},
        {"unsigned long long", {8, SG_TYPE_I64}},
        {"c10::complex<float>", {8, SG_TYPE_F32}},
        {"c10::complex<double>", {16, SG_TYPE_F64}},
        /* Data that is only moved. */
        {"*::OpaqueType<16*>", {16, SG_TYPE_MOVED}},
        {"*::OpaqueType<1*>", {1, SG_TYPE_MOVED}},
        {"*::OpaqueType<2*>", {2, SG_TYPE_MOVED}},
        {"*::OpaqueType<4*>", {4, SG_TYPE_MOVED}},
        {"*::OpaqueType<8*>", {8, SG_TYPE_MOVED}},
        {"moved", {1, SG_TYPE_MOVED}},
        {"c10::Float8_e4m3fn", {1, SG_TYPE_ZERO}},
        {"c10::Float8_e5m2", {1, SG_TYPE_ZERO}},
};

/* text without a trailing word. */
static bool drop_end(struct sg_text *text, const char *word)
{
	size_t n = strlen(word);

	if (text->n < n || memcmp(text->at + text->n - n, word, n))
		return false;
	text->n -= n;
	*text = trim(*text);
	return true;
}

struct sg_type sg_type_of(struct sg_text text)
{
	if (!text.at)
		return (struct sg_type){0};
	text = trim(text);
	if (text.n > 6 && !memcmp(text.at, "const ", 6)) {
		text.at += 6;
		text.n -= 6;
	}
	while (drop_end(&text, "const") || drop_end(&text, "&"))
		;
	if (drop_end(&text, "*"))
		return (struct sg_type){8, SG_TYPE_ZERO};
	for (size_t i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++)
		if (sg_text_like(text, type_names[i].name))
			return type_names[i].type;
	return (struct sg_type){0};
}

struct sg_type sg_type_of_scalar(unsigned n)
{
	static const struct sg_type types[] = {
	        {1, SG_TYPE_I8},  /* Byte */
	        {1, SG_TYPE_I8},  /* Char */
	        {2, SG_TYPE_I16}, /* Short */
	        {4, SG_TYPE_I32}, /* Int */
	        {8, SG_TYPE_I64}, /* Long */
	        {2, SG_TYPE_F16},
	        {4, SG_TYPE_F32},
	        {8, SG_TYPE_F64},
	        {4, SG_TYPE_F16},  /* ComplexHalf */
	        {8, SG_TYPE_F32},  /* ComplexFloat */
	        {16, SG_TYPE_F64}, /* ComplexDouble */
	        {1, SG_TYPE_I8},   /* Bool */
	        {0},
	        {0},
	        {0}, /* quantised */
	        {2, SG_TYPE_BF16},
	};

	if (n >= sizeof(types) / sizeof(types[0]))
		return (struct sg_type){0};
	return types[n];
}

uint32_t sg_opmath_bytes(struct sg_text text)
{
	struct sg_type type = sg_type_of(text);
	bool half = type.piece == SG_TYPE_F16 || type.piece == SG_TYPE_BF16;

	return half ? 4 : type.bytes;
}

/* ---------------------------------------------------------------- functors */

static const struct {
	const char *pattern, *types, *scalars;
} functors[] = {
#define SG_FUNCTOR(pattern, types, scalars) {pattern, types, scalars},
#include "tests/simgpu/driver/functors.def"
#undef SG_FUNCTOR
};

/* tN: template argument, lN: parameter of the lambda, else a type's name. */
static struct sg_text named(struct sg_text functor, struct sg_text word)
{
	unsigned i = word.n > 1 ? (unsigned)(word.at[1] - '0') : 10;

	if (word.n == 2 && i < 10 && word.at[0] == 't')
		return sg_template_argument(functor, i);
	if (word.n == 2 && i < 10 && word.at[0] == 'l')
		return sg_lambda_parameter(functor, i);
	return word;
}

/* The next word of a list; false at its end. */
static bool next_word(const char **list, struct sg_text *ret_word)
{
	*list += strspn(*list, " ");
	*ret_word = (struct sg_text){*list, strcspn(*list, " ")};
	*list += ret_word->n;
	return ret_word->n;
}

static void read_types(
        struct sg_text text, const char *list, struct sg_functor *functor)
{
	struct sg_text word, parameter;

	while (next_word(&list, &word) &&
	        functor->n_types < SG_FUNCTOR_TENSORS) {
		if (word.n != 1 || *word.at != 'l') {
			functor->types[functor->n_types++] =
			        sg_type_of(named(text, word));
			continue;
		}
		/* l: every parameter of the lambda. */
		for (unsigned i = 0;
		        (parameter = sg_lambda_parameter(text, i)).at &&
		        functor->n_types < SG_FUNCTOR_TENSORS;
		        i++)
			functor->types[functor->n_types++] =
			        sg_type_of(parameter);
	}
}

/* OFFSET+COUNTxTYPE: values of a type at an offset; a negative offset counts
 * from the functor's end; mTYPE stands for the type arithmetic is done in. */
static void read_scalars(
        struct sg_text text, const char *list, struct sg_functor *functor)
{
	struct sg_text word;

	while (next_word(&list, &word) &&
	        functor->n_scalars < SG_FUNCTOR_SCALARS) {
		char *p;
		long offset = strtol(word.at, &p, 10);
		unsigned long count = strtoul(p, &p, 10);
		struct sg_text type = {
		        p + 1, (size_t)(word.at + word.n - p - 1)};
		uint32_t bytes;

		if (*type.at == 'm') {
			type.at++;
			type.n--;
			bytes = sg_opmath_bytes(named(text, type));
		} else {
			bytes = sg_type_of(named(text, type)).bytes;
		}
		bytes *= (uint32_t)count;
		functor->scalars[functor->n_scalars].offset =
		        *word.at == '-' ? -(int32_t)bytes : (int32_t)offset;
		functor->scalars[functor->n_scalars++].bytes = bytes;
	}
}

static const struct {
	const char *pattern;
	enum sg_meaning meaning;
} meanings[] = {
        {"*::FillFunctor<*", SG_MEANS_FILL},
        {"*::CUDAFunctorOnSelf_add<*", SG_MEANS_ADD},
        {"*::CompareEqFunctor<*", SG_MEANS_EQUAL},
        {"*::CompareFunctor<*", SG_MEANS_ORDER},
        {"*compare_scalar_kernel<*", SG_MEANS_ORDER},
        {"*logical_not_kernel_cuda*", SG_MEANS_NOT},
        {"*bitwise_not_kernel_cuda*", SG_MEANS_NOT},
        {"*::div_floor_kernel_cuda(*", SG_MEANS_DIVIDE},
        {"*::div_trunc_kernel_cuda(*", SG_MEANS_DIVIDE},
        {"*::remainder_kernel_cuda(*", SG_MEANS_REMAINDER},
        {"*::fmod_kernel_cuda(*", SG_MEANS_REMAINDER},
};

static enum sg_meaning meaning_of(struct sg_text text)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (sg_text_like(text, meanings[i].pattern))
			return meanings[i].meaning;
	return SG_MEANS_NOTHING;
}

struct sg_functor sg_functor_of(struct sg_text text)
{
	struct sg_functor functor = {
	        .lambda = text.n && text.at[text.n - 1] == '}',
	        .meaning = meaning_of(text),
	        .value_left = sg_text_like(text, "*::AUnaryFunctor<*"),
	};

	for (size_t i = 0; i < sizeof(functors) / sizeof(functors[0]); i++) {
		if (!sg_text_like(text, functors[i].pattern))
			continue;
		read_types(text, functors[i].types, &functor);
		read_scalars(text, functors[i].scalars, &functor);
		break;
	}
	return functor;
}
