/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/driver_calls.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "agent/base/clock.h"

/* Written once, before any thread makes calls. */
static struct ts_gpu_ops driver, counted;
static atomic_uint_fast64_t calls[TS_CALL_KINDS];

static __thread struct {
	bool on;
	uint64_t ns;
} own __attribute__((tls_model("initial-exec")));

/* 0: this thread's calls are not timed. */
static uint64_t begin(enum ts_driver_call kind)
{
	atomic_fetch_add_explicit(&calls[kind], 1, memory_order_relaxed);
	return own.on ? ts_now_ns() : 0;
}

static CUresult end(uint64_t begin_ns, CUresult result)
{
	if (begin_ns)
		own.ns += ts_now_ns() - begin_ns;
	return result;
}

static CUresult CUDAAPI copy_out(
        void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	uint64_t begin_ns = begin(TS_CALL_COPY);

	return end(begin_ns, driver.copy_out(to, from, bytes, stream));
}

static CUresult CUDAAPI copy_in(
        CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	uint64_t begin_ns = begin(TS_CALL_COPY);

	return end(begin_ns, driver.copy_in(to, from, bytes, stream));
}

static CUresult CUDAAPI event_record(CUevent event, CUstream stream)
{
	uint64_t begin_ns = begin(TS_CALL_RECORD);

	return end(begin_ns, driver.event_record(event, stream));
}

static CUresult CUDAAPI stream_wait_event(
        CUstream stream, CUevent event, unsigned int flags)
{
	uint64_t begin_ns = begin(TS_CALL_ORDER);

	return end(begin_ns, driver.stream_wait_event(stream, event, flags));
}

static CUresult CUDAAPI event_query(CUevent event)
{
	uint64_t begin_ns = begin(TS_CALL_QUERY);

	return end(begin_ns, driver.event_query(event));
}

static CUresult CUDAAPI event_synchronize(CUevent event)
{
	uint64_t begin_ns = begin(TS_CALL_WAIT);

	return end(begin_ns, driver.event_synchronize(event));
}

static CUresult CUDAAPI stream_synchronize(CUstream stream)
{
	uint64_t begin_ns = begin(TS_CALL_WAIT);

	return end(begin_ns, driver.stream_synchronize(stream));
}

static CUresult CUDAAPI ctx_synchronize(void)
{
	uint64_t begin_ns = begin(TS_CALL_WAIT);

	return end(begin_ns, driver.ctx_synchronize());
}

static CUresult CUDAAPI ctx_get_current(CUcontext *ret_context)
{
	uint64_t begin_ns = begin(TS_CALL_CONTEXT);

	return end(begin_ns, driver.ctx_get_current(ret_context));
}

static CUresult CUDAAPI ctx_push(CUcontext context)
{
	uint64_t begin_ns = begin(TS_CALL_CONTEXT);

	return end(begin_ns, driver.ctx_push(context));
}

static CUresult CUDAAPI ctx_pop(CUcontext *ret_context)
{
	uint64_t begin_ns = begin(TS_CALL_CONTEXT);

	return end(begin_ns, driver.ctx_pop(ret_context));
}

const struct ts_gpu_ops *ts_driver_counted(const struct ts_gpu_ops *ops)
{
	driver = *ops;
	counted = *ops;
	counted.copy_out = copy_out;
	counted.copy_in = copy_in;
	counted.event_record = event_record;
	counted.stream_wait_event = stream_wait_event;
	counted.event_query = event_query;
	counted.event_synchronize = event_synchronize;
	counted.stream_synchronize = stream_synchronize;
	counted.ctx_synchronize = ctx_synchronize;
	counted.ctx_get_current = ctx_get_current;
	counted.ctx_push = ctx_push;
	counted.ctx_pop = ctx_pop;
	return &counted;
}

void ts_driver_calls(struct ts_driver_calls *ret_calls)
{
	for (int kind = 0; kind < TS_CALL_KINDS; kind++)
		ret_calls->count[kind] = atomic_load_explicit(
		        &calls[kind], memory_order_relaxed);
}

void ts_driver_time_start(void)
{
	own.on = true;
	own.ns = 0;
}

uint64_t ts_driver_time_stop(void)
{
	own.on = false;
	return own.ns;
}
