/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/planning.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config.h"
#include "planner/json.h"
#include "planner/profile_json.h"

static int say_unread(
        const char *path, int err, const struct ts_input_error *error)
{
	if (err == -ENOMEM)
		return ts_cli_bad(NULL, "%s: out of memory", path);
	return ts_cli_bad("what TAPESWAP_PROFILE names is wanted; tapeswap "
	                  "schema profile shows the format",
	        "%s: %s: %s", path, error->path, error->message);
}

/* What has no ops has nothing to tell of, nor to plan. */
static int check_ops(const char *path, struct ts_profile *profile)
{
	if (profile->n_ops)
		return TS_EXIT_YES;
	ts_profile_finish(profile);
	return ts_cli_bad(NULL, "%s: $.ops: the step is empty", path);
}

int ts_cli_load_profile(const char *path, struct ts_profile *ret_profile)
{
	struct ts_input_error error;
	int err = ts_profile_load(path, ret_profile, &error);

	return err ? say_unread(path, err, &error)
	           : check_ops(path, ret_profile);
}

int ts_cli_load_profile_tree(
        const char *path, struct ts_profile *ret_profile, json_t **ret_tree)
{
	struct ts_input_error error;
	size_t length;
	json_t *tree;
	char *text;
	int err = ts_json_read_file(path, &text, &length, &error), status;

	if (err)
		return say_unread(path, err, &error);
	err = ts_json_tree(text, length, &tree, &error);
	free(text);
	if (err)
		return say_unread(path, err, &error);
	err = ts_profile_from_json(tree, ret_profile, &error);
	status = err ? say_unread(path, err, &error)
	             : check_ops(path, ret_profile);
	if (status)
		json_decref(tree);
	else
		*ret_tree = tree;
	return status;
}

int ts_cli_with_pair(int argc, char **argv, const char *usage, bool with_tree,
        int (*run)(const struct ts_cli_pair *pair))
{
	static const struct option options[] = {
	        {"output", required_argument, NULL, 'o'},
	        {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct ts_cli_pair pair = {.output = "-"};
	int option, status;

	while ((option = ts_cli_option(argc, argv, ":ho:", options)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return TS_EXIT_YES;
		}
		if (option != 'o')
			return TS_EXIT_BAD;
		pair.output = optarg;
	}
	if (ts_cli_check_names(argc, argv, "PROFILE PLAN"))
		return TS_EXIT_BAD;
	pair.profile_path = argv[optind];
	pair.plan_path = argv[optind + 1];
	status = ts_cli_check_output(pair.output, pair.profile_path);
	if (!status)
		status = ts_cli_check_output(pair.output, pair.plan_path);
	if (!status)
		status = with_tree ? ts_cli_load_profile_tree(pair.profile_path,
		                             &pair.profile, &pair.profile_tree)
		                   : ts_cli_load_profile(
		                             pair.profile_path, &pair.profile);
	if (status)
		return status;
	status = run(&pair);
	json_decref(pair.profile_tree);
	ts_profile_finish(&pair.profile);
	return status;
}

int ts_cli_read_limit(
        const char *text, const struct ts_graph *graph, uint64_t *ret_bytes)
{
	if (!text)
		return ts_cli_bad("--limit 12GiB, or --limit 50% of the peak",
		        "--limit is missing");
	if (ts_cli_parse_bytes(text, graph->peak_bytes, ret_bytes)) {
		char why[64];

		ts_config_explain_size(text, false, why, sizeof(why));
		return ts_cli_bad("want bytes, KiB, MiB, GiB, or up to 100% of "
		                  "the unlimited peak",
		        "--limit: cannot read '%s'%s%s", text, *why ? ": " : "",
		        why);
	}
	return TS_EXIT_YES;
}

int ts_cli_run_view_init(
        struct ts_cli_run_view *view, const struct ts_profile *profile)
{
	struct ts_graph_options options = {.min_gap_bytes = 1};
	int err;

	memset(view, 0, sizeof(*view));
	if (!ts_paged_known(profile))
		return 0;
	err = ts_paged_make(profile, false, 0, &view->paged);
	if (err)
		return err;
	options.dirties = view->paged.dirties;
	err = ts_graph_init(&view->graph, &view->paged.profile, &options);
	if (err)
		ts_page_view_finish(&view->paged);
	view->known = !err;
	return err;
}

void ts_cli_run_view_finish(struct ts_cli_run_view *view)
{
	if (!view->known)
		return;
	ts_graph_finish(&view->graph);
	ts_page_view_finish(&view->paged);
	view->known = false;
}
