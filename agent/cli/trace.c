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
#include "planner/model.h"
#include "planner/plan_json.h"

static const char usage[] =
        "usage: tapeswap trace PROFILE PLAN [-o FILE]\n"
        "\n"
        "Writes a planned step as a timeline for ui.perfetto.dev: compute,\n"
        "replays, copies out and in, memory and the limit. FILE - is standard\n"
        "output, which is the default.\n";

/* One event of the step, times in ns since it began. */
struct event {
	enum ts_lane lane;
	uint32_t index;
	double begin, end;
};

struct events {
	struct event *items;
	size_t count, capacity;
	bool failed;
};

static void note(void *data, enum ts_lane lane, uint32_t index, double begin_ns,
        double end_ns)
{
	struct events *events = data;

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
	        (struct event){lane, index, begin_ns, end_ns};
}

/* When the last step of the run began: its first op ran last then. */
static double last_step_begin(
        const struct events *events, const struct ts_program *program)
{
	double begin = 0;

	for (size_t i = 0; i < events->count; i++) {
		const struct event *event = &events->items[i];

		if (event->lane == TS_LANE_COMPUTE &&
		        program->instrs[event->index].op == 0)
			begin = event->begin;
	}
	return begin;
}

static const char *event_name(const struct event *event,
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

static json_t *slice(const struct event *event, const char *name, double start)
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

/* Bytes that come or go at a time. */
struct change {
	double ns, bytes;
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* What the step's last round tells of ops and copies out. */
struct round {
	double start;
	double *op_end; /* by op */
	bool *copied;   /* by value: it was copied out */
};

static void look(const struct events *events, const struct ts_program *program,
        struct round *round)
{
	for (size_t i = 0; i < events->count; i++) {
		const struct event *event = &events->items[i];

		if (event->lane == TS_LANE_D2H && event->end > round->start)
			round->copied[event->index] = true;
		else if (event->lane == TS_LANE_COMPUTE)
			round->op_end[program->instrs[event->index].op] =
			        event->end;
	}
}

/* The memory curve: ops allocate and free, copies free and take. */
static size_t find_changes(const struct events *events,
        const struct ts_graph *g, const struct ts_program *program,
        const struct round *round, struct change *changes)
{
	size_t n = 0;

	for (size_t i = 0; i < events->count; i++) {
		const struct event *event = &events->items[i];
		const struct ts_instr *instr = &program->instrs[event->index];
		const struct ts_gap *gap = &g->gaps[event->index];
		uint64_t bytes;

		if (event->end <= round->start)
			continue;
		switch (event->lane) {
		case TS_LANE_COMPUTE:
		case TS_LANE_REPLAY:
			changes[n++] = (struct change){
			        event->begin, (double)instr->alloc_bytes};
			changes[n++] = (struct change){
			        event->end, -(double)instr->free_bytes};
			break;
		case TS_LANE_D2H:
			bytes = g->profile->values[event->index].size_bytes;
			changes[n++] =
			        (struct change){event->end, -(double)bytes};
			break;
		case TS_LANE_H2D:
			changes[n++] = (struct change){
			        event->begin, (double)gap->size_bytes};
			/* What the host had already was gone at once. */
			if (!round->copied[gap->version])
				changes[n++] = (struct change){
				        round->op_end[gap->from_op],
				        -(double)gap->size_bytes};
			break;
		}
	}
	qsort(changes, n, sizeof(*changes), by_time);
	return n;
}

/* What was there at the start is known from the peak. */
static double first_bytes(
        const struct change *changes, size_t n, uint64_t peak_bytes)
{
	double used = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		used += changes[i].bytes;
		if (used > most)
			most = used;
	}
	return (double)peak_bytes - most;
}

static int add_memory(json_t *list, const struct events *events,
        const struct ts_graph *g, const struct ts_program *program,
        double start, const struct ts_outcome *outcome, uint64_t limit_bytes)
{
	struct change *changes =
	        calloc(2 * events->count + 1, sizeof(*changes));
	struct round round = {.start = start,
	        .op_end = calloc(g->n_ops + 1ull, sizeof(double)),
	        .copied = calloc(g->profile->n_values + 1ull, sizeof(bool))};
	int err = -ENOMEM;

	if (changes && round.op_end && round.copied) {
		double used;
		size_t n;

		look(events, program, &round);
		n = find_changes(events, g, program, &round, changes);
		used = first_bytes(changes, n, outcome->peak_bytes);
		for (size_t i = 0; i < n; i++) {
			double at = changes[i].ns - start;

			used += changes[i].bytes;
			json_array_append_new(
			        list, counter("memory", at > 0 ? at : 0, used));
		}
		json_array_append_new(
		        list, counter("limit", 0, (double)limit_bytes));
		json_array_append_new(
		        list, counter("limit", (double)outcome->step_ns,
		                      (double)limit_bytes));
		err = 0;
	}
	free(changes);
	free(round.op_end);
	free(round.copied);
	return err;
}

static json_t *timeline(const struct events *events, const struct ts_graph *g,
        const struct ts_program *program, const struct ts_outcome *outcome,
        uint64_t limit_bytes)
{
	double start = last_step_begin(events, program);
	json_t *list = json_array();

	json_array_append_new(list, lane_name(TS_LANE_COMPUTE, "compute"));
	json_array_append_new(list, lane_name(TS_LANE_REPLAY, "replay"));
	json_array_append_new(list, lane_name(TS_LANE_D2H, "copies out"));
	json_array_append_new(list, lane_name(TS_LANE_H2D, "copies in"));
	for (size_t i = 0; i < events->count; i++) {
		const struct event *event = &events->items[i];
		char room[256];

		if (event->end <= start)
			continue;
		json_array_append_new(
		        list, slice(event,
		                      event_name(event, g, program, room,
		                              sizeof(room)),
		                      start));
	}
	if (add_memory(list, events, g, program, start, outcome, limit_bytes)) {
		json_decref(list);
		return NULL;
	}
	return list;
}

/* The whole file; NULL without memory. */
static json_t *make_file(const struct events *events, const struct ts_graph *g,
        const struct ts_plan *plan, const struct ts_program *program,
        const struct ts_outcome *outcome)
{
	json_t *root = json_object();
	json_t *list = timeline(events, g, program, outcome, plan->limit_bytes);

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
	struct events events = {0};
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
		*ret_trace = make_file(
		        &events, g, plan, ts_model_program(model), &outcome);
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
	return ts_cli_with_pair(argc, argv, usage, trace);
}
