/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the commands around the planner share. Single-threaded. */
#ifndef TS_CLI_PLANNING_H
#define TS_CLI_PLANNING_H

#include "agent/cli/cli.h"
#include "planner/graph.h"
#include "planner/paged.h"
#include "planner/profile.h"

/* Loads and checks a profile; reports what is wrong. An exit status. */
int ts_cli_load_profile(const char *path, struct ts_profile *ret_profile);

/* The same, and the file's tree, which has more in it: the caller's. */
int ts_cli_load_profile_tree(
        const char *path, struct ts_profile *ret_profile, json_t **ret_tree);

/* "PROFILE PLAN [-o FILE]" on the command line. */
struct ts_cli_pair {
	const char *profile_path, *plan_path;
	const char *output; /* "-": stdout */
	struct ts_profile profile;
	json_t *profile_tree; /* NULL where not asked for */
};

/*
 * Reads such a command line, loads the profile, its tree too if @with_tree,
 * and gives both to @run, whose exit status it returns; @usage is printed where
 * it is asked for.
 */
int ts_cli_with_pair(int argc, char **argv, const char *usage, bool with_tree,
        int (*run)(const struct ts_cli_pair *pair));

/*
 * Reads --limit: bytes, KiB/MiB/GiB, or % of the unlimited peak. Reports what
 * is wrong. An exit status.
 */
int ts_cli_read_limit(
        const char *text, const struct ts_graph *graph, uint64_t *ret_bytes);

/* What a run plans with: whole pages, where it is known where values lay. */
struct ts_cli_run_view {
	bool known; /* else there is nothing in it */
	struct ts_page_view paged;
	struct ts_graph graph;
};

/* 0 or -ENOMEM; @profile has to outlive it. */
int ts_cli_run_view_init(
        struct ts_cli_run_view *view, const struct ts_profile *profile);
void ts_cli_run_view_finish(struct ts_cli_run_view *view);

#endif
