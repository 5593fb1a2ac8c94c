/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fills what the limit leaves, then has code loaded that takes memory of the
 * driver's own: by "module", "library" or "kernel", which loads a library's
 * code once its kernel is asked for, by the "instance" of a graph that was made
 * before, or by "nothing". The second argument says when: "alone", or while a
 * stream captures, and then how that ends: it is "captured", the stream is
 * "destroyed", or it is "capturing" still as the program ends.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/preload/must.h"
#include "tests/simgpu/clients/code_images.h"

#define BLOCK_BYTES (32u << 20)
#define BLOCKS      9

/* The block is last used by the stream that captures then. */
static void begin_capture(CUstream stream, CUdeviceptr block)
{
	MUST(cuCtxSynchronize());
	MUST(cuMemsetD8Async(block, BLOCKS - 1, BLOCK_BYTES, stream));
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cuMemsetD8Async(block, BLOCKS - 1, BLOCK_BYTES, stream));
}

static CUgraph graph_of(const void *code)
{
	CUdeviceptr nowhere = 0;
	void *arguments[] = {&nowhere};
	CUDA_KERNEL_NODE_PARAMS node = {.gridDimX = 1,
	        .gridDimY = 1,
	        .gridDimZ = 1,
	        .blockDimX = 1,
	        .blockDimY = 1,
	        .blockDimZ = 1,
	        .kernelParams = arguments};
	CUgraphNode added;
	CUmodule module;
	CUgraph graph;

	MUST(cuModuleLoadData(&module, code));
	MUST(cuModuleGetFunction(&node.func, module, "fill"));
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode(&added, graph, NULL, 0, &node));
	return graph;
}

static void load(const char *way, const void *code, CUgraph graph)
{
	CUgraphExec instance;
	CUlibrary library;
	CUfunction function;
	CUkernel kernel;
	CUmodule module;

	if (!strcmp(way, "module"))
		MUST(cuModuleLoadData(&module, code));
	if (!strcmp(way, "library") || !strcmp(way, "kernel"))
		MUST(cuLibraryLoadData(
		        &library, code, NULL, NULL, 0, NULL, NULL, 0));
	if (graph)
		MUST(cuGraphInstantiate(&instance, graph, 0));
	if (strcmp(way, "kernel"))
		return;
	MUST(cuLibraryGetKernel(&kernel, library, "fill"));
	MUST(cuKernelGetFunction(&function, kernel));
}

/* True where the program is to end as it is. */
static bool end_capture(const char *when, CUstream stream)
{
	CUgraph graph = NULL;

	if (!strcmp(when, "destroyed"))
		MUST(cuStreamDestroy(stream));
	if (strcmp(when, "captured"))
		return strcmp(when, "alone");
	MUST(cuStreamEndCapture(stream, &graph));
	must(!graph, "graph");
	MUST(cuGraphDestroy(graph));
	MUST(cuStreamSynchronize(stream));
	return false;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {8};
	const struct image_kernel image = {.name = "fill",
	        .param_bytes = sizes,
	        .n_params = 1,
	        .regs = 32};
	const struct image_variable variable = {
	        .name = "table", .bytes = 1u << 20};
	struct buffer cubin = image_cubin(80, &image, 1, &variable, 1);
	CUdeviceptr blocks[BLOCKS];
	CUcontext context;
	CUgraph graph = NULL;
	CUstream stream;
	bool ends;

	must(argc != 3, "arguments");
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	if (!strcmp(argv[1], "instance"))
		graph = graph_of(cubin.data);
	for (int i = 0; i < BLOCKS; i++) {
		MUST(cuMemAlloc(&blocks[i], BLOCK_BYTES));
		MUST(cuMemsetD8(blocks[i], (unsigned char)i, BLOCK_BYTES));
	}
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (strcmp(argv[2], "alone"))
		begin_capture(stream, blocks[BLOCKS - 1]);
	load(argv[1], cubin.data, graph);
	ends = end_capture(argv[2], stream);
	for (int i = 0; i < BLOCKS && !ends; i++) {
		unsigned char last = 0;

		MUST(cuMemcpyDtoH(&last, blocks[i] + BLOCK_BYTES - 1, 1));
		must(last != i, "content");
	}
	buffer_free(&cubin);
	return 0;
}
