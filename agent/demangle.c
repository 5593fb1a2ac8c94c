/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/demangle.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef char *demangler(
        const char *name, char *buffer, size_t *length, int *status);

char *ts_demangle(const char *name)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	demangler *function = NULL;
	char *text = NULL;
	int status = 0;

	if (library) {
		function = (demangler *)dlsym(library, "__cxa_demangle");
		if (function)
			text = function(name, NULL, NULL, &status);
		dlclose(library);
	}
	return text ? text : strdup(name);
}
