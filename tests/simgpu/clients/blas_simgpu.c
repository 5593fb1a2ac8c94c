/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuBLAS on the simulated device: launches as its report counts them, times as
 * the roofline has them, and a product of unmapped memory. Each case runs in a
 * process of its own (this program with the case's name), whose report the
 * parent reads.
 */
#include <check.h>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static const float one = 1.0f, zero = 0.0f;

/* ------------------------------------------------------------ the children */

static int failures;

static void expect(int got, int wanted, const char *what)
{
	if (got == wanted)
		return;
	fprintf(stderr, "%s: %d, expected %d\n", what, got, wanted);
	failures++;
}

static CUdeviceptr allocate(size_t bytes)
{
	CUdeviceptr at = 0;

	expect(cuMemAlloc(&at, bytes), CUDA_SUCCESS, "cuMemAlloc");
	return at;
}

static cublasHandle_t begin(void)
{
	cublasHandle_t handle = NULL;
	CUcontext context;

	expect(cuInit(0), CUDA_SUCCESS, "cuInit");
	expect(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS, "retain");
	expect(cuCtxSetCurrent(context), CUDA_SUCCESS, "cuCtxSetCurrent");
	expect(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS, "cublasCreate");
	return handle;
}

static cublasStatus_t square(cublasHandle_t handle, int size, CUdeviceptr a,
        CUdeviceptr b, CUdeviceptr c, cudaDataType type,
        cublasComputeType_t compute)
{
	return cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size,
	        &one, (void *)a, type, size, (void *)b, type, size, &zero,
	        (void *)c, type, size, compute, CUBLAS_GEMM_DEFAULT);
}

/* One launch, two of a cut product, one of pointers, one of Lt, one gemv. */
static void child_launches(void)
{
	cublasHandle_t handle = begin();
	CUdeviceptr a = allocate(64 * MIB), b = allocate(64 * MIB);
	CUdeviceptr c = allocate(64 * MIB), workspace = allocate(8 * MIB);
	CUdeviceptr table = allocate(4096), host[3][2];
	const uint32_t epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;
	cublasLtMatrixLayout_t layout;
	cublasLtMatmulDesc_t desc;

	cublasSetWorkspace(handle, (void *)workspace, 8 * MIB);
	expect(square(handle, 1024, a, b, c, CUDA_R_16BF, CUBLAS_COMPUTE_32F),
	        0, "gemm");
	expect(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, 256, 256, 16384,
	               &one, (void *)a, 256, (void *)b, 256, &zero, (void *)c,
	               256),
	        0, "cut gemm");

	for (int i = 0; i < 2; i++) {
		host[0][i] = a + i * MIB;
		host[1][i] = b + i * MIB;
		host[2][i] = c + i * MIB;
	}
	expect(cuMemcpyHtoD(table, host, sizeof(host)), 0, "cuMemcpyHtoD");
	expect(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64,
	               &one, (void *)table, 64,
	               (void *)(table + sizeof(host[0])), 64, &zero,
	               (void *)(table + 2 * sizeof(host[0])), 64, 2),
	        0, "batched gemm");

	cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE,
	        &epilogue, sizeof(epilogue));
	cublasLtMatmulDescSetAttribute(
	        desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &c, sizeof(c));
	cublasLtMatrixLayoutCreate(&layout, CUDA_R_16F, 512, 512, 512);
	expect(cublasLtMatmul((cublasLtHandle_t)handle, desc, &one, (void *)a,
	               layout, (void *)b, layout, &zero, (void *)(c + MIB),
	               layout, (void *)(c + MIB), layout, NULL, NULL, 0, NULL),
	        0, "cublasLtMatmul");
	cublasLtMatrixLayoutDestroy(layout);
	cublasLtMatmulDescDestroy(desc);

	expect(cublasSgemv(handle, CUBLAS_OP_N, 512, 512, &one, (void *)a, 512,
	               (void *)b, 1, &zero, (void *)c, 1),
	        0, "gemv");
	expect(cuCtxSynchronize(), CUDA_SUCCESS, "cuCtxSynchronize");
	expect(cublasDestroy(handle), 0, "cublasDestroy");
}

static float square_ms(
        cublasHandle_t handle, int size, cublasComputeType_t compute)
{
	size_t bytes = (size_t)size * (size_t)size * 4;
	CUdeviceptr a = allocate(bytes), b = allocate(bytes);
	CUdeviceptr c = allocate(bytes);
	CUevent start, stop;
	float ms = 0;

	cuEventCreate(&start, CU_EVENT_DEFAULT);
	cuEventCreate(&stop, CU_EVENT_DEFAULT);
	expect(cuEventRecord(start, NULL), 0, "cuEventRecord");
	expect(square(handle, size, a, b, c, CUDA_R_32F, compute), 0, "gemm");
	expect(cuEventRecord(stop, NULL), 0, "cuEventRecord");
	expect(cuEventSynchronize(stop), 0, "cuEventSynchronize");
	expect(cuEventElapsedTime(&ms, start, stop), 0, "cuEventElapsedTime");
	cuEventDestroy(start);
	cuEventDestroy(stop);
	cuMemFree(a);
	cuMemFree(b);
	cuMemFree(c);
	return ms;
}

static void expect_ratio(double got, double low, double high, const char *what)
{
	if (got >= low && got <= high)
		return;
	fprintf(stderr, "%s: %g, expected %g to %g\n", what, got, low, high);
	failures++;
}

/* Eight times the work takes eight times as long; an A100's tensor cores do
 * 156 TFLOP/s of tf32 against 19.5 of fp32, and never more than the peak.
 */
static void child_times(void)
{
	cublasHandle_t handle = begin();
	double small, large, tensor;

	small = square_ms(handle, 4096, CUBLAS_COMPUTE_32F);
	large = square_ms(handle, 8192, CUBLAS_COMPUTE_32F);
	tensor = square_ms(handle, 8192, CUBLAS_COMPUTE_32F_FAST_TF32);
	expect_ratio(large / small, 7.8, 8.2, "8192 against 4096");
	expect_ratio(large / tensor, 7.6, 8.4, "fp32 against tf32");
	expect_ratio(2.0 * 8192 * 8192 * 8192 / 19.5e12 * 1e3 / large, 0.5, 1,
	        "share of the peak");
	cublasDestroy(handle);
}

/* The product's error comes with the next synchronisation and stays. */
static void child_unmapped(void)
{
	cublasHandle_t handle = begin();
	CUdeviceptr a = allocate(64 * MIB), b = allocate(64 * MIB);
	CUdeviceptr c = allocate(64 * MIB);

	cuMemFree(b);
	expect(square(handle, 4096, a, b, c, CUDA_R_32F, CUBLAS_COMPUTE_32F), 0,
	        "gemm");
	expect(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS, "synchronise");
	expect(square(handle, 4096, a, a, c, CUDA_R_32F, CUBLAS_COMPUTE_32F),
	        CUBLAS_STATUS_EXECUTION_FAILED, "gemm after the error");
	expect(cublasDestroy(handle), 0, "cublasDestroy");
}

/* The first call of all, with module and workspace, while a stream captures. */
static void child_captured(void)
{
	cublasHandle_t handle = begin();
	CUdeviceptr a = allocate(4 * MIB), b = allocate(4 * MIB);
	CUdeviceptr c = allocate(4 * MIB);
	CUgraphExec exec = NULL;
	CUstream stream;
	CUgraph graph = NULL;
	int i;

	expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0, "stream");
	expect(cublasSetStream(handle, (cudaStream_t)stream), 0, "set stream");
	expect(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0,
	        "begin");
	expect(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 128, 128, 8192,
	               &one, (void *)a, 128, (void *)b, 8192, &zero, (void *)c,
	               128),
	        0, "captured gemm");
	expect(cuStreamEndCapture(stream, &graph), 0, "end");
	expect(cuGraphInstantiate(&exec, graph, 0), 0, "instantiate");
	for (i = 0; i < 3; i++)
		expect(cuGraphLaunch(exec, stream), 0, "launch");
	expect(cuStreamSynchronize(stream), 0, "synchronise");
	cuGraphExecDestroy(exec);
	cuGraphDestroy(graph);
	cublasDestroy(handle);
	cuStreamDestroy(stream);
}

static const struct {
	const char *name;
	void (*run)(void);
} children[] = {
        {"launches", child_launches},
        {"times", child_times},
        {"unmapped", child_unmapped},
        {"captured", child_captured},
};

static int child_main(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(children) / sizeof(children[0]); i++)
		if (!strcmp(children[i].name, name)) {
			children[i].run();
			return failures ? EXIT_FAILURE : EXIT_SUCCESS;
		}
	return EXIT_FAILURE;
}

/* -------------------------------------------------------------- the parent */

static char report_path[] = "/tmp/blas_simgpu.XXXXXX";

/* Runs a child, which must succeed, and returns its report. */
static json_t *run(const char *name)
{
	json_t *report;
	json_error_t error;
	int status, fd;
	pid_t pid;

	memcpy(strrchr(report_path, '.'), ".XXXXXX", 8);
	fd = mkstemp(report_path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		setenv("SIMGPU_REPORT", report_path, 1);
		execl("/proc/self/exe", "blas_simgpu", name, NULL);
		_exit(127);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "case %s: status %#x", name, status);
	report = json_load_file(report_path, 0, &error);
	unlink(report_path);
	ck_assert_msg(report, "report: %s", error.text);
	return report;
}

/* A figure of the first device. */
static long long number(const json_t *report, const char *key)
{
	ck_assert_msg(json_is_integer(json_object_get(report, key)),
	        "the report has no %s", key);
	return json_integer_value(json_object_get(report, key));
}

START_TEST(report_counts_the_launches)
{
	json_t *report = run("launches");

	ck_assert_int_eq(number(report, "launches"), 6);
	ck_assert_int_eq(number(report, "copies"), 1);
	ck_assert_int_eq(number(report, "memory_errors"), 0);
	ck_assert_int_eq(number(report, "unknown_kernels"), 0);
	json_decref(report);
}
END_TEST

START_TEST(times_follow_the_roofline)
{
	json_t *report = run("times");

	ck_assert_int_eq(number(report, "launches"), 3);
	json_decref(report);
}
END_TEST

START_TEST(product_of_unmapped_memory_is_an_error)
{
	json_t *report = run("unmapped");

	ck_assert_int_ge(number(report, "memory_errors"), 1);
	json_decref(report);
}
END_TEST

START_TEST(captured_product_is_replayed)
{
	json_t *report = run("captured");

	ck_assert_int_eq(number(report, "launches"), 3 * 2);
	ck_assert_int_eq(
	        number(report, "allocated_peak_bytes"), (12 + 4) * MIB);
	ck_assert_int_eq(number(report, "memory_errors"), 0);
	json_decref(report);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite;
	TCase *tcase;
	SRunner *runner;
	int failed;

	if (argc > 1)
		return child_main(argv[1]);
	suite = suite_create("blas_simgpu");
	tcase = tcase_create("simulated");
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, report_counts_the_launches);
	tcase_add_test(tcase, times_follow_the_roofline);
	tcase_add_test(tcase, product_of_unmapped_memory_is_an_error);
	tcase_add_test(tcase, captured_product_is_replayed);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
