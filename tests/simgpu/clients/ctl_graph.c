/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stream capture and graphs: what a capture records, what breaks it, and what
 * a launch does in virtual time.
 */
#include "ctl_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static CUdeviceptr device;
static void *pinned;
static CUstream stream, side;

static void start(void)
{
	client_start("a100-80g-pcie4");
	device = client_device(COPY_BYTES);
	pinned = client_pinned(COPY_BYTES);
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	side = client_stream(CU_STREAM_NON_BLOCKING);
}

static void begin(CUstreamCaptureMode mode)
{
	OK(cuStreamBeginCapture_v2(stream, mode));
}

static void copy_to(CUstream target)
{
	OK(cuMemcpyHtoDAsync_v2(device, pinned, COPY_BYTES, target));
}

static void copy_from(CUstream target)
{
	OK(cuMemcpyDtoHAsync_v2(pinned, device, COPY_BYTES, target));
}

static void small_set(CUstream target)
{
	OK(cuMemsetD8Async(device, 0, 256, target));
}

/* The side stream joins the capture, and is joined again by the caller. */
static void fork_side(void)
{
	CUevent event = client_event();

	OK(cuEventRecord(event, stream));
	OK(cuStreamWaitEvent(side, event, 0));
}

static void join_side(void)
{
	CUevent event = client_event();

	OK(cuEventRecord(event, side));
	OK(cuStreamWaitEvent(stream, event, 0));
}

static size_t node_count(CUgraph graph)
{
	size_t count = 0;

	OK(cuGraphGetNodes(graph, NULL, &count));
	return count;
}

static size_t edge_count(CUgraph graph)
{
	size_t count = 0;

	OK(cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &count));
	return count;
}

/* Virtual time of one launch. */
static double launch_us(CUgraphExec exec)
{
	CUevent before, after;

	OK(cuStreamSynchronize(stream));
	before = client_mark(stream);
	OK(cuGraphLaunch(exec, stream));
	after = client_mark(stream);
	return client_us(before, after);
}

/* set -> (copy up, copy down side by side) -> set */
static CUgraph diamond(void)
{
	CUgraph graph;

	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	small_set(stream);
	fork_side();
	copy_to(stream);
	copy_from(side);
	join_side();
	small_set(stream);
	OK(cuStreamEndCapture(stream, &graph));
	return graph;
}

START_TEST(a_capture_becomes_a_graph_with_its_branches)
{
	CUgraphNode nodes[8], roots[8];
	CUgraphNodeType type;
	size_t count = 8;
	CUgraph graph;

	start();
	graph = diamond();
	ck_assert_uint_eq(node_count(graph), 4);
	ck_assert_uint_eq(edge_count(graph), 4);
	OK(cuGraphGetRootNodes(graph, roots, &count));
	ck_assert_uint_eq(count, 1);
	ck_assert_ptr_null(roots[1]);
	OK(cuGraphNodeGetType(roots[0], &type));
	ck_assert_int_eq(type, CU_GRAPH_NODE_TYPE_MEMSET);
	count = 8;
	OK(cuGraphNodeGetDependentNodes_v2(roots[0], nodes, NULL, &count));
	ck_assert_uint_eq(count, 2);
	OK(cuGraphNodeGetType(nodes[1], &type));
	ck_assert_int_eq(type, CU_GRAPH_NODE_TYPE_MEMCPY);
}
END_TEST

START_TEST(nothing_runs_while_capturing)
{
	CUstreamCaptureStatus status;
	cuuint64_t id = 0;
	const CUgraphNode *deps;
	CUgraph graph, now;
	size_t count = 9;

	start();
	OK(cuStreamIsCapturing(stream, &status));
	ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	copy_to(stream);
	OK(cuStreamGetCaptureInfo_v3(
	        stream, &status, &id, &now, &deps, NULL, &count));
	ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	ck_assert_uint_gt(id, 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(node_count(now), 1);
	OK(cuStreamEndCapture(stream, &graph));
	ck_assert_ptr_eq(graph, now);
	OK(cuStreamQuery(stream)); /* no copy is under way */
	OK(cuGraphDestroy(graph));
	FAILS(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Both copies at once: 2 ms at 21.25 instead of 25 GB/s. */
START_TEST(a_launch_runs_its_branches_side_by_side)
{
	CUgraphExec exec;
	double us;

	start();
	OK(cuGraphInstantiateWithFlags(&exec, diamond(), 0));
	us = launch_us(exec);
	ck_assert_double_gt(us, 10 + 50e6 / 21.25e9 * 1e6);
	ck_assert_double_lt(us, 10 + 50e6 / 21.25e9 * 1e6 + 30);
	ck_assert_double_eq_tol(launch_us(exec), us, 0.01);
	OK(cuGraphExecDestroy(exec));
	FAILS(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(launches_of_one_instance_follow_each_other)
{
	CUgraphExec exec;
	CUevent first, second;

	start();
	OK(cuGraphInstantiateWithFlags(&exec, diamond(), 0));
	OK(cuGraphLaunch(exec, stream));
	first = client_mark(stream);
	OK(cuGraphLaunch(exec, side));
	second = client_mark(side);
	ck_assert_double_gt(client_us(first, second), 2000);
}
END_TEST

/* -------------------------------------------------------------- broken
 * captures */

START_TEST(waiting_for_a_capturing_stream_breaks_it)
{
	CUstreamCaptureStatus status;
	CUgraph graph = (CUgraph)&status;

	start();
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	FAILS(cuStreamSynchronize(stream),
	        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	OK(cuStreamIsCapturing(stream, &status));
	ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	FAILS(cuMemsetD8Async(device, 0, 256, stream),
	        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	FAILS(cuStreamEndCapture(stream, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	ck_assert_ptr_null(graph);
	small_set(stream); /* captures no more */
	OK(cuStreamSynchronize(stream));
}
END_TEST

START_TEST(null_stream_may_not_wait_for_a_capture)
{
	CUstream blocking;
	CUgraph graph;

	start();
	FAILS(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
	        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	blocking = client_stream(CU_STREAM_DEFAULT);
	OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
	FAILS(cuMemsetD8Async(device, 0, 256, NULL),
	        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	FAILS(cuStreamEndCapture(blocking, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	/* A non-blocking stream's capture is none of its business. */
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	small_set(NULL);
	OK(cuStreamEndCapture(stream, &graph));
}
END_TEST

START_TEST(forked_work_must_be_joined)
{
	CUgraph graph;

	start();
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	small_set(stream);
	fork_side();
	small_set(side);
	FAILS(cuStreamEndCapture(side, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	FAILS(cuStreamEndCapture(stream, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	small_set(stream);
	fork_side();
	small_set(side);
	FAILS(cuStreamEndCapture(stream, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	ck_assert_ptr_null(graph);
}
END_TEST

START_TEST(captures_do_not_mix_with_other_work)
{
	CUevent outside;
	CUgraph graph;

	start();
	small_set(side);
	outside = client_mark(side);
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	FAILS(cuStreamWaitEvent(stream, outside, 0),
	        CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	FAILS(cuStreamEndCapture(stream, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuStreamBeginCapture_v2(side, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuEventRecord(outside, side));
	FAILS(cuStreamWaitEvent(stream, outside, 0),
	        CUDA_ERROR_STREAM_CAPTURE_MERGE);
	FAILS(cuStreamEndCapture(stream, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	FAILS(cuStreamEndCapture(side, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	FAILS(cuEventQuery(outside), CUDA_ERROR_CAPTURED_EVENT);
}
END_TEST

struct unsafe_call {
	CUcontext ctx;
	CUevent event;
	CUresult global, relaxed;
};

static void *call_unsafe(void *arg)
{
	struct unsafe_call *call = arg;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	cuCtxSetCurrent(call->ctx);
	cuThreadExchangeStreamCaptureMode(&mode);
	call->relaxed = cuEventQuery(call->event);
	cuThreadExchangeStreamCaptureMode(&mode);
	call->global = cuEventQuery(call->event);
	return NULL;
}

START_TEST(global_capture_forbids_unsafe_calls_of_all_threads)
{
	struct unsafe_call call = {.global = CUDA_SUCCESS};
	pthread_t thread;
	CUgraph graph;

	start();
	OK(cuCtxGetCurrent(&call.ctx));
	call.event = client_mark(side);
	OK(cuStreamSynchronize(side));
	begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_unsafe, &call), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	OK(call.global);
	OK(cuStreamEndCapture(stream, &graph));
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_unsafe, &call), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	OK(call.relaxed);
	FAILS(call.global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	FAILS(cuStreamEndCapture(stream, &graph),
	        CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
END_TEST

/* --------------------------------------------------------- explicit graphs */

static CUDA_MEMSET_NODE_PARAMS set_params(size_t bytes)
{
	return (CUDA_MEMSET_NODE_PARAMS){.dst = device,
	        .value = 1,
	        .elementSize = 1,
	        .width = bytes,
	        .height = 1};
}

START_TEST(parameters_change_in_graph_and_instance)
{
	CUDA_MEMSET_NODE_PARAMS params, got;
	CUgraphExecUpdateResultInfo info;
	CUgraphNode node, other;
	CUgraphExec exec;
	CUgraph graph;
	double small, big;
	unsigned enabled;

	start();
	params = set_params(256);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, NULL));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	small = launch_us(exec);
	params = set_params(COPY_BYTES);
	OK(cuGraphExecMemsetNodeSetParams(exec, node, &params, NULL));
	big = launch_us(exec);
	ck_assert_double_gt(big, small + 20);
	OK(cuGraphMemsetNodeGetParams(node, &got)); /* the graph's own */
	ck_assert_uint_eq(got.width, 256);
	OK(cuGraphExecUpdate_v2(exec, graph, &info));
	ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	ck_assert_double_eq_tol(launch_us(exec), small, 0.01);
	OK(cuGraphNodeSetEnabled(exec, node, 0));
	OK(cuGraphNodeGetEnabled(exec, node, &enabled));
	ck_assert_uint_eq(enabled, 0);
	ck_assert_double_lt(launch_us(exec), small - 1);
	OK(cuGraphAddEmptyNode(&other, graph, &node, 1));
	FAILS(cuGraphExecUpdate_v2(exec, graph, &info),
	        CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	ck_assert_int_eq(
	        info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}
END_TEST

START_TEST(a_cycle_cannot_be_instantiated)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	CUgraphNode a, b;
	CUgraphExec exec;
	CUgraph graph;

	start();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(cuGraphAddEmptyNode(&b, graph, &a, 1));
	OK(cuGraphAddDependencies_v2(graph, &b, &a, NULL, 1));
	FAILS(cuGraphInstantiateWithParams(&exec, graph, &params),
	        CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(
	        params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
	OK(cuGraphRemoveDependencies_v2(graph, &b, &a, NULL, 1));
	OK(cuGraphInstantiateWithParams(&exec, graph, &params));
	OK(cuGraphDestroyNode(a));
	ck_assert_uint_eq(node_count(graph), 1);
	ck_assert_uint_eq(edge_count(graph), 0);
}
END_TEST

START_TEST(child_graphs_are_copies)
{
	CUgraph parent, child, inside;
	CUgraphNode node, found;
	CUgraphExec exec;
	double us;

	start();
	child = diamond();
	OK(cuGraphCreate(&parent, 0));
	OK(cuGraphAddChildGraphNode(&node, parent, NULL, 0, child));
	OK(cuGraphChildGraphNodeGetGraph(node, &inside));
	ck_assert_ptr_ne(inside, child);
	ck_assert_uint_eq(node_count(inside), 4);
	OK(cuGraphDestroy(child));
	OK(cuGraphClone(&child, parent));
	OK(cuGraphNodeFindInClone(&found, node, child));
	OK(cuGraphDestroy(child));
	OK(cuGraphInstantiateWithFlags(&exec, parent, 0));
	us = launch_us(exec);
	ck_assert_double_gt(us, 10 + 50e6 / 21.25e9 * 1e6);
	/* A launch into a capture becomes a child graph. */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamEndCapture(stream, &child));
	ck_assert_uint_eq(node_count(child), 1);
	OK(cuGraphInstantiateWithFlags(&exec, child, 0));
	ck_assert_double_eq_tol(launch_us(exec), us, 1);
}
END_TEST

/* However long a graph is, launching it keeps the host no longer. */
START_TEST(a_long_graph_does_not_hold_the_host)
{
	CUDA_MEMSET_NODE_PARAMS params;
	CUgraphNode node = NULL;
	CUgraphExec exec;
	CUgraph graph;

	start();
	params = set_params(COPY_BYTES);
	OK(cuGraphCreate(&graph, 0));
	for (int i = 0; i < 3000; i++)
		OK(cuGraphAddMemsetNode(
		        &node, graph, &node, i > 0, &params, NULL));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	ck_assert_double_lt(
	        client_us(client_mark(side), client_mark(side)), 10);
	FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	ck_assert_double_gt(
	        client_us(client_mark(side), client_mark(stream)), 3000 * 5);
}
END_TEST

START_TEST(a_destroyed_event_stops_the_launch)
{
	CUgraphNode node;
	CUgraphExec exec;
	CUevent event;
	CUgraph graph;

	start();
	event = client_event();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuEventDestroy_v2(event));
	FAILS(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

static void count_up(void *arg)
{
	++*(atomic_int *)arg;
}

START_TEST(host_nodes_and_event_nodes_run_at_every_launch)
{
	CUDA_HOST_NODE_PARAMS params = {.fn = count_up};
	CUgraphNode host, record;
	atomic_int calls = 0;
	CUgraphExec exec;
	CUevent event;
	CUgraph graph;

	start();
	event = client_event();
	params.userData = &calls;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddHostNode(&host, graph, NULL, 0, &params));
	OK(cuGraphAddEventRecordNode(&record, graph, &host, 1, event));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	ck_assert_int_eq(calls, 2);
	ck_assert_double_ge(client_us(event, client_mark(stream)), 0);
}
END_TEST

START_TEST(user_objects_live_as_long_as_their_graphs)
{
	CUuserObject object;
	atomic_int dead = 0;
	CUgraphExec exec;
	CUgraph graph;

	start();
	OK(cuGraphCreate(&graph, 0));
	OK(cuUserObjectCreate(&object, &dead, count_up, 1,
	        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuGraphRetainUserObject(
	        graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	usleep(10000);
	ck_assert_int_eq(dead, 0);
	OK(cuGraphExecDestroy(exec));
	for (int i = 0; i < 1000 && !dead; i++)
		usleep(1000);
	ck_assert_int_eq(dead, 1);
	FAILS(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_graph_can_be_drawn)
{
	char path[] = "/tmp/ctl_graph_XXXXXX", text[2048] = "";
	int fd;
	FILE *file;

	start();
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	OK(cuGraphDebugDotPrint(diamond(), path, 0));
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
	fclose(file);
	unlink(path);
	ck_assert_ptr_nonnull(strstr(text, "digraph"));
	ck_assert_ptr_nonnull(strstr(text, "n1 -> n3"));
	ck_assert_ptr_nonnull(strstr(text, "n2 -> n3"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_graph");
	TCase *tests = tcase_create("all");

	tcase_add_test(tests, a_capture_becomes_a_graph_with_its_branches);
	tcase_add_test(tests, nothing_runs_while_capturing);
	tcase_add_test(tests, a_launch_runs_its_branches_side_by_side);
	tcase_add_test(tests, launches_of_one_instance_follow_each_other);
	tcase_add_test(tests, waiting_for_a_capturing_stream_breaks_it);
	tcase_add_test(tests, null_stream_may_not_wait_for_a_capture);
	tcase_add_test(tests, forked_work_must_be_joined);
	tcase_add_test(tests, captures_do_not_mix_with_other_work);
	tcase_add_test(
	        tests, global_capture_forbids_unsafe_calls_of_all_threads);
	tcase_add_test(tests, parameters_change_in_graph_and_instance);
	tcase_add_test(tests, a_cycle_cannot_be_instantiated);
	tcase_add_test(tests, child_graphs_are_copies);
	tcase_add_test(tests, host_nodes_and_event_nodes_run_at_every_launch);
	tcase_add_test(tests, a_long_graph_does_not_hold_the_host);
	tcase_add_test(tests, a_destroyed_event_stops_the_launch);
	tcase_add_test(tests, user_objects_live_as_long_as_their_graphs);
	tcase_add_test(tests, a_graph_can_be_drawn);
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
