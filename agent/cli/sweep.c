/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap sweep PROFILE`: limit against step time. How much memory do I
 * need, and what is the least?
 */
#include "agent/cli/planning.h"
#include "agent/cli/policies.h"
#include "agent/cli/progress.h"
#include "agent/cli/sweep_output.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "planner/baselines/baseline.h"
#include "planner/bound.h"

static const char usage[] =
        "usage: tapeswap sweep PROFILE [--limits FROM:TO:STEP] [--policies "
        "LIST]\n"
        "                      [--replay] [--json] [--export-json FILE]\n"
        "                      [--export-csv FILE] [--export-svg FILE]\n"
        "\n"
        "Predicts the step time for a row of limits (bytes, KiB, MiB, GiB or "
        "%\n"
        "of the unlimited peak; without a unit, FROM and TO take STEP's).\n"
        "LIST: no-replay (what mode plan does with TAPESWAP_REPLAY=0),\n"
        "tapeswap (with values made again), two-pass, the baselines' names, or "
        "all.\n"
        "Limits are recommended by the first one; of two, the second's is "
        "beside it.\n"
        "Default: no-replay,tapeswap; with --replay: tapeswap.\n";

/* Default limits: from the peak down to the least in so many steps. */
#define DEFAULT_LIMITS 12
#define MAX_LIMITS     1000
#define MAX_POLICIES   32

struct request {
	const char *limits;
	const char *policies; /* NULL: as the usage says */
	bool replay;
	const char *json;
	const char *csv;
	const char *svg;
};

/* "8" of "8:40:2GiB" takes the unit of the step. */
static int read_one(const char *text, const char *unit, uint64_t peak_bytes,
        uint64_t *ret_bytes)
{
	char full[64];
	bool plain = text[strspn(text, "0123456789.")] == '\0';

	snprintf(full, sizeof(full), "%s%s", text, plain ? unit : "");
	return ts_cli_parse_bytes(full, peak_bytes, ret_bytes);
}

/* Without @text as far as a run goes, of which @run_graph tells. */
static int read_limits(const char *text, const struct ts_graph *g,
        const struct ts_graph *run_graph, uint64_t *limits, uint32_t *ret_n)
{
	char copy[128], *save = NULL, *from, *to, *step;
	uint64_t low, high, by;

	if (!text) {
		uint64_t most = run_graph->peak_bytes;
		uint64_t span = most - run_graph->floor_bytes;

		for (uint32_t i = 0; i <= DEFAULT_LIMITS; i++)
			limits[i] = most - span * i / DEFAULT_LIMITS;
		*ret_n = span ? DEFAULT_LIMITS + 1 : 1;
		return 0;
	}
	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, strlen(text) + 1);
	from = strtok_r(copy, ":", &save);
	to = strtok_r(NULL, ":", &save);
	step = strtok_r(NULL, ":", &save);
	if (!from || !to || !step || strtok_r(NULL, ":", &save))
		return -EINVAL;
	const char *unit = step + strspn(step, "0123456789.");

	if (read_one(from, unit, g->peak_bytes, &low) ||
	        read_one(to, unit, g->peak_bytes, &high) ||
	        read_one(step, "", g->peak_bytes, &by) || !by || low > high ||
	        (high - low) / by >= MAX_LIMITS)
		return -EINVAL;
	*ret_n = 0;
	for (uint64_t limit = high;; limit -= by) {
		limits[(*ret_n)++] = limit;
		if (limit < low + by)
			return 0;
	}
}

static bool known_policy(const char *name)
{
	for (uint32_t i = 0; i < ts_n_baselines; i++) {
		if (!strcmp(name, ts_baselines[i].name))
			return true;
	}
	return !strcmp(name, TS_POLICY_NO_REPLAY) ||
	       !strcmp(name, TS_POLICY_PLANNER) ||
	       !strcmp(name, TS_POLICY_TWO_PASS);
}

/* Splits @text in place. 0 or -EINVAL with *ret_bad. */
static int read_policies(char *text, const char *names[MAX_POLICIES],
        uint32_t *ret_n, const char **ret_bad)
{
	char *save = NULL;
	uint32_t n = 0;

	if (!strcmp(text, "all")) {
		names[n++] = TS_POLICY_NO_REPLAY;
		names[n++] = TS_POLICY_PLANNER;
		names[n++] = TS_POLICY_TWO_PASS;
		for (uint32_t i = 0; i < ts_n_baselines; i++)
			names[n++] = ts_baselines[i].name;
		*ret_n = n;
		return 0;
	}
	for (char *name = strtok_r(text, ",", &save); name;
	        name = strtok_r(NULL, ",", &save)) {
		*ret_bad = name;
		if (n == MAX_POLICIES || !known_policy(name))
			return -EINVAL;
		names[n++] = name;
	}
	*ret_bad = "";
	*ret_n = n;
	return n ? 0 : -EINVAL;
}

/* What a run has plans for is planned as a run sees it. */
static int fill_one(const struct ts_sweep *sweep, uint64_t limit_bytes,
        const char *policy, struct ts_cli_result *result)
{
	bool is_run = !strcmp(policy, TS_POLICY_NO_REPLAY) ||
	              !strcmp(policy, TS_POLICY_PLANNER);
	int err = ts_cli_policy_run(is_run ? sweep->run_graph : sweep->graph,
	        limit_bytes, policy, true, result);

	/* The bound is one for all plans, in bytes. */
	if (!err && is_run && sweep->run_graph != sweep->graph)
		err = ts_bound_step(
		        sweep->graph, limit_bytes, &result->bound_ns);
	return err;
}

static int fill(struct ts_sweep *sweep)
{
	uint32_t total = sweep->n_policies * sweep->n_limits;
	struct ts_progress progress;
	int err = 0;

	ts_progress_begin(&progress, "sweep", total);
	for (uint32_t i = 0; i < total && !err; i++) {
		ts_progress_tell(&progress, i);
		err = fill_one(sweep, sweep->limits[i % sweep->n_limits],
		        sweep->policies[i / sweep->n_limits],
		        &sweep->results[i]);
	}
	ts_progress_end(&progress);
	return err;
}

static int write_outputs(const struct request *r, const struct ts_sweep *sweep)
{
	const struct {
		int (*write)(const struct ts_sweep *sweep, const char *path);
		const char *path;
	} outputs[] = {{ts_sweep_csv, r->csv}, {ts_sweep_svg, r->svg},
	        {ts_sweep_json, r->json}};

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		const char *path = outputs[i].path;
		int err = path ? outputs[i].write(sweep, path) : 0;

		if (err)
			return ts_cli_bad_output(path, err);
	}
	if (!(r->json && !strcmp(r->json, "-")))
		ts_sweep_table(sweep);
	return TS_EXIT_YES;
}

/* TS_EXIT_BAD, and said, where two exports would go to one place. */
static int check_exports(const struct request *r)
{
	const char *const paths[] = {r->json, r->csv, r->svg};
	const size_t n = sizeof(paths) / sizeof(paths[0]);

	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++)
			if (ts_cli_is_same_file(paths[i], paths[j]))
				return ts_cli_bad("name another one",
				        "two exports would go to %s", paths[i]);
	return TS_EXIT_YES;
}

static int sweep_graphs(const struct request *r, const char *profile_path,
        const struct ts_graph *g, const struct ts_graph *run_graph)
{
	static uint64_t limits[MAX_LIMITS + 1];
	const char *policies[MAX_POLICIES], *bad = "";
	char *copy = strdup(r->policies ? r->policies
	                    : r->replay ? TS_POLICY_PLANNER
	                                : TS_POLICY_NO_REPLAY
	                            "," TS_POLICY_PLANNER);
	struct ts_sweep sweep = {.graph = g,
	        .run_graph = run_graph,
	        .profile_path = profile_path,
	        .limits = limits,
	        .policies = policies};
	int err, status;

	if (!copy)
		return ts_cli_bad(NULL, "out of memory");
	if (read_limits(r->limits, g, run_graph, limits, &sweep.n_limits)) {
		free(copy);
		return ts_cli_bad("for example --limits 8:40:2GiB",
		        "--limits: cannot read '%s'", r->limits);
	}
	if (read_policies(copy, policies, &sweep.n_policies, &bad)) {
		status = ts_cli_bad("tapeswap sweep --help lists them",
		        "--policies: unknown policy '%s'", bad);
		free(copy);
		return status;
	}
	sweep.results = calloc((size_t)sweep.n_policies * sweep.n_limits,
	        sizeof(*sweep.results));
	err = sweep.results ? fill(&sweep) : -ENOMEM;
	status = err ? ts_cli_bad(NULL, "%s", strerror(-err))
	             : write_outputs(r, &sweep);
	free(sweep.results);
	free(copy);
	return status;
}

/* An exit status. */
static int sweep_profile(const struct request *r, const char *profile_path,
        const struct ts_profile *profile)
{
	struct ts_cli_run_view view;
	struct ts_graph graph;
	int status;

	if (ts_graph_init(&graph, profile, &(struct ts_graph_options){0}))
		return ts_cli_bad(NULL, "out of memory");
	if (ts_cli_run_view_init(&view, profile)) {
		ts_graph_finish(&graph);
		return ts_cli_bad(NULL, "out of memory");
	}
	status = sweep_graphs(
	        r, profile_path, &graph, view.known ? &view.graph : &graph);
	ts_cli_run_view_finish(&view);
	ts_graph_finish(&graph);
	return status;
}

int ts_cli_sweep(int argc, char **argv)
{
	static const struct option options[] = {
	        {"limits", required_argument, NULL, 'l'},
	        {"policies", required_argument, NULL, 'p'},
	        {"replay", no_argument, NULL, 'r'},
	        {"json", no_argument, NULL, 'j'},
	        {"export-json", required_argument, NULL, 'J'},
	        {"export-csv", required_argument, NULL, 'c'},
	        {"export-svg", required_argument, NULL, 's'},
	        {"help", no_argument, NULL, 'h'},
	        {NULL, 0, NULL, 0},
	};
	struct request r = {0};
	struct ts_profile profile;
	int opt, status;

	while ((opt = ts_cli_option(argc, argv, ":h", options)) != -1) {
		switch (opt) {
		case 'l':
			r.limits = optarg;
			break;
		case 'p':
			r.policies = optarg;
			break;
		case 'r':
			r.replay = true;
			break;
		case 'j':
			r.json = "-";
			break;
		case 'J':
			r.json = optarg;
			break;
		case 'c':
			r.csv = optarg;
			break;
		case 's':
			r.svg = optarg;
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
	status = check_exports(&r);
	if (!status)
		status = ts_cli_check_output(r.json, argv[optind]);
	if (!status)
		status = ts_cli_check_output(r.csv, argv[optind]);
	if (!status)
		status = ts_cli_check_output(r.svg, argv[optind]);
	if (!status)
		status = ts_cli_load_profile(argv[optind], &profile);
	if (status)
		return status;
	status = sweep_profile(&r, argv[optind], &profile);
	ts_profile_finish(&profile);
	return status;
}
