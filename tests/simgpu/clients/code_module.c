/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Modules, libraries, kernels and functions of the simulated driver: what they
 * answer, and the documented errors; PTX texts; occupancy.
 */
#include "code_common.h"

#include <stdlib.h>
#include <string.h>

/* Of CUDA 13.2; older headers do not declare them. */
CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count);
CUresult cuFuncGetParamCount(CUfunction fn, size_t *count);

static const char ptx[] =
        "// comment .entry no\n"
        ".version 8.4\n.target sm_80\n.address_size 64\n"
        "/* .entry neither */\n"
        ".extern .shared .align 16 .b8 dynamic[];\n"
        ".visible .global .align 4 .u32 counter = 5;\n"
        ".const .align 8 .b8 table[256] = {1, 2, 3};\n"
        ".global .align 16 .v4 .f32 vectors[4][2];\n"
        ".extern .global .u32 elsewhere;\n"
        ".func (.param .b32 r) helper(.param .b64 p) { { ret; } }\n"
        ".visible .entry mixed(\n"
        "  .param .u8 flag,\n"
        "  .param .u64 .ptr .global .align 256 data,\n"
        "  .param .align 16 .b8 record[40],\n"
        "  .param .f16 scale,\n"
        "  .param .b32 pair[3]\n"
        ")\n.maxntid 128, 2, 1\n.minnctapersm 2\n.maxnreg 24\n{\n"
        "  .shared .align 8 .b8 tile[1000];\n"
        "  .shared .f32 sum;\n"
        "  .local .align 4 .b8 depot[64];\n"
        "  { mov.u32 %r1, 5; }\n  ret;\n}\n"
        ".entry plain { ret; }\n"
        ".weak .entry wide(.param .align 8 .b8 a[5000], .param .u32 b)"
        " { ret; }\n";

START_TEST(ptx_layout)
{
	static const size_t offsets[] = {0, 8, 16, 56, 60};
	static const size_t sizes[] = {1, 8, 40, 2, 12};
	size_t offset, size, count;
	CUmodule module;
	CUdeviceptr va;
	CUfunction fn;
	unsigned n;
	int value;

	ck_cu(cuModuleLoadData(&module, ptx));
	ck_cu(cuModuleGetFunctionCount(&n, module));
	ck_assert_uint_eq(n, 3);
	ck_cu(cuModuleGetFunction(&fn, module, "mixed"));
	ck_cu(cuFuncGetParamCount(fn, &count));
	ck_assert_uint_eq(count, 5);
	for (size_t i = 0; i < 5; i++) {
		ck_cu(cuFuncGetParamInfo(fn, i, &offset, &size));
		ck_assert_uint_eq(offset, offsets[i]);
		ck_assert_uint_eq(size, sizes[i]);
	}
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fn));
	ck_assert_int_eq(value, 256);
	ck_cu(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, fn));
	ck_assert_int_eq(value, 24);
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, fn));
	ck_assert_int_eq(value, 1004);
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, fn));
	ck_assert_int_eq(value, 64);
	ck_cu(cuModuleGetFunction(&fn, module, "plain"));
	ck_cu(cuFuncGetParamCount(fn, &count));
	ck_assert_uint_eq(count, 0);
	ck_cu(cuModuleGetFunction(&fn, module, "wide"));
	ck_cu(cuFuncGetParamInfo(fn, 1, &offset, NULL));
	ck_assert_uint_eq(offset, 5000);
	ck_cu_is(cuModuleGetFunction(&fn, module, "helper"),
	        CUDA_ERROR_NOT_FOUND);
	ck_cu(cuModuleGetGlobal(&va, &size, module, "vectors"));
	ck_assert_uint_eq(size, 128);
	ck_cu(cuModuleGetGlobal(NULL, &size, module, "table"));
	ck_assert_uint_eq(size, 256);
	ck_cu_is(cuModuleGetGlobal(&va, &size, module, "elsewhere"),
	        CUDA_ERROR_NOT_FOUND);
	ck_cu(cuModuleUnload(module));
}
END_TEST

START_TEST(bad_ptx)
{
	static const struct {
		const char *text;
		CUresult result;
	} texts[] = {
	        {".version 99.0\n.target sm_80\n",
	                CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
	        {".version 8.0\n.target sm_103\n", CUDA_ERROR_INVALID_PTX},
	        {".target sm_80\n", CUDA_ERROR_INVALID_PTX},
	        {".version 8.0\n.target sm_80\n.entry k(.param .u64",
	                CUDA_ERROR_INVALID_PTX},
	        {".version 8.0\n.target sm_80\n.entry k(.param .q64 a) {}",
	                CUDA_ERROR_INVALID_PTX},
	        {".version 8.0\n.target sm_80\n.entry k() { ret;",
	                CUDA_ERROR_INVALID_PTX},
	        {".version 8.0\n.target sm_80\n.entry k(.param .b8 a[40000]){}",
	                CUDA_ERROR_INVALID_PTX},
	};
	CUmodule module;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_cu_is(cuModuleLoadData(&module, texts[i].text),
		        texts[i].result);
}
END_TEST

START_TEST(truncated_ptx)
{
	CUmodule module;
	unsigned loaded = 0;
	char *text;

	/* Each beginning of the text in a buffer of exactly its size. */
	for (size_t n = 1; n < sizeof(ptx); n++) {
		text = strndup(ptx, n);
		ck_assert_ptr_nonnull(text);
		if (cuModuleLoadData(&module, text) == CUDA_SUCCESS) {
			ck_cu(cuModuleUnload(module));
			loaded++;
		}
		free(text);
	}
	ck_assert_uint_gt(loaded, 1);
}
END_TEST

static struct buffer two_kernels(void)
{
	static const uint32_t params[] = {8, 8, 4};
	struct image_kernel kernels[] = {
	        {.name = "zeta",
	                .param_bytes = params,
	                .n_params = 3,
	                .regs = 40},
	        {.name = "alpha",
	                .param_bytes = params,
	                .n_params = 1,
	                .regs = 255,
	                .shared_bytes = 2048},
	};
	struct image_variable variables[] = {
	        {"state", 1024, false, false},
	        {"managed_state", 8, true, false},
	};

	return image_cubin(80, kernels, 2, variables, 2);
}

START_TEST(library_and_kernels)
{
	CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
	struct buffer cubin = two_kernels();
	struct buffer fatbin = image_fatbin();
	CUdeviceptr from_library, from_module;
	size_t count, offset, size;
	CUkernel kernel, kernels[4] = {0};
	CUlibrary library, other;
	CUfunction fn, again;
	CUmodule module;
	const char *name;
	unsigned n;
	int value;

	image_fatbin_add(&fatbin, IMAGE_IS_CUBIN, 80, 0x11, cubin.data,
	        cubin.bytes, IMAGE_LZ4);
	buffer_free(&cubin);
	ck_cu(cuLibraryLoadData(
	        &library, fatbin.data, NULL, NULL, 0, NULL, NULL, 0));
	/* Not preserved: the driver has its own copy. */
	memset(fatbin.data, 0xee, fatbin.bytes);
	buffer_free(&fatbin);
	ck_cu(cuLibraryGetKernelCount(&n, library));
	ck_assert_uint_eq(n, 2);
	ck_cu(cuLibraryEnumerateKernels(kernels, 4, library));
	ck_assert_ptr_nonnull(kernels[1]);
	ck_assert_ptr_null(kernels[2]);
	ck_cu(cuLibraryGetKernel(&kernel, library, "zeta"));
	ck_assert(kernel == kernels[0] || kernel == kernels[1]);
	ck_cu_is(cuLibraryGetKernel(&kernel, library, "beta"),
	        CUDA_ERROR_NOT_FOUND);
	ck_cu(cuLibraryGetKernel(&kernel, library, "zeta"));
	ck_cu(cuKernelGetName(&name, kernel));
	ck_assert_str_eq(name, "zeta");
	ck_cu(cuKernelGetLibrary(&other, kernel));
	ck_assert_ptr_eq(other, library);
	ck_cu(cuKernelGetParamCount(kernel, &count));
	ck_assert_uint_eq(count, 3);
	ck_cu(cuKernelGetParamInfo(kernel, 2, &offset, &size));
	ck_assert_uint_eq(offset, 16);
	ck_assert_uint_eq(size, 4);
	ck_cu(cuKernelGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0));
	ck_assert_int_eq(value, 40);
	ck_cu_is(cuKernelGetAttribute(
	                 &value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 99),
	        CUDA_ERROR_INVALID_DEVICE);

	/* What is set on the kernel holds for its function; what is set on
	 * the function comes first. */
	ck_cu(cuKernelSetAttribute(
	        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel,
	        0));
	ck_cu(cuKernelGetFunction(&fn, kernel));
	ck_cu(cuKernelGetFunction(&again, kernel));
	ck_assert_ptr_eq(fn, again);
	ck_cu(cuFuncGetAttribute(
	        &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, fn));
	ck_assert_int_eq(value, 100000);
	ck_cu(cuFuncSetAttribute(
	        fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 120000));
	ck_cu(cuFuncGetAttribute(&value,
	        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
	        (CUfunction)kernel));
	ck_assert_int_eq(value, 120000);
	ck_cu_is(cuFuncSetAttribute(fn,
	                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
	                 1 << 20),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(cuFuncSetAttribute(fn, CU_FUNC_ATTRIBUTE_NUM_REGS, 10),
	        CUDA_ERROR_INVALID_VALUE);

	ck_cu(cuLibraryGetModule(&module, library));
	ck_cu(cuModuleGetFunction(&again, module, "zeta"));
	ck_assert_ptr_eq(fn, again);
	ck_cu(cuLibraryGetGlobal(&from_library, &size, library, "state"));
	ck_cu(cuModuleGetGlobal(&from_module, NULL, module, "state"));
	ck_assert(from_library == from_module);
	ck_assert_uint_eq(size, 1024);
	ck_cu_is(cuLibraryGetManaged(&from_library, &size, library, "state"),
	        CUDA_ERROR_NOT_FOUND);
	ck_cu_is(cuLibraryGetManaged(
	                 &from_library, &size, library, "managed_state"),
	        CUDA_ERROR_NOT_SUPPORTED);
	ck_cu(cuLibraryUnload(library));
	ck_cu_is(cuLibraryGetKernelCount(&n, library),
	        CUDA_ERROR_INVALID_HANDLE);
	ck_cu_is(cuKernelGetFunction(&fn, kernel), CUDA_ERROR_INVALID_HANDLE);
	ck_cu_is(cuFuncGetName(&name, fn), CUDA_ERROR_INVALID_HANDLE);

	/* Preserved: read only when something is asked. */
	cubin = two_kernels();
	ck_cu(cuLibraryLoadData(&library, cubin.data, NULL, NULL, 0, &preserved,
	        (void *[]){(void *)1}, 1));
	ck_cu(cuLibraryGetKernelCount(&n, library));
	ck_assert_uint_eq(n, 2);
	ck_cu(cuLibraryUnload(library));
	buffer_free(&cubin);
}
END_TEST

START_TEST(library_from_file)
{
	struct buffer cubin = two_kernels();
	struct image_file file = file_of(cubin.data, cubin.bytes);
	CUlibrary library;
	CUkernel kernel;

	ck_cu(cuLibraryLoadFromFile(
	        &library, file.path, NULL, NULL, 0, NULL, NULL, 0));
	close(file.fd);
	ck_cu(cuLibraryGetKernel(&kernel, library, "alpha"));
	ck_cu(cuLibraryUnload(library));
	ck_cu_is(cuLibraryLoadFromFile(&library, "/nonexistent/image", NULL,
	                 NULL, 0, NULL, NULL, 0),
	        CUDA_ERROR_FILE_NOT_FOUND);
	buffer_free(&cubin);
}
END_TEST

START_TEST(functions_of_a_module)
{
	struct buffer cubin = two_kernels();
	CUfunctionLoadingState state;
	CUfunction fns[2], fn;
	CUmodule module, other;
	const char *name;

	ck_cu(cuModuleLoadData(&module, cubin.data));
	buffer_free(&cubin);
	ck_cu(cuModuleEnumerateFunctions(fns, 2, module));
	ck_cu(cuFuncIsLoaded(&state, fns[0]));
	ck_assert_int_eq(state, CU_FUNCTION_LOADING_STATE_UNLOADED);
	ck_cu(cuFuncLoad(fns[0]));
	ck_cu(cuFuncIsLoaded(&state, fns[0]));
	ck_assert_int_eq(state, CU_FUNCTION_LOADING_STATE_LOADED);
	ck_cu(cuModuleGetFunction(&fn, module, "alpha"));
	ck_cu(cuFuncGetName(&name, fn));
	ck_assert_str_eq(name, "alpha");
	ck_cu(cuFuncGetModule(&other, fn));
	ck_assert_ptr_eq(other, module);
	ck_cu(cuModuleUnload(module));
	ck_cu_is(cuModuleGetFunction(&fn, module, "alpha"),
	        CUDA_ERROR_INVALID_HANDLE);
	ck_cu_is(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* a100: 65,536 registers, 2,048 threads, 32 blocks, 164 KiB shared. */
START_TEST(occupancy_limits)
{
	struct buffer cubin = two_kernels();
	int blocks, grid, size;
	CUfunction zeta, alpha;
	size_t dynamic;
	CUmodule module;

	ck_cu(cuModuleLoadData(&module, cubin.data));
	buffer_free(&cubin);
	ck_cu(cuModuleGetFunction(&zeta, module, "zeta"));
	ck_cu(cuModuleGetFunction(&alpha, module, "alpha"));
	/* 40 registers: 1,280 a warp, 12 warps a quarter, 48 in all. */
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, zeta, 128, 0));
	ck_assert_int_eq(blocks, 12);
	/* One warp: 32 blocks at most. */
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, zeta, 32, 0));
	ck_assert_int_eq(blocks, 32);
	/* 40 KiB and 1 KiB of the system's: four in 164 KiB. */
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, zeta, 128, 40960));
	ck_assert_int_eq(blocks, 4);
	/* 255 registers: 8,192 a warp, 2 a quarter, 8 in all. */
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, alpha, 256, 0));
	ck_assert_int_eq(blocks, 1);
	ck_cu(cuOccupancyMaxPotentialBlockSize(&grid, &size, zeta, NULL, 0, 0));
	ck_assert_int_eq(size, 768); /* two blocks of 24 warps */
	ck_assert_int_eq(grid, 2 * 108);
	ck_cu(cuOccupancyMaxPotentialBlockSize(
	        &grid, &size, zeta, NULL, 0, 100));
	ck_assert_int_le(size, 100);
	ck_cu(cuOccupancyAvailableDynamicSMemPerBlock(&dynamic, alpha, 1, 256));
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, alpha, 256, dynamic));
	ck_assert_int_eq(blocks, 1);
	ck_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	        &blocks, alpha, 256, dynamic + 1));
	ck_assert_int_eq(blocks, 0);
	ck_cu_is(cuOccupancyMaxActiveBlocksPerMultiprocessor(
	                 &blocks, zeta, 0, 0),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu(cuModuleUnload(module));
}
END_TEST

static void setup(void)
{
	use_device();
}

int main(void)
{
	Suite *suite = suite_create("code_module");
	TCase *tests = tcase_create("modules");

	tcase_add_checked_fixture(tests, setup, leave_device);
	tcase_add_test(tests, ptx_layout);
	tcase_add_test(tests, bad_ptx);
	tcase_add_test(tests, truncated_ptx);
	tcase_add_test(tests, library_and_kernels);
	tcase_add_test(tests, library_from_file);
	tcase_add_test(tests, functions_of_a_module);
	tcase_add_test(tests, occupancy_limits);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
