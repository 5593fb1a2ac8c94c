/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual time. Each device has one compute engine and one engine for each
 * direction of its link; an op without an engine takes no time. The simulation
 * goes from one event to the next (an op may start, has got over its latency,
 * ends) and only as far as somebody needs to know. Engines take ops in order of
 * priority, then of the time they became ready, then of arrival.
 *
 * A copy over the link waits for its latency, then moves its bytes; while both
 * directions move bytes each goes at its slower rate. Times are whole
 * nanoseconds, so each change of rate rounds once.
 *
 * Owns the two clocks. Guarded by the lock.
 */
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/sg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9
#define NEVER    UINT64_MAX

typedef bool (*before_fn)(const struct sg_op *a, const struct sg_op *b);
struct heap {
	struct sg_op **ops;
	unsigned n, cap;
};
struct sg_engine {
	enum sg_engine_id id;
	struct heap future; /* ready later; by time, arrival */
	struct heap ready;  /* by priority, time, arrival */
	struct sg_op *running;
	bool moving;         /* bytes cross the link */
	uint64_t event_ns;   /* when `running` ends or begins to move bytes */
	uint64_t counted_ns; /* remaining is right as of then */
};

static uint64_t host_ns, now_ns;
static struct heap timers; /* ops without engine; by time, arrival */

/* ------------------------------------------------------------------ clocks */

uint64_t sg_host_now(void)
{
	return host_ns;
}

void sg_host_advance(uint64_t ns)
{
	host_ns += ns;
}

void sg_host_advance_to(uint64_t when)
{
	if (host_ns < when)
		host_ns = when;
}

uint64_t sg_engine_now(void)
{
	return now_ns;
}

/* ------------------------------------------------------------------- heaps */

static bool earlier(const struct sg_op *a, const struct sg_op *b)
{
	if (a->ready_ns != b->ready_ns)
		return a->ready_ns < b->ready_ns;
	return a->seq < b->seq;
}

static bool more_urgent(const struct sg_op *a, const struct sg_op *b)
{
	/* As in the API, a lower number is a higher priority. */
	if (a->stream->priority != b->stream->priority)
		return a->stream->priority < b->stream->priority;
	return earlier(a, b);
}

static void heap_push(struct heap *heap, struct sg_op *op, before_fn before)
{
	unsigned i = heap->n++;

	if (heap->n > heap->cap) {
		heap->cap = heap->cap ? heap->cap * 2 : 64;
		heap->ops =
		        sg_xrealloc(heap->ops, heap->cap * sizeof(*heap->ops));
	}
	while (i > 0 && before(op, heap->ops[(i - 1) / 2])) {
		heap->ops[i] = heap->ops[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->ops[i] = op;
}

static struct sg_op *heap_pop(struct heap *heap, before_fn before)
{
	struct sg_op *top = heap->ops[0], *last = heap->ops[--heap->n];
	unsigned i = 0;

	for (;;) {
		unsigned child = 2 * i + 1;

		if (child + 1 < heap->n &&
		        before(heap->ops[child + 1], heap->ops[child]))
			child++;
		if (child >= heap->n || !before(heap->ops[child], last))
			break;
		heap->ops[i] = heap->ops[child];
		i = child;
	}
	heap->ops[i] = last;
	return top;
}

/* ----------------------------------------------------------------- engines */

struct sg_engine *sg_engines_create(struct sg_device *dev)
{
	struct sg_engine *engines =
	        sg_xcalloc(SG_ENGINE_COUNT, sizeof(*engines));

	for (int i = 0; i < SG_ENGINE_COUNT; i++)
		engines[i].id = (enum sg_engine_id)i;
	return engines;
}

void sg_engine_submit(struct sg_op *op)
{
	if (op->engine == SG_ENGINE_NONE)
		heap_push(&timers, op, earlier);
	else
		heap_push(&op->dev->engines[op->engine].future, op, earlier);
}

/* How fast op goes, of what the model says. */
static double speed(const struct sg_slow *slow, const struct sg_op *op)
{
	uint64_t at = slow->part ? slow->launches : op->seq;

	return at >= slow->from ? slow->factor : 1;
}

static bool is_meant(const struct sg_slow *slow, const struct sg_op *op)
{
	return slow->part && op->kind == SG_OP_KERNEL && op->name &&
	       strstr(op->name, slow->part);
}

static uint64_t kernel_ns(const struct sg_op *op, uint64_t ns)
{
	const struct sg_slow *slow = &sg_settings.slow_kernel;

	if (slow->part && !is_meant(slow, op))
		return ns;
	return (uint64_t)((double)ns / speed(slow, op));
}

static double link_rate(const struct sg_device *dev, enum sg_engine_id id)
{
	const struct sg_model *model = &dev->model;
	bool both = dev->engines[SG_ENGINE_H2D].moving &&
	            dev->engines[SG_ENGINE_D2H].moving;

	double rate;

	if (id == SG_ENGINE_H2D)
		rate = both ? model->h2d_both_bytes_per_s
		            : model->h2d_bytes_per_s;
	else
		rate = both ? model->d2h_both_bytes_per_s
		            : model->d2h_bytes_per_s;
	return rate * speed(&sg_settings.slow_link, dev->engines[id].running);
}

/* Takes off what the link has moved since it was last counted. */
static void count_moved(struct sg_device *dev, enum sg_engine_id id)
{
	struct sg_engine *engine = &dev->engines[id];

	if (!engine->moving)
		return;
	engine->running->remaining -= link_rate(dev, id) *
	                              (double)(now_ns - engine->counted_ns) /
	                              NS_PER_S;
	if (engine->running->remaining < 0)
		engine->running->remaining = 0;
	engine->counted_ns = now_ns;
}

static void foresee_end(struct sg_device *dev, enum sg_engine_id id)
{
	struct sg_engine *engine = &dev->engines[id];

	if (engine->moving)
		engine->event_ns =
		        now_ns + (uint64_t)ceil(engine->running->remaining *
		                                NS_PER_S / link_rate(dev, id));
}

/* One direction begins or ceases to move bytes: both change their rate. */
static void set_moving(struct sg_device *dev, enum sg_engine_id id, bool moving)
{
	count_moved(dev, SG_ENGINE_H2D);
	count_moved(dev, SG_ENGINE_D2H);
	dev->engines[id].moving = moving;
	dev->engines[id].counted_ns = now_ns;
	foresee_end(dev, SG_ENGINE_H2D);
	foresee_end(dev, SG_ENGINE_D2H);
}

static uint64_t compute_ns(const struct sg_op *op)
{
	const struct sg_model *model = &op->dev->model;
	double rate = model->memory_bytes_per_s * model->memory_efficiency;

	switch (op->kind) {
	case SG_OP_COPY_D2D:
		rate /= 2; /* reads and writes */
		break;
	case SG_OP_MEMSET:
		break;
	default:
		return op->fixed_ns;
	}
	return op->fixed_ns +
	       (uint64_t)ceil((double)op->bytes * NS_PER_S / rate);
}

static void start(struct sg_device *dev, struct sg_engine *engine)
{
	struct sg_op *op = heap_pop(&engine->ready, more_urgent);

	sg_settings.slow_link.launches += is_meant(&sg_settings.slow_link, op);
	sg_settings.slow_kernel.launches +=
	        is_meant(&sg_settings.slow_kernel, op);
	engine->running = op;
	op->running = true;
	op->start_ns = now_ns;
	if (engine->id == SG_ENGINE_COMPUTE) {
		engine->event_ns = now_ns + compute_ns(op);
		if (op->kind == SG_OP_KERNEL)
			engine->event_ns =
			        now_ns + kernel_ns(op, compute_ns(op));
	} else {
		op->remaining = (double)op->bytes;
		engine->event_ns = now_ns + op->fixed_ns;
	}
}

/* The event of a running op has come. */
static void reach_event(struct sg_device *dev, struct sg_engine *engine)
{
	struct sg_op *op = engine->running;

	if (engine->id != SG_ENGINE_COMPUTE && !engine->moving && op->bytes) {
		set_moving(dev, engine->id, true);
		return;
	}
	if (engine->moving)
		set_moving(dev, engine->id, false);
	dev->busy_ns[engine->id] += now_ns - op->start_ns;
	engine->running = NULL;
	sg_op_finished(op);
}

static uint64_t next_event(const struct sg_engine *engine)
{
	if (engine->running)
		return engine->event_ns;
	if (engine->ready.n)
		return now_ns;
	return engine->future.n ? engine->future.ops[0]->ready_ns : NEVER;
}

static uint64_t next_event_of_all(void)
{
	uint64_t first = timers.n ? timers.ops[0]->ready_ns : NEVER;

	for (unsigned d = 0; d < sg_device_count; d++) {
		for (int e = 0; e < SG_ENGINE_COUNT; e++) {
			uint64_t when = next_event(&sg_devices[d].engines[e]);

			if (when < first)
				first = when;
		}
	}
	return first;
}

/* All that happens at one time: ends first, so that what became ready by them
 * competes for the engines. */
static void happen(void)
{
	for (unsigned d = 0; d < sg_device_count; d++) {
		for (int e = 0; e < SG_ENGINE_COUNT; e++) {
			struct sg_engine *engine = &sg_devices[d].engines[e];

			if (engine->running && engine->event_ns <= now_ns)
				reach_event(&sg_devices[d], engine);
		}
	}
	while (timers.n && timers.ops[0]->ready_ns <= now_ns) {
		struct sg_op *op = heap_pop(&timers, earlier);

		op->start_ns = now_ns;
		sg_op_finished(op);
	}
	for (unsigned d = 0; d < sg_device_count; d++) {
		for (int e = 0; e < SG_ENGINE_COUNT; e++) {
			struct sg_engine *engine = &sg_devices[d].engines[e];

			while (engine->future.n &&
			        engine->future.ops[0]->ready_ns <= now_ns)
				heap_push(&engine->ready,
				        heap_pop(&engine->future, earlier),
				        more_urgent);
			if (!engine->running && engine->ready.n)
				start(&sg_devices[d], engine);
		}
	}
}

void sg_engine_advance(uint64_t when)
{
	for (;;) {
		uint64_t next = next_event_of_all();

		if (next == NEVER || next > when)
			return;
		if (now_ns < next)
			now_ns = next;
		happen();
	}
}

bool sg_engine_step(void)
{
	uint64_t next = next_event_of_all();

	if (next == NEVER)
		return false;
	if (now_ns < next)
		now_ns = next;
	happen();
	return true;
}
