/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tapeswap schema NAME`: prints a JSON schema that is part of the binary. */
#include "agent/cli/cli.h"
#include "embedded_schemas.h"

#include <getopt.h>
#include <string.h>

int ts_cli_schema(int argc, char **argv)
{
	static const struct option options[] = {
	        {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *name;
	int opt;

	while ((opt = ts_cli_option(argc, argv, ":h", options)) != -1) {
		if (opt != 'h')
			return TS_EXIT_BAD;
		fputs("usage: tapeswap schema NAME\nnames:", stdout);
		for (size_t i = 0; ts_embedded_schemas[i].name; i++)
			printf(" %s", ts_embedded_schemas[i].name);
		putchar('\n');
		return TS_EXIT_YES;
	}
	if (ts_cli_check_names(argc, argv, "NAME"))
		return TS_EXIT_BAD;
	name = argv[optind];
	for (size_t i = 0; ts_embedded_schemas[i].name; i++) {
		if (strcmp(name, ts_embedded_schemas[i].name))
			continue;
		fputs(ts_embedded_schemas[i].text, stdout);
		return TS_EXIT_YES;
	}
	return ts_cli_bad("tapeswap schema --help lists the names",
	        "no schema '%s'", name);
}
