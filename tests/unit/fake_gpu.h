/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A device for unit tests of runtime/: its memory is a file, mapped where the
 * pager maps it, so that content is real and a missing page faults. "Kernels"
 * are writes of the test, in flight until their stream is waited for. One per
 * process; any thread may call it, once it was reset.
 */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/ops.h"

#define FAKE_GRANULE (64ull << 10)

struct fake_gpu {
	uint64_t total_bytes, context_bytes;
	uint64_t used_bytes, peak_bytes; /* context included */
	uint64_t pinned_host_bytes;
	unsigned int calls;   /* of functions that may fail */
	unsigned int fail_at; /* 0: none; n: the n-th call fails */
	CUresult fail_with;
	unsigned int violations; /* things the driver would not forgive */
	unsigned int copies, maps, waits;
	unsigned int handles, reservations; /* that exist */
};

extern struct fake_gpu fake_gpu;
extern const struct ts_gpu_ops fake_gpu_ops;

void fake_gpu_reset(uint64_t total_bytes, uint64_t context_bytes);

/* A kernel on @stream uses [address, address + bytes) from now on. */
void fake_gpu_launch(uintptr_t stream, uint64_t address, uint64_t bytes);

#endif
