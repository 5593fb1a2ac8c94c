/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the libraries that stand in for NCCL and cuDNN share: a kernel of one
 * pointer, and a look at the driver for whether memory is there. Each library
 * has its own copy. Ends the program where the driver does not answer.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <cuda.h>
#include <stdbool.h>

/* The driver's function of that name, found as a library finds it. */
#define FAKE_DRIVER(name)  ((__typeof__(&name))fake_symbol(FAKE_STRING(name)))
#define FAKE_STRING(name)  FAKE_STRING_(name)
#define FAKE_STRING_(name) #name

void *fake_symbol(const char *symbol);

/* Launches a kernel of that name on @stream, with @table as its parameter. */
CUresult fake_launch(const char *name, CUdeviceptr table, CUstream stream);

/* True where [address, address + bytes) can be read and written now. */
bool fake_is_there(CUdeviceptr address, size_t bytes);

#endif
