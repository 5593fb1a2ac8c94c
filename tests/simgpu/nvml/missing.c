/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The functions of missing.def. */
#include <stdbool.h>
#include <stdio.h>

#include "nvml.h"

static nvmlReturn_t missing(const char *name, bool *said)
{
	if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
		fprintf(stderr, "simgpu: %s is not supported\n", name);
	return NVML_ERROR_NOT_SUPPORTED;
}

#define NVML_MISSING(name)                                                     \
	nvmlReturn_t name(void);                                               \
	nvmlReturn_t name(void)                                                \
	{                                                                      \
		static bool said;                                              \
                                                                               \
		return missing(#name, &said);                                  \
	}
#include "missing.def"
