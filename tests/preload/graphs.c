/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program whose graph uses memory that others want, once the graph is gone
 * or, by its second argument, still there: says "kept" where no byte was lost.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/preload/must.h"

#define BUFFERS      5
#define BUFFER_BYTES (4u << 20)
#define VALUE        77

static CUdeviceptr buffers[BUFFERS];
static CUstream stream;

static CUgraph captured(void)
{
	CUgraph graph;

	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	MUST(cuMemsetD8Async(buffers[0], VALUE, BUFFER_BYTES, stream));
	MUST(cuStreamEndCapture(stream, &graph));
	return graph;
}

static CUgraph built(CUcontext context)
{
	const CUDA_MEMSET_NODE_PARAMS set = {.dst = buffers[0],
	        .value = VALUE,
	        .elementSize = 1,
	        .width = BUFFER_BYTES,
	        .height = 1};
	CUgraphNode node;
	CUgraph graph;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
	return graph;
}

/* No two are equal: no step that repeats itself is foreseen. */
static void use_others(void)
{
	static unsigned int less;

	for (int i = 1; i < BUFFERS; i++)
		MUST(cuMemsetD8Async(
		        buffers[i], 1, BUFFER_BYTES - ++less, stream));
}

static bool is_set(void)
{
	static unsigned char bytes[BUFFER_BYTES];

	memset(bytes, 0, sizeof(bytes));
	MUST(cuMemcpyDtoH(bytes, buffers[0], sizeof(bytes)));
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != VALUE)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	CUgraphExec instance;
	CUgraph graph, clone = NULL;
	CUcontext context;

	if (argc != 3)
		return 2;
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < BUFFERS; i++)
		MUST(cuMemAlloc(&buffers[i], BUFFER_BYTES));
	MUST(cuMemsetD8(buffers[0], 0, BUFFER_BYTES));
	graph = !strcmp(argv[1], "captured") ? captured() : built(context);
	MUST(cuGraphInstantiate(&instance, graph, 0));
	if (!strcmp(argv[2], "clone"))
		MUST(cuGraphClone(&clone, graph));
	use_others();
	/* Still running as it is destroyed. */
	MUST(cuGraphLaunch(instance, stream));
	MUST(cuGraphDestroy(graph));
	if (strcmp(argv[2], "instance"))
		MUST(cuGraphExecDestroy(instance));
	use_others();
	if (!strcmp(argv[2], "instance"))
		MUST(cuGraphLaunch(instance, stream));
	MUST(cuStreamSynchronize(stream));
	printf("%s\n", is_set() ? "kept" : "lost");
	return 0;
}
