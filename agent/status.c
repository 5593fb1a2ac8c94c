/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/status.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/base/clock.h"
#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/jsonfile.h"
#include "agent/outcome.h"
#include "agent/planned.h"
#include "agent/planned_file.h"
#include "agent/planned_say.h"
#include "agent/profiler.h"
#include "agent/recorder.h"
#include "agent/remake.h"
#include "agent/tape_json.h"
#include "runtime/helper.h"
#include "runtime/vmm_calls.h"

/* No more often is the status rewritten as the program goes on. */
#define REST_NS 1000000000ull

/* Where no step is known the clock is looked at after so many ops. */
#define UNKNOWN_STEP_OPS 1024

/* At the end, for a thread that is rewriting it. */
#define BUSY_TRIES   100
#define BUSY_WAIT_US 1000

/* When the status was last looked at. */
static struct {
	_Atomic uint64_t count, steps; /* ops, and steps where they are known */
	_Atomic uint64_t not_before_ns;
	atomic_bool busy; /* a thread writes, or all is written */
	pthread_once_t once;
	struct ts_helper helper; /* that writes: no launching thread does */
} refresh = {.once = PTHREAD_ONCE_INIT};

struct tape_figures {
	uint64_t totals[TS_OP_KIND_COUNT];
	uint64_t ops, captured, collectives;
	uint64_t steps;
	uint64_t step_ops, alike; /* of so many of them; 0: most differ */
};

bool ts_status_device(int device, struct ts_pager_stats *ret_stats)
{
	struct ts_agent_device *place = &ts_agent.devices[device];
	struct ts_pager *pager;
	bool found = true;

	ts_mutex_lock(&ts_agent.reading);
	pager = ts_agent_pager(device);
	if (pager) {
		ts_pager_stats(pager, ret_stats);
	} else {
		found = place->has_past;
		if (found)
			*ret_stats = place->past;
	}
	ts_mutex_unlock(&ts_agent.reading);
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
	figures->alike = figures->steps;
	/* The profiler tells evaluation and changing shapes from steps. */
	if (ts_profiler_steps()) {
		figures->steps = ts_profiler_steps();
		figures->step_ops = ts_profiler_step_ops(&figures->alike);
	}
}

struct times {
	char text[24];
};

static struct times times(unsigned int count)
{
	struct times ret = {"once"};

	if (count != 1)
		snprintf(ret.text, sizeof(ret.text), "%u times", count);
	return ret;
}

/* @plan: the file to look at, or "". */
static void say_device(int device, const struct ts_pager_stats *stats,
        const struct tape_figures *tape, const char *plan)
{
	char steps[TS_OUTCOME_BYTES], again[TS_OUTCOME_BYTES];
	char moved[200] = "nothing moved", file[160] = "";
	unsigned int shortages = atomic_load(&ts_agent.shortages);
	unsigned int errors = atomic_load(&ts_agent.driver_errors);
	char verdict[96] = "ok";

	if (stats->peak_bytes > stats->limit_bytes)
		snprintf(verdict, sizeof(verdict), "limit exceeded");
	if (errors)
		snprintf(verdict, sizeof(verdict), "driver errors %s",
		        times(errors).text);
	if (shortages && errors)
		snprintf(verdict, sizeof(verdict),
		        "out of memory %s, driver errors %s",
		        times(shortages).text, times(errors).text);
	else if (shortages)
		snprintf(verdict, sizeof(verdict), "out of memory %s",
		        times(shortages).text);
	ts_outcome_steps(
	        tape->steps, tape->step_ops, tape->alike, steps, sizeof(steps));
	ts_outcome_replay(again, sizeof(again));
	if (stats->evicted_pages || stats->in_bytes || stats->out_bytes)
		snprintf(moved, sizeof(moved),
		        "out %s, in %s in all; threads waited %.1f s, the "
		        "device not counted; host %s",
		        ts_size(stats->out_bytes).text,
		        ts_size(stats->in_bytes).text,
		        (double)wait_ns(stats) * 1e-9,
		        ts_size(stats->host_pinned_bytes).text);
	if (*plan)
		snprintf(file, sizeof(file), " -> %.140s", plan);
	ts_log(TS_LOG_INFO, "%s: device %d peak %s of %s%s; %s%s%s", verdict,
	        device, ts_size(stats->peak_bytes).text,
	        ts_size(stats->limit_bytes).text, steps, moved, again, file);
}

/* Observing, or never an allocation: only what was seen. */
static void say_seen(const struct tape_figures *tape, const char *plan)
{
	const char *file = ts_profiler_wrote() ? ts_agent.config.profile : plan;
	uint64_t peak = ts_profiler_is_on() ? ts_recorder_peak_bytes(-1) : 0;
	char steps[TS_OUTCOME_BYTES], blocks[64] = "";

	ts_outcome_steps(
	        tape->steps, tape->step_ops, tape->alike, steps, sizeof(steps));
	if (peak)
		snprintf(blocks, sizeof(blocks), "; peak %s in blocks",
		        ts_size(peak).text);
	ts_log(TS_LOG_INFO,
	        "ok: %" PRIu64 " ops seen, memory left alone%s%s%s%s",
	        tape->ops, blocks, steps, *file ? " -> " : "", file);
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
	if (!any && tape->ops)
		say_seen(tape, plan);
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

static json_t *status_json(const struct tape_figures *tape, bool complete)
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
	json_object_set_new(json, "complete", json_boolean(complete));
	json_object_set_new(
	        json, "mode", json_string(modes[ts_agent.config.mode]));
	json_object_set_new(json, "totals",
	        ts_tape_totals(
	                tape->totals, tape->captured, tape->collectives));
	json_object_set_new(json, "steps",
	        tape->steps ? json_integer((json_int_t)tape->steps)
	                    : json_null());
	json_object_set_new(json, "shortages",
	        json_integer((json_int_t)atomic_load(&ts_agent.shortages)));
	json_object_set_new(json, "driver_errors",
	        json_integer((json_int_t)atomic_load(&ts_agent.driver_errors)));
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
	/* Figures that others change until the end. */
	plan = complete ? ts_remake_status() : NULL;
	if (plan)
		json_object_set_new(json, "remade", plan);
	plan = complete ? ts_planned_status() : NULL;
	if (plan)
		json_object_set_new(json, "plan", plan);
	return json;
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

static void write_status(const struct tape_figures *tape, bool complete)
{
	ts_json_write_setting(status_json(tape, complete), "TAPESWAP_STATUS",
	        ts_agent.config.status, JSON_INDENT(2));
}

/* True where the program has come so far since it was last written. */
static bool is_due(uint64_t count, uint64_t steps)
{
	uint64_t period = atomic_load_explicit(
	        &ts_agent.tape.pace.period, memory_order_relaxed);
	uint64_t last =
	        atomic_load_explicit(&refresh.count, memory_order_relaxed);

	if (steps != atomic_load_explicit(&refresh.steps, memory_order_relaxed))
		return true;
	return count - last >= (period ? period : UNKNOWN_STEP_OPS);
}

static void write_so_far(void *data, unsigned int what)
{
	struct tape_figures tape;

	(void)data;
	(void)what;
	if (atomic_exchange(&refresh.busy, true))
		return;
	if (!atomic_load(&ts_agent.stopped)) {
		read_tape(&tape);
		write_status(&tape, false);
	}
	atomic_store(&refresh.busy, false);
}

/* When ops run already: the driver's own exit handler is the older one. */
static void make_helper(void)
{
	ts_helper_init(&refresh.helper,
	        ts_agent.config.helper == TS_HELPER_THREAD, write_so_far, NULL);
}

void ts_status_refresh(void)
{
	uint64_t count, steps, now;

	if (!*ts_agent.config.status)
		return;
	count = atomic_load_explicit(
	        &ts_agent.tape.pace.count, memory_order_relaxed);
	steps = ts_profiler_steps();
	if (!is_due(count, steps) || atomic_load(&ts_agent.stopped))
		return;
	atomic_store(&refresh.count, count);
	atomic_store(&refresh.steps, steps);
	now = ts_now_ns();
	if (now < atomic_load(&refresh.not_before_ns))
		return;
	atomic_store(&refresh.not_before_ns, now + REST_NS);
	pthread_once(&refresh.once, make_helper);
	ts_helper_ask(&refresh.helper, TS_HELP_STATUS);
}

/* Nobody is at work on it then, nor will be. */
static void stop_refresh(void)
{
	pthread_once(&refresh.once, make_helper);
	ts_helper_stop(&refresh.helper, true);
	for (int i = 0; i < BUSY_TRIES && atomic_exchange(&refresh.busy, true);
	        i++)
		usleep(BUSY_WAIT_US);
}

/* Where it could not be written that was said before. */
static void say_no_profile(const struct ts_config *config)
{
	const char *path = config->profile;

	if (*path && !ts_profiler_wrote() && !ts_profiler_failed() &&
	        !ts_json_check_setting("TAPESWAP_PROFILE", path))
		ts_log(TS_LOG_INFO,
		        "profile: no step was timed: %.200s is not written",
		        path);
}

void ts_status_write_all(void)
{
	const struct ts_config *config = &ts_agent.config;
	bool by_plan = config->mode == TS_MODE_PLAN;
	const char *file = by_plan ? ts_planned_file_path() : config->plan;
	struct tape_figures tape;
	json_t *plan;

	read_tape(&tape);
	if (!was_used(&tape))
		return;
	plan = *file ? plan_or_tape() : NULL;
	if (*file && !plan && by_plan)
		ts_planned_say_unwritten(file);
	/* Only what is there now is named. */
	if (!plan || ts_json_write_setting(
	                     plan, "TAPESWAP_PLAN", file, JSON_COMPACT))
		file = "";
	if (*config->status) {
		stop_refresh();
		write_status(&tape, true);
	}
	say_no_profile(config);
	say_all(&tape, file);
}
