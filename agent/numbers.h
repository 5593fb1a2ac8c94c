/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels that write numbers, by their names. Pure; any thread. */
#ifndef TS_NUMBERS_H
#define TS_NUMBERS_H

#include <stdbool.h>

/*
 * True where what a kernel of that name (mangled or plain) writes holds no
 * addresses: PyTorch's own kernels that by their types have to do with no
 * 64-bit integer, pointer to pointers or opaque element, its attention, and the
 * products of BLAS libraries. False where that cannot be told.
 */
bool ts_writes_numbers(const char *name);

#endif
