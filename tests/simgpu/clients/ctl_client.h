/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the clients that test the driver's control part share: checked calls,
 * work of a known duration, and virtual times. Each test is a process of its
 * own (Check forks), so it may choose its device before the first call.
 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

/* Old versions of functions and per-thread variants are declared. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define OK(call)           ck_assert_int_eq((int)(call), CUDA_SUCCESS)
#define FAILS(call, error) ck_assert_int_eq((int)(call), (int)(error))

#define COPY_BYTES ((size_t)50000000) /* 2 ms at 25 GB/s */
#define SET_BYTES  ((size_t)200 << 20)

/* A context on the named device model, current in this thread. */
static inline CUcontext client_start(const char *model)
{
	CUcontext ctx;

	setenv("SIMGPU_DEVICE", model, 1);
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	return ctx;
}

static inline CUstream client_stream(unsigned flags)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, flags));
	return stream;
}

static inline CUevent client_event(void)
{
	CUevent event;

	OK(cuEventCreate(&event, CU_EVENT_DEFAULT));
	return event;
}

/* An event recorded at this place of the stream. */
static inline CUevent client_mark(CUstream stream)
{
	CUevent event = client_event();

	OK(cuEventRecord(event, stream));
	return event;
}

static inline CUdeviceptr client_device(size_t bytes)
{
	CUdeviceptr va;

	OK(cuMemAlloc_v2(&va, bytes));
	return va;
}

static inline void *client_pinned(size_t bytes)
{
	void *p;

	OK(cuMemAllocHost_v2(&p, bytes));
	return p;
}

/* Microseconds of virtual time between two events, both waited for. */
static inline double client_us(CUevent from, CUevent to)
{
	float ms;

	OK(cuEventSynchronize(from));
	OK(cuEventSynchronize(to));
	OK(cuEventElapsedTime_v2(&ms, from, to));
	return (double)ms * 1000;
}

static inline int client_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
