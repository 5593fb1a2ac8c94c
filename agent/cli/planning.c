/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/planning.h"

#include <errno.h>

#include "planner/profile_json.h"

int ts_cli_load_profile(const char *path, struct ts_profile *ret_profile)
{
	struct ts_input_error error;
	int err = ts_profile_load(path, ret_profile, &error);

	if (err == -ENOMEM)
		return ts_cli_bad(NULL, "%s: out of memory", path);
	if (err)
		return ts_cli_bad("tapeswap schema profile shows the format",
		        "%s: %s: %s", path, error.path, error.message);
	return TS_EXIT_YES;
}

int ts_cli_read_limit(
        const char *text, const struct ts_graph *graph, uint64_t *ret_bytes)
{
	if (!text)
		return ts_cli_bad("--limit 12GiB, or --limit 50% of the peak",
		        "--limit is missing");
	if (ts_cli_parse_bytes(text, graph->peak_bytes, ret_bytes))
		return ts_cli_bad(
		        "want bytes, KiB, MiB, GiB, or % of the unlimited peak",
		        "--limit: cannot read '%s'", text);
	return TS_EXIT_YES;
}
