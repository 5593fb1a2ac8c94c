/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of one device as another sees it: SIMGPU_DEVICES=2. */
#include "mem_client.h"

#include "kernel_client.h"

static CUcontext ctx[2];
static CUdeviceptr p[2];
static CUfunction kernel; /* on device 0 */

static void start(void)
{
	int count;

	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	ck_assert_int_eq(count, 2);
	for (int i = 1; i >= 0; i--) {
		OK(cuDevicePrimaryCtxRetain(&ctx[i], i));
		OK(cuCtxSetCurrent(ctx[i]));
		OK(cuMemAlloc(&p[i], 64 * MIB));
	}
	kernel = client_kernel("unheard_of", 1);
}

/* Runs the kernel on device 0 and waits. */
static CUresult touch(CUdeviceptr va)
{
	void *params[] = {&va};

	OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	return cuCtxSynchronize();
}

START_TEST(each_device_has_its_own_memory)
{
	int ordinal;

	start();
	ck_assert_uint_eq(client_free_bytes(), (960 - 64) * MIB);
	OK(cuPointerGetAttribute(
	        &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p[1]));
	ck_assert_int_eq(ordinal, 1);
	OK(cuMemFree(p[1]));
	ck_assert_uint_eq(client_free_bytes(), (960 - 64) * MIB);
	OK(cuCtxSetCurrent(ctx[1]));
	ck_assert_uint_eq(client_free_bytes(), 960 * MIB);
}
END_TEST

START_TEST(copies_between_devices_need_no_peer_access)
{
	CUevent before, after;
	float ms;

	start();
	OK(cuEventCreate(&before, 0));
	OK(cuEventCreate(&after, 0));
	OK(cuEventRecord(before, NULL));
	OK(cuMemcpyPeerAsync(p[0], ctx[0], p[1], ctx[1], 64 * MIB, NULL));
	OK(cuEventRecord(after, NULL));
	OK(cuMemcpyDtoD(p[0], p[1], MIB));
	OK(cuMemcpy(p[1], p[0], MIB));
	OK(cuCtxSynchronize());
	/* 64 MiB at 25 GB/s, over the link. */
	OK(cuEventElapsedTime(&ms, before, after));
	ck_assert(ms > 2.68 && ms < 2.80);
	FAILS(cuMemcpyPeer(p[0], ctx[0], p[1], NULL, MIB),
	        CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

START_TEST(kernel_on_a_peers_memory_without_access_is_700)
{
	start();
	OK(touch(p[0]));
	FAILS(touch(p[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(kernel_on_a_peers_memory_with_access)
{
	int can;

	start();
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	ck_assert_int_eq(can, 1);
	OK(cuCtxEnablePeerAccess(ctx[1], 0));
	OK(touch(p[1]));
	OK(cuCtxDisablePeerAccess(ctx[1]));
	FAILS(touch(p[1]), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(mappings_give_access_device_by_device)
{
	CUmemAllocationProp prop = client_prop();
	CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle chunk;
	unsigned long long flags;
	CUdeviceptr va;

	start();
	prop.location.id = 1;
	OK(cuMemCreate(&chunk, PAGE, &prop, 0));
	va = client_reserve(PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	desc.location.id = 0;
	OK(cuMemSetAccess(va, PAGE, &desc, 1));
	OK(touch(va));
	desc.location.id = 1;
	OK(cuMemGetAccess(&flags, &desc.location, va));
	ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	desc.location.id = 2;
	FAILS(cuMemSetAccess(va, PAGE, &desc, 1), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

START_TEST(pools_give_access_to_peers)
{
	CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
	CUmemAccess_flags flags;
	CUmemoryPool pool;
	CUdeviceptr va;

	start();
	OK(cuDeviceGetDefaultMemPool(&pool, 1));
	OK(cuCtxSetCurrent(ctx[1]));
	OK(cuMemAllocAsync(&va, MIB, NULL));
	OK(cuCtxSetCurrent(ctx[0]));
	desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	desc.location.id = 0;
	OK(cuMemPoolSetAccess(pool, &desc, 1));
	OK(cuMemPoolGetAccess(&flags, pool, &desc.location));
	ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	FAILS(touch(va), CUDA_ERROR_ILLEGAL_ADDRESS); /* it writes */
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("peer");

	tcase_add_test(tests, each_device_has_its_own_memory);
	tcase_add_test(tests, copies_between_devices_need_no_peer_access);
	tcase_add_test(tests, kernel_on_a_peers_memory_without_access_is_700);
	tcase_add_test(tests, kernel_on_a_peers_memory_with_access);
	tcase_add_test(tests, mappings_give_access_device_by_device);
	tcase_add_test(tests, pools_give_access_to_peers);
	return client_run(tests, "mem_peer");
}
