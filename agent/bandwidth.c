/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/bandwidth.h"

#include <stdbool.h>

#define SMALL_BYTES 4096u
/* Small copies one after the other tell what each adds. */
#define ROW 8u

enum { OUT, IN, WAYS };

struct bench {
	const struct ts_gpu_ops *ops;
	size_t copy_bytes;
	CUdeviceptr device[WAYS];
	void *host[WAYS];
	CUstream stream[WAYS];
	CUevent begin[WAYS], end[WAYS];
	struct ts_bandwidth found;
	CUresult result; /* the first that was not a success */
};

/* Nothing after the first failure is done. */
static bool ok(const struct bench *bench)
{
	return bench->result == CUDA_SUCCESS;
}

static void set_up(struct bench *bench)
{
	const struct ts_gpu_ops *ops = bench->ops;

	for (int way = 0; way < WAYS; way++) {
		if (ok(bench))
			bench->result = ops->mem_alloc(
			        &bench->device[way], bench->copy_bytes);
		if (ok(bench))
			bench->result = ops->host_alloc(
			        &bench->host[way], bench->copy_bytes, 0);
		if (ok(bench))
			bench->result = ops->stream_create(
			        &bench->stream[way], CU_STREAM_NON_BLOCKING);
		if (ok(bench))
			bench->result = ops->event_create(
			        &bench->begin[way], CU_EVENT_DEFAULT);
		if (ok(bench))
			bench->result = ops->event_create(
			        &bench->end[way], CU_EVENT_DEFAULT);
	}
}

static void clean_up(struct bench *bench)
{
	const struct ts_gpu_ops *ops = bench->ops;

	for (int way = 0; way < WAYS; way++) {
		if (bench->end[way])
			ops->event_destroy(bench->end[way]);
		if (bench->begin[way])
			ops->event_destroy(bench->begin[way]);
		if (bench->stream[way])
			ops->stream_destroy(bench->stream[way]);
		if (bench->host[way])
			ops->host_free(bench->host[way]);
		if (bench->device[way])
			ops->mem_free(bench->device[way]);
	}
}

/* @copies of @bytes each, one after the other, between two events. */
static void issue(
        struct bench *bench, int way, size_t bytes, unsigned int copies)
{
	const struct ts_gpu_ops *ops = bench->ops;

	if (ok(bench))
		bench->result = ops->event_record(
		        bench->begin[way], bench->stream[way]);
	for (unsigned int i = 0; i < copies && ok(bench); i++) {
		bench->result = way == OUT ? ops->copy_out(bench->host[way],
		                                     bench->device[way], bytes,
		                                     bench->stream[way])
		                           : ops->copy_in(bench->device[way],
		                                     bench->host[way], bytes,
		                                     bench->stream[way]);
		bench->found.copies++;
		bench->found.moved_bytes += way == OUT ? bytes : 0;
	}
	if (ok(bench))
		bench->result =
		        ops->event_record(bench->end[way], bench->stream[way]);
}

static uint64_t wait_ns(struct bench *bench, int way)
{
	float ms = 0;

	if (ok(bench))
		bench->result = bench->ops->event_synchronize(bench->end[way]);
	if (ok(bench))
		bench->result = bench->ops->event_elapsed(
		        &ms, bench->begin[way], bench->end[way]);
	return ms > 0 ? (uint64_t)((double)ms * 1e6) : 1;
}

/* Of the bytes alone: @small_ns is what a copy of next to none takes. */
static uint64_t speed(const struct bench *bench, uint64_t ns, uint64_t small_ns)
{
	uint64_t bytes_ns = ns > small_ns ? ns - small_ns : 1;

	return (uint64_t)((double)(bench->copy_bytes - SMALL_BYTES) * 1e9 /
	                  (double)bytes_ns);
}

static uint64_t alone(
        struct bench *bench, int way, size_t bytes, unsigned int copies)
{
	issue(bench, way, bytes, copies);
	return wait_ns(bench, way);
}

static void measure(struct bench *bench)
{
	struct ts_bandwidth *found = &bench->found;
	uint64_t row_ns, small_ns[WAYS];

	/* The first copies of a process are slow: they do not count. */
	for (int way = 0; way < WAYS; way++)
		alone(bench, way, bench->copy_bytes, 1);
	for (int way = 0; way < WAYS; way++)
		small_ns[way] = alone(bench, way, SMALL_BYTES, 1);
	found->d2h_bytes_per_s = speed(
	        bench, alone(bench, OUT, bench->copy_bytes, 1), small_ns[OUT]);
	found->h2d_bytes_per_s = speed(
	        bench, alone(bench, IN, bench->copy_bytes, 1), small_ns[IN]);
	issue(bench, OUT, bench->copy_bytes, 1);
	issue(bench, IN, bench->copy_bytes, 1);
	found->d2h_both_bytes_per_s =
	        speed(bench, wait_ns(bench, OUT), small_ns[OUT]);
	found->h2d_both_bytes_per_s =
	        speed(bench, wait_ns(bench, IN), small_ns[IN]);
	/* What issuing takes counts once, however many copies there are. */
	row_ns = alone(bench, OUT, SMALL_BYTES, ROW);
	if (row_ns > small_ns[OUT])
		found->latency_ns = (row_ns - small_ns[OUT]) / (ROW - 1);
}

int ts_bandwidth_measure(const struct ts_gpu_ops *ops, size_t bytes,
        struct ts_bandwidth *ret_bandwidth)
{
	struct bench bench = {
	        .ops = ops, .copy_bytes = bytes / WAYS, .result = CUDA_SUCCESS};

	set_up(&bench);
	measure(&bench);
	clean_up(&bench);
	if (!ok(&bench))
		return ts_gpu_errno(bench.result);
	*ret_bandwidth = bench.found;
	return 0;
}
