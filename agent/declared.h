/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a library's caller says of the operands before the library launches
 * its kernels: which addresses it writes to. Of the calling thread, for the
 * launches between begin and end; no lock.
 */
#ifndef TS_DECLARED_H
#define TS_DECLARED_H

#include <stdbool.h>
#include <stdint.h>

/* @output is written, all other operands are read. Calls may nest. */
void ts_declared_begin(const void *output);
void ts_declared_end(void);

/* True where something is declared now. */
bool ts_declared_any(void);

/* True where the output lies in [address, address + bytes). */
bool ts_declared_writes(uint64_t address, uint64_t bytes);

#endif
