/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Launches on the simulated driver: every form, the documented refusals, and
 * virtual time by the roofline of the model a100-80g-pcie4, whose figures
 * stand below.
 */
/* Some of the calls below are deprecated, which is the point. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "code_common.h"

#include "tests/simgpu/blas/simblas_params.h"

#include <cudaTypedefs.h>
#include <library_types.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEMORY_RATE   (2039e9 * 0.85) /* bytes per second */
#define GEMM_RATE     (312e12 * 0.75) /* 16-bit operations per second */
#define FLASH_RATE    (312e12 * 0.62)
#define FLASH_BW_RATE (312e12 * 0.48)
#define LATENCY_MS    5e-3
#define MIB           ((size_t)1 << 20)

#define FLASH_ARGUMENTS(bools)                                                 \
	"23Flash_fwd_kernel_traitsILi128ELi128ELi64ELi4ELb0ELb0EN7cutlass10"   \
	"bfloat16_tE19Flash_kernel_traitsILi128ELi128ELi64ELi4ES3_EE" bools    \
	"EEEvNS_16Flash_fwd_paramsE"
#define FLASH_PLAIN                                                            \
	"_ZN13pytorch_flash16flash_fwd_kernelI" FLASH_ARGUMENTS(               \
	        "Lb0ELb0ELb0ELb0ELb1ELb1ELb0ELb0")
#define FLASH_CAUSAL                                                           \
	"_ZN13pytorch_flash16flash_fwd_kernelI" FLASH_ARGUMENTS(               \
	        "Lb0ELb1ELb0ELb0ELb1ELb1ELb0ELb0")
#define FLASH_BACKWARD                                                         \
	"_ZN13pytorch_flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"     \
	"I23Flash_bwd_kernel_traitsILi128ELi64ELi64ELi8ELi4ELi2ELi2ELb1ELb0E"  \
	"N7cutlass10bfloat16_tE19Flash_kernel_traitsILi128ELi64ELi64ELi8ES3_"  \
	"EELb0ELb0ELb0ELb0ELb0ELb0ELb0EEEvNS_16Flash_bwd_paramsE"

static CUmodule module;
static CUfunction move, tiny, bulky;

static CUfunction function(const char *name)
{
	CUfunction fn;

	ck_cu(cuModuleGetFunction(&fn, module, name));
	return fn;
}

static void setup(void)
{
	static const uint32_t move_params[] = {4, 8, 1, 8};
	static const uint32_t flash_params[] = {472};
	static const uint32_t flash_backward_params[] = {648};
	static const uint32_t bulky_params[] = {4000};
	static uint32_t gemm_params[42];
	struct image_kernel kernels[] = {
	        {.name = "move",
	                .param_bytes = move_params,
	                .n_params = 4,
	                .regs = 32,
	                .shared_bytes = 1024},
	        {.name = "tiny", .regs = 16, .max_threads = 64},
	        {.name = "bulky",
	                .param_bytes = bulky_params,
	                .n_params = 1,
	                .regs = 32},
	        {.name = "simblas_gemm_f16",
	                .param_bytes = gemm_params,
	                .n_params = 42,
	                .regs = 128},
	        {.name = FLASH_PLAIN,
	                .param_bytes = flash_params,
	                .n_params = 1,
	                .regs = 255},
	        {.name = FLASH_CAUSAL,
	                .param_bytes = flash_params,
	                .n_params = 1,
	                .regs = 255},
	        {.name = FLASH_BACKWARD,
	                .param_bytes = flash_backward_params,
	                .n_params = 1,
	                .regs = 255},
	};
	struct buffer cubin;

	for (int i = 0; i < 42; i++)
		gemm_params[i] = i < 25 ? 8 : 4;
	use_device();
	cubin = image_cubin(
	        80, kernels, sizeof(kernels) / sizeof(kernels[0]), NULL, 0);
	ck_cu(cuModuleLoadData(&module, cubin.data));
	buffer_free(&cubin);
	move = function("move");
	tiny = function("tiny");
	bulky = function("bulky");
}

static void teardown(void)
{
	ck_cu(cuModuleUnload(module));
	leave_device();
}

/* Virtual milliseconds between two events around a launch. */
static double launch_ms(
        CUfunction fn, CUstream stream, void **params, void **extra)
{
	CUevent before, after;
	float ms;

	ck_cu(cuEventCreate(&before, CU_EVENT_DEFAULT));
	ck_cu(cuEventCreate(&after, CU_EVENT_DEFAULT));
	ck_cu(cuCtxSynchronize());
	ck_cu(cuEventRecord(before, stream));
	ck_cu(cuLaunchKernel(fn, 8, 1, 1, 32, 1, 1, 0, stream, params, extra));
	ck_cu(cuEventRecord(after, stream));
	ck_cu(cuEventSynchronize(after));
	ck_cu(cuEventElapsedTime(&ms, before, after));
	ck_cu(cuEventDestroy(before));
	ck_cu(cuEventDestroy(after));
	return ms;
}

/* Between the events lies the launch call itself too, a few microseconds. */
static void assert_ms(double ms, double expected)
{
	ck_assert_msg(fabs(ms - expected) < 0.02 + expected * 0.001,
	        "%.4f ms, expected %.4f", ms, expected);
}

START_TEST(unknown_kernel_costs_its_blocks)
{
	CUdeviceptr a, b;
	unsigned char flag = 1;
	double moved;
	int n = 3;

	ck_cu(cuMemAlloc(&a, 512 * MIB));
	ck_cu(cuMemAlloc(&b, 256 * MIB));
	{
		CUdeviceptr inside = b + 128 * MIB;
		void *params[] = {&n, &a, &flag, &inside};

		moved = (512.0 + 128) * MIB;
		assert_ms(launch_ms(move, NULL, params, NULL),
		        moved / MEMORY_RATE * 1e3 + LATENCY_MS);
	}
	/* Twice the same block costs it once. */
	{
		CUdeviceptr inside = a + 16;
		void *params[] = {&n, &inside, &flag, &a};

		assert_ms(launch_ms(move, NULL, params, NULL),
		        512.0 * MIB / MEMORY_RATE * 1e3 + LATENCY_MS);
	}
	/* The packed form, in a created stream. */
	{
		struct {
			int n;
			CUdeviceptr a;
			unsigned char flag;
			CUdeviceptr b;
		} packed = {n, a, flag, b};
		size_t bytes = sizeof(packed);
		void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
		        CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
		        CU_LAUNCH_PARAM_END};
		CUstream stream;

		ck_cu(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		assert_ms(launch_ms(move, stream, NULL, extra),
		        768.0 * MIB / MEMORY_RATE * 1e3 + LATENCY_MS);
		bytes -= 8;
		ck_cu_is(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, stream, NULL,
		                 extra),
		        CUDA_ERROR_INVALID_VALUE);
		ck_cu(cuStreamDestroy(stream));
	}
	ck_cu(cuMemFree(a));
	ck_cu(cuMemFree(b));
}
END_TEST

START_TEST(gemm_by_the_roofline)
{
	struct simblas_gemm p = {
	        .m = 4096,
	        .n = 4096,
	        .k = 4096,
	        .batch = 1,
	        .lda = 4096,
	        .ldb = 4096,
	        .ldc = 4096,
	        .ldd = 4096,
	        .alpha_re = 1,
	        .type_a = CUDA_R_16F,
	        .type_b = CUDA_R_16F,
	        .type_c = CUDA_R_16F,
	        .type_d = CUDA_R_16F,
	        .type_scale = CUDA_R_32F,
	};
	size_t bytes = sizeof(p);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p,
	        CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	CUfunction gemm = function("simblas_gemm_f16");
	CUdeviceptr memory;

	ck_cu(cuMemAlloc(&memory, 1024 * MIB));
	p.a = memory;
	p.b = memory + 256 * MIB;
	p.d = memory + 512 * MIB;
	assert_ms(launch_ms(gemm, NULL, NULL, extra),
	        2.0 * 4096 * 4096 * 4096 / GEMM_RATE * 1e3 + LATENCY_MS);
	/* One row: bound by the bytes of the matrix. */
	p.m = 1;
	p.n = 16384;
	p.lda = p.ldd = 1;
	assert_ms(launch_ms(gemm, NULL, NULL, extra),
	        2.0 * (4096.0 * 16384 + 4096 + 16384) / MEMORY_RATE * 1e3 +
	                LATENCY_MS);
	ck_cu(cuMemFree(memory));
}
END_TEST

/* Parameters of an attention problem where flash.h has them. */
static void flash_sizes(
        uint8_t *p, int batches, int heads, int kv_heads, int length, int dim)
{
	memcpy(p + 96, &heads, 4);
	memcpy(p + 100, &kv_heads, 4);
	memcpy(p + 176, &batches, 4);
	memcpy(p + 180, &length, 4);
	memcpy(p + 184, &length, 4);
	memcpy(p + 192, &dim, 4);
}

START_TEST(flash_attention_by_the_roofline)
{
	uint8_t p[648] = {0};
	void *params[] = {p};
	double pairs = 8.0 * 16 * 2048 * 2048;
	CUdeviceptr memory;

	ck_cu(cuMemAlloc(&memory, 512 * MIB));
	for (int i = 0; i < 3; i++)
		memcpy(p + 8 * i, &memory, 8);
	memcpy(p + 112, &memory, 8);
	flash_sizes(p, 8, 16, 16, 2048, 128);
	assert_ms(launch_ms(function(FLASH_PLAIN), NULL, params, NULL),
	        pairs * 4 * 128 / FLASH_RATE * 1e3 + LATENCY_MS);
	assert_ms(launch_ms(function(FLASH_CAUSAL), NULL, params, NULL),
	        pairs * (2049.0 / 2048) / 2 * 4 * 128 / FLASH_RATE * 1e3 +
	                LATENCY_MS);
	assert_ms(launch_ms(function(FLASH_BACKWARD), NULL, params, NULL),
	        pairs * 10 * 128 / FLASH_BW_RATE * 1e3 + LATENCY_MS);
	ck_cu(cuMemFree(memory));
}
END_TEST

START_TEST(refused_launches)
{
	static const struct {
		unsigned grid[3], block[3], shared;
		CUresult result;
	} cases[] = {
	        {{0, 1, 1}, {32, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
	        {{1, 65536, 1}, {32, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
	        {{1, 1, 65536}, {32, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
	        {{0x80000000u, 1, 1}, {32, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
	        {{1, 1, 1}, {0, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
	        {{1, 1, 1}, {1025, 1, 1}, 0, CUDA_ERROR_INVALID_VALUE},
	        {{1, 1, 1}, {1, 1, 65}, 0, CUDA_ERROR_INVALID_VALUE},
	        {{1, 1, 1}, {65, 1, 1}, 0, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
	        {{1, 1, 1}, {32, 1, 1}, 49153, CUDA_ERROR_INVALID_VALUE},
	        {{0x7fffffffu, 65535, 65535}, {64, 1, 1}, 49152, CUDA_SUCCESS},
	};
	CUdeviceptr a = 0;
	unsigned char flag = 1;
	CUstream stream;
	int n = 3;
	void *params[] = {&n, &a, &flag, &a};
	void *missing[] = {&n, &a, NULL, &a};
	void *end[] = {CU_LAUNCH_PARAM_END};
	void *bad[] = {(void *)77, NULL, CU_LAUNCH_PARAM_END};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_cu_is(
		        cuLaunchKernel(tiny, cases[i].grid[0], cases[i].grid[1],
		                cases[i].grid[2], cases[i].block[0],
		                cases[i].block[1], cases[i].block[2],
		                cases[i].shared, NULL, NULL, NULL),
		        cases[i].result);
	ck_cu(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ck_cu_is(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, NULL, missing, NULL),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, NULL, params, end),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, end),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(cuLaunchKernel(move, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, bad),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu_is(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
	        CUDA_ERROR_INVALID_HANDLE);
	ck_cu(cuStreamCreate(&stream, 0));
	ck_cu(cuStreamDestroy(stream));
	ck_cu_is(cuLaunchKernel(tiny, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL),
	        CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* A looked-up per-thread variant, as cudart gets it. */
static void *per_thread_variant(const char *name)
{
	CUdriverProcAddressQueryResult status;
	void *fn;

	ck_cu(cuGetProcAddress(name, &fn, 13000,
	        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
	ck_assert_ptr_nonnull(fn);
	return fn;
}

START_TEST(launch_forms)
{
	PFN_cuLaunchKernel_v7000_ptsz launch_ptsz;
	PFN_cuLaunchKernelEx_v11060_ptsz launch_ex_ptsz;
	CUlaunchAttribute attributes[2] = {
	        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
	                .value.programmaticStreamSerializationAllowed = 1},
	        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0},
	};
	CUlaunchConfig config = {.gridDimX = 1,
	        .gridDimY = 1,
	        .gridDimZ = 1,
	        .blockDimX = 32,
	        .blockDimY = 1,
	        .blockDimZ = 1,
	        .attrs = attributes,
	        .numAttrs = 2};

	*(void **)&launch_ptsz = per_thread_variant("cuLaunchKernel");
	*(void **)&launch_ex_ptsz = per_thread_variant("cuLaunchKernelEx");
	ck_cu(launch_ptsz(tiny, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	ck_cu(launch_ex_ptsz(&config, tiny, NULL, NULL));
	ck_cu(cuLaunchKernelEx(&config, tiny, NULL, NULL));
	ck_cu(cuLaunchKernel(
	        tiny, 1, 1, 1, 32, 1, 1, 0, CU_STREAM_PER_THREAD, NULL, NULL));
	ck_cu(cuLaunchKernel(
	        tiny, 1, 1, 1, 32, 1, 1, 0, CU_STREAM_LEGACY, NULL, NULL));

	/* Of 64 threads with 16 registers 32 blocks fit, on 108 processors. */
	ck_cu(cuLaunchCooperativeKernel(
	        tiny, 3456, 1, 1, 64, 1, 1, 0, NULL, NULL));
	ck_cu_is(cuLaunchCooperativeKernel(
	                 tiny, 3457, 1, 1, 64, 1, 1, 0, NULL, NULL),
	        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	attributes[1].value.cooperative = 1;
	config.gridDimX = 4000;
	ck_cu_is(cuLaunchKernelEx(&config, tiny, NULL, NULL),
	        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);

	/* Clusters began with sm_90; an attribute of streams is no launch's. */
	config.gridDimX = 4;
	attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	attributes[1].value.clusterDim.x = 2;
	attributes[1].value.clusterDim.y = 1;
	attributes[1].value.clusterDim.z = 1;
	ck_cu_is(cuLaunchKernelEx(&config, tiny, NULL, NULL),
	        CUDA_ERROR_NOT_SUPPORTED);
	attributes[1].id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
	ck_cu_is(cuLaunchKernelEx(&config, tiny, NULL, NULL),
	        CUDA_ERROR_INVALID_VALUE);
	ck_cu(cuCtxSynchronize());
}
END_TEST

START_TEST(kernel_handle_as_function)
{
	static const uint32_t params[] = {8};
	struct image_kernel kernel = {
	        .name = "k", .param_bytes = params, .n_params = 1, .regs = 32};
	struct buffer cubin = image_cubin(80, &kernel, 1, NULL, 0);
	CUdeviceptr a = 0;
	void *args[] = {&a};
	CUlibrary library;
	CUkernel handle;

	ck_cu(cuLibraryLoadData(
	        &library, cubin.data, NULL, NULL, 0, NULL, NULL, 0));
	buffer_free(&cubin);
	ck_cu(cuLibraryGetKernel(&handle, library, "k"));
	ck_cu(cuLaunchKernel(
	        (CUfunction)handle, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	ck_cu(cuLibraryUnload(library));
	ck_cu_is(cuLaunchKernel((CUfunction)handle, 1, 1, 1, 1, 1, 1, 0, NULL,
	                 args, NULL),
	        CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* A captured launch keeps the parameters it was given. */
START_TEST(captured_launch)
{
	CUdeviceptr large, small;
	unsigned char flag = 1;
	CUgraphExec exec;
	CUevent before, after;
	CUstream stream;
	CUgraph graph;
	int n = 3;
	void *params[] = {&n, &large, &flag, &large};
	float ms;

	ck_cu(cuMemAlloc(&large, 512 * MIB));
	ck_cu(cuMemAlloc(&small, MIB));
	ck_cu(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ck_cu(cuEventCreate(&before, CU_EVENT_DEFAULT));
	ck_cu(cuEventCreate(&after, CU_EVENT_DEFAULT));
	ck_cu(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ck_cu(cuLaunchKernel(move, 8, 1, 1, 32, 1, 1, 0, stream, params, NULL));
	ck_cu(cuStreamEndCapture(stream, &graph));
	large = small;
	ck_cu(cuGraphInstantiate(&exec, graph, 0));
	ck_cu(cuStreamSynchronize(stream));
	ck_cu(cuEventRecord(before, stream));
	ck_cu(cuGraphLaunch(exec, stream));
	ck_cu(cuEventRecord(after, stream));
	ck_cu(cuEventSynchronize(after));
	ck_cu(cuEventElapsedTime(&ms, before, after));
	assert_ms(ms, 512.0 * MIB / MEMORY_RATE * 1e3 + LATENCY_MS);
	ck_cu(cuGraphExecDestroy(exec));
	ck_cu(cuGraphDestroy(graph));
	ck_cu(cuEventDestroy(before));
	ck_cu(cuEventDestroy(after));
	ck_cu(cuStreamDestroy(stream));
}
END_TEST

/* What went out of use long ago says so. */
START_TEST(forms_not_supported)
{
	CUlinkState link;

	ck_cu_is(cuFuncSetBlockShape(tiny, 1, 1, 1), CUDA_ERROR_NOT_SUPPORTED);
	ck_cu_is(cuParamSetSize(tiny, 0), CUDA_ERROR_NOT_SUPPORTED);
	ck_cu_is(cuLaunch(tiny), CUDA_ERROR_NOT_SUPPORTED);
	ck_cu_is(cuLaunchGrid(tiny, 1, 1), CUDA_ERROR_NOT_SUPPORTED);
	ck_cu_is(cuLaunchCooperativeKernelMultiDevice(NULL, 0, 0),
	        CUDA_ERROR_NOT_SUPPORTED);
	ck_cu_is(cuLinkCreate(0, NULL, NULL, &link), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

/* Host time of a launch with 4,000 bytes of parameters, all pointers. */
START_TEST(host_time_of_a_launch)
{
	enum { LAUNCHES = 2000, POINTERS = 500 };
	uint64_t pointers[POINTERS];
	void *params[] = {pointers};
	struct timespec from, to;
	CUdeviceptr memory;
	double us;

	ck_cu(cuMemAlloc(&memory, 64 * MIB));
	for (int i = 0; i < POINTERS; i++)
		pointers[i] = memory + (uint64_t)i * 512;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < LAUNCHES; i++)
		ck_cu(cuLaunchKernel(
		        bulky, 8, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	ck_cu(cuCtxSynchronize());
	clock_gettime(CLOCK_MONOTONIC, &to);
	us = ((double)(to.tv_sec - from.tv_sec) * 1e9 +
	             (double)(to.tv_nsec - from.tv_nsec)) /
	     1e3 / LAUNCHES;
	printf("%.1f us a launch of %d pointers\n", us, POINTERS);
	/* Loose: sanitizers and a busy machine take their share. */
	ck_assert_double_lt(us, 2000);
	ck_cu(cuMemFree(memory));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("code_launch");
	TCase *tests = tcase_create("launches");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, unknown_kernel_costs_its_blocks);
	tcase_add_test(tests, gemm_by_the_roofline);
	tcase_add_test(tests, flash_attention_by_the_roofline);
	tcase_add_test(tests, refused_launches);
	tcase_add_test(tests, launch_forms);
	tcase_add_test(tests, kernel_handle_as_function);
	tcase_add_test(tests, captured_launch);
	tcase_add_test(tests, forms_not_supported);
	tcase_add_test(tests, host_time_of_a_launch);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
