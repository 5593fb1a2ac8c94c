/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tapeswap simulate PROFILE PLAN [--json]`: runs a plan on the event model. */
#include "agent/cli/planning.h"

#include <getopt.h>
#include <string.h>

#include "agent/base/units.h"
#include "planner/model.h"
#include "planner/plan_json.h"

static const char usage[] =
        "usage: tapeswap simulate PROFILE PLAN [--limit L] [--json]\n"
        "\n"
        "Runs PLAN on the event model. The limit is the plan's unless --limit\n"
        "gives another. Exit status 1: it does not fit.\n";

static json_t *outcome_json(const struct ts_outcome *o, uint64_t limit_bytes)
{
	json_t *root = ts_cli_json_object("tapeswap-simulation");

	json_object_set_new(
	        root, "limit_bytes", json_integer((json_int_t)limit_bytes));
	json_object_set_new(root, "fits", json_boolean(o->fits));
	json_object_set_new(root, "step_ns",
	        o->fits ? json_integer((json_int_t)o->step_ns) : json_null());
	json_object_set_new(root, "peak_bytes",
	        o->fits ? json_integer((json_int_t)o->peak_bytes)
	                : json_null());
	json_object_set_new(
	        root, "replay_ns", json_integer((json_int_t)o->replay_ns));
	json_object_set_new(
	        root, "d2h_bytes", json_integer((json_int_t)o->d2h_bytes));
	json_object_set_new(
	        root, "h2d_bytes", json_integer((json_int_t)o->h2d_bytes));
	json_object_set_new(
	        root, "wait_in_ns", json_integer((json_int_t)o->wait_in_ns));
	json_object_set_new(root, "wait_memory_ns",
	        json_integer((json_int_t)o->wait_memory_ns));
	json_object_set_new(root, "evictions", json_integer(o->evictions));
	if (!o->fits) {
		json_object_set_new(
		        root, "stuck_op", json_integer(o->stuck_op));
		json_object_set_new(root, "stuck_bytes",
		        json_integer((json_int_t)o->stuck_bytes));
	}
	return root;
}

static int print_outcome(
        const struct ts_outcome *o, uint64_t limit_bytes, bool as_json)
{
	int err = 0;

	if (as_json) {
		json_t *root = outcome_json(o, limit_bytes);

		err = ts_cli_write_json("-", root);
		json_decref(root);
	} else if (o->fits) {
		printf("step %.3f ms, peak %s of %s; replay %.3f ms, out %s, "
		       "in %s, waits %.3f ms\n",
		        (double)o->step_ns * 1e-6, ts_size(o->peak_bytes).text,
		        ts_size(limit_bytes).text, (double)o->replay_ns * 1e-6,
		        ts_size(o->d2h_bytes).text, ts_size(o->h2d_bytes).text,
		        (double)(o->wait_in_ns + o->wait_memory_ns) * 1e-6);
	} else {
		ts_cli_bad(NULL, "does not fit: op %u needs %s at once",
		        o->stuck_op, ts_size(o->stuck_bytes).text);
	}
	if (err)
		return ts_cli_bad_output("-", err);
	return o->fits ? TS_EXIT_YES : TS_EXIT_NO;
}

static int run(const struct ts_graph *g, const struct ts_plan *plan,
        const char *plan_path, uint64_t limit_bytes, bool as_json)
{
	struct ts_input_error error;
	struct ts_choice choice;
	struct ts_model *model;
	struct ts_outcome outcome;
	int err, status = TS_EXIT_BAD;

	if (ts_choice_init(&choice, g->n_gaps))
		return ts_cli_bad(NULL, "out of memory");
	if (ts_plan_to_choice(plan, g, &choice, &error)) {
		status = ts_cli_bad("make the plan from this profile",
		        "%s: %s: %s", plan_path, error.path, error.message);
		goto out_choice;
	}
	if (ts_model_create(g, limit_bytes, &model)) {
		status = ts_cli_bad(NULL, "out of memory");
		goto out_choice;
	}
	err = ts_model_run(model, &choice, &outcome, NULL);
	ts_model_destroy(model);
	status = err ? ts_cli_bad(NULL, "out of memory")
	             : print_outcome(&outcome, limit_bytes, as_json);
out_choice:
	ts_choice_finish(&choice);
	return status;
}

static int load_and_run(const char *profile_path, const char *plan_path,
        const char *limit, bool as_json)
{
	struct ts_input_error error;
	struct ts_profile profile;
	struct ts_graph graph;
	struct ts_plan plan;
	uint64_t limit_bytes;
	int status = ts_cli_load_profile(profile_path, &profile);

	if (status)
		return status;
	if (ts_plan_load(plan_path, &plan, &error)) {
		ts_profile_finish(&profile);
		return ts_cli_bad("tapeswap schema plan shows the format",
		        "%s: %s: %s", plan_path, error.path, error.message);
	}
	if (ts_graph_init(&graph, &profile, &(struct ts_graph_options){0})) {
		status = ts_cli_bad(NULL, "out of memory");
		goto out_plan;
	}
	limit_bytes = plan.limit_bytes;
	if (limit)
		status = ts_cli_read_limit(limit, &graph, &limit_bytes);
	if (!status)
		status = run(&graph, &plan, plan_path, limit_bytes, as_json);
	ts_graph_finish(&graph);
out_plan:
	ts_plan_finish(&plan);
	ts_profile_finish(&profile);
	return status;
}

int ts_cli_simulate(int argc, char **argv)
{
	static const struct option options[] = {
	        {"limit", required_argument, NULL, 'l'},
	        {"json", no_argument, NULL, 'j'},
	        {"help", no_argument, NULL, 'h'},
	        {NULL, 0, NULL, 0},
	};
	const char *limit = NULL;
	bool as_json = false;
	int opt;

	while ((opt = ts_cli_option(argc, argv, ":h", options)) != -1) {
		switch (opt) {
		case 'l':
			limit = optarg;
			break;
		case 'j':
			as_json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return TS_EXIT_YES;
		default:
			return TS_EXIT_BAD;
		}
	}
	if (ts_cli_check_names(argc, argv, "PROFILE PLAN"))
		return TS_EXIT_BAD;
	return load_and_run(argv[optind], argv[optind + 1], limit, as_json);
}
