/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_cost.h"

#include <string.h>
#include <time.h>

#include "agent/base/log.h"

static struct {
	uint64_t idle_ops, idle_ns, ops, ns; /* of the step so far */
	struct ts_planned_cost best;
} state;

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t ts_planned_cost_begin(void)
{
	return ts_log_enabled(TS_LOG_DEBUG) ? now_ns() : 0;
}

void ts_planned_cost_op(uint64_t begin_ns, bool moved)
{
	uint64_t took_ns;

	if (!begin_ns)
		return;
	took_ns = now_ns() - begin_ns;
	state.ops++;
	state.ns += took_ns;
	if (moved)
		return;
	state.idle_ops++;
	state.idle_ns += took_ns;
}

void ts_planned_cost_step(bool left)
{
	uint64_t idle_ns = state.idle_ops ? state.idle_ns / state.idle_ops : 0;

	if (!left && idle_ns &&
	        (!state.best.idle_ns || idle_ns < state.best.idle_ns)) {
		state.best.idle_ns = idle_ns;
		state.best.mean_ns = state.ns / state.ops;
	}
	state.idle_ops = 0;
	state.idle_ns = 0;
	state.ops = 0;
	state.ns = 0;
}

void ts_planned_cost_read(struct ts_planned_cost *ret)
{
	*ret = state.best;
}
