/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Another preloaded library, of the usual kind: it stands before malloc and
 * finds the next one by RTLD_NEXT. Loaded before or after ours.
 */
#include <dlfcn.h>
#include <stddef.h>

void *malloc(size_t bytes) __attribute__((visibility("default")));

void *malloc(size_t bytes)
{
	static void *(*next)(size_t);

	if (!next)
		next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	return next(bytes);
}
