/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program under a limit that its buffers exceed, on two streams. It knows
 * what every buffer must hold: what was refused for want of memory has not
 * been done. Prints how many calls were refused, how many failed otherwise,
 * how many bytes were wrong, and what is in use once all is freed.
 */
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFERS      6
#define BUFFER_BYTES (4ull << 20)
#define SMALL_BYTES  (64ull << 10)
#define ROUNDS       2

static unsigned int refused, failed, wrong;
static size_t read_bytes;

static struct buffer {
	CUdeviceptr address;
	size_t bytes;
	unsigned char value;
	bool known; /* it has been written */
} buffers[BUFFERS];

static CUstream streams[2];

static bool done(CUresult rc)
{
	if (rc == CUDA_ERROR_OUT_OF_MEMORY)
		refused++;
	else if (rc != CUDA_SUCCESS)
		failed++;
	return rc == CUDA_SUCCESS;
}

static bool start(void)
{
	CUcontext context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
	        cuCtxSetCurrent(context))
		return false;
	for (int i = 0; i < 2; i++)
		if (cuStreamCreateWithPriority(
		            &streams[i], CU_STREAM_DEFAULT, 0))
			return false;
	return true;
}

static void allocate(struct buffer *buffer, size_t bytes)
{
	if (!done(cuMemAlloc(&buffer->address, bytes)))
		buffer->address = 0;
	buffer->bytes = bytes;
}

static void set(int at, unsigned char value)
{
	struct buffer *buffer = &buffers[at];

	if (buffer->address && done(cuMemsetD8Async(buffer->address, value,
	                               buffer->bytes, streams[at % 2]))) {
		buffer->value = value;
		buffer->known = true;
	}
}

/* Both of one stream's, so that nothing else has to order them. */
static void copy(int to, int from)
{
	size_t bytes = buffers[to].bytes;

	if (!buffers[to].address || !buffers[from].known)
		return;
	if (done(cuMemcpyDtoDAsync(buffers[to].address, buffers[from].address,
	            bytes, streams[to % 2]))) {
		buffers[to].value = buffers[from].value;
		buffers[to].known = true;
	}
}

/* Of two calls one succeeds where a single one of the driver's fails. */
static void check(struct buffer *buffer)
{
	static unsigned char read[BUFFER_BYTES];
	bool known = false;

	for (int tries = 0; tries < 2 && buffer->known && !known; tries++)
		known = done(
		        cuMemcpyDtoH(read, buffer->address, buffer->bytes));
	if (!known)
		return;
	read_bytes += buffer->bytes;
	for (size_t i = 0; i < buffer->bytes; i++)
		wrong += read[i] != buffer->value;
}

int main(void)
{
	size_t free_bytes = 0, total_bytes = 0;

	if (!start()) {
		printf("not started\n");
		return 1;
	}
	for (int i = 0; i < BUFFERS; i++)
		allocate(&buffers[i], i < 2 ? SMALL_BYTES : BUFFER_BYTES);
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < BUFFERS; i++)
			set(i, (unsigned char)(16 * round + i + 1));
	copy(4, 2);
	copy(3, 5);
	copy(0, 2);
	for (int i = 0; i < BUFFERS; i++)
		check(&buffers[i]);
	for (int i = 0; i < BUFFERS; i++)
		if (buffers[i].address)
			done(cuMemFree(buffers[i].address));
	/* What a failing call left is freed with the next allocation. */
	allocate(&buffers[0], BUFFER_BYTES);
	if (buffers[0].address)
		done(cuMemFree(buffers[0].address));
	if (cuMemGetInfo(&free_bytes, &total_bytes))
		cuMemGetInfo(&free_bytes, &total_bytes);
	printf("%u %u %u %zu %zu\n", refused, failed, wrong, read_bytes,
	        total_bytes - free_bytes);
	return 0;
}
