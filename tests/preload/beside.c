/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Steps of kernels, and in each of them copies that another thread makes on a
 * stream of its own: never as many as in the step before, nor between the same
 * kernels. One thread works at a time.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/preload/touch.h"

#define STEPS   40
#define KERNELS 6
#define BYTES   (1ull << 20)

static CUcontext context;
static CUdeviceptr block;
static CUfunction kernel;
static CUstream kernels, copies;

static void start(void)
{
	start_touch(&context, &kernel);
	MUST(cuStreamCreate(&kernels, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING));
	MUST(cuMemAlloc(&block, BYTES));
}

/* @data: how many. */
static void *fetch(void *data)
{
	static char host[64];

	MUST(cuCtxSetCurrent(context));
	for (int i = 0; i < *(const int *)data; i++)
		MUST(cuMemcpyDtoHAsync(host, block, sizeof(host), copies));
	MUST(cuStreamSynchronize(copies));
	return NULL;
}

static void fetch_beside(int count)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fetch, &count) ||
	        pthread_join(thread, NULL))
		exit(1);
}

int main(void)
{
	start();
	for (int step = 0; step < STEPS; step++) {
		for (unsigned int i = 0; i < KERNELS; i++) {
			void *params[] = {&block};

			/* No two are alike. */
			MUST(cuLaunchKernel(kernel, i + 1, 1, 1, 32, 1, 1, 0,
			        kernels, params, NULL));
			if (i == (unsigned int)(step * step) % 5)
				fetch_beside(1 + step * step % 7);
		}
		MUST(cuStreamSynchronize(kernels));
	}
	printf("done\n");
	return 0;
}
