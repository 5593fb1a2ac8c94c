/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the clients that test the simulated driver's memory share: a device of
 * 1 GiB (tiny-1g), a context per test, short forms of checked calls.
 */
#ifndef MEM_CLIENT_H
#define MEM_CLIENT_H

#include <cuda.h>

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIB                ((size_t)1 << 20)
#define PAGE               (2 * MIB)
#define OK(call)           ck_assert_int_eq((int)(call), CUDA_SUCCESS)
#define FAILS(call, error) ck_assert_int_eq((int)(call), (int)(error))
#define INVALID(call)      FAILS(call, CUDA_ERROR_INVALID_VALUE)

static inline CUcontext client_start(void)
{
	CUcontext ctx;
	CUdevice device;

	OK(cuInit(0));
	OK(cuDeviceGet(&device, 0));
	OK(cuDevicePrimaryCtxRetain(&ctx, device));
	OK(cuCtxSetCurrent(ctx));
	return ctx;
}

static inline size_t client_free_bytes(void)
{
	size_t left, total;

	OK(cuMemGetInfo(&left, &total));
	return left;
}

static inline CUmemAllocationProp client_prop(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = 0;
	return prop;
}

static inline CUmemGenericAllocationHandle client_chunk(size_t bytes)
{
	CUmemAllocationProp prop = client_prop();
	CUmemGenericAllocationHandle handle;

	OK(cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

static inline CUdeviceptr client_reserve(size_t bytes)
{
	CUdeviceptr va;

	OK(cuMemAddressReserve(&va, bytes, 0, 0, 0));
	return va;
}

static inline CUresult client_access(
        CUdeviceptr va, size_t bytes, CUmemAccess_flags flags)
{
	CUmemAccessDesc desc = {.flags = flags};

	desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	desc.location.id = 0;
	return cuMemSetAccess(va, bytes, &desc, 1);
}

static inline int client_run(TCase *tests, const char *name)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 60); /* sanitizers are slow */
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
