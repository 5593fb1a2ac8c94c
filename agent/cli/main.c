/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command `tapeswap`: one table of commands and the way into them.
 * Single-threaded.
 */
#include "agent/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct ts_cli_command commands[] = {
        {"run", ts_cli_run, "run a program inside a device-memory limit"},
        {"inspect", ts_cli_inspect,
                "what a step's memory and time are made of"},
        {"plan", ts_cli_plan, "make a plan: plan PROFILE --limit L -o FILE"},
        {"simulate", ts_cli_simulate, "run a plan on the event model"},
        {"trace", ts_cli_trace, "a planned step as a timeline for Perfetto"},
        {"report", ts_cli_report, "a planned step as one page of HTML"},
        {"bound", ts_cli_bound, "a bound on the step time of any plan"},
        {"sweep", ts_cli_sweep, "limit against step time: how much do I need?"},
        {"tables", ts_cli_tables,
                "the papers' tables beside ours and the bound"},
        {"workload", ts_cli_workload, "write a reference workload's profile"},
        {"doctor", ts_cli_doctor, "whether tapeswap can work here, and why"},
        {"schema", ts_cli_schema, "print a JSON schema: schema NAME"},
};

static void print_help(FILE *to)
{
	fputs("usage: tapeswap COMMAND [ARGUMENTS]\n\ncommands:\n", to);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n`tapeswap COMMAND --help` explains one command.\n", to);
}

/*
 * No file that a command opens is to become one of these, which it writes to.
 * Closed again where another program is run.
 */
static void hold_streams(void)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* What is still to be written may find no room. */
static int finish(int status)
{
	int err = fflush(stdout) ? -errno : 0;

	if (status != TS_EXIT_BAD && (err || ferror(stdout)))
		return ts_cli_bad_output("-", err ? err : -EIO);
	return status;
}

int main(int argc, char **argv)
{
	hold_streams();
	if (argc < 2) {
		print_help(stderr);
		return TS_EXIT_BAD;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	        !strcmp(argv[1], "help")) {
		print_help(stdout);
		return finish(TS_EXIT_YES);
	}
	if (!strcmp(argv[1], "--version")) {
		puts("tapeswap " TS_VERSION);
		return finish(TS_EXIT_YES);
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(argv[1], commands[i].name))
			return finish(commands[i].fn(argc - 1, argv + 1));
	}
	return ts_cli_bad("tapeswap --help lists the commands",
	        "unknown command '%s'", argv[1]);
}
