/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of unsupported.def. They take no notice of their arguments. No
 * state.
 */
#define SG_NCCL_EXPORT __attribute__((visibility("default")))

/* ncclInvalidUsage */
#define INVALID_USAGE 5

int sg_blas_unsupported(const char *library, const char *what);

#define SG_NCCL_UNSUPPORTED(name)                                              \
	SG_NCCL_EXPORT int name(void);                                         \
	int name(void)                                                         \
	{                                                                      \
		sg_blas_unsupported("nccl", #name);                            \
		return INVALID_USAGE;                                          \
	}
#include "unsupported.def"
