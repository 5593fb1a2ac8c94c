/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of exported functions (exports.def), as gen_exports.py turns it
 * into C. Constant; no lock. Kept apart from cuda.h, whose prototypes the
 * generated weak definitions do not share.
 */
#ifndef SG_EXPORTS_H
#define SG_EXPORTS_H

#include <stdbool.h>

struct sg_export {
	const char *name;   /* as given to cuGetProcAddress */
	const char *symbol; /* as exported */
	int version;        /* CUDA version in which this ABI appeared */
	bool per_thread;    /* _ptds or _ptsz */
	int (*function)(void);
};
/* Sorted by name, then per_thread, then version. */
extern const struct sg_export sg_exports[];
extern const unsigned sg_export_count;

/* Names the symbol once on stderr; returns CUDA_ERROR_NOT_SUPPORTED. */
int sg_stub_called(const char *symbol);

#endif
