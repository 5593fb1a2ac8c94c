/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/profiler.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/jsonfile.h"
#include "agent/memline.h"
#include "agent/profile.h"
#include "agent/recorder.h"
#include "agent/shapes.h"
#include "agent/timing.h"

/* Steps of a shape that are timed; the shorter time of each op counts. */
#define REFERENCE_STEPS 2
/* A program whose every step differs is not timed for ever. */
#define TIMED_MAX 64
/* Among so many steps shapes are looked for that take turns. */
#define RECENT_STEPS 12

static struct {
	bool on;            /* constant after start */
	atomic_bool taking; /* a thread takes a step */
	atomic_uint_least64_t steps;

	/* Of the thread that takes a step. */
	struct ts_shapes shapes;
	struct ts_profile_context context;
	bool knows_device;
	uint64_t timed;        /* steps */
	size_t done_in_row;    /* steps of shapes that need no more times */
	uint64_t written_peak; /* of the shape in the file */
	uint64_t written_hash;
	bool written_again; /* that shape came more than once */
	bool by_period;     /* steps so far were told by periods */
} profiler;

void ts_profiler_init(void)
{
	const struct ts_config *config = &ts_agent.config;

	profiler.on = *config->profile != '\0';
	if (!profiler.on)
		return;
	ts_recorder_init();
	ts_timing_init(ts_agent.ops);
}

bool ts_profiler_is_on(void)
{
	return profiler.on;
}

uint64_t ts_profiler_steps(void)
{
	return atomic_load(&profiler.steps);
}

void ts_profiler_begin(struct ts_op *op)
{
	/* Events would become part of the graph. */
	if (profiler.on && ts_recorder_is_timing() &&
	        !atomic_load(&ts_agent.capturing))
		op->timer = ts_timing_begin(op->stream);
}

/* Programs without a backward: as the period of their ops has it. */
static bool ends_period(void)
{
	struct ts_tape *tape = &ts_agent.tape;
	uint64_t first, length, whole;
	bool ends;

	if (ts_recorder_saw_backward())
		return false;
	ts_mutex_lock(&tape->lock);
	whole = ts_step_last(&tape->step, &first, &length);
	ends = whole >= 3 && first + length == tape->op_count;
	ts_mutex_unlock(&tape->lock);
	return ends;
}

/* Driver allocations, in which the framework's blocks lie. */
static uint64_t allocated_bytes(int device)
{
	struct ts_blocks *blocks = &ts_agent.blocks;
	struct ts_map_node *node;
	uint64_t bytes = 0;

	ts_mutex_lock(&blocks->lock);
	node = ts_map_ceiling(&blocks->allocations, 0);
	while (node) {
		/* The node is the allocation's first member. */
		const struct ts_allocation *allocation = (void *)node;

		if (allocation->whole.device == device)
			bytes += allocation->whole.bytes;
		node = ts_map_ceiling(&blocks->allocations, node->key + 1);
	}
	ts_mutex_unlock(&blocks->lock);
	return bytes;
}

/* Within the limit, as every other use of memory. */
static int measure_link(int device, struct ts_bandwidth *link)
{
	struct ts_pager *pager = ts_agent_pager(device);
	struct ts_shortage shortage;
	int rc;

	if (pager &&
	        ts_pager_make_room(pager, TS_BANDWIDTH_BYTES, 0, &shortage))
		return -ENOMEM;
	rc = ts_bandwidth_measure(ts_agent.ops, link);
	if (pager)
		ts_pager_room_changed(pager);
	return rc;
}

/* Driver calls: the device's name, size, and speed of its link. */
static void look_at_device(void)
{
	struct ts_profile_context *context = &profiler.context;
	size_t free_bytes, total_bytes;
	CUdevice device = 0;
	int rc;

	if (ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS)
		return;
	if (ts_agent.ops->device_name(context->device_name,
	            sizeof(context->device_name), device) != CUDA_SUCCESS)
		strcpy(context->device_name, "?");
	if (ts_agent.ops->mem_get_info(&free_bytes, &total_bytes) ==
	        CUDA_SUCCESS) {
		uint64_t used = total_bytes - free_bytes;
		uint64_t ours = allocated_bytes(device);

		context->device_bytes = total_bytes;
		context->outside_bytes = used > ours ? used - ours : 0;
	}
	if (atomic_load(&ts_agent.capturing))
		return;
	rc = measure_link(device, &context->link);
	context->link_measured = !rc;
	if (rc)
		ts_log(TS_LOG_WARN,
		        "profile: the link's speed is not measured (%s), "
		        "guessed",
		        strerror(-rc));
	profiler.knows_device = true;
}

static void write_profile(
        const struct ts_recording *step, const struct ts_shape *shape)
{
	struct ts_profile_context *context = &profiler.context;
	const char *path = ts_agent.config.profile;
	json_t *json;
	int rc;

	context->steps = profiler.shapes.steps;
	context->same_steps = shape->seen;
	context->timed_steps = shape->timed;
	context->shapes = profiler.shapes.count;
	context->peak_bytes = ts_recorder_peak_bytes();
	json = ts_profile_make(step, context);
	rc = ts_json_write(json, path, JSON_COMPACT);
	json_decref(json);
	if (rc)
		ts_log(TS_LOG_ERROR,
		        "TAPESWAP_PROFILE=\"%s\" was not written: %s", path,
		        strerror(-rc));
}

static uint64_t step_peak(const struct ts_recording *step)
{
	struct ts_memline line;

	if (ts_memline_make(step, ts_memline_device(step), &line))
		return 0;
	ts_memline_finish(&line);
	return line.peak_bytes;
}

/*
 * Of shapes that came again the one that needs most memory is to be planned
 * for; before one did, any step is better than none.
 */
static bool is_worth_writing(
        const struct ts_recording *step, const struct ts_shape *shape)
{
	uint64_t peak = step_peak(step);
	bool again = shape->seen > 1;

	if (!shape->timed)
		return false;
	if (shape->hash != profiler.written_hash &&
	        (again < profiler.written_again ||
	                (again == profiler.written_again &&
	                        peak <= profiler.written_peak)))
		return false;
	profiler.written_hash = shape->hash;
	profiler.written_again = again;
	profiler.written_peak = peak;
	return true;
}

/* Times are taken until every shape that comes again has enough of them. */
static void decide_timing(const struct ts_shape *shape)
{
	size_t wanted = ts_shapes_recent(&profiler.shapes, RECENT_STEPS);

	profiler.timed += ts_recorder_is_timing();
	if (shape->timed >= REFERENCE_STEPS)
		profiler.done_in_row++;
	else
		profiler.done_in_row = 0;
	ts_recorder_set_timing((!wanted || profiler.done_in_row < wanted) &&
	                       profiler.timed < TIMED_MAX);
}

/* What repeated before the first backward was no step but preparation. */
static void forget_periods(void)
{
	ts_shapes_finish(&profiler.shapes);
	profiler.shapes.steps = 0;
	profiler.timed = 0;
	profiler.done_in_row = 0;
	profiler.written_hash = 0;
	profiler.written_peak = 0;
	profiler.written_again = false;
	profiler.by_period = false;
}

/* Blocks that die after the last op die with the program, not the step. */
static void revive(struct ts_recording *step)
{
	uint64_t end = step->first_op + step->op_count;

	for (size_t i = 0; i < step->block_count; i++) {
		if (step->blocks[i].died != end)
			continue;
		step->blocks[i].died = TS_NEVER;
		step->blocks[i].died_event = TS_NEVER;
	}
}

static void take_step(bool wait)
{
	struct ts_recording step;
	struct ts_shape *shape;
	uint64_t timed;
	bool wanted, was_again = profiler.written_again;

	if (!ts_recorder_take(wait, &step))
		return;
	if (!wait)
		revive(&step);
	if (wait && !profiler.knows_device)
		look_at_device();
	if (!ts_recorder_saw_backward())
		profiler.by_period = true;
	else if (profiler.by_period)
		forget_periods();
	timed = ts_shapes_timed(&profiler.shapes);
	shape = ts_shapes_note(&profiler.shapes, &step);
	timed = ts_shapes_timed(&profiler.shapes) - timed;
	atomic_store(&profiler.steps, profiler.shapes.steps);
	if (shape) {
		wanted = timed && is_worth_writing(&step, shape);
		if (wait)
			decide_timing(shape);
		else
			wanted &= !was_again;
		if (wanted)
			write_profile(&step, shape);
	}
	ts_recording_finish(&step);
}

void ts_profiler_end(struct ts_op *op, bool issued)
{
	if (!profiler.on)
		return;
	if (!issued) {
		ts_timing_release(op->timer);
		return;
	}
	ts_timing_end(op->timer, op->stream);
	if (!ts_recorder_op(op, ends_period()))
		return;
	if (atomic_exchange(&profiler.taking, true))
		return;
	take_step(true);
	atomic_store(&profiler.taking, false);
}

void ts_profiler_synchronized(void)
{
	if (profiler.on)
		ts_recorder_settle();
}

void ts_profiler_stop(void)
{
	if (!profiler.on || atomic_exchange(&profiler.taking, true))
		return;
	take_step(false);
	atomic_store(&profiler.taking, false);
}
