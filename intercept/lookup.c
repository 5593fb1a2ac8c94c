/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "intercept/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "intercept/driver.h"
#include "intercept/hooks.h"

/* A wrapper and its row must agree on the type cudaTypedefs.h gives. */
#define TS_HOOK(symbol, name, version, type, need)                             \
	_Static_assert(__builtin_types_compatible_p(                           \
	                       __typeof__(&ts_hook_##symbol), type),           \
	        #symbol ": wrapper and type differ");
#include "intercept/cuda_hooks.def"

#define TS_HOOK(symbol, name, version, type, need)                             \
	[TS_HOOK_##symbol] = {#symbol, name, version,                          \
	        (void *)ts_hook_##symbol,                                      \
	        offsetof(struct ts_driver, fn_##symbol)},

const struct ts_hook ts_hooks[TS_HOOK_COUNT] = {
#include "intercept/cuda_hooks.def"
};

/* By address of the real function; filled once, before the agent starts. */
static const struct ts_hook *by_function[TS_HOOK_COUNT];
static size_t function_count;

void *ts_hook_function(const struct ts_hook *hook)
{
	void *function;

	memcpy(&function, (const char *)&ts_driver + hook->entry,
	        sizeof(function));
	return function;
}

static int compare_symbol(const void *key, const void *item)
{
	return strcmp(key, ((const struct ts_hook *)item)->symbol);
}

const struct ts_hook *ts_hook_by_symbol(const char *symbol)
{
	return bsearch(symbol, ts_hooks, TS_HOOK_COUNT, sizeof(ts_hooks[0]),
	        compare_symbol);
}

static int compare_order(const void *a, const void *b)
{
	char *left = ts_hook_function(*(const struct ts_hook *const *)a);
	char *right = ts_hook_function(*(const struct ts_hook *const *)b);

	return (left > right) - (left < right);
}

void ts_lookup_index(void)
{
	function_count = 0;
	for (size_t i = 0; i < TS_HOOK_COUNT; i++)
		if (ts_driver_has((char *)&ts_driver + ts_hooks[i].entry))
			by_function[function_count++] = &ts_hooks[i];
	qsort(by_function, function_count, sizeof(by_function[0]),
	        compare_order);
}

static int compare_function(const void *key, const void *item)
{
	const char *function =
	        ts_hook_function(*(const struct ts_hook *const *)item);

	return ((const char *)key > function) - ((const char *)key < function);
}

const struct ts_hook *ts_hook_by_function(const void *function)
{
	const struct ts_hook *const *found = bsearch(function, by_function,
	        function_count, sizeof(by_function[0]), compare_function);

	return found ? *found : NULL;
}

/* The variants for the per-thread default stream. */
static bool is_per_thread(const struct ts_hook *hook)
{
	size_t length = strlen(hook->symbol);

	return length > 5 &&
	       (!strcmp(hook->symbol + length - 5, "_ptds") ||
	               !strcmp(hook->symbol + length - 5, "_ptsz"));
}

const struct ts_hook *ts_hook_by_name(
        const char *name, int version, bool per_thread)
{
	const struct ts_hook *best = NULL;
	bool has_variant = false;

	for (size_t i = 0; i < TS_HOOK_COUNT; i++)
		has_variant |= is_per_thread(&ts_hooks[i]) &&
		               !strcmp(ts_hooks[i].name, name);
	for (size_t i = 0; i < TS_HOOK_COUNT; i++) {
		const struct ts_hook *hook = &ts_hooks[i];

		if (strcmp(hook->name, name) || hook->version > version ||
		        is_per_thread(hook) != (per_thread && has_variant))
			continue;
		if (!best || hook->version > best->version)
			best = hook;
	}
	return best;
}
