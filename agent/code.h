/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code that the program has loaded, for drivers that do not tell the parameters
 * of its kernels (before CUDA 12.4): which kernels each module or library has,
 * and which of them a function handle stands for. Empty elsewhere. Any thread;
 * one lock, not held while code is read.
 */
#ifndef TS_CODE_H
#define TS_CODE_H

#include <stdbool.h>

#include "agent/base/lock.h"
#include "agent/base/map.h"
#include "agent/funcs.h"

struct ts_code {
	struct ts_mutex lock;
	/* Guarded by lock. */
	struct ts_map images;    /* by handle of a module or library */
	struct ts_map functions; /* by handle of a function or kernel */
};

void ts_code_init(struct ts_code *code);
void ts_code_finish(struct ts_code *code);

/*
 * @handle, a module or library, was made of @image (of @bytes, SIZE_MAX where
 * that is not known) for compute capability @sm. 0 or a negative errno as of
 * ts_code_read(); what could be read until then is kept.
 */
int ts_code_loaded(struct ts_code *code, const void *handle, const void *image,
        size_t bytes, int sm);

/* Module @handle is that of library @of. */
void ts_code_shared(struct ts_code *code, const void *handle, const void *of);

/* With it go the functions that were named as its own. */
void ts_code_unloaded(struct ts_code *code, const void *handle);

/* @function, a function or kernel, is @name of the module or library @owner. */
void ts_code_named(struct ts_code *code, const void *function,
        const void *owner, const char *name);

/* @function is that of kernel @of. */
void ts_code_same(struct ts_code *code, const void *function, const void *of);

/*
 * What @function is called, to be freed, or NULL where that is not known; and
 * true with its parameters, at most @max, where these are.
 */
bool ts_code_find(struct ts_code *code, const void *function, char **ret_name,
        struct ts_param *params, size_t max, size_t *ret_count);

#endif
