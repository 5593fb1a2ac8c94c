/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A device for unit tests of runtime/: its memory is a file, mapped where the
 * pager maps it, so that content is real and a missing page faults. "Kernels"
 * are writes of the test, in flight until the host waits for them; two that
 * meet with nothing to order them, one a write, are a violation. One per
 * process; any thread may call it, once it was reset.
 */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/ops.h"
#include "runtime/streams.h"

#define FAKE_GRANULE (64ull << 10)
#define FAKE_CONTEXT ((CUcontext)(uintptr_t)0x100)
#define FAKE_OTHER   ((CUcontext)(uintptr_t)0x200) /* of the same device */

struct fake_gpu {
	uint64_t total_bytes, context_bytes;
	uint64_t used_bytes, peak_bytes; /* context included */
	uint64_t pinned_host_bytes;
	unsigned int calls;   /* of functions that may fail */
	unsigned int fail_at; /* 0: none; n: the n-th call fails */
	CUresult fail_with;
	bool refuse_pinning;
	unsigned int violations; /* things the driver would not forgive */
	unsigned int copies, maps, unmaps, waits;
	unsigned int handles, reservations, events; /* that exist */
	CUcontext context;   /* current where none is pushed */
	unsigned int opened; /* devices named in the last set_access */
};

extern struct fake_gpu fake_gpu;
extern const struct ts_gpu_ops fake_gpu_ops;

void fake_gpu_reset(uint64_t total_bytes, uint64_t context_bytes);

/* A kernel on @stream uses [address, address + bytes) from now on. */
void fake_gpu_launch(uintptr_t stream, uint64_t address, uint64_t bytes);

/* The current one of this thread. */
CUcontext fake_gpu_context(void);

/* Its events go with it. */
void fake_gpu_context_gone(CUcontext context);

#endif
