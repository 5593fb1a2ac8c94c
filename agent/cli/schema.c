/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tapeswap schema NAME`: prints a JSON schema that is part of the binary. */
#include "agent/cli/cli.h"
#include "embedded_schemas.h"

#include <string.h>

int ts_cli_schema(int argc, char **argv)
{
	bool help = argc == 2 && !strcmp(argv[1], "--help");

	if (argc != 2 || help) {
		FILE *to = help ? stdout : stderr;

		fputs("usage: tapeswap schema NAME\nnames:", to);
		for (size_t i = 0; ts_embedded_schemas[i].name; i++)
			fprintf(to, " %s", ts_embedded_schemas[i].name);
		fputc('\n', to);
		return help ? TS_EXIT_YES : TS_EXIT_BAD;
	}
	for (size_t i = 0; ts_embedded_schemas[i].name; i++) {
		if (strcmp(argv[1], ts_embedded_schemas[i].name))
			continue;
		fputs(ts_embedded_schemas[i].text, stdout);
		return TS_EXIT_YES;
	}
	return ts_cli_bad("tapeswap schema --help lists the names",
	        "no schema '%s'", argv[1]);
}
