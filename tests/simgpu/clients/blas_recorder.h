/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A libcuda.so.1 that does nothing but write down what the simulated cuBLAS
 * asks of it. It lays out parameter buffers by the PTX text it is given, not by
 * the library's structs, so that the two are compared. One thread.
 */
#ifndef BLAS_RECORDER_H
#define BLAS_RECORDER_H

#include <stdbool.h>
#include <stddef.h>

#define RECORDER_LAUNCHES 64

struct recorder_launch {
	char kernel[64];
	unsigned grid[3], threads;
	void *stream;
	size_t params_bytes;
	unsigned char params[1024];
};

struct recorder {
	struct recorder_launch launches[RECORDER_LAUNCHES];
	unsigned launch_count, module_count, unload_count;
	unsigned alloc_count, free_count;
	size_t alloc_bytes;
	unsigned copies_to_host, synchronizations;
	int sm_count, compute_major; /* what the device says it is */
	bool capturing;
	int capture_mode; /* CUstreamCaptureMode of the thread */
	bool no_memory;
	unsigned fail_after; /* that many calls on, one fails; 0 for none */
};

/* Found by dlsym in the loaded libcuda.so.1. */
extern struct recorder recorder;

#endif
