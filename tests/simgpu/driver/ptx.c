/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PTX texts: reads kernel signatures, launch bounds, statically declared
 * shared and local memory, and module-scope variables. Instructions are
 * skipped, not compiled, so the number of registers is an assumption unless
 * .maxnreg gives one. Called under sg_lock.
 */
#include "tests/simgpu/driver/code.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The newest PTX this driver's CUDA version knows: 9.2. */
#define NEWEST_PTX_VERSION 92
/* What a kernel of no particular size takes. */
#define ASSUMED_REGS 32

struct token {
	const char *p;
	size_t n;
};

struct ptx {
	const char *p, *end;
	struct token token; /* the current one; n is 0 at the end */
	struct sg_code *code;
	int target_sm;
};

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' ||
	       c == '.';
}

static void skip_blanks(struct ptx *ptx)
{
	while (ptx->p < ptx->end) {
		size_t left = (size_t)(ptx->end - ptx->p);

		if (isspace((unsigned char)*ptx->p)) {
			ptx->p++;
		} else if (left >= 2 && !memcmp(ptx->p, "//", 2)) {
			const char *nl = memchr(ptx->p, '\n', left);

			ptx->p = nl ? nl : ptx->end;
		} else if (left >= 2 && !memcmp(ptx->p, "/*", 2)) {
			const char *close =
			        memmem(ptx->p + 2, left - 2, "*/", 2);

			ptx->p = close ? close + 2 : ptx->end;
		} else {
			return;
		}
	}
}

static void next(struct ptx *ptx)
{
	const char *start;

	skip_blanks(ptx);
	start = ptx->p;
	if (ptx->p == ptx->end) {
		ptx->token = (struct token){start, 0};
		return;
	}
	if (*start == '"') {
		const char *close =
		        memchr(start + 1, '"', (size_t)(ptx->end - start - 1));

		ptx->p = close ? close + 1 : ptx->end;
	} else if (word_char(*start)) {
		while (ptx->p < ptx->end && word_char(*ptx->p))
			ptx->p++;
	} else {
		ptx->p++;
	}
	ptx->token = (struct token){start, (size_t)(ptx->p - start)};
}

static bool at(const struct ptx *ptx, const char *word)
{
	return ptx->token.n == strlen(word) &&
	       !memcmp(ptx->token.p, word, ptx->token.n);
}

static bool accept(struct ptx *ptx, const char *word)
{
	if (!at(ptx, word))
		return false;
	next(ptx);
	return true;
}

/* Takes a number; -EINVAL if there is none. */
static int take_number(struct ptx *ptx, uint64_t *ret_value)
{
	char digits[24];
	char *end;

	if (!ptx->token.n || ptx->token.n >= sizeof(digits) ||
	        !isdigit((unsigned char)ptx->token.p[0]))
		return -EINVAL;
	memcpy(digits, ptx->token.p, ptx->token.n);
	digits[ptx->token.n] = 0;
	errno = 0;
	*ret_value = strtoull(digits, &end, 0);
	if (errno || (*end && strcmp(end, "U")))
		return -EINVAL;
	next(ptx);
	return 0;
}

/* Bytes of a type like .u64 or .f16x2; 0 for anything else. */
static uint32_t type_bytes(struct token t)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} named[] = {{".f16x2", 4}, {".bf16x2", 4}, {".texref", 8},
	        {".surfref", 8}, {".samplerref", 8}};
	uint32_t bits = 0;
	size_t i = 2;

	for (size_t k = 0; k < sizeof(named) / sizeof(named[0]); k++)
		if (t.n == strlen(named[k].name) &&
		        !memcmp(t.p, named[k].name, t.n))
			return named[k].bytes;
	if (t.n < 3 || t.n > 6 || t.p[0] != '.')
		return 0;
	if (t.p[1] == 'b' && t.p[2] == 'f')
		i = 3; /* .bf16 */
	else if (!strchr("busf", t.p[1]))
		return 0;
	for (; i < t.n; i++) {
		if (!isdigit((unsigned char)t.p[i]))
			return 0;
		bits = bits * 10 + (uint32_t)(t.p[i] - '0');
	}
	return bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

struct declaration {
	struct token name;
	uint64_t bytes, align;
	bool open_array; /* name[] */
};

/* Attributes, type, name and extents of a parameter or variable, after the
 * state space. Ends behind the extents. */
static int take_declaration(struct ptx *ptx, struct declaration *ret)
{
	uint64_t element = 0, vector = 1, align = 0, n;

	while (ptx->token.n && ptx->token.p[0] == '.') {
		uint32_t bytes = type_bytes(ptx->token);

		if (bytes) {
			element = bytes;
			next(ptx);
		} else if (accept(ptx, ".v2")) {
			vector = 2;
		} else if (accept(ptx, ".v4")) {
			vector = 4;
		} else if (accept(ptx, ".align")) {
			if (take_number(ptx, &n) < 0)
				return -EINVAL;
			/* After the type it is the pointee's. */
			if (!element)
				align = n;
		} else if (accept(ptx, ".attribute")) {
			while (ptx->token.n && !accept(ptx, ")"))
				next(ptx);
		} else {
			next(ptx);
		}
	}
	if (!element || !ptx->token.n || !word_char(ptx->token.p[0]))
		return -EINVAL;
	ret->name = ptx->token;
	ret->bytes = element * vector;
	ret->align = align ? align : element * vector;
	ret->open_array = false;
	next(ptx);
	while (accept(ptx, "[")) {
		if (accept(ptx, "]")) {
			ret->open_array = true;
			continue;
		}
		if (take_number(ptx, &n) < 0 || !accept(ptx, "]"))
			return -EINVAL;
		if (n > UINT32_MAX || ret->bytes * n > UINT32_MAX)
			return -EINVAL;
		ret->bytes *= n;
	}
	if (ret->align == 0 || ret->align > 4096 ||
	        (ret->align & (ret->align - 1)))
		return -EINVAL;
	return 0;
}

static uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/* The parameters of a kernel, the opening parenthesis taken. */
static int take_params(struct ptx *ptx, struct sg_code_kernel *kernel)
{
	uint64_t offset = 0;

	while (!accept(ptx, ")")) {
		struct declaration decl;

		if (!accept(ptx, ".param") ||
		        take_declaration(ptx, &decl) < 0 || decl.open_array)
			return -EINVAL;
		offset = align_up(offset, decl.align);
		if (!decl.bytes || offset + decl.bytes > SG_PARAMS_MAX_BYTES)
			return -EINVAL;
		kernel->params = sg_xrealloc(kernel->params,
		        (kernel->n_params + 1) * sizeof(*kernel->params));
		kernel->params[kernel->n_params++] = (struct sg_param){
		        (uint32_t)offset, (uint32_t)decl.bytes};
		offset += decl.bytes;
		if (!accept(ptx, ",") && !at(ptx, ")"))
			return -EINVAL;
	}
	kernel->params_bytes = (uint32_t)offset;
	return 0;
}

/* Up to three numbers separated by commas; the missing ones are 1. */
static int take_extents(struct ptx *ptx, uint32_t ret[3])
{
	ret[0] = ret[1] = ret[2] = 1;
	for (int i = 0; i < 3; i++) {
		uint64_t n;

		if (take_number(ptx, &n) < 0 || n > UINT32_MAX)
			return -EINVAL;
		ret[i] = (uint32_t)n;
		if (!accept(ptx, ","))
			break;
	}
	return 0;
}

/* Directives between a kernel's signature and its body. */
static int take_bounds(struct ptx *ptx, struct sg_code_kernel *kernel)
{
	while (ptx->token.n && !at(ptx, "{") && !at(ptx, ";")) {
		uint32_t n[3];
		uint64_t regs;

		if (accept(ptx, ".maxntid") || accept(ptx, ".reqntid")) {
			if (take_extents(ptx, n) < 0)
				return -EINVAL;
			if ((uint64_t)n[0] * n[1] <= 1024 &&
			        (uint64_t)n[0] * n[1] * n[2] <= 1024)
				kernel->max_threads = (int)(n[0] * n[1] * n[2]);
		} else if (accept(ptx, ".reqnctapercluster")) {
			if (take_extents(ptx, kernel->cluster) < 0)
				return -EINVAL;
			kernel->cluster_required = true;
		} else if (accept(ptx, ".explicitcluster")) {
			kernel->cluster_required = true;
		} else if (accept(ptx, ".maxnreg")) {
			if (take_number(ptx, &regs) < 0 || regs > 255)
				return -EINVAL;
			if ((int)regs < kernel->regs)
				kernel->regs = (int)regs;
		} else {
			next(ptx);
		}
	}
	return 0;
}

/* Skips a body in braces. Adds up what a kernel declares in it. */
static int take_body(struct ptx *ptx, struct sg_code_kernel *kernel)
{
	uint64_t shared = 0, local = 0;
	unsigned depth = 0;

	do {
		bool is_shared = at(ptx, ".shared"),
		     is_local = at(ptx, ".local");

		if (!ptx->token.n)
			return -EINVAL;
		if (at(ptx, "{"))
			depth++;
		else if (at(ptx, "}"))
			depth--;
		next(ptx);
		if (kernel && (is_shared || is_local)) {
			struct declaration decl;
			uint64_t *sum = is_shared ? &shared : &local;

			if (take_declaration(ptx, &decl) < 0)
				return -EINVAL;
			if (!decl.open_array)
				*sum = align_up(*sum, decl.align) + decl.bytes;
			if (*sum > INT32_MAX)
				return -EINVAL;
		}
	} while (depth);
	if (kernel) {
		kernel->shared_bytes = (int)shared;
		kernel->local_bytes = (int)local;
	}
	return 0;
}

static int take_kernel(struct ptx *ptx)
{
	struct sg_code_kernel *kernel;

	if (!ptx->token.n || !word_char(ptx->token.p[0]))
		return -EINVAL;
	kernel = sg_code_add_kernel(ptx->code, ptx->token.p, ptx->token.n);
	kernel->regs = ASSUMED_REGS;
	next(ptx);
	if (accept(ptx, "(") && take_params(ptx, kernel) < 0)
		return -EINVAL;
	if (take_bounds(ptx, kernel) < 0)
		return -EINVAL;
	if (at(ptx, "{"))
		return take_body(ptx, kernel);
	/* A declaration of what another module defines. */
	free(kernel->name);
	free(kernel->params);
	ptx->code->n_kernels--;
	return accept(ptx, ";") ? 0 : -EINVAL;
}

static int take_function(struct ptx *ptx)
{
	while (ptx->token.n && !at(ptx, "{") && !at(ptx, ";"))
		next(ptx);
	if (at(ptx, "{"))
		return take_body(ptx, NULL);
	return accept(ptx, ";") ? 0 : -EINVAL;
}

static int take_variables(struct ptx *ptx, bool constant, bool is_extern)
{
	struct sg_code_variable *variable;
	struct declaration decl;

	if (take_declaration(ptx, &decl) < 0)
		return -EINVAL;
	/* name[] takes its extent from the initialiser; not followed. */
	if (!is_extern && !decl.open_array) {
		variable = sg_code_add_variable(
		        ptx->code, decl.name.p, decl.name.n);
		variable->bytes = decl.bytes;
		variable->constant = constant;
		if (constant)
			ptx->code->const_bytes += (int)decl.bytes;
	}
	while (ptx->token.n && !at(ptx, ";"))
		next(ptx);
	return accept(ptx, ";") ? 0 : -EINVAL;
}

static int take_header(struct ptx *ptx)
{
	unsigned major = 0, minor = 0;

	if (!accept(ptx, ".version") || !ptx->token.n)
		return -EINVAL;
	for (size_t i = 0;
	        i < ptx->token.n && isdigit((unsigned char)ptx->token.p[i]);
	        i++)
		major = major * 10 + (unsigned)(ptx->token.p[i] - '0');
	if (ptx->token.n >= 3)
		minor = (unsigned)(ptx->token.p[ptx->token.n - 1] - '0');
	if (!major || minor > 9)
		return -EINVAL;
	if (major > NEWEST_PTX_VERSION / 10 ||
	        major * 10 + minor > NEWEST_PTX_VERSION)
		return -ENOTSUP;
	next(ptx);
	if (!accept(ptx, ".target") || ptx->token.n < 5 ||
	        memcmp(ptx->token.p, "sm_", 3))
		return -EINVAL;
	for (size_t i = 3; i < ptx->token.n &&
	                   isdigit((unsigned char)ptx->token.p[i]) && i < 7;
	        i++)
		ptx->target_sm = ptx->target_sm * 10 + (ptx->token.p[i] - '0');
	next(ptx);
	return 0;
}

static int take_module(struct ptx *ptx)
{
	bool is_extern = false;
	int r = 0;

	while (ptx->token.n && r == 0) {
		if (accept(ptx, ".extern")) {
			is_extern = true;
			continue;
		}
		if (accept(ptx, ".entry"))
			r = take_kernel(ptx);
		else if (accept(ptx, ".func"))
			r = take_function(ptx);
		else if (accept(ptx, ".global"))
			r = take_variables(ptx, false, is_extern);
		else if (accept(ptx, ".const"))
			r = take_variables(ptx, true, is_extern);
		else if (at(ptx, "{"))
			r = take_body(ptx, NULL); /* a debug section */
		else if (accept(ptx, ".visible") || accept(ptx, ".weak") ||
		         accept(ptx, ".common"))
			continue;
		else
			next(ptx);
		is_extern = false;
	}
	return r;
}

int sg_ptx_parse(
        const char *text, size_t bytes, int sm, struct sg_code **ret_code)
{
	struct ptx ptx = {.p = text, .end = text + strnlen(text, bytes)};
	int r;

	ptx.code = sg_code_new();
	next(&ptx);
	r = take_header(&ptx);
	if (r == 0 && ptx.target_sm > sm)
		r = -EINVAL;
	if (r == 0)
		r = take_module(&ptx);
	ptx.code->sm = sm;
	ptx.code->ptx_version = ptx.target_sm;
	if (r == 0)
		r = sg_code_finish(ptx.code);
	if (r < 0) {
		sg_code_unref(ptx.code);
		return r;
	}
	*ret_code = ptx.code;
	return 0;
}
