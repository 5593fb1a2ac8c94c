/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fake device with one kernel that computes: each byte it writes is of
 * those at the same place of two operands, and of a number. Launches run as
 * late as they may: when the host waits for something. Of streams that nothing
 * orders the last one runs first. One thread.
 */
#ifndef LATE_GPU_H
#define LATE_GPU_H

#include "tests/unit/fake_gpu.h"

struct late_gpu {
	bool eager; /* launches run at once */
	unsigned int launches;
};

extern struct late_gpu late_gpu;

/*
 * Once it was reset: those of the fake device, and launch, of parameters
 * (output, both inputs, a byte), of one thread; the second input may be 0.
 * mem_alloc gives memory that is not the fake device's.
 */
extern struct ts_gpu_ops late_gpu_ops;

/* Operands have so many bytes from now on. */
void late_gpu_reset(uint64_t bytes);

/* What the kernel writes where its operands are @a and @b. */
unsigned char late_gpu_byte(
        unsigned char a, unsigned char b, unsigned char number);

/* A launch that writes @value. */
void late_gpu_fill(
        uint64_t address, uint64_t bytes, unsigned char value, uint64_t stream);

/* The host waits for all. */
void late_gpu_run(void);

#endif
