/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fat binaries as NVIDIA's tools write them (code_nvcc.cu): what the simulated
 * driver reads in them. Usage: code_nvcc FATBIN...
 */
#include "code_common.h"

static int n_files;
static char **files;

static int attribute(CUfunction fn, CUfunction_attribute which)
{
	int value;

	ck_cu(cuFuncGetAttribute(&value, which, fn));
	return value;
}

static void check_params(
        CUfunction fn, unsigned n, const size_t *offsets, const size_t *sizes)
{
	size_t offset, size;

	for (unsigned i = 0; i < n; i++) {
		ck_cu(cuFuncGetParamInfo(fn, i, &offset, &size));
		ck_assert_uint_eq(offset, offsets[i]);
		ck_assert_uint_eq(size, sizes[i]);
	}
	ck_cu_is(cuFuncGetParamInfo(fn, n, &offset, &size),
	        CUDA_ERROR_INVALID_VALUE);
}

START_TEST(real_fat_binary)
{
	CUfunction fn;
	CUmodule module;
	CUdeviceptr va;
	size_t bytes;
	unsigned n;

	ck_cu(cuModuleLoad(&module, files[_i]));
	ck_cu(cuModuleGetFunctionCount(&n, module));
	ck_assert_uint_eq(n, 3);
	ck_cu(cuModuleGetFunction(&fn, module, "mixed"));
	check_params(fn, 3, (size_t[]){0, 8, 12}, (size_t[]){8, 4, 2});
	ck_assert_int_eq(
	        attribute(fn, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1024);
	ck_assert_int_eq(attribute(fn, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 40);
	ck_assert_int_gt(attribute(fn, CU_FUNC_ATTRIBUTE_NUM_REGS), 4);
	ck_cu(cuModuleGetFunction(&fn, module, "large"));
	check_params(fn, 2, (size_t[]){0, 4800}, (size_t[]){4800, 4});
	ck_cu(cuModuleGetFunction(&fn, module, "bounded"));
	ck_assert_int_eq(
	        attribute(fn, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 128);
	ck_assert_int_ge(
	        attribute(fn, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 400);
	ck_assert_int_eq(attribute(fn, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 0);
	ck_cu(cuModuleGetGlobal(&va, &bytes, module, "scratch"));
	ck_assert_uint_eq(bytes, 400);
	ck_cu(cuModuleGetGlobal(&va, &bytes, module, "counter"));
	ck_assert_uint_eq(bytes, 4);
	ck_cu(cuModuleUnload(module));
}
END_TEST

static void setup(void)
{
	use_device();
}

int main(int argc, char **argv)
{
	Suite *suite = suite_create("code_nvcc");
	TCase *tests = tcase_create("fat binaries");

	n_files = argc - 1;
	files = argv + 1;
	tcase_add_checked_fixture(tests, setup, leave_device);
	tcase_add_loop_test(tests, real_fat_binary, 0, n_files);
	suite_add_tcase(suite, tests);
	return n_files ? run_suite(suite) : 77;
}
