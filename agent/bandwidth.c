/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/bandwidth.h"

#include <stdbool.h>

/* Large enough that the start of a copy does not count. */
#define COPY_BYTES  (TS_BANDWIDTH_BYTES / WAYS)
#define SMALL_BYTES 4096u

enum { OUT, IN, WAYS };

struct bench {
	const struct ts_gpu_ops *ops;
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
			bench->result =
			        ops->mem_alloc(&bench->device[way], COPY_BYTES);
		if (ok(bench))
			bench->result = ops->host_alloc(
			        &bench->host[way], COPY_BYTES, 0);
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

static void issue(struct bench *bench, int way, size_t bytes)
{
	const struct ts_gpu_ops *ops = bench->ops;

	if (ok(bench))
		bench->result = ops->event_record(
		        bench->begin[way], bench->stream[way]);
	if (ok(bench))
		bench->result = way == OUT ? ops->copy_out(bench->host[way],
		                                     bench->device[way], bytes,
		                                     bench->stream[way])
		                           : ops->copy_in(bench->device[way],
		                                     bench->host[way], bytes,
		                                     bench->stream[way]);
	if (ok(bench))
		bench->result =
		        ops->event_record(bench->end[way], bench->stream[way]);
	bench->found.copies++;
	bench->found.moved_bytes += way == OUT ? bytes : 0;
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

static uint64_t speed(uint64_t ns)
{
	return (uint64_t)((double)COPY_BYTES * 1e9 / (double)ns);
}

static uint64_t alone(struct bench *bench, int way, size_t bytes)
{
	issue(bench, way, bytes);
	return wait_ns(bench, way);
}

static void measure(struct bench *bench)
{
	struct ts_bandwidth *found = &bench->found;

	/* The first copies of a process are slow: they do not count. */
	for (int way = 0; way < WAYS; way++)
		alone(bench, way, COPY_BYTES);
	found->d2h_bytes_per_s = speed(alone(bench, OUT, COPY_BYTES));
	found->h2d_bytes_per_s = speed(alone(bench, IN, COPY_BYTES));
	issue(bench, OUT, COPY_BYTES);
	issue(bench, IN, COPY_BYTES);
	found->d2h_both_bytes_per_s = speed(wait_ns(bench, OUT));
	found->h2d_both_bytes_per_s = speed(wait_ns(bench, IN));
	found->latency_ns = alone(bench, OUT, SMALL_BYTES);
}

int ts_bandwidth_measure(
        const struct ts_gpu_ops *ops, struct ts_bandwidth *ret_bandwidth)
{
	struct bench bench = {.ops = ops, .result = CUDA_SUCCESS};

	set_up(&bench);
	measure(&bench);
	clean_up(&bench);
	if (!ok(&bench))
		return ts_gpu_errno(bench.result);
	*ret_bandwidth = bench.found;
	return 0;
}
