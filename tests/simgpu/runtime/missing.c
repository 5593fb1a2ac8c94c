/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that are not there: each is exported, so that programs which
 * never call it load, is named once on stderr when called, and returns
 * cudaErrorNotSupported. rt.h is not included, as it declares their real
 * parameters.
 */
#include <driver_types.h>

#include <stdbool.h>

cudaError_t rt_missing(const char *name, bool *said);

#define RT_MISSING(name)                                                       \
	cudaError_t name(void);                                                \
	cudaError_t name(void)                                                 \
	{                                                                      \
		static bool said;                                              \
                                                                               \
		return rt_missing(#name, &said);                               \
	}
#include "missing.def"
