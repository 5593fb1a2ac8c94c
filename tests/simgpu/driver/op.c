/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ops: their life, what they depend on, and waiting for them. An op lives while
 * it is unfinished or somebody holds a reference: its stream as the last one,
 * an event, a waiting stream. Dead ones are used again, so that millions cost
 * no memory. Guarded by the lock.
 */
#include "tests/simgpu/driver/capture.h"
#include "tests/simgpu/driver/ctx.h"
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/stream.h"

#include <stdlib.h>
#include <string.h>

/* As on a real device, a stream takes so many ops; then the host waits. The
 * nodes of a graph are no calls of the host: a bound for memory's sake only. */
#define STREAM_DEPTH 1024
#define BRANCH_DEPTH 65536

static struct sg_op *spare; /* linked by next */
static uint64_t next_seq = 1;

uint64_t sg_op_next_seq(void)
{
	return next_seq;
}

/* ----------------------------------------------------------- life of an op */

static enum sg_engine_id engine_of(enum sg_op_kind kind)
{
	switch (kind) {
	case SG_OP_KERNEL:
	case SG_OP_COPY_D2D:
	case SG_OP_MEMSET:
		return SG_ENGINE_COMPUTE;
	case SG_OP_COPY_H2D:
		return SG_ENGINE_H2D;
	case SG_OP_COPY_D2H:
		return SG_ENGINE_D2H;
	default:
		return SG_ENGINE_NONE;
	}
}

struct sg_op *sg_op_new(enum sg_op_kind kind, struct sg_stream *stream)
{
	struct sg_op *op = spare, keep = {0};
	const struct sg_model *model = &stream->ctx->dev->model;

	if (op) {
		spare = op->next;
		keep.dependents = op->dependents;
		keep.cap_dependents = op->cap_dependents;
		keep.accesses = op->accesses;
		keep.cap_accesses = op->cap_accesses;
		keep.clock = op->clock;
		*op = keep;
	} else {
		op = sg_xcalloc(1, sizeof(*op));
	}
	op->refs = 1;
	op->kind = kind;
	op->engine = engine_of(kind);
	op->dev = stream->ctx->dev;
	op->stream = stream;
	if (op->engine == SG_ENGINE_COMPUTE)
		op->fixed_ns = model->kernel_latency_ns;
	else if (op->engine != SG_ENGINE_NONE)
		op->fixed_ns = model->copy_latency_ns;
	return op;
}

void sg_op_add_access(struct sg_op *op, uint64_t va, uint64_t bytes, bool read,
        bool write, bool certain)
{
	if (op->n_accesses == op->cap_accesses) {
		op->cap_accesses = op->cap_accesses ? op->cap_accesses * 2 : 4;
		op->accesses = sg_xrealloc(
		        op->accesses, op->cap_accesses * sizeof(*op->accesses));
	}
	op->accesses[op->n_accesses++] = (struct sg_access){
	        .va = va,
	        .bytes = bytes,
	        .read = read,
	        .write = write,
	        .certain = certain,
	};
}

void sg_op_ref(struct sg_op *op)
{
	op->refs++;
}

void sg_op_unref(struct sg_op *op)
{
	if (!op || --op->refs)
		return;
	op->next = spare;
	spare = op;
}

const char *sg_op_title(enum sg_op_kind kind, const char *name)
{
	if (name)
		return name;
	switch (kind) {
	case SG_OP_KERNEL:
		return "kernel";
	case SG_OP_COPY_H2D:
		return "host-to-device copy";
	case SG_OP_COPY_D2H:
		return "device-to-host copy";
	case SG_OP_COPY_D2D:
		return "device-to-device copy";
	case SG_OP_COPY_H2H:
		return "host-to-host copy";
	case SG_OP_MEMSET:
		return "memset";
	default:
		return "operation";
	}
}

/* ------------------------------------------------------------ dependencies */

static void depend(struct sg_op *op, struct sg_op *on)
{
	if (!on || on == op)
		return;
	if (sg_races_on())
		sg_clock_join(op, on);
	if (op->host_gate < on->host_gate)
		op->host_gate = on->host_gate;
	if (on->done)
		return;
	if (on->n_dependents == on->cap_dependents) {
		on->cap_dependents =
		        on->cap_dependents ? on->cap_dependents * 2 : 4;
		on->dependents = sg_xrealloc(on->dependents,
		        on->cap_dependents * sizeof(*on->dependents));
	}
	on->dependents[on->n_dependents++] = op;
	op->pending++;
}

static void depend_on_stream(struct sg_op *op)
{
	struct sg_stream *stream = op->stream;
	const struct sg_ctx *ctx = stream->ctx;

	depend(op, stream->last);
	for (unsigned i = 0; i < stream->n_waits; i++) {
		depend(op, stream->waits[i]);
		sg_op_unref(stream->waits[i]);
	}
	stream->n_waits = 0;
	if (stream->legacy && ctx->blocking_streams) {
		for (const struct sg_stream *s = ctx->streams; s; s = s->next) {
			if (s != stream && !s->non_blocking)
				depend(op, s->last);
		}
	} else if (!stream->legacy && !stream->non_blocking && ctx->legacy) {
		depend(op, ctx->legacy->last);
	}
}

void sg_op_finished(struct sg_op *op)
{
	struct sg_device *dev = op->dev;

	op->done = true;
	op->running = false;
	op->end_ns = sg_engine_now();
	dev->last_end_ns = op->end_ns;
	op->stream->outstanding--;
	if (op->previous)
		op->previous->next = op->next;
	else
		dev->unfinished = op->next;
	if (op->next)
		op->next->previous = op->previous;
	else
		dev->unfinished_tail = op->previous;
	op->next = op->previous = NULL;
	for (unsigned i = 0; i < op->n_dependents; i++) {
		struct sg_op *dependent = op->dependents[i];

		if (--dependent->pending)
			continue;
		dependent->ready_ns = dependent->issue_ns;
		if (dependent->ready_ns < op->end_ns)
			dependent->ready_ns = op->end_ns;
		sg_engine_submit(dependent);
	}
	op->n_dependents = 0;
	sg_activity(op);
	sg_op_unref(op);
}

/* ----------------------------------------------------------------- enqueue */

static void count(const struct sg_op *op)
{
	struct sg_counters *counters = &op->dev->count;

	switch (op->kind) {
	case SG_OP_KERNEL:
		counters->launches++;
		break;
	case SG_OP_COPY_H2D:
		counters->copies++;
		counters->bytes_h2d += op->bytes;
		break;
	case SG_OP_COPY_D2H:
		counters->copies++;
		counters->bytes_d2h += op->bytes;
		break;
	case SG_OP_COPY_D2D:
		counters->copies++;
		counters->bytes_d2d += op->bytes;
		break;
	case SG_OP_COPY_H2H:
		counters->copies++;
		break;
	case SG_OP_MEMSET:
		counters->memsets++;
		break;
	default:
		break;
	}
}

CUresult sg_op_enqueue(struct sg_op *op)
{
	struct sg_stream *stream = op->stream;
	struct sg_device *dev = op->dev;
	unsigned depth = stream->of_graph ? BRANCH_DEPTH : STREAM_DEPTH;
	CUresult before = dev->sticky, r = before;

	if (!r && stream->legacy)
		r = sg_capture_implicit(stream->ctx);
	if (!r && sg_settings.sticky_error &&
	        next_seq >= sg_settings.sticky_error_from) {
		sg_sticky_error(dev, sg_settings.sticky_error,
		        "SIMGPU_STICKY_ERROR at operation %llu",
		        (unsigned long long)next_seq);
		r = dev->sticky;
	}
	if (!r)
		r = sg_op_check(op);
	if (r) {
		/* A kernel's fault shows only when somebody looks. */
		bool late = op->kind == SG_OP_KERNEL && !before && dev->sticky;

		sg_op_unref(op);
		return late ? CUDA_SUCCESS : r;
	}
	op->seq = next_seq++;
	op->correlation = op->seq;
	sg_activity_external(op->external);
	while (stream->outstanding >= depth && sg_engine_step())
		sg_host_advance_to(sg_engine_now());
	op->issue_ns = sg_host_now();
	sg_engine_advance(op->issue_ns);
	if (sg_races_on())
		sg_clock_start(op);
	depend_on_stream(op);
	if (sg_races_on())
		sg_races_check(op);
	if (sg_mutating())
		sg_mutate_ordered(op);
	if (op->kind == SG_OP_HOST_FN) {
		sg_hostfn_push(op);
		/* The function may tell any thread how far things are. */
		if (sg_races_on())
			sg_clock_host_knows(op);
	}
	sg_op_unref(stream->last);
	stream->last = op;
	sg_op_ref(op);
	stream->outstanding++;
	op->previous = dev->unfinished_tail;
	if (dev->unfinished_tail)
		dev->unfinished_tail->next = op;
	else
		dev->unfinished = op;
	dev->unfinished_tail = op;
	op->queued = true;
	count(op);
	if (!op->pending) {
		op->ready_ns = op->issue_ns;
		sg_engine_submit(op);
	}
	if (sg_settings.launch_blocking && op->kind == SG_OP_KERNEL &&
	        !stream->of_graph)
		sg_op_wait(stream->last);
	return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------- waiting */

/* Simulates until op is done. */
static void finish(struct sg_op *op)
{
	while (!op->done) {
		if (sg_engine_step())
			continue;
		sg_say("a wait can never end");
		abort();
	}
}

void sg_op_wait(struct sg_op *op)
{
	if (!op)
		return;
	sg_op_ref(op);
	finish(op);
	sg_host_advance_to(op->end_ns);
	sg_hostfn_wait(op->host_gate);
	if (sg_races_on())
		sg_clock_host_knows(op);
	sg_op_unref(op);
}

bool sg_op_over(struct sg_op *op)
{
	if (!op->done)
		sg_engine_advance(sg_host_now());
	return op->done && op->end_ns <= sg_host_now() &&
	       sg_hostfn_done(op->host_gate);
}

bool sg_op_done(struct sg_op *op)
{
	if (!sg_op_over(op))
		return false;
	if (sg_races_on())
		sg_clock_host_knows(op);
	return true;
}

void sg_device_drain(struct sg_device *dev)
{
	while (dev->unfinished) {
		struct sg_op *op = dev->unfinished;

		sg_op_ref(op);
		finish(op);
		sg_host_advance_to(op->end_ns);
		sg_op_unref(op);
	}
	/* Ops that the simulation had finished ahead of the host. */
	sg_host_advance_to(dev->last_end_ns);
	sg_hostfn_wait(sg_hostfn_latest());
}

void sg_device_wait(struct sg_device *dev)
{
	sg_device_drain(dev);
	if (!sg_races_on())
		return;
	sg_clock_host_knows_device(dev);
	/* And what of other devices that work came after. */
	for (const struct sg_ctx *ctx = sg_ctx_first(); ctx; ctx = ctx->next) {
		for (const struct sg_stream *s = ctx->streams; s; s = s->next) {
			if (ctx->dev == dev && s->last)
				sg_clock_host_knows(s->last);
		}
	}
}

const struct sg_op *sg_range_busy(
        struct sg_device *dev, uint64_t va, uint64_t bytes)
{
	sg_engine_advance(sg_host_now());
	for (const struct sg_op *op = dev->unfinished; op; op = op->next) {
		for (unsigned i = 0; i < op->n_accesses; i++) {
			const struct sg_access *access = &op->accesses[i];

			if (access->va < va + bytes &&
			        va < access->va + access->bytes)
				return op;
		}
	}
	return NULL;
}
