/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program with a profiler in it, which is called back whenever a thread
 * enters the driver, and takes device memory for itself then: on the program's
 * threads, and on those that others have started. Its own buffers are more than
 * the limit leaves room for. Prints on which threads the profiler got memory,
 * and "kept" where no byte of the buffers was lost.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/preload/must.h"
#include "tests/simgpu/driver/simgpu_private.h"

#define BUFFERS      6
#define BUFFER_BYTES (4u << 20)
#define OWN_BYTES    (2u << 20)
#define ROUNDS       40

static pthread_t main_thread;
static CUcontext context;
static atomic_uint here, elsewhere, failed;

/* What a profiler does for its records; threads come here in any context. */
static void called_back(const char *name)
{
	CUdeviceptr own;
	CUcontext popped;
	CUresult rc;

	/* As often as records fill up, not at every call. */
	if (strcmp(name, "cuMemHostAlloc") != 0 &&
	        strcmp(name, "cuMemcpyDtoHAsync_v2") != 0)
		return;
	rc = cuCtxPushCurrent(context);
	if (rc == CUDA_SUCCESS)
		rc = cuMemAlloc(&own, OWN_BYTES);
	if (rc == CUDA_SUCCESS)
		rc = cuMemFree(own);
	if (rc == CUDA_SUCCESS)
		rc = cuCtxPopCurrent(&popped);
	if (rc != CUDA_SUCCESS)
		atomic_fetch_add(&failed, 1);
	else if (pthread_equal(pthread_self(), main_thread))
		atomic_fetch_add(&here, 1);
	else
		atomic_fetch_add(&elsewhere, 1);
}

static bool holds(CUdeviceptr buffer, unsigned char value)
{
	static unsigned char bytes[BUFFER_BYTES];

	MUST(cuMemcpyDtoH(bytes, buffer, sizeof(bytes)));
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != value)
			return false;
	return true;
}

int main(void)
{
	CUdeviceptr buffers[BUFFERS];
	bool kept = true;

	main_thread = pthread_self();
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	simgpu_set_api_callback(called_back);
	for (int i = 0; i < BUFFERS; i++)
		MUST(cuMemAlloc(&buffers[i], BUFFER_BYTES));
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BUFFERS; i++)
			MUST(cuMemsetD8(buffers[i], (unsigned char)(round + i),
			        BUFFER_BYTES));
		for (int i = 0; i < BUFFERS; i++)
			kept = kept &&
			       holds(buffers[i], (unsigned char)(round + i));
	}
	simgpu_set_api_callback(NULL);
	if (atomic_load(&failed))
		printf("%u times no memory\n", atomic_load(&failed));
	printf("%s%s%s\n", atomic_load(&here) ? "here, " : "",
	        atomic_load(&elsewhere) ? "elsewhere, " : "",
	        kept ? "kept" : "lost");
	return 0;
}
