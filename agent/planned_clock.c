/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MARKS 4
#define LAPS  63

static struct {
	CUevent events[MARKS];
	uint64_t count; /* recorded since the last stop */
	uint64_t late;  /* before it, of which two were not read; or 0 */
	struct ts_planned_clock clock;
} state;

static struct {
	uint64_t plan, count;
	uint64_t ns[LAPS];
} laps;

/* From the event before the last one of @count to the last one; 0: unknown. */
static uint64_t between_last(const struct ts_gpu_ops *ops, uint64_t count)
{
	float ms = 0;

	if (ops->event_elapsed(&ms, state.events[(count - 2) % MARKS],
	            state.events[(count - 1) % MARKS]) != CUDA_SUCCESS)
		return 0;
	return (uint64_t)((double)ms * 1e6);
}

static uint64_t read_step(const struct ts_gpu_ops *ops)
{
	uint64_t took_ns = between_last(ops, state.count);

	if (!took_ns)
		return 0;
	state.clock.last_ns = took_ns;
	if (!state.clock.steps || state.clock.last_ns < state.clock.shortest_ns)
		state.clock.shortest_ns = state.clock.last_ns;
	state.clock.steps++;
	return took_ns;
}

uint64_t ts_planned_clock_step(const struct ts_gpu_ops *ops, CUstream stream)
{
	CUevent *event = &state.events[state.count % MARKS];
	uint64_t took_ns = 0;

	if (!*event &&
	        ops->event_create(event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
		*event = NULL;
		return 0;
	}
	/* Before the next one is recorded: the device may just have come. */
	if (state.count >= 2)
		took_ns = read_step(ops);
	else if (state.late)
		took_ns = between_last(ops, state.late);
	state.late = 0;
	if (ops->event_record(*event, stream) == CUDA_SUCCESS)
		state.count++;
	return took_ns;
}

void ts_planned_clock_stop(void)
{
	if (state.count >= 2)
		state.late = state.count;
	state.count = 0;
}

void ts_planned_clock_forget(void)
{
	ts_planned_clock_stop();
	state.late = 0;
	state.clock = (struct ts_planned_clock){0};
}

void ts_planned_clock_read(struct ts_planned_clock *ret)
{
	*ret = state.clock;
}

void ts_planned_laps_note(uint64_t plan, uint64_t ns)
{
	if (laps.plan != plan)
		laps.count = 0;
	laps.plan = plan;
	laps.ns[laps.count++ % LAPS] = ns;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint64_t ts_planned_laps_median(uint64_t plan)
{
	size_t count = laps.count < LAPS ? laps.count : LAPS;
	uint64_t sorted[LAPS];

	if (!count || laps.plan != plan)
		return 0;
	memcpy(sorted, laps.ns, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_time);
	return sorted[count / 2];
}
