/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the simulated cuBLAS launches, call by call, on the recording driver:
 * kernels, parameters, workspace, and documented errors.
 */
#include "blas_recorder.h"

#include <check.h>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/blas/simblas_params.h"

#define MIB ((size_t)1 << 20)

static struct recorder *record;
static cublasHandle_t handle;

static void *const A = (void *)0x10000000, *const B = (void *)0x20000000;
static void *const C = (void *)0x30000000, *const D = (void *)0x40000000;
static void *const BIAS = (void *)0x50000000, *const AUX = (void *)0x60000000;
static void *const WORKSPACE = (void *)0x70000000;
static const float one = 1.0f, zero = 0.0f;

static void setup(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	ck_assert_ptr_nonnull(library);
	record = dlsym(library, "recorder");
	ck_assert_msg(record, "libcuda.so.1 is not the recording one");
	memset(record, 0, sizeof(*record));
	record->sm_count = 108;
	record->compute_major = 8;
	ck_assert_int_eq(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
}

static void teardown(void)
{
	ck_assert_int_eq(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

static const struct recorder_launch *launch_named(
        unsigned index, const char *kernel)
{
	ck_assert_uint_gt(record->launch_count, index);
	ck_assert_str_eq(record->launches[index].kernel, kernel);
	return &record->launches[index];
}

static struct simblas_gemm gemm_params(unsigned index, const char *kernel)
{
	const struct recorder_launch *launch = launch_named(index, kernel);
	struct simblas_gemm p;

	ck_assert_uint_eq(launch->params_bytes, SIMBLAS_GEMM_BYTES);
	memset(&p, 0, sizeof(p));
	memcpy(&p, launch->params, launch->params_bytes);
	return p;
}

static cublasStatus_t gemm_ex(int m, int n, int k, cudaDataType type,
        cudaDataType out_type, cublasComputeType_t compute)
{
	return cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &one, A,
	        type, k, B, type, k, &zero, C, out_type, m, compute,
	        CUBLAS_GEMM_DEFAULT_TENSOR_OP);
}

START_TEST(gemm_carries_operands_and_scalars)
{
	const float alpha = 0.5f, beta = 2.0f;
	struct simblas_operand operands[SIMBLAS_MAX_OPERANDS];
	struct simblas_gemm p;

	ck_assert_int_eq(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 96, 40,
	                         32, &alpha, A, CUDA_R_16BF, 100, B,
	                         CUDA_R_16BF, 48, &beta, C, CUDA_R_16BF, 128,
	                         CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(record->launch_count, 1);
	p = gemm_params(0, "simblas_gemm_bf16");
	ck_assert_uint_eq(p.a, (uintptr_t)A);
	ck_assert_uint_eq(p.b, (uintptr_t)B);
	ck_assert_uint_eq(p.c, (uintptr_t)C);
	ck_assert_uint_eq(p.d, (uintptr_t)C);
	ck_assert_uint_eq(p.workspace, 0);
	ck_assert_uint_eq(p.m, 96);
	ck_assert_uint_eq(p.n, 40);
	ck_assert_uint_eq(p.k, 32);
	ck_assert_uint_eq(p.batch, 1);
	ck_assert_int_eq(p.lda, 100);
	ck_assert_int_eq(p.ldb, 48);
	ck_assert_int_eq(p.ldd, 128);
	ck_assert_uint_eq(p.trans_a, CUBLAS_OP_N);
	ck_assert_uint_eq(p.trans_b, CUBLAS_OP_T);
	ck_assert_uint_eq(p.type_a, CUDA_R_16BF);
	ck_assert_double_eq(p.alpha_re, 0.5);
	ck_assert_double_eq(p.beta_re, 2.0);
	ck_assert_double_eq(simblas_gemm_flops(&p, SIMBLAS_GEMM, SIMBLAS_BF16),
	        2.0 * 96 * 40 * 32);

	/* a 96x32 ld 100, b 40x32 ld 48, c and d 96x40 ld 128 */
	ck_assert_uint_eq(simblas_gemm_operands(&p, SIMBLAS_GEMM, operands), 4);
	ck_assert_uint_eq(operands[0].bytes, (31 * 100 + 96) * 2);
	ck_assert_uint_eq(operands[0].payload_bytes, 96 * 32 * 2);
	ck_assert_uint_eq(operands[1].bytes, (31 * 48 + 40) * 2);
	ck_assert_uint_eq(operands[2].bytes, (39 * 128 + 96) * 2);
	ck_assert_uint_eq(operands[2].roles, SIMBLAS_READ);
	ck_assert_uint_eq(operands[3].address, (uintptr_t)C);
	ck_assert_uint_eq(operands[3].roles, SIMBLAS_WRITE);
}
END_TEST

START_TEST(zero_beta_does_not_read_c)
{
	struct simblas_gemm p;

	ck_assert_int_eq(
	        gemm_ex(64, 64, 64, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_SUCCESS);
	p = gemm_params(0, "simblas_gemm_f32");
	ck_assert_uint_eq(p.c, (uintptr_t)C);
	ck_assert(!simblas_gemm_reads_c(&p));
}
END_TEST

START_TEST(types_and_math_mode_choose_the_class)
{
	static const struct {
		cudaDataType type, out_type;
		cublasComputeType_t compute;
		cublasMath_t mode;
		const char *kernel;
	} cases[] = {
	        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F,
	                CUBLAS_DEFAULT_MATH, "simblas_gemm_f32"},
	        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F,
	                CUBLAS_TF32_TENSOR_OP_MATH, "simblas_gemm_tf32"},
	        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
	                CUBLAS_DEFAULT_MATH, "simblas_gemm_tf32"},
	        {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F,
	                CUBLAS_DEFAULT_MATH, "simblas_gemm_f16"},
	        {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F,
	                CUBLAS_DEFAULT_MATH, "simblas_gemm_bf16"},
	        {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUBLAS_DEFAULT_MATH,
	                "simblas_gemm_i8"},
	};
	const int mode_only =
	        ~(int)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
	cublasMath_t mode;
	unsigned i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_eq(cublasSetMathMode(handle,
		                         (cublasMath_t)((int)cases[i].mode |
		                                        ~mode_only)),
		        CUBLAS_STATUS_SUCCESS);
		ck_assert_int_eq(gemm_ex(64, 64, 64, cases[i].type,
		                         cases[i].out_type, cases[i].compute),
		        CUBLAS_STATUS_SUCCESS);
		launch_named(i, cases[i].kernel);
		ck_assert_int_eq(cublasGetMathMode(handle, &mode),
		        CUBLAS_STATUS_SUCCESS);
		ck_assert_int_eq((int)mode & mode_only, cases[i].mode);
	}
}
END_TEST

START_TEST(few_tiles_and_long_k_are_cut)
{
	struct simblas_operand operands[SIMBLAS_MAX_OPERANDS];
	struct simblas_gemm part, reduce;

	ck_assert_int_eq(cublasSetWorkspace(handle, WORKSPACE, 8 * MIB),
	        CUBLAS_STATUS_SUCCESS);
	/* 1 x 2 tiles; 16384 / 1024 parts fit into 8 MiB of 256 KiB each. */
	ck_assert_int_eq(gemm_ex(256, 256, 16384, CUDA_R_16BF, CUDA_R_16BF,
	                         CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(record->launch_count, 2);
	ck_assert_uint_eq(record->alloc_count, 0);
	part = gemm_params(0, "simblas_gemm_splitk_bf16");
	reduce = gemm_params(1, "simblas_splitk_reduce_bf16");
	ck_assert_uint_eq(part.splits, 16);
	ck_assert_uint_eq(part.workspace, (uintptr_t)WORKSPACE);
	ck_assert_uint_eq(part.workspace_bytes, 16 * 256 * 256 * 4);
	ck_assert_uint_eq(part.a, (uintptr_t)A);
	ck_assert_uint_eq(part.d, 0);
	ck_assert_uint_eq(reduce.a, 0);
	ck_assert_uint_eq(reduce.d, (uintptr_t)C);
	ck_assert_uint_eq(
	        simblas_gemm_operands(&part, SIMBLAS_GEMM_SPLITK, operands), 3);
	ck_assert_uint_eq(operands[2].roles, SIMBLAS_WRITE);
	ck_assert_uint_eq(
	        simblas_gemm_operands(&reduce, SIMBLAS_SPLITK_REDUCE, operands),
	        2);
	ck_assert_uint_eq(operands[0].roles, SIMBLAS_WRITE);
	ck_assert_uint_eq(operands[1].roles, SIMBLAS_READ);

	/* Room for three parts only. */
	ck_assert_int_eq(
	        cublasSetWorkspace(handle, WORKSPACE, 3 * 256 * 1024 + 1024),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(gemm_ex(256, 256, 16384, CUDA_R_16BF, CUDA_R_16BF,
	                         CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_SUCCESS);
	part = gemm_params(2, "simblas_gemm_splitk_bf16");
	ck_assert_uint_eq(part.splits, 3);
}
END_TEST

START_TEST(own_workspace_is_made_once_when_needed_and_freed)
{
	unsigned i;

	ck_assert_int_eq(gemm_ex(4096, 4096, 4096, CUDA_R_16BF, CUDA_R_16BF,
	                         CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(record->alloc_count, 0);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(gemm_ex(128, 128, 8192, CUDA_R_32F, CUDA_R_32F,
		                         CUBLAS_COMPUTE_32F),
		        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(record->launch_count, 1 + 3 * 2);
	ck_assert_uint_eq(record->alloc_count, 1);
	ck_assert_uint_eq(record->alloc_bytes, 4 * MIB);
	ck_assert_int_eq(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(record->free_count, 1);
	ck_assert_int_eq(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
}
END_TEST

START_TEST(without_memory_nothing_is_cut)
{
	record->no_memory = true;
	ck_assert_int_eq(gemm_ex(128, 128, 8192, CUDA_R_32F, CUDA_R_32F,
	                         CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(record->launch_count, 1);
	launch_named(0, "simblas_gemm_f32");
}
END_TEST

START_TEST(first_call_may_come_while_a_stream_captures)
{
	record->capturing = true;
	ck_assert_int_eq(gemm_ex(128, 128, 8192, CUDA_R_32F, CUDA_R_32F,
	                         CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_SUCCESS);
	launch_named(0, "simblas_gemm_splitk_f32");
	ck_assert_uint_eq(record->module_count, 1);
	ck_assert_uint_eq(record->alloc_count, 1);
	ck_assert_int_eq(record->capture_mode, 0); /* as it was before */
}
END_TEST

START_TEST(a_new_stream_takes_the_lent_workspace_away)
{
	cudaStream_t stream = (cudaStream_t)(uintptr_t)0x99, got;

	ck_assert_int_eq(cublasSetWorkspace(handle, WORKSPACE, 8 * MIB),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(
	        cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(cublasGetStream(handle, &got), CUBLAS_STATUS_SUCCESS);
	ck_assert_ptr_eq(got, stream);
	ck_assert_int_eq(gemm_ex(128, 128, 8192, CUDA_R_32F, CUDA_R_32F,
	                         CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(record->alloc_count, 1);
	ck_assert_ptr_eq(record->launches[0].stream, stream);
}
END_TEST

START_TEST(batched_calls_pass_strides_or_arrays)
{
	struct simblas_operand operands[SIMBLAS_MAX_OPERANDS];
	struct simblas_gemm p;

	ck_assert_int_eq(
	        cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 64,
	                32, 16, &one, A, CUDA_R_16F, 64, 2048, B, CUDA_R_16F,
	                16, 512, &zero, C, CUDA_R_16F, 64, 4096, 12,
	                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
	        CUBLAS_STATUS_SUCCESS);
	p = gemm_params(0, "simblas_gemm_strided_f16");
	ck_assert_uint_eq(p.batch, 12);
	ck_assert_int_eq(p.stride_d, 4096);
	ck_assert_uint_eq(
	        simblas_gemm_operands(&p, SIMBLAS_GEMM_STRIDED, operands), 3);
	ck_assert_int_eq(operands[0].step_bytes, 4096);
	ck_assert_uint_eq(operands[0].count, 12);
	ck_assert(!operands[0].indirect);

	ck_assert_int_eq(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N,
	                         64, 32, 16, &one, (const float *const *)A, 64,
	                         (const float *const *)B, 16, &zero,
	                         (float *const *)C, 64, 5),
	        CUBLAS_STATUS_SUCCESS);
	p = gemm_params(1, "simblas_gemm_batched_f32");
	ck_assert_uint_eq(p.a, (uintptr_t)A);
	ck_assert_uint_eq(
	        simblas_gemm_operands(&p, SIMBLAS_GEMM_BATCHED, operands), 3);
	ck_assert(operands[2].indirect);
	ck_assert_uint_eq(operands[2].count, 5);
}
END_TEST

START_TEST(device_scalars_are_passed_as_pointers)
{
	struct simblas_gemm p;

	ck_assert_int_eq(
	        cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8,
	                         BIAS, A, 8, B, 8, AUX, C, 8),
	        CUBLAS_STATUS_SUCCESS);
	p = gemm_params(0, "simblas_gemm_f32");
	ck_assert_uint_eq(p.alpha_ptr, (uintptr_t)BIAS);
	ck_assert_uint_eq(p.beta_ptr, (uintptr_t)AUX);
	ck_assert(simblas_gemm_reads_c(&p));
}
END_TEST

START_TEST(half_scalars_are_read_as_half)
{
	const uint16_t alpha = 0x3800, beta = 0xc100; /* 0.5 and -2.5 */
	struct simblas_gemm p;

	ck_assert_int_eq(
	        cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &alpha,
	                A, CUDA_R_16F, 8, B, CUDA_R_16F, 8, &beta, C,
	                CUDA_R_16F, 8, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT),
	        CUBLAS_STATUS_SUCCESS);
	p = gemm_params(0, "simblas_gemm_f16");
	ck_assert_double_eq(p.alpha_re, 0.5);
	ck_assert_double_eq(p.beta_re, -2.5);
}
END_TEST

START_TEST(host_results_are_copied_out_and_waited_for)
{
	struct simblas_vec p;
	float result = 1.0f;

	ck_assert_int_eq(cublasSetWorkspace(handle, WORKSPACE, MIB),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(cublasSdot(handle, 1000, A, 1, B, 2, &result),
	        CUBLAS_STATUS_SUCCESS);
	memcpy(&p, launch_named(0, "simblas_dot")->params, sizeof(p));
	ck_assert_uint_eq(p.result, (uintptr_t)WORKSPACE);
	ck_assert_int_eq(p.n, 1000);
	ck_assert_int_eq(p.incy, 2);
	ck_assert_uint_eq(record->copies_to_host, 1);
	ck_assert_uint_eq(record->synchronizations, 1);
	ck_assert_float_eq(result, 0.0f);

	ck_assert_int_eq(
	        cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(
	        cublasSdot(handle, 1000, A, 1, B, 2, D), CUBLAS_STATUS_SUCCESS);
	memcpy(&p, launch_named(1, "simblas_dot")->params, sizeof(p));
	ck_assert_uint_eq(p.result, (uintptr_t)D);
	ck_assert_uint_eq(record->synchronizations, 1);
}
END_TEST

START_TEST(gemv_carries_its_operands)
{
	struct simblas_gemv p;

	ck_assert_int_eq(cublasSgemv(handle, CUBLAS_OP_T, 300, 200, &one, A,
	                         304, B, 1, &zero, C, 1),
	        CUBLAS_STATUS_SUCCESS);
	memcpy(&p, launch_named(0, "simblas_gemv_f32")->params, sizeof(p));
	ck_assert_uint_eq(p.a, (uintptr_t)A);
	ck_assert_uint_eq(p.y, (uintptr_t)C);
	ck_assert_uint_eq(p.m, 300);
	ck_assert_int_eq(p.lda, 304);
	ck_assert_uint_eq(p.trans, CUBLAS_OP_T);
}
END_TEST

START_TEST(bad_arguments_have_documented_statuses)
{
	cublasMath_t mode;
	int version;

	ck_assert_int_eq(cublasSgemm(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1,
	                         &one, A, 1, B, 1, &zero, C, 1),
	        CUBLAS_STATUS_NOT_INITIALIZED);
	ck_assert_int_eq(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, 1, 1,
	                         &one, A, 1, B, 1, &zero, C, 1),
	        CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_int_eq(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 1, 1,
	                         &one, A, 7, B, 1, &zero, C, 8),
	        CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_int_eq(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 1, 1,
	                         NULL, A, 8, B, 1, &zero, C, 8),
	        CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_int_eq(
	        gemm_ex(8, 8, 8, CUDA_R_64F, CUDA_R_16F, CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_NOT_SUPPORTED);
	ck_assert_int_eq(
	        cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER,
	                CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 4, 4, &one, A, 4, B, 4),
	        CUBLAS_STATUS_NOT_SUPPORTED);
	ck_assert_int_eq(cublasSetWorkspace(handle, (char *)WORKSPACE + 8, MIB),
	        CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_int_eq(
	        cublasGetMathMode(NULL, &mode), CUBLAS_STATUS_NOT_INITIALIZED);
	/* An empty product is no error and no launch. */
	ck_assert_int_eq(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 4,
	                         &one, A, 1, B, 4, &zero, C, 1),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(record->launch_count, 0);
	ck_assert_int_eq(
	        cublasGetVersion(handle, &version), CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq((size_t)version, cublasLtGetVersion());
	ck_assert_str_eq(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED),
	        "CUBLAS_STATUS_NOT_SUPPORTED");
}
END_TEST

/* Everything that calls the driver, from handle to handle. */
static cublasStatus_t fault_scenario(void)
{
	cublasHandle_t h;
	cublasStatus_t status;
	float result;

	status = cublasCreate(&h);
	if (status != CUBLAS_STATUS_SUCCESS)
		return status;
	status = cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 128, 128, 8192, &one,
	        A, 128, B, 8192, &zero, C, 128);
	if (status == CUBLAS_STATUS_SUCCESS)
		status = cublasSdot(h, 1000, A, 1, B, 1, &result);
	ck_assert_int_eq(cublasDestroy(h), CUBLAS_STATUS_SUCCESS);
	return status;
}

/*
 * Fails the scenario's first call, then its second and so on until it makes
 * fewer calls, and returns how many it makes. Only the search for a workspace,
 * five calls at most, and the three around a handle's end and a module's load
 * may fail without notice: the product is not cut then.
 */
static unsigned fault_loop(void)
{
	cublasStatus_t status;
	unsigned calls, silent = 0;

	for (calls = 1; calls < 200; calls++) {
		record->fail_after = calls;
		status = fault_scenario();
		ck_assert_uint_eq(record->alloc_count, record->free_count);
		/* One module lives on, once a load came through. */
		ck_assert_uint_le(
		        record->module_count - record->unload_count, 1);
		if (record->fail_after)
			break;
		silent += status == CUBLAS_STATUS_SUCCESS;
	}
	ck_assert_int_eq(status, CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_le(silent, 5 + 3);
	return calls - 1;
}

START_TEST(each_failing_driver_call_is_reported_and_leaks_nothing)
{
	/* Until the module is loaded, with a look-up for each kernel. */
	ck_assert_uint_gt(fault_loop(), 50);
	/* With the module there: the calls of every day. */
	ck_assert_uint_ge(fault_loop(), 12);
	record->fail_after = 0;
	record->launch_count = 0;
	ck_assert_int_eq(fault_scenario(), CUBLAS_STATUS_SUCCESS);
	launch_named(0, "simblas_gemm_splitk_f32");
	launch_named(2, "simblas_dot");
}
END_TEST

/* The problem of the Lt cases: d = a^T b, bf16, m x n x k. */
struct lt {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulPreference_t pref;
};

static void lt_init(struct lt *lt, uint64_t m, uint64_t n, uint64_t k)
{
	const int32_t trans = CUBLAS_OP_T;

	ck_assert_int_eq(cublasLtMatmulDescCreate(
	                         &lt->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(
	        cublasLtMatmulDescSetAttribute(lt->desc,
	                CUBLASLT_MATMUL_DESC_TRANSA, &trans, sizeof(trans)),
	        CUBLAS_STATUS_SUCCESS);
	cublasLtMatrixLayoutCreate(&lt->a, CUDA_R_16BF, k, m, (int64_t)k);
	cublasLtMatrixLayoutCreate(&lt->b, CUDA_R_16BF, k, n, (int64_t)k);
	cublasLtMatrixLayoutCreate(&lt->d, CUDA_R_16BF, m, n, (int64_t)m);
	cublasLtMatmulPreferenceCreate(&lt->pref);
}

static void lt_finish(struct lt *lt)
{
	cublasLtMatmulPreferenceDestroy(lt->pref);
	cublasLtMatrixLayoutDestroy(lt->d);
	cublasLtMatrixLayoutDestroy(lt->b);
	cublasLtMatrixLayoutDestroy(lt->a);
	cublasLtMatmulDescDestroy(lt->desc);
}

static void lt_epilogue(struct lt *lt, cublasLtEpilogue_t epilogue)
{
	const int64_t ld = 1024;

	ck_assert_int_eq(cublasLtMatmulDescSetAttribute(lt->desc,
	                         CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
	                         sizeof(epilogue)),
	        CUBLAS_STATUS_SUCCESS);
	cublasLtMatmulDescSetAttribute(lt->desc,
	        CUBLASLT_MATMUL_DESC_BIAS_POINTER, &BIAS, sizeof(BIAS));
	cublasLtMatmulDescSetAttribute(lt->desc,
	        CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &AUX, sizeof(AUX));
	cublasLtMatmulDescSetAttribute(lt->desc,
	        CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof(ld));
}

/* PyTorch passes its cublasHandle_t as the Lt handle, so do these cases. */
static cublasStatus_t lt_run(struct lt *lt, const cublasLtMatmulAlgo_t *algo,
        void *workspace, size_t bytes)
{
	return cublasLtMatmul((cublasLtHandle_t)handle, lt->desc, &one, A,
	        lt->a, B, lt->b, &zero, D, lt->d, D, lt->d, algo, workspace,
	        bytes, NULL);
}

START_TEST(lt_epilogues_become_operands)
{
	static const struct {
		cublasLtEpilogue_t epilogue;
		unsigned bias_role, aux_role; /* 0: not an operand */
	} cases[] = {
	        {CUBLASLT_EPILOGUE_DEFAULT, 0, 0},
	        {CUBLASLT_EPILOGUE_BIAS, SIMBLAS_READ, 0},
	        {CUBLASLT_EPILOGUE_RELU_BIAS, SIMBLAS_READ, 0},
	        {CUBLASLT_EPILOGUE_GELU_BIAS, SIMBLAS_READ, 0},
	        {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, SIMBLAS_READ, SIMBLAS_WRITE},
	        {CUBLASLT_EPILOGUE_RELU_AUX, 0, SIMBLAS_WRITE},
	        {CUBLASLT_EPILOGUE_DRELU_BGRAD, SIMBLAS_WRITE, SIMBLAS_READ},
	        {CUBLASLT_EPILOGUE_DGELU, 0, SIMBLAS_READ},
	        {CUBLASLT_EPILOGUE_BGRADB, SIMBLAS_WRITE, 0},
	};
	struct simblas_operand operands[SIMBLAS_MAX_OPERANDS];
	unsigned i, j, count;
	struct lt lt;

	lt_init(&lt, 1024, 512, 256);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned bias_role = 0, aux_role = 0;
		struct simblas_gemm p;

		lt_epilogue(&lt, cases[i].epilogue);
		ck_assert_int_eq(
		        lt_run(&lt, NULL, NULL, 0), CUBLAS_STATUS_SUCCESS);
		p = gemm_params(i, "simblas_gemm_bf16");
		ck_assert_uint_eq(p.epilogue, cases[i].epilogue);
		count = simblas_gemm_operands(&p, SIMBLAS_GEMM, operands);
		for (j = 0; j < count; j++) {
			if (operands[j].address == (uintptr_t)BIAS)
				bias_role = operands[j].roles;
			if (operands[j].address == (uintptr_t)AUX)
				aux_role = operands[j].roles;
		}
		ck_assert_uint_eq(bias_role, cases[i].bias_role);
		ck_assert_uint_eq(aux_role, cases[i].aux_role);
	}
	lt_finish(&lt);
}
END_TEST

START_TEST(lt_heuristic_keeps_to_the_workspace)
{
	cublasLtMatmulHeuristicResult_t results[8], checked;
	const uint64_t bytes = 4 * MIB;
	struct simblas_gemm p;
	int32_t splits;
	struct lt lt;
	int i, count;

	lt_init(&lt, 256, 256, 16384);
	/* The default preference allows no workspace: one pass only. */
	ck_assert_int_eq(cublasLtMatmulAlgoGetHeuristic(
	                         (cublasLtHandle_t)handle, lt.desc, lt.a, lt.b,
	                         lt.d, lt.d, lt.pref, 1, results, &count),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(count, 1);
	ck_assert_uint_eq(results[0].workspaceSize, 0);

	cublasLtMatmulPreferenceSetAttribute(lt.pref,
	        CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
	        sizeof(bytes));
	ck_assert_int_eq(cublasLtMatmulAlgoGetHeuristic(
	                         (cublasLtHandle_t)handle, lt.desc, lt.a, lt.b,
	                         lt.d, lt.d, lt.pref, 8, results, &count),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_ge(count, 2);
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(results[i].state, CUBLAS_STATUS_SUCCESS);
		ck_assert_uint_le(results[i].workspaceSize, bytes);
		ck_assert_float_gt(results[i].wavesCount, 0.0f);
	}
	ck_assert_int_eq(cublasLtMatmulAlgoConfigGetAttribute(&results[0].algo,
	                         CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits,
	                         sizeof(splits), NULL),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_int_eq(splits, 16);
	ck_assert_uint_eq(results[0].workspaceSize, 16 * 256 * 256 * 4);
	ck_assert_int_eq(
	        cublasLtMatmulAlgoCheck((cublasLtHandle_t)handle, lt.desc, lt.a,
	                lt.b, lt.d, lt.d, &results[0].algo, &checked),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(checked.workspaceSize, results[0].workspaceSize);

	ck_assert_int_eq(lt_run(&lt, &results[0].algo, WORKSPACE, bytes),
	        CUBLAS_STATUS_SUCCESS);
	p = gemm_params(0, "simblas_gemm_splitk_bf16");
	ck_assert_uint_eq(p.workspace, (uintptr_t)WORKSPACE);
	launch_named(1, "simblas_splitk_reduce_bf16");
	/* Less workspace than the algorithm needs. */
	ck_assert_int_eq(lt_run(&lt, &results[0].algo, WORKSPACE, MIB),
	        CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_uint_eq(record->launch_count, 2);
	lt_finish(&lt);
}
END_TEST

START_TEST(lt_attributes_are_stored_and_checked)
{
	uint64_t rows = 0;
	int32_t batch = 7, got = 0;
	size_t written = 0;
	struct lt lt;

	lt_init(&lt, 64, 32, 16);
	ck_assert_int_eq(cublasLtMatrixLayoutGetAttribute(lt.d,
	                         CUBLASLT_MATRIX_LAYOUT_ROWS, &rows,
	                         sizeof(rows), &written),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(rows, 64);
	ck_assert_uint_eq(written, sizeof(rows));
	ck_assert_int_eq(cublasLtMatrixLayoutSetAttribute(lt.d,
	                         CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
	                         sizeof(batch)),
	        CUBLAS_STATUS_SUCCESS);
	cublasLtMatrixLayoutGetAttribute(lt.d,
	        CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &got, sizeof(got), NULL);
	ck_assert_int_eq(got, 7);
	/* The batch of d alone contradicts a and b. */
	ck_assert_int_eq(
	        lt_run(&lt, NULL, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_int_eq(cublasLtMatrixLayoutSetAttribute(lt.d,
	                         CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
	                         sizeof(uint64_t)),
	        CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_int_eq(cublasLtMatrixLayoutSetAttribute(lt.d,
	                         (cublasLtMatrixLayoutAttribute_t)99, &batch,
	                         sizeof(batch)),
	        CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_int_eq(
	        cublasLtMatmulDescGetAttribute(lt.desc,
	                CUBLASLT_MATMUL_DESC_EPILOGUE, NULL, 0, &written),
	        CUBLAS_STATUS_SUCCESS);
	ck_assert_uint_eq(written, sizeof(uint32_t));
	ck_assert_int_eq(cublasLtMatmulDescGetAttribute(lt.desc,
	                         CUBLASLT_MATMUL_DESC_EPILOGUE, NULL, 0, NULL),
	        CUBLAS_STATUS_INVALID_VALUE);
	ck_assert_uint_eq(record->launch_count, 0);
	lt_finish(&lt);
}
END_TEST

START_TEST(lt_batches_and_scaled_types)
{
	const int32_t batch = 4;
	const int64_t stride = 64 * 64;
	cublasLtMatrixLayout_t layouts[3];
	struct simblas_gemm p;
	struct lt lt;
	unsigned i;

	lt_init(&lt, 64, 64, 64);
	layouts[0] = lt.a;
	layouts[1] = lt.b;
	layouts[2] = lt.d;
	for (i = 0; i < 3; i++) {
		cublasLtMatrixLayoutSetAttribute(layouts[i],
		        CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
		        sizeof(batch));
		cublasLtMatrixLayoutSetAttribute(layouts[i],
		        CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
		        sizeof(stride));
	}
	ck_assert_int_eq(lt_run(&lt, NULL, NULL, 0), CUBLAS_STATUS_SUCCESS);
	p = gemm_params(0, "simblas_gemm_strided_bf16");
	ck_assert_uint_eq(p.batch, 4);
	ck_assert_int_eq(p.stride_a, stride);
	/* Scaling pointers belong to fp8, which is not there. */
	cublasLtMatmulDescSetAttribute(lt.desc,
	        CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &AUX, sizeof(AUX));
	ck_assert_int_eq(
	        lt_run(&lt, NULL, NULL, 0), CUBLAS_STATUS_NOT_SUPPORTED);
	ck_assert_uint_eq(record->launch_count, 1);
	lt_finish(&lt);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("blas_launches");
	TCase *tcase = tcase_create("recorded");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, gemm_carries_operands_and_scalars);
	tcase_add_test(tcase, zero_beta_does_not_read_c);
	tcase_add_test(tcase, types_and_math_mode_choose_the_class);
	tcase_add_test(tcase, few_tiles_and_long_k_are_cut);
	tcase_add_test(tcase, own_workspace_is_made_once_when_needed_and_freed);
	tcase_add_test(tcase, without_memory_nothing_is_cut);
	tcase_add_test(tcase, first_call_may_come_while_a_stream_captures);
	tcase_add_test(tcase, a_new_stream_takes_the_lent_workspace_away);
	tcase_add_test(tcase, batched_calls_pass_strides_or_arrays);
	tcase_add_test(tcase, device_scalars_are_passed_as_pointers);
	tcase_add_test(tcase, half_scalars_are_read_as_half);
	tcase_add_test(tcase, host_results_are_copied_out_and_waited_for);
	tcase_add_test(tcase, gemv_carries_its_operands);
	tcase_add_test(tcase, bad_arguments_have_documented_statuses);
	tcase_add_test(
	        tcase, each_failing_driver_call_is_reported_and_leaks_nothing);
	tcase_add_test(tcase, lt_epilogues_become_operands);
	tcase_add_test(tcase, lt_heuristic_keeps_to_the_workspace);
	tcase_add_test(tcase, lt_attributes_are_stored_and_checked);
	tcase_add_test(tcase, lt_batches_and_scaled_types);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
