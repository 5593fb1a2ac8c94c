/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What instances of graphs take of the device's memory. */
#include "mem_client.h"

#include "kernel_client.h"

#define NODE_BYTES ((size_t)10 << 10) /* the setting's default */

static CUfunction kernel;
static CUdeviceptr memory;
static CUstream stream;

static void start(void)
{
	client_start();
	kernel = client_kernel("unheard_of", 1);
	OK(cuMemAlloc(&memory, MIB));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

/* A chain of n launches and n sets. */
static CUgraph captured(unsigned n)
{
	void *params[] = {&memory};
	CUgraph graph;

	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (unsigned i = 0; i < n; i++) {
		OK(cuLaunchKernel(
		        kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
		OK(cuMemsetD8Async(memory, 0, 256, stream));
	}
	OK(cuStreamEndCapture(stream, &graph));
	return graph;
}

static size_t pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

START_TEST(instances_take_memory_for_their_kernels)
{
	CUgraphExec a, b;
	CUgraph graph;
	size_t before;

	start();
	before = client_free_bytes();
	graph = captured(1000);
	ck_assert_uint_eq(client_free_bytes(), before);
	OK(cuGraphInstantiate(&a, graph, 0));
	ck_assert_uint_eq(
	        client_free_bytes(), before - pages(1000 * NODE_BYTES));
	OK(cuGraphInstantiate(&b, graph, 0));
	ck_assert_uint_eq(
	        client_free_bytes(), before - pages(2000 * NODE_BYTES));
	OK(cuGraphLaunch(a, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(a));
	ck_assert_uint_eq(
	        client_free_bytes(), before - pages(1000 * NODE_BYTES));
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(b));
	ck_assert_uint_eq(client_free_bytes(), before);
}
END_TEST

START_TEST(kernels_of_child_graphs_count)
{
	CUgraph outer, inner;
	CUgraphExec exec;
	CUgraphNode node;
	size_t before;

	start();
	before = client_free_bytes();
	inner = captured(500);
	OK(cuGraphCreate(&outer, 0));
	OK(cuGraphAddChildGraphNode(&node, outer, NULL, 0, inner));
	OK(cuGraphAddChildGraphNode(&node, outer, NULL, 0, inner));
	OK(cuGraphInstantiate(&exec, outer, 0));
	ck_assert_uint_eq(
	        client_free_bytes(), before - pages(1000 * NODE_BYTES));
	OK(cuGraphExecDestroy(exec));
	ck_assert_uint_eq(client_free_bytes(), before);
}
END_TEST

START_TEST(an_instance_that_does_not_fit_is_refused)
{
	CUgraphExec exec = NULL;
	CUdeviceptr rest;
	CUgraph graph;
	size_t left;

	start();
	graph = captured(1000);
	left = client_free_bytes();
	OK(cuMemAlloc(&rest, left - PAGE));
	FAILS(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_ptr_null(exec);
	OK(cuMemFree(rest));
	ck_assert_uint_eq(client_free_bytes(), left);
	OK(cuGraphInstantiate(&exec, graph, 0));
}
END_TEST

START_TEST(memory_of_instances_goes_with_the_context)
{
	CUgraphExec exec;
	size_t before;

	start();
	before = client_free_bytes();
	OK(cuGraphInstantiate(&exec, captured(1000), 0));
	OK(cuMemFree(memory));
	OK(cuDevicePrimaryCtxReset(0));
	client_start();
	ck_assert_uint_ge(client_free_bytes(), before);
	before = client_free_bytes();
	OK(cuGraphExecDestroy(exec));
	ck_assert_uint_eq(client_free_bytes(), before);
}
END_TEST

START_TEST(the_setting_says_how_much)
{
	CUgraphExec exec;
	size_t before;

	setenv("SIMGPU_GRAPH_NODE_BYTES", _i ? "64KiB" : "0", 1);
	start();
	before = client_free_bytes();
	OK(cuGraphInstantiate(&exec, captured(1000), 0));
	ck_assert_uint_eq(client_free_bytes(),
	        before - (_i ? pages(1000 * ((size_t)64 << 10)) : 0));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("graph");

	tcase_add_test(tests, instances_take_memory_for_their_kernels);
	tcase_add_test(tests, kernels_of_child_graphs_count);
	tcase_add_test(tests, an_instance_that_does_not_fit_is_refused);
	tcase_add_test(tests, memory_of_instances_goes_with_the_context);
	tcase_add_loop_test(tests, the_setting_says_how_much, 0, 2);
	return client_run(tests, "mem_graph");
}
