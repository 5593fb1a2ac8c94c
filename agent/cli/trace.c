/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap trace PROFILE PLAN [-o FILE]`: a planned step as a timeline that
 * Perfetto and chrome://tracing open: compute, copies each way, memory against
 * the limit. Times are those of the event model; what a process measured
 * stands beside them in the file's metadata.
 */
#include "agent/cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/units.h"
#include "agent/cli/planning.h"
#include "agent/cli/trace_memory.h"
#include "planner/model.h"
#include "planner/plan_json.h"

static const char usage[] =
        "usage: tapeswap trace PROFILE PLAN [-o FILE]\n"
        "\n"
        "Writes a planned step as a timeline for ui.perfetto.dev: compute,\n"
        "replays, copies out and in, memory and the limit. FILE - is standard\n"
        "output, which is the default.\n";

static void note(void *data, enum ts_lane lane, uint32_t index, double begin_ns,
        double end_ns)
{
	struct ts_trace_events *events = data;

	if (events->count == events->capacity) {
		size_t capacity = 2 * events->capacity + 1024;
		void *items = realloc(
		        events->items, capacity * sizeof(*events->items));

		if (!items) {
			events->failed = true;
			return;
		}
		events->items = items;
		events->capacity = capacity;
	}
	events->items[events->count++] =
	        (struct ts_trace_event){lane, index, begin_ns, end_ns};
}

/* When the last step of the run began: its first op ran last then. */
static double last_step_begin(
        const struct ts_trace_events *events, const struct ts_program *program)
{
	double begin = 0;

	for (size_t i = 0; i < events->count; i++) {
		const struct ts_trace_event *event = &events->items[i];

		if (event->lane == TS_LANE_COMPUTE &&
		        program->instrs[event->index].op == 0)
			begin = event->begin;
	}
	return begin;
}

static const char *event_name(const struct ts_trace_event *event,
        const struct ts_graph *g, const struct ts_program *program, char *room,
        size_t size)
{
	const struct ts_profile *profile = g->profile;
	uint32_t value;

	if (event->lane == TS_LANE_COMPUTE || event->lane == TS_LANE_REPLAY) {
		uint32_t op = program->instrs[event->index].op;
		const char *name =
		        profile->signatures[profile->ops[op].signature].name;

		snprintf(room, size, "%.*s", (int)strcspn(name, " "), name);
		return room;
	}
	value = event->lane == TS_LANE_H2D ? g->gaps[event->index].version
	                                   : event->index;
	snprintf(room, size, "value %u, %s", value,
	        ts_size(profile->values[value].size_bytes).text);
	return room;
}

static json_t *lane_name(int lane, const char *name)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name",
	        "thread_name", "pid", 1, "tid", lane, "args", "name", name);
}

static json_t *slice(
        const struct ts_trace_event *event, const char *name, double start)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:f, s:f}", "ph", "X", "name",
	        name, "pid", 1, "tid", (int)event->lane, "ts",
	        (event->begin - start) * 1e-3, "dur",
	        (event->end - event->begin) * 1e-3);
}

static json_t *counter(const char *name, double ns, double bytes)
{
	return json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "ph", "C", "name",
	        name, "pid", 1, "ts", ns * 1e-3, "args", "GiB",
	        bytes / (1 << 30));
}

static int add_memory(json_t *list, const struct ts_trace_events *events,
        const struct ts_program *program, const struct ts_choice *choice,
        double start, const struct ts_outcome *outcome, uint64_t limit_bytes)
{
	struct ts_trace_change *changes;
	double used;
	size_t n;

	if (ts_trace_memory(events, program, choice, start, outcome->peak_bytes,
	            &changes, &n, &used))
		return -ENOMEM;
	json_array_append_new(list, counter("memory", 0, used));
	for (size_t i = 0; i < n; i++) {
		double at = changes[i].ns - start;

		used += changes[i].bytes;
		json_array_append_new(
		        list, counter("memory", at > 0 ? at : 0, used));
	}
	free(changes);
	json_array_append_new(list, counter("limit", 0, (double)limit_bytes));
	json_array_append_new(list, counter("limit", (double)outcome->step_ns,
	                                    (double)limit_bytes));
	return 0;
}

static json_t *timeline(const struct ts_trace_events *events,
        const struct ts_graph *g, const struct ts_program *program,
        const struct ts_choice *choice, const struct ts_outcome *outcome,
        uint64_t limit_bytes)
{
	double start = last_step_begin(events, program);
	json_t *list = json_array();

	json_array_append_new(list, lane_name(TS_LANE_COMPUTE, "compute"));
	json_array_append_new(list, lane_name(TS_LANE_REPLAY, "replay"));
	json_array_append_new(list, lane_name(TS_LANE_D2H, "copies out"));
	json_array_append_new(list, lane_name(TS_LANE_H2D, "copies in"));
	for (size_t i = 0; i < events->count; i++) {
		const struct ts_trace_event *event = &events->items[i];
		char room[256];

		if (event->end <= start)
			continue;
		json_array_append_new(
		        list, slice(event,
		                      event_name(event, g, program, room,
		                              sizeof(room)),
		                      start));
	}
	if (add_memory(list, events, program, choice, start, outcome,
	            limit_bytes)) {
		json_decref(list);
		return NULL;
	}
	return list;
}

/* The whole file; NULL without memory. */
static json_t *make_file(const struct ts_trace_events *events,
        const struct ts_graph *g, const struct ts_plan *plan,
        const struct ts_program *program, const struct ts_choice *choice,
        const struct ts_outcome *outcome)
{
	json_t *root = json_object();
	json_t *list = timeline(
	        events, g, program, choice, outcome, plan->limit_bytes);

	if (!root || !list) {
		json_decref(root);
		json_decref(list);
		return NULL;
	}
	json_object_set_new(root, "traceEvents", list);
	json_object_set_new(root, "displayTimeUnit", json_string("ms"));
	json_object_set_new(root, "otherData",
	        json_pack("{s:I, s:I, s:I}", "step_ns",
	                (json_int_t)outcome->step_ns, "limit_bytes",
	                (json_int_t)plan->limit_bytes, "planned_step_ns",
	                (json_int_t)plan->predicted_step_ns));
	return root;
}

static int run_model(const struct ts_graph *g, const struct ts_plan *plan,
        const struct ts_choice *choice, json_t **ret_trace)
{
	/* As steps are enforced, copies begin after the last use. */
	struct ts_model_options late = {.late_copies = true};
	struct ts_trace_events events = {0};
	struct ts_outcome outcome;
	struct ts_model *model;
	int status = TS_EXIT_YES;

	if (ts_model_create(g, plan->limit_bytes, &model))
		return ts_cli_bad(NULL, "out of memory");
	if (!plan->n_replays)
		ts_model_set_options(model, &late);
	ts_model_set_trace(model, note, &events);
	if (ts_model_run(model, choice, &outcome, NULL) || events.failed) {
		status = ts_cli_bad(NULL, "out of memory");
	} else if (!outcome.fits) {
		status =
		        ts_cli_bad(NULL, "the plan does not fit its own limit");
	} else {
		*ret_trace = make_file(&events, g, plan,
		        ts_model_program(model), choice, &outcome);
		if (!*ret_trace)
			status = ts_cli_bad(NULL, "out of memory");
	}
	free(events.items);
	ts_model_destroy(model);
	return status;
}

int ts_cli_make_trace(const struct ts_graph *graph, const struct ts_plan *plan,
        const char *plan_path, json_t **ret_trace)
{
	struct ts_input_error error;
	struct ts_choice choice;
	int status;

	if (ts_choice_init(&choice, graph->n_gaps))
		return ts_cli_bad(NULL, "out of memory");
	if (ts_plan_to_choice(plan, graph, &choice, &error))
		status = ts_cli_bad("make the plan from this profile",
		        "%s: %s: %s", plan_path, error.path, error.message);
	else
		status = run_model(graph, plan, &choice, ret_trace);
	ts_choice_finish(&choice);
	return status;
}

static int trace(const struct ts_cli_pair *pair)
{
	const struct ts_profile *profile = &pair->profile;
	const char *plan_path = pair->plan_path, *path = pair->output;
	struct ts_graph_options options = {0};
	struct ts_input_error error;
	struct ts_graph graph;
	struct ts_plan plan;
	json_t *root = NULL;
	int status, err;

	if (ts_plan_load(plan_path, &plan, &error))
		return ts_cli_bad(NULL, "%s: %s: %s", plan_path, error.path,
		        error.message);
	if (ts_graph_init(&graph, profile, &options)) {
		ts_plan_finish(&plan);
		return ts_cli_bad(NULL, "out of memory");
	}
	status = ts_cli_make_trace(&graph, &plan, plan_path, &root);
	if (root) {
		err = ts_cli_write_json(path, root);
		if (err)
			status = ts_cli_bad_output(path, err);
		json_decref(root);
	}
	ts_graph_finish(&graph);
	ts_plan_finish(&plan);
	return status;
}

int ts_cli_trace(int argc, char **argv)
{
	return ts_cli_with_pair(argc, argv, usage, false, trace);
}
