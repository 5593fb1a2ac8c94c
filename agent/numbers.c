/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An address is 64 bits wide, and a program that makes tables of them in
 * PyTorch does so in tensors of such integers, or copies them by their size
 * alone.
 */
#include "agent/numbers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/demangle.h"

/* PyTorch's namespaces; what lies in others may come from anywhere. */
static const char *const numeric[] = {
        "at::native::", "pytorch_flash::", "fmha_cutlass"};

/* What of a product's name tells that it makes a table for others. */
static const char *const preparing[] = {
        "group", "prepare", "ptr", "pointer", "batch_array"};

/* What in a name may stand for an address. */
static const char *const wide[] = {"**", "void*", "OpaqueType"};

static bool has_any(const char *text, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "long" and "unsigned long", not "elongated". */
static bool has_long(const char *text)
{
	const char *at = text;

	while ((at = strstr(at, "long"))) {
		if ((at == text || !is_word(at[-1])) && !is_word(at[4]))
			return true;
		at += 4;
	}
	return false;
}

/* A library's own kernel: its name is no C++ name. */
static bool is_product(const char *text)
{
	return !strpbrk(text, "(<:") && strstr(text, "gemm") &&
	       !has_any(text, preparing,
	               sizeof(preparing) / sizeof(preparing[0]));
}

static bool is_numeric(const char *text)
{
	return has_any(text, numeric, sizeof(numeric) / sizeof(numeric[0])) &&
	       !has_any(text, wide, sizeof(wide) / sizeof(wide[0])) &&
	       !has_long(text);
}

bool ts_writes_numbers(const char *name)
{
	char *text = ts_demangle(name);
	bool numbers = text && (is_product(text) || is_numeric(text));

	free(text);
	return numbers;
}
