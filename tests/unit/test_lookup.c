/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "intercept/driver.h"
#include "intercept/lookup.h"
#include "tests/unit/suite.h"

START_TEST(every_symbol_is_found)
{
	for (size_t i = 0; i < TS_HOOK_COUNT; i++) {
		const struct ts_hook *hook =
		        ts_hook_by_symbol(ts_hooks[i].symbol);

		ck_assert_ptr_eq(hook, &ts_hooks[i]);
		ck_assert_ptr_nonnull(hook->wrapper);
	}
	ck_assert_ptr_null(ts_hook_by_symbol("cuDeviceGet"));
	ck_assert_ptr_null(ts_hook_by_symbol(""));
}
END_TEST

static const char *found(const char *name, int version, bool per_thread)
{
	const struct ts_hook *hook = ts_hook_by_name(name, version, per_thread);

	return hook ? hook->symbol : "";
}

START_TEST(version_and_flags_choose_the_abi)
{
	ck_assert_str_eq(found("cuMemAlloc", 12000, false), "cuMemAlloc_v2");
	ck_assert_str_eq(found("cuMemAlloc", 3010, false), "cuMemAlloc");
	ck_assert_str_eq(found("cuMemAlloc", 12000, true), "cuMemAlloc_v2");
	ck_assert_str_eq(found("cuMemAlloc", 1000, false), "");
	ck_assert_str_eq(found("cuMemcpyBatchAsync", 12080, false),
	        "cuMemcpyBatchAsync");
	ck_assert_str_eq(found("cuMemcpyBatchAsync", 13000, true),
	        "cuMemcpyBatchAsync_v2_ptsz");
	ck_assert_str_eq(
	        found("cuLaunchKernel", 13000, true), "cuLaunchKernel_ptsz");
	ck_assert_str_eq(
	        found("cuLaunchKernel", 13000, false), "cuLaunchKernel");
	ck_assert_str_eq(
	        found("cuMemcpyHtoD", 13000, true), "cuMemcpyHtoD_v2_ptds");
	ck_assert_str_eq(found("cuNothing", 13000, false), "");
}
END_TEST

START_TEST(missing_driver_answers_not_supported)
{
	ck_assert(!ts_driver_has(&ts_driver.fn_cuMemAlloc_v2));
	ck_assert_int_eq(ts_driver.fn_cuInit(0), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(
	        ts_driver.fn_cuMemFree_v2(0), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

static CUresult answer(unsigned int flags)
{
	return CUDA_SUCCESS;
}

START_TEST(wrapper_is_found_by_the_driver_s_address)
{
	ts_driver.fn_cuInit = answer;
	ts_lookup_index();
	ck_assert_str_eq(ts_hook_by_function((void *)answer)->symbol, "cuInit");
	ck_assert_ptr_null(ts_hook_by_function((void *)found));
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, every_symbol_is_found);
	tcase_add_test(tests, version_and_flags_choose_the_abi);
	tcase_add_test(tests, missing_driver_answers_not_supported);
	tcase_add_test(tests, wrapper_is_found_by_the_driver_s_address);
}

int main(void)
{
	return run_suite("lookup", add_tests);
}
