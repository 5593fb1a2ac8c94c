/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuGetProcAddress: versions, kinds of default stream, answers for what is not
 * there; and the same functions as ELF symbols.
 */
#include "ctl_client.h"

#include <dlfcn.h>
#include <string.h>

struct row {
	const char *name, *symbol;
	int version;
	bool per_thread;
};
#define LEGACY     false
#define PER_THREAD true
static const struct row rows[] = {
#define SG_ENTRY(name, symbol, version, thread)                                \
	{#name, #symbol, version, thread},
#include "tests/simgpu/driver/exports.def"
#undef SG_ENTRY
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void *symbol(const char *name)
{
	void *p = dlsym(RTLD_DEFAULT, name);

	ck_assert_msg(p != NULL, "%s is not exported", name);
	return p;
}

static void *look_up(const char *name, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	void *p = NULL;

	OK(cuGetProcAddress_v2(name, &p, version, flags, &status));
	ck_assert_int_eq(status == CU_GET_PROC_ADDRESS_SUCCESS, p != NULL);
	return p;
}

START_TEST(each_row_is_found_at_its_version)
{
	ck_assert_uint_gt(ROWS, 600);
	for (size_t i = 0; i < ROWS; i++) {
		cuuint64_t flags =
		        rows[i].per_thread
		                ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
		                : CU_GET_PROC_ADDRESS_LEGACY_STREAM;

		ck_assert_msg(look_up(rows[i].name, rows[i].version, flags) ==
		                      symbol(rows[i].symbol),
		        "%s at %d", rows[i].symbol, rows[i].version);
	}
}
END_TEST

START_TEST(older_versions_get_the_older_function)
{
	static const struct {
		const char *name;
		int version;
		const char *symbol;
	} wanted[] = {
	        {"cuCtxCreate", 2000, "cuCtxCreate"},
	        {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
	        {"cuCtxCreate", 11030, "cuCtxCreate_v2"},
	        {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
	        {"cuCtxCreate", 13000, "cuCtxCreate_v4"},
	        {"cuMemAlloc", 3010, "cuMemAlloc"},
	        {"cuMemAlloc", 12000, "cuMemAlloc_v2"},
	        {"cuStreamGetCaptureInfo", 11000, "cuStreamGetCaptureInfo"},
	        {"cuStreamGetCaptureInfo", 12020, "cuStreamGetCaptureInfo_v2"},
	        {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
	        {"cuMemcpyBatchAsync", 12080, "cuMemcpyBatchAsync"},
	        {"cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2"},
	        {"cuGetProcAddress", 11030, "cuGetProcAddress"},
	        {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
	        {"cuEventElapsedTime", 12000, "cuEventElapsedTime"},
	        {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		ck_assert_ptr_eq(look_up(wanted[i].name, wanted[i].version, 0),
		        symbol(wanted[i].symbol));
}
END_TEST

START_TEST(per_thread_flag_gets_the_per_thread_function)
{
	const cuuint64_t flag = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	ck_assert_ptr_eq(look_up("cuMemcpyHtoD", 12000, flag),
	        symbol("cuMemcpyHtoD_v2_ptds"));
	ck_assert_ptr_eq(
	        look_up("cuMemcpyHtoD", 12000, 0), symbol("cuMemcpyHtoD_v2"));
	ck_assert_ptr_eq(look_up("cuLaunchKernel", 12000, flag),
	        symbol("cuLaunchKernel_ptsz"));
	/* Too old for a per-thread variant, and a function without one. */
	ck_assert_ptr_eq(
	        look_up("cuMemcpyHtoD", 3020, flag), symbol("cuMemcpyHtoD_v2"));
	ck_assert_ptr_eq(
	        look_up("cuMemAlloc", 12000, flag), symbol("cuMemAlloc_v2"));
}
END_TEST

START_TEST(what_is_not_there_is_told)
{
	CUdriverProcAddressQueryResult status;
	int driver;
	void *p = &status;

	OK(cuGetProcAddress_v2("cuNoSuchThing", &p, 12000, 0, &status));
	ck_assert_ptr_null(p);
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	OK(cuGetProcAddress_v2("cuMemCreate", &p, 10010, 0, &status));
	ck_assert_ptr_null(p);
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuDriverGetVersion(&driver));
	FAILS(cuGetProcAddress_v2("cuInit", &p, driver + 10, 0, &status),
	        CUDA_ERROR_INVALID_VALUE);
	FAILS(cuGetProcAddress_v2("cuInit", NULL, 12000, 0, &status),
	        CUDA_ERROR_INVALID_VALUE);
	FAILS(cuGetProcAddress("cuNoSuchThing", &p, 11030, 0),
	        CUDA_ERROR_NOT_FOUND);
	OK(cuGetProcAddress("cuInit", &p, 11030, 0));
	ck_assert_ptr_eq(p, symbol("cuInit"));
}
END_TEST

START_TEST(nothing_works_before_init)
{
	CUcontext ctx;
	int count;

	FAILS(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	FAILS(cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
	FAILS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	OK(cuInit(0));
	OK(cuDeviceGetCount(&count));
	ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(missing_functions_say_so)
{
	OK(cuInit(0));
	FAILS(cuMulticastCreate(NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
	FAILS(cuGreenCtxDestroy(NULL), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

START_TEST(every_error_has_a_name)
{
	const char *name, *text;

	OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
	ck_assert_str_eq(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
	OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	ck_assert_str_eq(text, "out of memory");
	FAILS(cuGetErrorName((CUresult)12345, &name), CUDA_ERROR_INVALID_VALUE);
	ck_assert_ptr_null(name);
}
END_TEST

START_TEST(every_attribute_has_a_value)
{
	int value, warps, registers;

	setenv("SIMGPU_DEVICE", "h100-pcie5", 1);
	OK(cuInit(0));
	for (int a = 1; a < CU_DEVICE_ATTRIBUTE_MAX; a++)
		ck_assert_msg(
		        !cuDeviceGetAttribute(&value, (CUdevice_attribute)a, 0),
		        "attribute %d", a);
	FAILS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0),
	        CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetAttribute(
	        &value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	ck_assert_int_eq(value, 9);
	OK(cuDeviceGetAttribute(
	        &warps, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
	OK(cuDeviceGetAttribute(&registers,
	        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 0));
	ck_assert_int_eq(warps, 2048);
	ck_assert_int_eq(registers, 65536);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_lookup");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, each_row_is_found_at_its_version);
	tcase_add_test(tests, older_versions_get_the_older_function);
	tcase_add_test(tests, per_thread_flag_gets_the_per_thread_function);
	tcase_add_test(tests, what_is_not_there_is_told);
	tcase_add_test(tests, nothing_works_before_init);
	tcase_add_test(tests, missing_functions_say_so);
	tcase_add_test(tests, every_error_has_a_name);
	tcase_add_test(tests, every_attribute_has_a_value);
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
