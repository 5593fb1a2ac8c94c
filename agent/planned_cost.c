/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_cost.h"

#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/log.h"
#include "runtime/driver_calls.h"

/* Times of ops without a move are counted to so many ns, up to so many. */
#define CLASS_NS 4
#define CLASSES  1024

static struct {
	uint64_t ops, ns; /* of the step so far */
	uint64_t mean_ns; /* least of a step */
	/* Of the driver's calls that takes time itself: in every other step. */
	bool by_driver;
	uint64_t driver_ns; /* likewise */
	uint64_t idle_ops, idle[CLASSES];
} state;

uint64_t ts_planned_cost_begin(void)
{
	if (!ts_log_enabled(TS_LOG_DEBUG))
		return 0;
	if (state.by_driver)
		ts_driver_time_start();
	return ts_now_ns();
}

void ts_planned_cost_op(uint64_t begin_ns, bool moved)
{
	uint64_t took_ns, slot;

	if (!begin_ns)
		return;
	state.ops++;
	if (state.by_driver) {
		state.ns += ts_driver_time_stop();
		return;
	}
	took_ns = ts_now_ns() - begin_ns;
	state.ns += took_ns;
	if (moved)
		return;
	slot = took_ns / CLASS_NS;
	state.idle[slot < CLASSES ? slot : CLASSES - 1]++;
	state.idle_ops++;
}

void ts_planned_cost_end(uint64_t begin_ns)
{
	if (begin_ns)
		ts_driver_time_stop();
}

void ts_planned_cost_step(bool left)
{
	uint64_t mean_ns = state.ops ? state.ns / state.ops : 0;
	uint64_t *least = state.by_driver ? &state.driver_ns : &state.mean_ns;

	if (!left && mean_ns && (!*least || mean_ns < *least))
		*least = mean_ns;
	if (!left)
		state.by_driver = !state.by_driver;
	state.ops = 0;
	state.ns = 0;
}

void ts_planned_cost_read(struct ts_planned_cost *ret)
{
	uint64_t below = 0;

	*ret = (struct ts_planned_cost){
	        .mean_ns = state.mean_ns, .driver_ns = state.driver_ns};
	if (!state.idle_ops)
		return;
	for (uint64_t slot = 0; 2 * below < state.idle_ops; slot++) {
		below += state.idle[slot];
		ret->idle_ns = (slot + 1) * CLASS_NS;
	}
}
