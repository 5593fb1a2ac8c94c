/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Capture and graphs of the runtime, on the simulated device tiny-1g. */
#include <cuda_runtime_api.h>

#include <check.h>
#include <stdlib.h>

#include "tests/simgpu/runtime/registry.h"

enum { BYTES = 1 << 16 };

#define OK(call) ck_assert_int_eq(call, cudaSuccess)

static const char image[] = ".version 8.0\n"
                            ".target sm_75\n"
                            ".address_size 64\n"
                            ".visible .entry scale(\n"
                            "	.param .u64 scale_param_0,\n"
                            "	.param .f32 scale_param_1,\n"
                            "	.param .u32 scale_param_2)\n"
                            ".maxntid 256, 1, 1\n"
                            "{\n"
                            "	ret;\n"
                            "}\n";

static const struct {
	int magic, version;
	const void *data;
	const void *linked;
} wrapper = {0x466243b1, 1, image, NULL};

static char scale_stub;

static void register_all(void)
{
	void **handle = __cudaRegisterFatBinary((void *)&wrapper);

	__cudaRegisterFunction(handle, &scale_stub, NULL, "scale", -1, NULL,
	        NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
}

static const dim3 grid = {4, 1, 1}, block = {128, 1, 1};

struct arguments {
	void *data;
	float factor;
	int count;
	void *list[3];
};

static void prepare(struct arguments *args)
{
	OK(cudaMalloc(&args->data, 4096));
	args->factor = 2;
	args->count = 1024;
	args->list[0] = &args->data;
	args->list[1] = &args->factor;
	args->list[2] = &args->count;
}

static void count(void *user)
{
	++*(int *)user;
}

START_TEST(captured_work_runs_at_each_launch)
{
	enum cudaStreamCaptureStatus status;
	unsigned long long id = 0;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	size_t nodes = 0;
	void *device;
	int calls = 0;

	OK(cudaMalloc(&device, BYTES));
	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	OK(cudaMemsetAsync(device, 0, BYTES, stream));
	OK(cudaLaunchHostFunc(stream, count, &calls));
	OK(cudaStreamGetCaptureInfo(
	        stream, &status, &id, NULL, NULL, NULL, NULL));
	ck_assert_int_eq(status, cudaStreamCaptureStatusActive);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphGetNodes(graph, NULL, &nodes));
	ck_assert_uint_eq(nodes, 2);
	ck_assert_int_eq(calls, 0);
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	ck_assert_int_eq(calls, 2);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(device));
}
END_TEST

START_TEST(a_kernel_as_a_graph_node)
{
	struct cudaKernelNodeParams params = {
	        .func = &scale_stub, .gridDim = grid, .blockDim = block};
	struct cudaKernelNodeParams got;
	struct arguments args;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	prepare(&args);
	params.kernelParams = args.list;
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	OK(cudaGraphKernelNodeGetParams(node, &got));
	ck_assert_uint_eq(got.gridDim.x, grid.x);
	ck_assert_uint_eq(got.blockDim.x, block.x);
	/* What was read can be set again. */
	OK(cudaGraphKernelNodeSetParams(node, &got));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaDeviceSynchronize());
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rt_graphs");
	TCase *tcase = tcase_create("rt_graphs");
	SRunner *runner;
	int failed;

	setenv("SIMGPU_DEVICE", "tiny-1g", 1);
	register_all();
	tcase_add_test(tcase, captured_work_runs_at_each_launch);
	tcase_add_test(tcase, a_kernel_as_a_graph_node);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
