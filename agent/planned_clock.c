/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_clock.h"

#include <stdbool.h>

#define MARKS 4

static struct {
	CUevent events[MARKS];
	uint64_t count; /* recorded since the last stop */
	struct ts_planned_clock clock;
} state;

/* From the event before the last one to the last one. */
static void read_step(const struct ts_gpu_ops *ops)
{
	float ms = 0;

	if (ops->event_elapsed(&ms, state.events[(state.count - 2) % MARKS],
	            state.events[(state.count - 1) % MARKS]) != CUDA_SUCCESS)
		return;
	state.clock.last_ns = (uint64_t)((double)ms * 1e6);
	if (!state.clock.steps || state.clock.last_ns < state.clock.shortest_ns)
		state.clock.shortest_ns = state.clock.last_ns;
	state.clock.steps++;
}

void ts_planned_clock_step(const struct ts_gpu_ops *ops, CUstream stream)
{
	CUevent *event = &state.events[state.count % MARKS];

	if (!*event &&
	        ops->event_create(event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
		*event = NULL;
		return;
	}
	/* Before the next one is recorded: the device may just have come. */
	if (state.count >= 2)
		read_step(ops);
	if (ops->event_record(*event, stream) == CUDA_SUCCESS)
		state.count++;
}

void ts_planned_clock_stop(void)
{
	state.count = 0;
}

void ts_planned_clock_forget(void)
{
	ts_planned_clock_stop();
	state.clock = (struct ts_planned_clock){0};
}

void ts_planned_clock_read(struct ts_planned_clock *ret)
{
	*ret = state.clock;
}
