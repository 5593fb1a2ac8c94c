/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/driver_time.h"

#include <stdbool.h>

#include "agent/base/clock.h"

static struct ts_gpu_ops driver, timed;

static __thread struct {
	bool on;
	uint64_t ns;
} own __attribute__((tls_model("initial-exec")));

/* 0: this thread's calls are not timed. */
static uint64_t begin(void)
{
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
	uint64_t begin_ns = begin();

	return end(begin_ns, driver.copy_out(to, from, bytes, stream));
}

static CUresult CUDAAPI copy_in(
        CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	uint64_t begin_ns = begin();

	return end(begin_ns, driver.copy_in(to, from, bytes, stream));
}

static CUresult CUDAAPI event_record(CUevent event, CUstream stream)
{
	uint64_t begin_ns = begin();

	return end(begin_ns, driver.event_record(event, stream));
}

static CUresult CUDAAPI event_synchronize(CUevent event)
{
	uint64_t begin_ns = begin();

	return end(begin_ns, driver.event_synchronize(event));
}

static CUresult CUDAAPI stream_wait_event(
        CUstream stream, CUevent event, unsigned int flags)
{
	uint64_t begin_ns = begin();

	return end(begin_ns, driver.stream_wait_event(stream, event, flags));
}

static CUresult CUDAAPI ctx_get_current(CUcontext *ret_context)
{
	uint64_t begin_ns = begin();

	return end(begin_ns, driver.ctx_get_current(ret_context));
}

static CUresult CUDAAPI ctx_push(CUcontext context)
{
	uint64_t begin_ns = begin();

	return end(begin_ns, driver.ctx_push(context));
}

static CUresult CUDAAPI ctx_pop(CUcontext *ret_context)
{
	uint64_t begin_ns = begin();

	return end(begin_ns, driver.ctx_pop(ret_context));
}

const struct ts_gpu_ops *ts_driver_timed(const struct ts_gpu_ops *ops)
{
	driver = *ops;
	timed = *ops;
	timed.copy_out = copy_out;
	timed.copy_in = copy_in;
	timed.event_record = event_record;
	timed.event_synchronize = event_synchronize;
	timed.stream_wait_event = stream_wait_event;
	timed.ctx_get_current = ctx_get_current;
	timed.ctx_push = ctx_push;
	timed.ctx_pop = ctx_pop;
	return &timed;
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
