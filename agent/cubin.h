/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameter layouts of kernels out of the code that a program loads, for
 * drivers that do not tell them: `.nv.info` of cubins, `.entry` of PTX. What is
 * read comes from outside, and nothing in it is believed unchecked. No state;
 * any thread.
 */
#ifndef TS_CUBIN_H
#define TS_CUBIN_H

#include <stddef.h>
#include <stdint.h>

#include "agent/funcs.h"

/* The most parameters of a kernel that are looked at. */
#define TS_CUBIN_PARAMS_MAX 8192

/* One kernel: its mangled @name, not ended by 0, and its parameters. */
typedef void (*ts_cubin_found)(void *context, const char *name, size_t length,
        const struct ts_param *params, size_t count);

/*
 * Tells all kernels of an ELF image. 0, -ENOMEM, or -EINVAL where some cannot
 * be read: the others are told.
 */
int ts_cubin_read(
        const uint8_t *data, size_t bytes, ts_cubin_found found, void *context);

/* The same of a PTX text of @bytes. */
int ts_ptx_read(
        const char *text, size_t bytes, ts_cubin_found found, void *context);

/*
 * Tells the kernels of what cuModuleLoadData and its like take: a cubin, PTX, a
 * fat binary or the wrapper of one, whose image for compute capability @sm (90
 * for 9.0) is read. @bytes: SIZE_MAX where the length is not known. 0,
 * -EINVAL, -ENOMEM, or -ENOSYS where it is packed and the library that unpacks
 * it is not there.
 */
int ts_code_read(const void *code, size_t bytes, int sm, ts_cubin_found found,
        void *context);

#endif
