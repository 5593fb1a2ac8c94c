/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/planned_clock.h"
#include "agent/planned_cost.h"
#include "agent/planned_internal.h"
#include "agent/proof.h"

/* Who wants the plan's file waits for other threads a second at most. */
#define LOCK_TRIES   1000
#define LOCK_WAIT_US 1000

/* The driver's calls of steady steps, by what they do. */
static json_t *calls_json(const struct ts_driver_calls *calls)
{
	static const char *const names[TS_CALL_KINDS] = {
	        [TS_CALL_COPY] = "copies",
	        [TS_CALL_RECORD] = "records",
	        [TS_CALL_ORDER] = "orders",
	        [TS_CALL_QUERY] = "queries",
	        [TS_CALL_WAIT] = "waits",
	        [TS_CALL_CONTEXT] = "contexts",
	};
	json_t *json = json_object();

	for (int kind = 0; kind < TS_CALL_KINDS; kind++)
		json_object_set_new(json, names[kind],
		        json_integer((json_int_t)calls->count[kind]));
	return json;
}

json_t *ts_planned_status(void)
{
	const struct ts_planned_figures *figures = &ts_planned.figures;
	const struct {
		const char *name;
		uint64_t value;
	} named[] = {
	        {"plans", figures->plans},
	        {"declined", figures->declined},
	        {"remade", figures->remade},
	        {"adopted", figures->adopted},
	        {"joins", figures->joins},
	        {"left", figures->left},
	        {"steps", figures->steps},
	        {"missed", figures->missed},
	        {"doubted", figures->doubted},
	        {"astray", figures->astray},
	        {"steady_steps", figures->steady_steps},
	        {"steady_vmm_calls", figures->steady_vmm_calls},
	        {"steady_moved_pages", figures->steady.pages},
	        {"steady_copies", figures->steady.copies},
	        {"steady_copied_bytes", figures->steady.copied_bytes},
	        {"steady_batches", figures->steady.batches},
	        {"steady_departures", figures->steady.departures},
	};
	const struct ts_planned_entry *told = ts_planned.told;
	struct ts_planned_cost cost;
	uint64_t lap_ns = 0;
	json_t *json;

	if (!ts_planned.on || !figures->plans)
		return NULL;
	json = json_object();
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		json_object_set_new(json, named[i].name,
		        json_integer((json_int_t)named[i].value));
	json_object_set_new(json, "steady_driver_calls",
	        calls_json(&figures->steady.calls));
	/* As it was measured, whatever the plan is held against. */
	if (json && told && told->pager_ns)
		json_object_set_new(json, "pager_step_ns",
		        json_integer(
		                (json_int_t)(told->pager_ns - told->doubt_ns)));
	if (json && told && told->doubt_ns)
		json_object_set_new(json, "pager_doubt_ns",
		        json_integer((json_int_t)told->doubt_ns));
	if (told)
		lap_ns = ts_planned_laps_median(told->number);
	if (json && lap_ns)
		json_object_set_new(json, "median_step_ns",
		        json_integer((json_int_t)lap_ns));
	ts_planned_cost_read(&cost);
	if (json && cost.idle_ns) {
		json_object_set_new(json, "idle_op_ns",
		        json_integer((json_int_t)cost.idle_ns));
		json_object_set_new(json, "mean_op_ns",
		        json_integer((json_int_t)cost.mean_ns));
		json_object_set_new(json, "driver_op_ns",
		        json_integer((json_int_t)cost.driver_ns));
	}
	return json;
}

/* Lock held. */
static json_t *plan_json(void)
{
	const struct ts_planned_entry *entry = ts_planned.told;
	json_t *root = json_deep_copy(entry ? entry->json : ts_planned.former),
	       *part;
	struct ts_planned_clock clock;

	if (!root)
		return NULL;
	json_object_set_new(root, "tool_version", json_string(TS_VERSION));
	part = entry ? ts_proof_kernels(entry->observed) : NULL;
	if (part)
		json_object_set_new(root, "kernels", part);
	part = ts_planned_status();
	ts_planned_clock_read(&clock);
	if (part) {
		json_object_set_new(part, "timed_steps",
		        json_integer((json_int_t)clock.steps));
		if (clock.steps) {
			json_object_set_new(part, "step_ns",
			        json_integer((json_int_t)clock.last_ns));
			json_object_set_new(part, "shortest_step_ns",
			        json_integer((json_int_t)clock.shortest_ns));
		}
		json_object_set_new(root, "measured", part);
	}
	return root;
}

/* At exit a thread may hold the lock that never comes back. */
static bool lock_for_end(void)
{
	for (int i = 0; ts_planned.on && i < LOCK_TRIES; i++) {
		if (ts_mutex_try_lock(&ts_planned.lock))
			return true;
		usleep(LOCK_WAIT_US);
	}
	return false;
}

void ts_planned_outcome(struct ts_planned_outcome *ret)
{
	const struct ts_planned_entry *told;

	memset(ret, 0, sizeof(*ret));
	if (!lock_for_end())
		return;
	told = ts_planned.told;
	*ret = (struct ts_planned_outcome){.steps = ts_planned.figures.steps,
	        .weighed = ts_planned.figures.weighed,
	        .replays = ts_planned.figures.replays,
	        .turns = ts_planned.figures.in_turns};
	ret->step_ns = told ? ts_planned_laps_median(told->number) : 0;
	if (ret->step_ns)
		ret->predicted_ns = told->made.plan.predicted_step_ns;
	ts_mutex_unlock(&ts_planned.lock);
}

json_t *ts_planned_json(void)
{
	json_t *json;

	if (!lock_for_end())
		return NULL;
	json = plan_json();
	ts_mutex_unlock(&ts_planned.lock);
	return json;
}
