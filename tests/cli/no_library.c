/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded: dlopen() does not find the libraries that NO_LIBRARY names. What
 * libraries are linked with is found as ever.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int);
	const char *none = getenv("NO_LIBRARY");

	if (name && none && strstr(none, name))
		return NULL;
	*(void **)&real = dlsym(RTLD_NEXT, "dlopen");
	return real(name, flags);
}
