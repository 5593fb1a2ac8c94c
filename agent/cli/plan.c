/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tapeswap plan PROFILE --limit L -o plan.json [--stats FILE]`. */
#include "agent/cli/planning.h"
#include "agent/cli/policies.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/units.h"
#include "planner/buckets.h"
#include "planner/pages.h"
#include "planner/plan.h"
#include "planner/plan_json.h"

#define MIB (UINT64_C(1) << 20)

static const char usage[] =
        "usage: tapeswap plan PROFILE --limit L [-o FILE] [--stats FILE]\n"
        "                     [--search EVALUATIONS] [--no-replay] [--tokens "
        "N]\n"
        "\n"
        "Plans what to keep, swap and replay. L: bytes, KiB, MiB, GiB, or % "
        "of\n"
        "the unlimited peak. Without -o the plan goes to stdout; a terminal "
        "has its\n"
        "figures alone (-o -: all of it). Exit status 1: L does not fit; the\n"
        "smallest limit that does is printed.\n"
        "--no-replay: values are kept or swapped, never made again.\n"
        "--tokens: a plan for steps of up to N tokens, and for all that share "
        "their\n"
        "bucket: sizes and times of PROFILE are scaled to its upper edge.\n";

enum {
	OPT_LIMIT = 256,
	OPT_STATS,
	OPT_SEARCH,
	OPT_NO_REPLAY,
	OPT_TOKENS,
};

static const struct option options[] = {
        {"limit", required_argument, NULL, OPT_LIMIT},
        {"stats", required_argument, NULL, OPT_STATS},
        {"no-replay", no_argument, NULL, OPT_NO_REPLAY},
        {"search", required_argument, NULL, OPT_SEARCH},
        {"tokens", required_argument, NULL, OPT_TOKENS},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
};

struct request {
	const char *limit;
	const char *output; /* NULL: nowhere */
	const char *stats;
	uint64_t tokens; /* 0: those of the profile */
	struct ts_plan_options plan;
};

static int write_stats(const char *path, uint64_t planning_ns,
        const struct ts_plan_stats *stats)
{
	json_t *root = ts_cli_json_object("tapeswap-plan-stats");
	int err;

	json_object_set_new(
	        root, "planning_ns", json_integer((json_int_t)planning_ns));
	json_object_set_new(root, "evaluations",
	        json_integer((json_int_t)stats->evaluations));
	json_object_set_new(root, "simulated_instrs",
	        json_integer((json_int_t)stats->simulated_instrs));
	err = ts_cli_write_json(path, root);
	json_decref(root);
	return err;
}

static int does_not_fit(const struct ts_plan *plan)
{
	ts_cli_bad(NULL, "does not fit: limit %s, least limit %s (%llu bytes)",
	        ts_size(plan->limit_bytes).text,
	        ts_size(plan->smallest_feasible_limit_bytes).text,
	        (unsigned long long)plan->smallest_feasible_limit_bytes);
	return TS_EXIT_NO;
}

/* On stderr: the plan itself may be on stdout. */
static void say_plan(const struct ts_plan *plan, uint64_t resident_bytes)
{
	uint64_t run_bytes =
	        ts_pages_limit(resident_bytes, plan->page_static_chunks);

	fprintf(stderr,
	        "tapeswap: step %.3f ms (bound %.3f, unlimited %.3f), peak %s "
	        "of %s (unlimited %s), %s out a step, %u values made again",
	        (double)plan->predicted_step_ns * 1e-6,
	        (double)plan->bound_step_ns * 1e-6,
	        (double)plan->unlimited_step_ns * 1e-6,
	        ts_size(plan->predicted_peak_bytes).text,
	        ts_size(plan->limit_bytes).text,
	        ts_size(plan->unlimited_peak_bytes).text,
	        ts_size(plan->swap_bytes).text, plan->n_replays);
	if (plan->page_static_chunks)
		fprintf(stderr, "; in its pages a run takes %llu MiB",
		        (unsigned long long)((run_bytes + MIB - 1) / MIB));
	fputc('\n', stderr);
}

/* @status, or that it could not be written. */
static int write_plan(const char *path, const struct ts_plan *plan,
        const struct ts_profile *profile, int status)
{
	json_t *root = ts_plan_to_json(plan, profile);
	int err;

	if (!root)
		return ts_cli_bad(NULL, "out of memory");
	json_object_set_new(root, "tool_version", json_string(TS_VERSION));
	err = ts_cli_write_json(path, root);
	json_decref(root);
	return err ? ts_cli_bad_output(path, err) : status;
}

/*
 * What a run does under the limit, as far as a profile tells where values lay.
 * 0 or negative errno.
 */
static int say_run(const struct request *r, const struct ts_profile *profile,
        uint64_t limit_bytes)
{
	struct ts_cli_result found;
	struct ts_cli_run_view view;
	int err = ts_cli_run_view_init(&view, profile);

	if (err || !view.known)
		return err;
	err = ts_cli_policy_of_run(
	        profile, &view.graph, limit_bytes, !r->plan.no_replay, &found);
	ts_cli_run_view_finish(&view);
	if (err)
		return err;
	if (found.outcome.fits)
		fprintf(stderr,
		        "tapeswap: a run moves whole pages: step %.3f ms "
		        "under this limit\n",
		        (double)found.outcome.step_ns * 1e-6);
	else if (found.run_bytes)
		fprintf(stderr,
		        "tapeswap: a run moves whole pages, and has no plan "
		        "under this limit: %llu MiB are taken\n",
		        (unsigned long long)((found.run_bytes + MIB - 1) /
		                             MIB));
	else
		fputs("tapeswap: a run moves whole pages, and has no plan "
		      "under this limit\n",
		        stderr);
	return 0;
}

static int make_plan(const struct request *r, const struct ts_profile *profile,
        uint64_t limit_bytes)
{
	struct ts_plan_stats stats = {0};
	struct ts_plan plan;
	uint64_t begun = ts_now_ns(), taken;
	int err = ts_plan_make(profile, limit_bytes, &r->plan, &plan, &stats);
	int status = TS_EXIT_YES;

	taken = ts_now_ns() - begun;
	if (err && err != -ENOSPC)
		return ts_cli_bad(NULL, "%s", strerror(-err));
	if (r->stats) {
		int wrong = write_stats(r->stats, taken, &stats);

		if (wrong)
			status = ts_cli_bad_output(r->stats, wrong);
	}
	if (err) {
		if (status == TS_EXIT_YES)
			status = does_not_fit(&plan);
		ts_plan_finish(&plan);
		return status;
	}
	if (r->output)
		status = write_plan(r->output, &plan, profile, status);
	/* What cannot be written is no success. */
	if (status == TS_EXIT_YES && (!r->output || strcmp(r->output, "-"))) {
		say_plan(&plan, profile->resident_bytes);
		err = say_run(r, profile, limit_bytes);
		if (err)
			status = ts_cli_bad(NULL, "%s", strerror(-err));
		if (!r->output)
			fputs("tapeswap: -o FILE writes the plan\n", stderr);
	}
	ts_plan_finish(&plan);
	return status;
}

static int read_option(struct request *r, int opt)
{
	char *end;

	switch (opt) {
	case 'o':
		r->output = optarg;
		return TS_EXIT_YES;
	case OPT_LIMIT:
		r->limit = optarg;
		return TS_EXIT_YES;
	case OPT_STATS:
		r->stats = optarg;
		return TS_EXIT_YES;
	case OPT_NO_REPLAY:
		r->plan.no_replay = true;
		return TS_EXIT_YES;
	case OPT_TOKENS:
		errno = 0;
		r->tokens = strtoull(optarg, &end, 10);
		if (*optarg < '0' || *optarg > '9' || *end || errno ||
		        !r->tokens)
			return ts_cli_bad(
			        NULL, "--tokens: cannot read '%s'", optarg);
		return TS_EXIT_YES;
	case OPT_SEARCH: {
		unsigned long n = strtoul(optarg, &end, 10);

		if (*optarg < '0' || *optarg > '9' || *end || n > 10000000)
			return ts_cli_bad(
			        NULL, "--search: cannot read '%s'", optarg);
		r->plan.search_evaluations = (uint32_t)n;
		return TS_EXIT_YES;
	}
	default:
		return TS_EXIT_BAD;
	}
}

/* @profile as it is at the upper edge of the bucket of @tokens. */
static int scale_to_bucket(struct ts_profile *profile, uint64_t tokens)
{
	uint64_t edge = ts_bucket_edge(tokens, TS_BUCKET_PERCENT);
	struct ts_profile scaled;
	int err;

	if (!profile->tokens)
		return ts_cli_bad(NULL, "--tokens: the profile does not say of "
		                        "how many tokens it is");
	err = ts_bucket_scale(profile, edge, &scaled);
	if (err)
		return ts_cli_bad(NULL, "--tokens: %s",
		        err == -EINVAL ? "too many" : strerror(-err));
	if (ts_bucket_wants_profile(profile->tokens, edge))
		fprintf(stderr,
		        "tapeswap: %llu tokens are more than twice those of "
		        "the profile: make one of a longer step\n",
		        (unsigned long long)edge);
	ts_profile_finish(profile);
	*profile = scaled;
	return TS_EXIT_YES;
}

int ts_cli_plan(int argc, char **argv)
{
	struct request r = {.output = isatty(STDOUT_FILENO) ? NULL : "-",
	        .plan = ts_plan_default_options()};
	struct ts_profile profile;
	struct ts_graph graph;
	uint64_t limit_bytes;
	int opt, status;

	while ((opt = ts_cli_option(argc, argv, ":ho:", options)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			return TS_EXIT_YES;
		}
		status = read_option(&r, opt);
		if (status)
			return status;
	}
	if (ts_cli_check_names(argc, argv, "PROFILE"))
		return TS_EXIT_BAD;
	status = ts_cli_check_output(r.output, argv[optind]);
	if (!status)
		status = ts_cli_check_output(r.stats, argv[optind]);
	if (!status)
		status = ts_cli_load_profile(argv[optind], &profile);
	if (status)
		return status;
	if (r.tokens) {
		status = scale_to_bucket(&profile, r.tokens);
		if (status) {
			ts_profile_finish(&profile);
			return status;
		}
	}
	if (ts_graph_init(&graph, &profile, &(struct ts_graph_options){0})) {
		ts_profile_finish(&profile);
		return ts_cli_bad(NULL, "out of memory");
	}
	status = ts_cli_read_limit(r.limit, &graph, &limit_bytes);
	ts_graph_finish(&graph);
	if (!status)
		status = make_plan(&r, &profile, limit_bytes);
	ts_profile_finish(&profile);
	return status;
}
