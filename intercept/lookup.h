/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From what a program asks for to the wrapper that stands before it. Constant
 * tables made from cuda_hooks.def; no lock.
 */
#ifndef TS_LOOKUP_H
#define TS_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

enum ts_hook_id {
#define TS_HOOK(symbol, name, version, type, need) TS_HOOK_##symbol,
#include "intercept/cuda_hooks.def"
	TS_HOOK_COUNT,
};

struct ts_hook {
	const char *symbol; /* what the library exports */
	const char *name;   /* what cuGetProcAddress is asked for */
	int version;        /* the CUDA version that brought this ABI */
	void *wrapper;
	size_t entry; /* offset of the real function in struct ts_driver */
};

extern const struct ts_hook ts_hooks[TS_HOOK_COUNT];

/* The hook of an exported symbol, or NULL. */
const struct ts_hook *ts_hook_by_symbol(const char *symbol);

/* The hook whose real function is @function, or NULL (also before start). */
const struct ts_hook *ts_hook_by_function(const void *function);

/*
 * The hook of what cuGetProcAddress finds for @name with a driver @version:
 * the newest ABI that is not newer. NULL where the table does not know it.
 */
const struct ts_hook *ts_hook_by_name(
        const char *name, int version, bool per_thread);

/* Called by ts_driver_resolve when the real functions are known. */
void ts_lookup_index(void);

/* The real function in the driver's table behind @hook. */
void *ts_hook_function(const struct ts_hook *hook);

#endif
