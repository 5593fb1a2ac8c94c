/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table, CSV, JSON and SVG of `tapeswap sweep`. Single-threaded. */
#ifndef TS_CLI_SWEEP_OUTPUT_H
#define TS_CLI_SWEEP_OUTPUT_H

#include "agent/cli/policies.h"

struct ts_sweep {
	const struct ts_graph *graph;
	/* What a run plans with: of pages, where it is known where these lie.
	 */
	const struct ts_graph *run_graph;
	const char *profile_path;
	const uint64_t *limits; /* descending */
	uint32_t n_limits;
	const char *const *policies;
	uint32_t n_policies;
	/* n_limits results for each policy in turn. */
	struct ts_cli_result *results;
};

/*
 * The first policy's table to stdout, with a limit that it can be run at; of
 * two policies how much slower the second is stands beside it.
 */
void ts_sweep_table(const struct ts_sweep *sweep);
/* Files ("-": stdout). 0 or negative errno. */
int ts_sweep_csv(const struct ts_sweep *sweep, const char *path);
int ts_sweep_json(const struct ts_sweep *sweep, const char *path);
int ts_sweep_svg(const struct ts_sweep *sweep, const char *path);

#endif
