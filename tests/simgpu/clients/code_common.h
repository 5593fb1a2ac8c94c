/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the code_* tests share: a context on device 0, images as files, and
 * assertions on results.
 */
#ifndef CODE_COMMON_H
#define CODE_COMMON_H

#include "code_images.h"

#include <check.h>
#include <cuda.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define ck_cu(call)           ck_assert_int_eq((int)(call), (int)CUDA_SUCCESS)
#define ck_cu_is(call, error) ck_assert_int_eq((int)(call), (int)(error))

static inline CUcontext use_device(void)
{
	CUcontext ctx;
	CUdevice dev;

	ck_cu(cuInit(0));
	ck_cu(cuDeviceGet(&dev, 0));
	ck_cu(cuDevicePrimaryCtxRetain(&ctx, dev));
	ck_cu(cuCtxSetCurrent(ctx));
	return ctx;
}

static inline void leave_device(void)
{
	ck_cu(cuDevicePrimaryCtxRelease(0));
}

/* An anonymous file; its path is good while the descriptor is open. */
struct image_file {
	int fd;
	char path[64];
};

static inline struct image_file file_of(const void *data, size_t bytes)
{
	struct image_file file = {.fd = memfd_create("image", 0)};

	ck_assert_int_ge(file.fd, 0);
	ck_assert_int_eq(write(file.fd, data, bytes), (ssize_t)bytes);
	snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
	return file;
}

/* Runs a suite in this process: a context does not survive fork. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}

#endif
