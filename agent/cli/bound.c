/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap bound PROFILE --limit L [--json]`: no plan that plan.json can
 * express is faster than this.
 */
#include "agent/cli/planning.h"

#include <getopt.h>
#include <string.h>

#include "agent/base/units.h"
#include "planner/bound.h"

static const char usage[] = "usage: tapeswap bound PROFILE --limit L [--json]\n"
                            "\n"
                            "Prints a lower bound on the step time of any plan "
                            "within L that a plan\n"
                            "file can express: ops in their order, each gap "
                            "between two uses kept,\n"
                            "swapped whole, or its value made again where the "
                            "gap ends (or for\n"
                            "another replay). Exit status 1: no plan fits.\n";

/* What the bound is one of (planner/bound.h). */
static const char scope[] = "plans that plan.json can express: replays run "
                            "where a gap ends";

static int print_bound(
        const struct ts_graph *g, uint64_t limit_bytes, bool as_json)
{
	uint64_t bound_ns, ideal_ns = g->start_ns[g->n_ops];
	bool fits;
	int err;

	if (ts_bound_step(g, limit_bytes, &bound_ns))
		return ts_cli_bad(NULL, "out of memory");
	fits = bound_ns != TS_NEVER;
	if (as_json) {
		json_t *root = ts_cli_json_object("tapeswap-bound");

		json_object_set_new(root, "limit_bytes",
		        json_integer((json_int_t)limit_bytes));
		json_object_set_new(root, "smallest_feasible_limit_bytes",
		        json_integer((json_int_t)g->floor_bytes));
		json_object_set_new(root, "unlimited",
		        json_pack("{s:I}", "step_ns", (json_int_t)ideal_ns));
		json_object_set_new(root, "bound",
		        json_pack("{s:o,s:s}", "step_ns",
		                fits ? json_integer((json_int_t)bound_ns)
		                     : json_null(),
		                "scope", scope));
		err = ts_cli_write_json("-", root);
		json_decref(root);
		if (err)
			return ts_cli_bad_output("-", err);
	} else if (fits) {
		printf("bound %.3f ms, unlimited %.3f ms (%.2f %% of it)\n"
		       "of %s\n",
		        (double)bound_ns * 1e-6, (double)ideal_ns * 1e-6,
		        bound_ns ? 100 * (double)ideal_ns / (double)bound_ns
		                 : 100.0,
		        scope);
	} else {
		ts_cli_bad(NULL, "does not fit: op %u needs %s at once",
		        g->floor_op, ts_size(g->floor_bytes).text);
	}
	return fits ? TS_EXIT_YES : TS_EXIT_NO;
}

int ts_cli_bound(int argc, char **argv)
{
	static const struct option options[] = {
	        {"limit", required_argument, NULL, 'l'},
	        {"json", no_argument, NULL, 'j'},
	        {"help", no_argument, NULL, 'h'},
	        {NULL, 0, NULL, 0},
	};
	const char *limit = NULL;
	struct ts_profile profile;
	struct ts_graph graph;
	uint64_t limit_bytes;
	bool as_json = false;
	int opt, status;

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
	if (ts_cli_check_names(argc, argv, "PROFILE"))
		return TS_EXIT_BAD;
	status = ts_cli_load_profile(argv[optind], &profile);
	if (status)
		return status;
	if (ts_graph_init(&graph, &profile, &(struct ts_graph_options){0})) {
		ts_profile_finish(&profile);
		return ts_cli_bad(NULL, "out of memory");
	}
	status = ts_cli_read_limit(limit, &graph, &limit_bytes);
	if (!status)
		status = print_bound(&graph, limit_bytes, as_json);
	ts_graph_finish(&graph);
	ts_profile_finish(&profile);
	return status;
}
