/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/jsonfile.h"
#include "agent/planned.h"
#include "agent/profiler.h"
#include "agent/recorder.h"
#include "agent/remake.h"
#include "agent/tape_json.h"
#include "runtime/vmm_calls.h"

struct tape_figures {
	uint64_t totals[TS_OP_KIND_COUNT];
	uint64_t ops, captured, collectives, steps, step_ops;
};

bool ts_status_device(int device, struct ts_pager_stats *ret_stats)
{
	struct ts_agent_device *place = &ts_agent.devices[device];
	struct ts_pager *pager = ts_agent_pager(device);
	bool found = true;

	if (pager) {
		ts_pager_stats(pager, ret_stats);
		return true;
	}
	ts_mutex_lock(&ts_agent.lock);
	found = place->has_past;
	if (found)
		*ret_stats = place->past;
	ts_mutex_unlock(&ts_agent.lock);
	return found;
}

static uint64_t wait_ns(const struct ts_pager_stats *stats)
{
	return stats->wait_ops_ns + stats->wait_copies_ns +
	       stats->wait_pinning_ns;
}

json_t *ts_status_moved(const struct ts_pager_stats *stats)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
	        "out_bytes", (json_int_t)stats->out_bytes, "in_bytes",
	        (json_int_t)stats->in_bytes, "copies_out",
	        (json_int_t)stats->copies_out, "copies_in",
	        (json_int_t)stats->copies_in, "evicted_pages",
	        (json_int_t)stats->evicted_pages, "reclaimed_pages",
	        (json_int_t)stats->reclaimed_pages, "wait_ns",
	        (json_int_t)wait_ns(stats), "wait_ops_ns",
	        (json_int_t)stats->wait_ops_ns, "wait_copies_ns",
	        (json_int_t)stats->wait_copies_ns, "wait_pinning_ns",
	        (json_int_t)stats->wait_pinning_ns);
}

static void read_tape(struct tape_figures *figures)
{
	struct ts_tape *tape = &ts_agent.tape;
	uint64_t first;

	memset(figures, 0, sizeof(*figures));
	ts_mutex_lock(&tape->lock);
	figures->captured = atomic_load(&tape->captured);
	figures->collectives = atomic_load(&tape->collectives);
	for (int kind = 0; kind < TS_OP_KIND_COUNT; kind++) {
		figures->totals[kind] = atomic_load(&tape->totals[kind]);
		figures->ops += figures->totals[kind];
	}
	figures->steps = ts_step_last(&tape->step, &first, &figures->step_ops);
	ts_mutex_unlock(&tape->lock);
	/* The profiler tells evaluation and changing shapes from steps. */
	if (ts_profiler_steps())
		figures->steps = ts_profiler_steps();
}

/* @plan: the file to look at, or "". */
static void say_device(int device, const struct ts_pager_stats *stats,
        const struct tape_figures *tape, const char *plan)
{
	char steps[64] = "", moved[160] = "nothing moved", file[160] = "";
	unsigned int shortages = atomic_load(&ts_agent.shortages);
	char verdict[64] = "ok";

	if (stats->peak_bytes > stats->limit_bytes)
		snprintf(verdict, sizeof(verdict), "limit exceeded");
	if (shortages)
		snprintf(verdict, sizeof(verdict), "out of memory %u times",
		        shortages);
	if (tape->steps)
		snprintf(steps, sizeof(steps),
		        "; %" PRIu64 " steps of %" PRIu64 " ops", tape->steps,
		        tape->step_ops);
	if (stats->evicted_pages || stats->in_bytes || stats->out_bytes)
		snprintf(moved, sizeof(moved),
		        "out %s, in %s in all, %.1f s waited; host %s",
		        ts_size(stats->out_bytes).text,
		        ts_size(stats->in_bytes).text,
		        (double)wait_ns(stats) * 1e-9,
		        ts_size(stats->host_pinned_bytes).text);
	if (*plan)
		snprintf(file, sizeof(file), " -> %.140s", plan);
	ts_log(TS_LOG_INFO, "%s: device %d peak %s of %s%s; %s%s", verdict,
	        device, ts_size(stats->peak_bytes).text,
	        ts_size(stats->limit_bytes).text, steps, moved, file);
}

static void say_all(const struct tape_figures *tape, const char *plan)
{
	struct ts_pager_stats stats;
	bool any = false;

	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		if (!ts_status_device(device, &stats))
			continue;
		say_device(device, &stats, tape, plan);
		any = true;
	}
	/* Observing, or never an allocation: only what was seen. */
	if (!any && tape->ops)
		ts_log(TS_LOG_INFO,
		        "ok: %" PRIu64 " ops seen, memory left alone%s%s",
		        tape->ops, *plan ? " -> " : "", plan);
}

static json_t *device_json(int device, const struct ts_pager_stats *stats)
{
	json_t *json = json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
	        "device", device, "total_bytes", (json_int_t)stats->total_bytes,
	        "limit_bytes", (json_int_t)stats->limit_bytes, "peak_bytes",
	        (json_int_t)stats->peak_bytes, "pinned_bytes",
	        (json_int_t)stats->pinned_bytes, "host_pinned_bytes",
	        (json_int_t)stats->host_pinned_bytes, "host_peak_bytes",
	        (json_int_t)stats->host_peak_bytes, "host_limit_bytes",
	        (json_int_t)stats->host_limit_bytes);

	if (json)
		json_object_set_new(json, "moved", ts_status_moved(stats));
	return json;
}

static json_t *status_json(const struct tape_figures *tape)
{
	static const char *const modes[] = {"off", "observe", "cap", "plan"};
	json_t *json = ts_json_head("status");
	json_t *devices = json_array(), *plan;
	struct ts_pager_stats stats;
	uint64_t limit = 0, out = 0, in = 0;

	if (!json || !devices) {
		json_decref(json);
		json_decref(devices);
		return NULL;
	}
	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		if (!ts_status_device(device, &stats))
			continue;
		json_array_append_new(devices, device_json(device, &stats));
		limit = limit && limit != stats.limit_bytes ? UINT64_MAX
		                                            : stats.limit_bytes;
		out += stats.out_bytes;
		in += stats.in_bytes;
	}
	/* Unknown is null: no device used, or several limits. */
	json_object_set_new(json, "limit_bytes",
	        limit && limit != UINT64_MAX ? json_integer((json_int_t)limit)
	                                     : json_null());
	json_object_set_new(json, "out_bytes", json_integer((json_int_t)out));
	json_object_set_new(json, "in_bytes", json_integer((json_int_t)in));
	json_object_set_new(json, "complete", json_true());
	json_object_set_new(
	        json, "mode", json_string(modes[ts_agent.config.mode]));
	json_object_set_new(json, "totals",
	        ts_tape_totals(
	                tape->totals, tape->captured, tape->collectives));
	json_object_set_new(json, "steps",
	        tape->steps ? json_integer((json_int_t)tape->steps)
	                    : json_null());
	json_object_set_new(json, "peak_block_bytes",
	        ts_profiler_is_on()
	                ? json_integer((json_int_t)ts_recorder_peak_bytes(-1))
	                : json_null());
	json_object_set_new(json, "tables",
	        json_pack("{s:I, s:I}", "reads",
	                (json_int_t)atomic_load(&ts_agent.tables.reads),
	                "pinned_blocks",
	                (json_int_t)atomic_load(&ts_agent.tables.pinned)));
	json_object_set_new(
	        json, "vmm_calls", json_integer((json_int_t)ts_vmm_calls()));
	json_object_set_new(json, "devices", devices);
	plan = ts_remake_status();
	if (plan)
		json_object_set_new(json, "remade", plan);
	plan = ts_planned_status();
	if (plan)
		json_object_set_new(json, "plan", plan);
	return json;
}

/* True where it was written. */
static bool write_file(
        json_t *json, const char *path, const char *setting, size_t flags)
{
	int rc = ts_json_write(json, path, flags);

	if (rc)
		ts_log(TS_LOG_ERROR, "%s=\"%s\" was not written: %s", setting,
		        path, strerror(-rc));
	json_decref(json);
	return !rc;
}

/* NULL: a run too short for a plan leaves that of an earlier one alone. */
static json_t *plan_or_tape(void)
{
	if (ts_agent.config.mode == TS_MODE_PLAN)
		return ts_planned_json();
	return ts_tape_json();
}

/* Asking what devices there are, as PyTorch does on the CPU, is no use. */
static bool was_used(const struct tape_figures *tape)
{
	struct ts_pager_stats stats;

	for (int device = 0; device < TS_AGENT_DEVICES; device++)
		if (ts_status_device(device, &stats))
			return true;
	return tape->ops || tape->captured;
}

void ts_status_write_all(void)
{
	const struct ts_config *config = &ts_agent.config;
	const char *file = config->plan;
	struct tape_figures tape;
	json_t *plan;

	read_tape(&tape);
	if (!was_used(&tape))
		return;
	plan = *config->plan ? plan_or_tape() : NULL;
	if (plan && !write_file(plan, file, "TAPESWAP_PLAN", JSON_COMPACT))
		file = "";
	if (*config->status)
		write_file(status_json(&tape), config->status,
		        "TAPESWAP_STATUS", JSON_INDENT(2));
	say_all(&tape, file);
}
