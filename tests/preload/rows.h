/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A row a hooked function: it is called on two buffers that were pushed out of
 * the device just before. One thread, one context; everything here is global
 * to the program.
 */
#ifndef ROWS_H
#define ROWS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB          ((size_t)1 << 20)
#define BUFFER_BYTES (4 * MIB)

/* What most rows touch: it crosses from one page of 2 MiB to the next. */
#define AT     (2 * MIB - 4096)
#define LENGTH ((size_t)8192 + 24)

/* The driver's function that a row is about, called as @name is. */
#define AS(name) ((__typeof__(&name))function)

/* The driver's function of that name, for what goes on around a row. */
#define DRIVER(name)       ((__typeof__(&name))driver_symbol(ROWS_STRING(name)))
#define ROWS_STRING(name)  ROWS_STRING_(name)
#define ROWS_STRING_(name) #name

struct row {
	const char *symbol;
	CUresult (*act)(void *function);
};

/* The two buffers, what must be in them, and host memory of their size. */
extern CUdeviceptr a, b;
extern unsigned char *in_a, *in_b, *host;
extern CUcontext context;
extern CUfunction kernel; /* of two pointers; launches and pins only */

void *driver_symbol(const char *symbol);

/* Says that the row got other bytes than it should have. */
void disagree(void);

extern const struct row linear_rows[], pitched_rows[], set_rows[];
extern const struct row launch_rows[], pin_rows[];

#endif
