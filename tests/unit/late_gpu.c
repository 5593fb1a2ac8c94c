/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/late_gpu.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE 256u

struct launched {
	uint64_t stream, bytes, out, in[2];
	unsigned char number;
	bool fills;
};

struct late_gpu late_gpu;
struct ts_gpu_ops late_gpu_ops;

static struct launched queue[QUEUE];
static uint32_t queued;
static uint64_t operand_bytes;

unsigned char late_gpu_byte(
        unsigned char a, unsigned char b, unsigned char number)
{
	return (unsigned char)(3 * a + 5 * b + number + 1);
}

static unsigned char *bytes_at(uint64_t address)
{
	return (unsigned char *)(uintptr_t)address;
}

static void run(const struct launched *launched)
{
	unsigned char *out = bytes_at(launched->out);
	const unsigned char *a = bytes_at(launched->in[0]);
	const unsigned char *b = bytes_at(launched->in[1]);

	for (uint64_t i = 0; i < launched->bytes; i++)
		out[i] = launched->fills ? launched->number
		                         : late_gpu_byte(a[i], b ? b[i] : 0,
		                                   launched->number);
}

/* The stream whose first launch is the last to be. */
static uint64_t last_stream(void)
{
	uint64_t found = queue[0].stream;

	for (uint32_t i = 1; i < queued; i++) {
		uint32_t k = 0;

		while (queue[k].stream != queue[i].stream)
			k++;
		if (k == i)
			found = queue[i].stream;
	}
	return found;
}

void late_gpu_run(void)
{
	while (queued) {
		uint64_t stream = last_stream();
		uint32_t left = 0;

		for (uint32_t i = 0; i < queued; i++) {
			if (queue[i].stream == stream)
				run(&queue[i]);
			else
				queue[left++] = queue[i];
		}
		queued = left;
	}
}

static void enqueue(const struct launched *launched)
{
	ck_assert_uint_lt(queued, QUEUE);
	queue[queued++] = *launched;
	if (late_gpu.eager)
		late_gpu_run();
}

void late_gpu_fill(
        uint64_t address, uint64_t bytes, unsigned char value, uint64_t stream)
{
	enqueue(&(struct launched){.stream = stream,
	        .bytes = bytes,
	        .out = address,
	        .number = value,
	        .fills = true});
}

static CUresult launch(CUfunction function, unsigned int grid_x,
        unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
        CUstream stream, void **params, void **extra)
{
	struct launched launched = {
	        .stream = (uint64_t)(uintptr_t)stream, .bytes = operand_bytes};

	ck_assert_ptr_nonnull(function);
	ck_assert_uint_eq(grid_x * grid_y * grid_z, 1);
	ck_assert_uint_eq(block_x * block_y * block_z, 1);
	ck_assert_uint_eq(shared_bytes, 0);
	ck_assert_ptr_null(extra);
	memcpy(&launched.out, params[0], 8);
	memcpy(launched.in, params[1], 16);
	memcpy(&launched.number, params[2], 1);
	late_gpu.launches++;
	enqueue(&launched);
	return CUDA_SUCCESS;
}

static CUresult ctx_synchronize(void)
{
	late_gpu_run();
	return fake_gpu_ops.ctx_synchronize();
}

static CUresult stream_synchronize(CUstream stream)
{
	late_gpu_run();
	return fake_gpu_ops.stream_synchronize(stream);
}

static CUresult event_synchronize(CUevent event)
{
	late_gpu_run();
	return fake_gpu_ops.event_synchronize(event);
}

static CUresult ctx_get_device(CUdevice *ret)
{
	*ret = 0;
	return CUDA_SUCCESS;
}

static CUresult mem_alloc(CUdeviceptr *ret, size_t bytes)
{
	void *made = malloc(bytes);

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(made, 0xa5, bytes);
	*ret = (CUdeviceptr)(uintptr_t)made;
	return CUDA_SUCCESS;
}

static CUresult mem_free(CUdeviceptr address)
{
	late_gpu_run();
	free(bytes_at(address));
	return CUDA_SUCCESS;
}

void late_gpu_reset(uint64_t bytes)
{
	late_gpu = (struct late_gpu){0};
	queued = 0;
	operand_bytes = bytes;
	late_gpu_ops = fake_gpu_ops;
	late_gpu_ops.launch = launch;
	late_gpu_ops.ctx_synchronize = ctx_synchronize;
	late_gpu_ops.stream_synchronize = stream_synchronize;
	late_gpu_ops.event_synchronize = event_synchronize;
	late_gpu_ops.ctx_get_device = ctx_get_device;
	late_gpu_ops.mem_alloc = mem_alloc;
	late_gpu_ops.mem_free = mem_free;
}
