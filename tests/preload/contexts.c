/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program with several contexts, or devices, under a limit that its memory
 * exceeds: says what it found, one word a command.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MIB     (1ull << 20)
#define BUFFERS 4

static bool ok(CUresult result, const char *what)
{
	if (result != CUDA_SUCCESS)
		printf("%s: error %d\n", what, (int)result);
	return result == CUDA_SUCCESS;
}

static bool is_filled(CUdeviceptr buffer, unsigned char value)
{
	static unsigned char bytes[4 * MIB];

	if (!ok(cuMemcpyDtoH(bytes, buffer, sizeof(bytes)), "read"))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static bool fill(CUdeviceptr *buffers, unsigned char value)
{
	for (int i = 0; i < BUFFERS; i++)
		if (!ok(cuMemAlloc(&buffers[i], 4 * MIB), "allocate") ||
		        !ok(cuMemsetD8(buffers[i], value + i, 4 * MIB), "set"))
			return false;
	return true;
}

/* What a surviving context holds stays, the memory that is moved out too. */
static int survive(CUcontext primary, bool reset)
{
	CUdeviceptr first, buffers[BUFFERS];
	CUcontext second;

	if (!ok(cuCtxSetCurrent(primary), "primary") ||
	        !ok(cuMemAlloc(&first, 4 * MIB), "first") ||
	        !ok(cuCtxCreate(&second, NULL, 0, 0), "second") ||
	        !fill(buffers, 1))
		return 1;
	if (!ok(reset ? cuDevicePrimaryCtxReset(0)
	              : cuDevicePrimaryCtxRelease(0),
	            "end of the first") ||
	        !ok(cuCtxSetCurrent(second), "second again"))
		return 1;
	for (int i = 0; i < BUFFERS; i++)
		if (!is_filled(buffers[i], (unsigned char)(1 + i)) ||
		        !ok(cuMemFree(buffers[i]), "free"))
			return 1;
	/* The first context's allocation went with it. */
	printf("%s\n", cuMemGetAddressRange(NULL, NULL, first) == CUDA_SUCCESS
	                       ? "leak"
	                       : "kept");
	return 0;
}

/* Device 0 writes to memory of device 1, moved out and in meanwhile. */
static int reach(CUcontext primary)
{
	CUdeviceptr buffers[BUFFERS];
	CUcontext peer;

	if (!ok(cuDevicePrimaryCtxRetain(&peer, 1), "retain") ||
	        !ok(cuCtxSetCurrent(peer), "peer") || !fill(buffers, 1) ||
	        !ok(cuCtxSynchronize(), "wait") ||
	        !ok(cuCtxSetCurrent(primary), "primary") ||
	        !ok(cuCtxEnablePeerAccess(peer, 0), "access"))
		return 1;
	for (int i = 0; i < BUFFERS; i++)
		if (!ok(cuMemsetD8(buffers[i], 9 + i, 4 * MIB), "set there") ||
		        !ok(cuCtxSynchronize(), "wait"))
			return 1;
	if (!ok(cuCtxSetCurrent(peer), "peer"))
		return 1;
	for (int i = 0; i < BUFFERS; i++)
		if (!is_filled(buffers[i], (unsigned char)(9 + i)))
			return 1;
	printf("reached\n");
	return 0;
}

int main(int argc, char **argv)
{
	CUcontext primary;

	if (argc != 2 || !ok(cuInit(0), "init") ||
	        !ok(cuDevicePrimaryCtxRetain(&primary, 0), "retain"))
		return 2;
	if (!strcmp(argv[1], "release"))
		return survive(primary, false);
	if (!strcmp(argv[1], "reset"))
		return survive(primary, true);
	return !strcmp(argv[1], "peer") ? reach(primary) : 2;
}
