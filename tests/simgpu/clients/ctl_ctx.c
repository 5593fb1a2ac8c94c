/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Contexts and devices: stacks, primary contexts, the memory a context takes,
 * errors that stay, forks, settings.
 */
#include "ctl_client.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB        ((size_t)1 << 20)
#define TINY_BYTES (1024 * MIB)
#define TINY_CTX   (64 * MIB) /* context_bytes of tiny-1g */

static void init(const char *model)
{
	setenv("SIMGPU_DEVICE", model, 1);
	OK(cuInit(0));
}

static size_t free_bytes(void)
{
	size_t left, total;

	OK(cuMemGetInfo_v2(&left, &total));
	ck_assert_uint_eq(total, TINY_BYTES);
	return left;
}

START_TEST(each_context_takes_its_memory)
{
	CUcontext primary, extra, popped;
	CUcontext many[64];
	int made = 0;
	CUresult r;

	init("tiny-1g");
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	ck_assert_uint_eq(free_bytes(), TINY_BYTES - TINY_CTX);
	OK(cuCtxCreate_v4(&extra, NULL, 0, 0));
	ck_assert_uint_eq(free_bytes(), TINY_BYTES - 2 * TINY_CTX);
	OK(cuCtxDestroy_v2(extra));
	OK(cuCtxGetCurrent(&popped));
	ck_assert_ptr_eq(popped, primary);
	ck_assert_uint_eq(free_bytes(), TINY_BYTES - TINY_CTX);
	do {
		r = cuCtxCreate_v2(&many[made], 0, 0);
	} while (!r && ++made < 64);
	FAILS(r, CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(made, 15);
	while (made)
		OK(cuCtxDestroy_v2(many[--made]));
	ck_assert_uint_eq(free_bytes(), TINY_BYTES - TINY_CTX);
	FAILS(cuCtxDestroy_v2(many[0]), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

START_TEST(the_stack_of_contexts)
{
	CUcontext first, second, current;
	unsigned long long id1, id2;
	CUdevice device;

	init("tiny-1g");
	FAILS(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
	FAILS(cuCtxPopCurrent_v2(&current), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxGetCurrent(&current));
	ck_assert_ptr_null(current);
	OK(cuCtxCreate_v2(&first, 0, 0));
	OK(cuCtxCreate_v2(&second, CU_CTX_SCHED_SPIN, 0));
	OK(cuCtxGetId(NULL, &id2));
	OK(cuCtxGetId(first, &id1));
	ck_assert_uint_ne(id1, id2);
	OK(cuCtxPopCurrent_v2(&current));
	ck_assert_ptr_eq(current, second);
	OK(cuCtxGetCurrent(&current));
	ck_assert_ptr_eq(current, first);
	OK(cuCtxPushCurrent_v2(second));
	OK(cuCtxGetDevice_v2(&device, first));
	ck_assert_int_eq(device, 0);
	OK(cuCtxSetCurrent(NULL));
	OK(cuCtxGetCurrent(&current));
	ck_assert_ptr_eq(current, first);
	FAILS(cuCtxCreate_v2(&second, 0xff00, 0), CUDA_ERROR_INVALID_VALUE);
	FAILS(cuCtxCreate_v2(&second, 0, 1), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

START_TEST(primary_context_lives_while_it_is_retained)
{
	CUcontext one, two;
	unsigned flags;
	int active;

	init("tiny-1g");
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	ck_assert_int_eq(active, 0);
	OK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_YIELD));
	OK(cuDevicePrimaryCtxRetain(&one, 0));
	OK(cuDevicePrimaryCtxRetain(&two, 0));
	ck_assert_ptr_eq(one, two);
	OK(cuCtxSetCurrent(one));
	FAILS(cuCtxDestroy_v2(one), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	ck_assert_int_eq(active, 1);
	ck_assert_uint_eq(flags, CU_CTX_SCHED_YIELD);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	FAILS(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	FAILS(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuDevicePrimaryCtxRetain(&two, 0));
	OK(cuCtxSynchronize());
	OK(cuDevicePrimaryCtxReset_v2(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	ck_assert_int_eq(active, 0);
}
END_TEST

START_TEST(limits_and_settings_hold)
{
	CUfunc_cache cache;
	CUcontext ctx;
	size_t value;

	init("a100-80g-pcie4");
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1000));
	OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	ck_assert_uint_eq(value, 1008);
	OK(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1 << 30));
	OK(cuCtxGetLimit(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
	ck_assert_uint_eq(value, 30 * MIB);
	FAILS(cuCtxSetLimit(CU_LIMIT_MAX, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
	OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
	OK(cuCtxGetCacheConfig(&cache));
	ck_assert_int_eq(cache, CU_FUNC_CACHE_PREFER_L1);
}
END_TEST

START_TEST(devices_know_each_other)
{
	char id[32], name[64];
	CUcontext ctx[2];
	CUuuid uuid[2];
	CUdevice device;
	int value;

	setenv("SIMGPU_DEVICES", "2", 1);
	init("a100-80g-pcie4");
	OK(cuDeviceGetCount(&value));
	ck_assert_int_eq(value, 2);
	OK(cuDeviceGetName(name, sizeof(name), 1));
	ck_assert_str_eq(name, "NVIDIA A100-SXM4-80GB");
	OK(cuDeviceGetUuid_v2(&uuid[0], 0));
	OK(cuDeviceGetUuid_v2(&uuid[1], 1));
	ck_assert_int_ne(memcmp(&uuid[0], &uuid[1], sizeof(uuid[0])), 0);
	OK(cuDeviceGetPCIBusId(id, sizeof(id), 1));
	OK(cuDeviceGetByPCIBusId(&device, id));
	ck_assert_int_eq(device, 1);
	FAILS(cuDeviceGetByPCIBusId(&device, "0000:99:00.0"),
	        CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceCanAccessPeer(&value, 0, 1));
	ck_assert_int_eq(value, 1);
	OK(cuDeviceCanAccessPeer(&value, 1, 1));
	ck_assert_int_eq(value, 0);
	for (int i = 0; i < 2; i++)
		OK(cuDevicePrimaryCtxRetain(&ctx[i], i));
	OK(cuCtxSetCurrent(ctx[0]));
	FAILS(cuCtxDisablePeerAccess(ctx[1]),
	        CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxEnablePeerAccess(ctx[1], 0));
	FAILS(cuCtxEnablePeerAccess(ctx[1], 0),
	        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	FAILS(cuCtxEnablePeerAccess(ctx[0], 0), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

static int visible_devices(const char *list)
{
	int count = 0;

	setenv("SIMGPU_DEVICES", "4", 1);
	setenv("CUDA_VISIBLE_DEVICES", list, 1);
	if (cuInit(0) == CUDA_SUCCESS)
		OK(cuDeviceGetCount(&count));
	return count;
}

START_TEST(visible_devices_are_chosen_and_ordered)
{
	CUuuid first, second;
	int bus;

	ck_assert_int_eq(visible_devices("3,1"), 2);
	OK(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0));
	ck_assert_int_eq(bus, 7 + 3);
	OK(cuDeviceGetUuid_v2(&first, 0));
	OK(cuDeviceGetUuid_v2(&second, 1));
	ck_assert_int_eq(first.bytes[15], 4);
	ck_assert_int_eq(second.bytes[15], 2);
}
END_TEST

START_TEST(a_bad_entry_ends_the_list_of_visible_devices)
{
	ck_assert_int_eq(visible_devices("2,9,1"), 1);
}
END_TEST

START_TEST(no_visible_device)
{
	ck_assert_int_eq(visible_devices(""), 0);
	FAILS(cuInit(0), CUDA_ERROR_NO_DEVICE);
}
END_TEST

/* An access outside of any mapping breaks the device for good; only what asks
 * nothing of the context still answers. */
START_TEST(an_illegal_access_stays)
{
	CUstream stream;
	CUdeviceptr va, a;
	int count;

	client_start("tiny-1g");
	OK(cuMemAddressReserve(&va, 4 * MIB, 0, 0, 0));
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	(void)cuMemsetD8Async(va, 0, 256, stream);
	FAILS(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(cuMemAlloc_v2(&a, 256), CUDA_ERROR_ILLEGAL_ADDRESS);
	FAILS(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuDeviceGetCount(&count));
	OK(cuCtxGetDevice(&count));
	OK(cuStreamDestroy_v2(stream));
}
END_TEST

START_TEST(a_fork_cannot_use_the_device)
{
	pid_t pid;
	int status;

	client_start("tiny-1g");
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		CUcontext ctx;

		_exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
		                        cuCtxGetCurrent(&ctx) ==
		                                CUDA_ERROR_NOT_INITIALIZED
		                ? 0
		                : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	OK(cuCtxSynchronize());
}
END_TEST

static const char *const bad_settings[][2] = {
        {"SIMGPU_DEVICE", "no-such-model"},
        {"SIMGPU_DEVICE", "./no/such/model.json"},
        {"SIMGPU_DEVICES", "0"},
        {"SIMGPU_DEVICES", "2 gpus"},
        {"SIMGPU_FAIL", "cuMemAlloc_v2"},
        {"SIMGPU_FAIL", "cuMemAlloc_v2:0"},
        {"SIMGPU_FAIL", "cuMemAlloc_v2:1:NO_SUCH_ERROR"},
        {"SIMGPU_FAIL", "cuMemAlloc_v2:1:0"},
        {"SIMGPU_FAIL", "cuMemAlloc_v2:1:2:3"},
        {"SIMGPU_FAIL", "cuMemAlloc_v2::1"},
        {"SIMGPU_FAIL", "cuMemAlloc_v2:-1"},
        {"SIMGPU_FAIL", "cuMemAlok:1"},
        {"SIMGPU_FAIL", "cuMemAlloc_v2:1,cudaMalloc:1"},
        {"SIMGPU_FAIL", ","},
        {"SIMGPU_MUTATE", "copy:1,"},
        {"SIMGPU_MUTATE", "copy:+1"},
        {"SIMGPU_MUTATE", "jump:1"},
        {"SIMGPU_STICKY_ERROR", "CUDA_ERROR_NO_SUCH"},
        {"SIMGPU_STICKY_ERROR", "0"},
        {"SIMGPU_STICKY_ERROR", "700@x"},
        {"SIMGPU_SLOW_LINK", "2"},
        {"SIMGPU_SLOW_KERNEL", "0.5@-1"},
        {"SIMGPU_OOM_BYTES", "1GB"},
        {"SIMGPU_OOM_BYTES", "99999999999999999999"},
        {"SIMGPU_RANDOM_ADDRESS", "0"},
        {"SIMGPU_FOUND_INF", "first"},
        {"SIMGPU_CONTENT", "numbers"},
        {"SIMGPU_CHECK_RANGES", "2"},
        {"SIMGPU_RACES", "1"},
        {"SIMGPU_CUPTI", "busy"},
        {"SIMGPU_UNMAP_SYNC", "maybe"},
        {"SIMGPU_VERBOSE", "yes"},
};
#define BAD_SETTINGS (int)(sizeof(bad_settings) / sizeof(bad_settings[0]))

START_TEST(a_bad_setting_stops_the_driver)
{
	const char *name = bad_settings[_i][0], *value = bad_settings[_i][1];
	int count, err = dup(STDERR_FILENO);
	FILE *said = tmpfile();
	char line[4096] = "", want[256];

	setenv(name, value, 1);
	ck_assert_ptr_nonnull(said);
	dup2(fileno(said), STDERR_FILENO);
	FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_ne(cuDeviceGetCount(&count), CUDA_SUCCESS);
	dup2(err, STDERR_FILENO);
	/* One line, with the name and what was read. */
	rewind(said);
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), said));
	snprintf(want, sizeof(want), "%s=\"%s\"", name, value);
	ck_assert_msg(strstr(line, want), "%s", line);
	ck_assert_ptr_null(fgets(want, sizeof(want), said));
	if (!strcmp(value, "no-such-model"))
		ck_assert_msg(strstr(line, "tiny-1g, titan-x"), "%s", line);
	fclose(said);
	close(err);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_ctx");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, each_context_takes_its_memory);
	tcase_add_test(tests, the_stack_of_contexts);
	tcase_add_test(tests, primary_context_lives_while_it_is_retained);
	tcase_add_test(tests, limits_and_settings_hold);
	tcase_add_test(tests, devices_know_each_other);
	tcase_add_test(tests, visible_devices_are_chosen_and_ordered);
	tcase_add_test(tests, a_bad_entry_ends_the_list_of_visible_devices);
	tcase_add_test(tests, no_visible_device);
	tcase_add_test(tests, an_illegal_access_stays);
	tcase_add_test(tests, a_fork_cannot_use_the_device);
	tcase_add_loop_test(
	        tests, a_bad_setting_stops_the_driver, 0, BAD_SETTINGS);
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
