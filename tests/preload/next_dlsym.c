/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Another library that hooks dlsym, in the usual way: the next one is found by
 * dlvsym, which nobody hooks. Loaded before or after ours.
 */
#include <dlfcn.h>
#include <stddef.h>

void *dlsym(void *handle, const char *name)
        __attribute__((visibility("default")));

void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);

	if (!next)
		next = (void *(*)(void *, const char *))dlvsym(
		        RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	return next(handle, name);
}
