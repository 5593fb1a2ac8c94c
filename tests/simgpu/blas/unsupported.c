/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of unsupported.def. They take no notice of their arguments,
 * so cuBLAS's headers, which give them some, are not included here. No state.
 */
#define SG_BLAS_EXPORT __attribute__((visibility("default")))

/* CUBLAS_STATUS_NOT_SUPPORTED */
#define NOT_SUPPORTED 15

int sg_blas_unsupported(const char *library, const char *what);

#define SG_BLAS_UNSUPPORTED(name)                                              \
	SG_BLAS_EXPORT int name(void);                                         \
	int name(void)                                                         \
	{                                                                      \
		sg_blas_unsupported("cublas", #name);                          \
		return NOT_SUPPORTED;                                          \
	}
#include "unsupported.def"
