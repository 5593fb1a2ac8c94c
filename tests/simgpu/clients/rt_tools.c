/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* NVML and CUPTI on the simulated device tiny-1g. */
#include <cuda_runtime_api.h>
#include <cupti.h>

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/nvml/nvml.h"

#define OK(call) ck_assert_int_eq(call, 0)

START_TEST(nvml_wants_to_be_initialised)
{
	unsigned count = 99;

	ck_assert_int_eq(
	        nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
	OK(nvmlInit_v2());
	OK(nvmlDeviceGetCount_v2(&count));
	ck_assert_uint_eq(count, 2);
	OK(nvmlShutdown());
	ck_assert_int_eq(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}
END_TEST

START_TEST(nvml_finds_devices_by_their_names)
{
	nvmlDevice_t device, found;
	char uuid[96], small[8];
	struct cudaDeviceProp prop;
	nvmlPciInfo_t pci;

	OK(nvmlInit_v2());
	OK(nvmlDeviceGetHandleByIndex_v2(1, &device));
	ck_assert_int_eq(nvmlDeviceGetHandleByIndex_v2(2, &found),
	        NVML_ERROR_INVALID_ARGUMENT);
	OK(nvmlDeviceGetUUID(device, uuid, sizeof(uuid)));
	ck_assert_int_eq(strncmp(uuid, "GPU-", 4), 0);
	ck_assert_int_eq(nvmlDeviceGetUUID(device, small, sizeof(small)),
	        NVML_ERROR_INSUFFICIENT_SIZE);
	OK(nvmlDeviceGetHandleByUUID(uuid, &found));
	ck_assert_ptr_eq(found, device);
	OK(nvmlDeviceGetPciInfo_v3(device, &pci));
	OK(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &found));
	ck_assert_ptr_eq(found, device);
	OK(cudaGetDeviceProperties(&prop, 1));
	ck_assert_int_eq(prop.pciBusID, (int)pci.bus);
	ck_assert_int_eq(nvmlDeviceGetHandleByUUID("GPU-none", &found),
	        NVML_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(nvml_sees_the_memory_in_use)
{
	nvmlMemory_t before, after;
	nvmlProcessInfo_v1_t process;
	nvmlDevice_t device;
	unsigned count = 1;
	void *ptr;

	OK(nvmlInit_v2());
	OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
	OK(nvmlDeviceGetComputeRunningProcesses(device, &count, &process));
	ck_assert_uint_eq(count, 0);
	OK(cudaFree(NULL));
	OK(nvmlDeviceGetMemoryInfo(device, &before));
	OK(cudaMalloc(&ptr, (size_t)64 << 20));
	OK(nvmlDeviceGetMemoryInfo(device, &after));
	ck_assert_uint_eq(after.used - before.used, 64 << 20);
	ck_assert_uint_eq(after.used + after.free, after.total);
	count = 0;
	ck_assert_int_eq(
	        nvmlDeviceGetComputeRunningProcesses(device, &count, NULL),
	        NVML_ERROR_INSUFFICIENT_SIZE);
	ck_assert_uint_eq(count, 1);
	OK(nvmlDeviceGetComputeRunningProcesses(device, &count, &process));
	ck_assert_uint_eq(process.usedGpuMemory, after.used);
	OK(cudaFree(ptr));
}
END_TEST

static void no_callback(void *user, CUpti_CallbackDomain domain,
        CUpti_CallbackId cbid, const void *data)
{
}

START_TEST(cupti_has_one_subscriber)
{
	CUpti_SubscriberHandle first, second;

	OK(cuptiSubscribe(&first, no_callback, NULL));
	ck_assert_int_eq(cuptiSubscribe(&second, no_callback, NULL),
	        CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
	OK(cuptiUnsubscribe(first));
	OK(cuptiSubscribe(&second, no_callback, NULL));
	OK(cuptiUnsubscribe(second));
	setenv("SIMGPU_CUPTI", "taken", 1);
	ck_assert_int_eq(cuptiSubscribe(&first, no_callback, NULL),
	        CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
}
END_TEST

enum { BUFFER_BYTES = 1 << 12 };
static int requested, completed, copies, sets, others;
static uint64_t last_end_ns, copied_bytes;
static CUpti_ActivityMemcpy6 last_copy;
static CUpti_ActivityMemset4 last_set;

static void CUPTIAPI give_buffer(
        uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	requested++;
	*buffer = malloc(BUFFER_BYTES);
	*bytes = BUFFER_BYTES;
	*max_records = 0;
}

static void CUPTIAPI take_buffer(CUcontext ctx, uint32_t stream,
        uint8_t *buffer, size_t bytes, size_t valid_bytes)
{
	CUpti_Activity *record = NULL;

	completed++;
	while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) ==
	        CUPTI_SUCCESS) {
		if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
			CUpti_ActivityMemcpy6 *copy = (void *)record;

			ck_assert_uint_gt(copy->end, copy->start);
			ck_assert_uint_ge(copy->start, last_end_ns);
			last_end_ns = copy->end;
			copied_bytes += copy->bytes;
			last_copy = *copy;
			copies++;
		} else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
			last_set = *(CUpti_ActivityMemset4 *)record;
			sets++;
		} else {
			others++;
		}
	}
	free(buffer);
}

START_TEST(cupti_records_what_is_enabled)
{
	char host[4096] = {0};
	size_t dropped = 99;
	void *device;

	OK(cudaMalloc(&device, sizeof(host)));
	OK(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
	OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
	/* More than one buffer of records. */
	for (int i = 0; i < 20; i++)
		OK(cudaMemcpy(
		        device, host, sizeof(host), cudaMemcpyHostToDevice));
	OK(cudaMemset(device, 0, sizeof(host)));
	OK(cuptiActivityFlushAll(0));
	ck_assert_int_eq(copies, 20);
	ck_assert_uint_eq(copied_bytes, 20 * sizeof(host));
	ck_assert_int_eq(sets, 0);
	ck_assert_int_eq(others, 0);
	ck_assert_int_gt(requested, 1);
	ck_assert_int_eq(requested, completed);
	OK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY));
	OK(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
	OK(cuptiActivityFlushAll(0));
	ck_assert_int_eq(copies, 20);
	OK(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
	ck_assert_uint_eq(dropped, 0);
	OK(cudaFree(device));
}
END_TEST

START_TEST(cupti_wants_buffers_before_a_flush)
{
	ck_assert_int_eq(
	        cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
	OK(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
	OK(cuptiActivityFlushAll(0));
	ck_assert_int_eq(requested, 0);
}
END_TEST

/* Whether it is done then or not. */
START_TEST(cupti_records_what_is_issued_while_enabled)
{
	enum { BYTES = 32 << 20 };
	cudaStream_t stream;
	void *device, *host;

	OK(cudaMalloc(&device, BYTES));
	OK(cudaMallocHost(&host, BYTES));
	OK(cudaStreamCreate(&stream));
	OK(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
	OK(cudaMemcpyAsync(
	        device, host, BYTES, cudaMemcpyHostToDevice, stream));
	OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
	OK(cudaMemcpyAsync(
	        host, device, BYTES / 2, cudaMemcpyDeviceToHost, stream));
	OK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY));
	OK(cudaMemcpyAsync(
	        device, host, BYTES, cudaMemcpyHostToDevice, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cuptiActivityFlushAll(0));
	ck_assert_int_eq(copies, 1);
	ck_assert_uint_eq(copied_bytes, BYTES / 2);
}
END_TEST

START_TEST(cupti_tells_of_memory_and_waiting)
{
	static char pageable[4096];
	void *device, *pinned;

	OK(cudaMalloc(&device, 4096));
	OK(cudaMallocHost(&pinned, 4096));
	OK(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
	OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
	OK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
	OK(cudaMemcpy(device, pinned, 4096, cudaMemcpyHostToDevice));
	OK(cuptiActivityFlushAll(0));
	ck_assert_int_eq(last_copy.srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
	ck_assert_int_eq(last_copy.dstKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
	ck_assert_int_eq(last_copy.flags, 0);
	OK(cudaMemcpy(pageable, device, 4096, cudaMemcpyDeviceToHost));
	OK(cuptiActivityFlushAll(0));
	ck_assert_int_eq(
	        last_copy.dstKind, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
	OK(cudaMemcpyAsync(pinned, device, 4096, cudaMemcpyDeviceToHost, NULL));
	OK(cudaMemset(device, 7, 4096));
	OK(cuptiActivityFlushAll(0));
	ck_assert_int_eq(last_copy.dstKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
	ck_assert_int_eq(last_copy.flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
	ck_assert_uint_eq(last_set.value, 7);
	ck_assert_int_eq(last_set.flags, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
	ck_assert_uint_ne(last_set.contextId, 0);
}
END_TEST

START_TEST(cupti_names_its_results)
{
	const char *name;

	OK(cuptiGetResultString(CUPTI_ERROR_NOT_INITIALIZED, &name));
	ck_assert_str_eq(name, "CUPTI_ERROR_NOT_INITIALIZED");
	OK(cuptiGetResultString(CUPTI_ERROR_UNKNOWN, &name));
	ck_assert_str_eq(name, "CUPTI_ERROR_UNKNOWN");
	ck_assert_int_eq(cuptiGetResultString((CUptiResult)12345, &name),
	        CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rt_tools");
	TCase *tcase = tcase_create("rt_tools");
	SRunner *runner;
	int failed;

	setenv("SIMGPU_DEVICE", "tiny-1g", 1);
	setenv("SIMGPU_DEVICES", "2", 1);
	tcase_add_test(tcase, nvml_wants_to_be_initialised);
	tcase_add_test(tcase, nvml_finds_devices_by_their_names);
	tcase_add_test(tcase, nvml_sees_the_memory_in_use);
	tcase_add_test(tcase, cupti_has_one_subscriber);
	tcase_add_test(tcase, cupti_records_what_is_enabled);
	tcase_add_test(tcase, cupti_wants_buffers_before_a_flush);
	tcase_add_test(tcase, cupti_records_what_is_issued_while_enabled);
	tcase_add_test(tcase, cupti_tells_of_memory_and_waiting);
	tcase_add_test(tcase, cupti_names_its_results);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
