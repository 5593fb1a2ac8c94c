/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that use libraries above the driver, on more memory than the limit
 * leaves: each is a command, prints "done" where all calls went well, else the
 * call that did not.
 */
#include <cublas_v2.h>
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_api.h"
#include "fake_kernel.h"
#include "tests/preload/must.h"

#define BUFFERS      6
#define BUFFER_BYTES (4u << 20)
#define FLOATS       (BUFFER_BYTES / sizeof(float))
#define HALF         (FLOATS / 2)

static CUdeviceptr buffers[BUFFERS];

static void *at(int buffer)
{
	return (void *)buffers[buffer];
}

static void start(void)
{
	CUcontext context;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	for (int i = 0; i < BUFFERS; i++)
		MUST(cuMemAlloc(&buffers[i], BUFFER_BYTES));
}

/* No two of these are equal: a step that repeats itself is foreseen. */
static void push_out(int first, int end)
{
	static unsigned int less;

	for (int i = first; i < end; i++)
		MUST(cuMemsetD8(buffers[i], 1, BUFFER_BYTES - ++less));
}

static ncclComm_t communicator(void)
{
	ncclUniqueId id = {.internal = {[0] = 1, [127] = 2}};
	ncclComm_t comm;

	MUST(ncclCommInitRank(&comm, 2, id, 0));
	return comm;
}

static void collectives(void)
{
	ncclComm_t comm = communicator();

	push_out(2, BUFFERS);
	MUST(ncclAllReduce(
	        at(0), at(1), FLOATS, ncclFloat, ncclSum, comm, NULL));
	push_out(2, BUFFERS);
	MUST(ncclAllReduce(
	        at(0), at(0), FLOATS, ncclFloat, ncclSum, comm, NULL));
	push_out(2, BUFFERS);
	MUST(ncclAllGather(at(0), at(1), HALF, ncclFloat, comm, NULL));
	push_out(2, BUFFERS);
	MUST(ncclSend(at(1), HALF, ncclFloat, 1, comm, NULL));
}

static void groups(void)
{
	ncclComm_t comm = communicator();

	push_out(2, BUFFERS);
	MUST(ncclGroupStart());
	MUST(ncclSend(at(0), FLOATS, ncclFloat, 1, comm, NULL));
	MUST(ncclGroupStart());
	MUST(ncclRecv(at(1), FLOATS, ncclFloat, 1, comm, NULL));
	MUST(ncclGroupEnd());
	push_out(2, BUFFERS);
	MUST(ncclGroupEnd());
}

static void registered(void)
{
	ncclComm_t comm = communicator();
	void *handle;

	push_out(1, BUFFERS);
	MUST(ncclCommRegister(comm, at(0), BUFFER_BYTES, &handle));
	push_out(1, BUFFERS);
	MUST(ncclCommDeregister(comm, handle));
}

/* A collective whose peers come only after this thread has gone on. */
static void wait_for_peers(void *data)
{
	while (!atomic_load((atomic_bool *)data))
		usleep(1000);
}

/*
 * What a kernel of the graph writes is small enough for a table. @peers: a
 * graph does not begin before that is set, which the program does at its end.
 */
static void launch_graph(bool with_collective, atomic_bool *peers)
{
	ncclComm_t comm = communicator();
	CUdeviceptr written;
	CUgraphExec instance;
	CUstream stream;
	CUgraph graph;

	/* While there is a capture nothing moves. */
	for (int i = 2; i < BUFFERS; i++)
		MUST(cuMemFree(buffers[i]));
	MUST(cuMemAlloc(&written, 4096));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(fake_launch("fill_table", written, stream));
	if (with_collective)
		MUST(ncclAllReduce(at(0), at(1), FLOATS, ncclFloat, ncclSum,
		        comm, stream));
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphInstantiate(&instance, graph, 0));
	if (peers)
		MUST(cuLaunchHostFunc(stream, wait_for_peers, peers));
	for (int i = 0; i < 5; i++)
		MUST(cuGraphLaunch(instance, stream));
	if (peers)
		atomic_store(peers, true);
	MUST(cuStreamSynchronize(stream));
}

static void captured(void)
{
	launch_graph(false, NULL);
}

static void captured_collective(void)
{
	launch_graph(true, NULL);
}

static void captured_without_peers(void)
{
	static atomic_bool there;

	launch_graph(true, &there);
}

static void window(void)
{
	ncclComm_t comm = communicator();
	void *handle;

	push_out(1, BUFFERS);
	MUST(ncclCommWindowRegister(comm, at(0), BUFFER_BYTES, &handle, 0));
	push_out(1, BUFFERS);
}

static void elsewhere(void)
{
	ncclUniqueId id = {.internal = {[0] = 1, [127] = 2}};
	ncclConfig_t config = {.size = sizeof(config)};
	ncclComm_t comm;

	MUST(ncclCommInitRankConfig(&comm, 2, id, 0, &config));
	push_out(2, BUFFERS);
	MUST(ncclAllReduce(
	        at(0), at(1), FLOATS, ncclFloat, ncclSum, comm, NULL));
	push_out(2, BUFFERS);
}

static void convolution(void)
{
	void *pack;
	void *operands[] = {at(0), at(1)}, *workspace = at(2);

	MUST(cudnnBackendCreateDescriptor(
	        CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
	MUST(cudnnBackendSetAttribute(pack,
	        CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2,
	        operands));
	MUST(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
	        CUDNN_TYPE_VOID_PTR, 1, &workspace));
	push_out(2, BUFFERS);
	MUST(cudnnBackendExecute(NULL, NULL, pack));
}

static void layers(void)
{
	push_out(3, BUFFERS);
	MUST(cudnnConvolutionForward(NULL, NULL, NULL, at(0), NULL, at(1), NULL,
	        1, at(3), BUFFER_BYTES, NULL, NULL, at(2)));
	push_out(4, BUFFERS);
	MUST(cudnnBatchNormalizationForwardTrainingEx(NULL, 0, 0, NULL, NULL,
	        NULL, at(0), NULL, NULL, NULL, at(1), NULL, at(2), at(2), 0.25,
	        at(3), at(3), 1e-5, at(3), at(3), NULL, NULL, 0, NULL, 77));
}

/* As a tool does that stands before NCCL. */
static void tools(void)
{
	ncclUniqueId id = {.internal = {[0] = 1, [127] = 2}};
	ncclComm_t comm;

	MUST(pncclCommInitRank(&comm, 2, id, 0));
	push_out(2, BUFFERS);
	MUST(pncclAllReduce(
	        at(0), at(1), FLOATS, ncclFloat, ncclSum, comm, NULL));
	push_out(2, BUFFERS);
	MUST(pncclGroupStart());
	MUST(pncclSend(at(0), FLOATS, ncclFloat, 1, comm, NULL));
	MUST(pncclRecv(at(1), FLOATS, ncclFloat, 1, comm, NULL));
	push_out(2, BUFFERS);
	MUST(pncclGroupEnd());
}

static void vectors(void)
{
	cublasHandle_t handle;
	float factor = 2, result;

	MUST(cublasCreate(&handle));
	push_out(2, BUFFERS);
	MUST(cublasSaxpy(handle, 1000, &factor, at(0), 1, at(1), 1));
	push_out(2, BUFFERS);
	MUST(cublasSgemv(handle, CUBLAS_OP_N, 100, 100, &factor, at(0), 100,
	        at(2), 1, &factor, at(1), 1));
	push_out(2, BUFFERS);
	MUST(cublasSdot(handle, 1000, at(0), 1, at(1), 1, &result));
	/* Any function by dlsym: the library's handle finds the wrapper too. */
	MUST(((__typeof__(&cublasSscal))dlsym(
	        dlopen("libcublas.so.13", RTLD_NOW), "cublasSscal_v2"))(
	        handle, 1000, &factor, at(0), 1));
}

/* Tables that no copy brought: the agent has not seen what is in them. */
static void batches(void)
{
	CUdeviceptr table = buffers[3];
	cublasHandle_t handle;
	float one = 1, zero = 0;

	MUST(cublasCreate(&handle));
	for (int i = 0; i < 3; i++) {
		MUST(cuMemsetD32(table + 8 * i, (unsigned int)buffers[i], 1));
		MUST(cuMemsetD32(table + 8 * i + 4,
		        (unsigned int)(buffers[i] >> 32), 1));
	}
	push_out(4, BUFFERS);
	MUST(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64,
	        &one, (const float *const *)table, 64,
	        (const float *const *)(table + 8), 64, &zero,
	        (float *const *)(table + 16), 64, 1));
	push_out(4, BUFFERS);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} commands[] = {
	        {"collectives", collectives},
	        {"groups", groups},
	        {"registered", registered},
	        {"captured", captured},
	        {"captured-collective", captured_collective},
	        {"captured-without-peers", captured_without_peers},
	        {"window", window},
	        {"elsewhere", elsewhere},
	        {"convolution", convolution},
	        {"layers", layers},
	        {"tools", tools},
	        {"vectors", vectors},
	        {"batches", batches},
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc != 2 || strcmp(argv[1], commands[i].name))
			continue;
		start();
		commands[i].run();
		MUST(cuCtxSynchronize());
		printf("done\n");
		return 0;
	}
	return 2;
}
