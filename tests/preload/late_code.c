/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fills what the limit leaves, then has code loaded that takes memory of the
 * driver's own. Its argument says by which call: "module" or "kernel", which
 * loads a library's code once its kernel is asked for, or "captured": the same
 * while a stream captures, which has to bear it.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/clients/code_images.h"

#define BLOCK_BYTES (32u << 20)
#define BLOCKS      9

static void must(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %d\n", what, status);
	exit(1);
}

#define MUST(call) must((int)(call), #call)

/* The block is last used by the stream that captures then. */
static void begin_capture(CUstream stream, CUdeviceptr block)
{
	MUST(cuCtxSynchronize());
	MUST(cuMemsetD8Async(block, BLOCKS - 1, BLOCK_BYTES, stream));
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cuMemsetD8Async(block, BLOCKS - 1, BLOCK_BYTES, stream));
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
	CUlibrary library;
	CUfunction function;
	CUcontext context;
	CUkernel kernel;
	CUmodule module;
	CUstream stream;
	CUgraph graph = NULL;

	must(argc != 2, "arguments");
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	for (int i = 0; i < BLOCKS; i++) {
		MUST(cuMemAlloc(&blocks[i], BLOCK_BYTES));
		MUST(cuMemsetD8(blocks[i], (unsigned char)i, BLOCK_BYTES));
	}
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (!strcmp(argv[1], "module")) {
		MUST(cuModuleLoadData(&module, cubin.data));
	} else {
		MUST(cuLibraryLoadData(
		        &library, cubin.data, NULL, NULL, 0, NULL, NULL, 0));
		MUST(cuLibraryGetKernel(&kernel, library, "fill"));
		if (!strcmp(argv[1], "captured"))
			begin_capture(stream, blocks[BLOCKS - 1]);
		MUST(cuKernelGetFunction(&function, kernel));
	}
	if (!strcmp(argv[1], "captured")) {
		MUST(cuStreamEndCapture(stream, &graph));
		must(!graph, "graph");
		MUST(cuGraphDestroy(graph));
		MUST(cuStreamSynchronize(stream));
	}
	for (int i = 0; i < BLOCKS; i++) {
		unsigned char last = 0;

		MUST(cuMemcpyDtoH(&last, blocks[i] + BLOCK_BYTES - 1, 1));
		must(last != i, "content");
	}
	buffer_free(&cubin);
	return 0;
}
