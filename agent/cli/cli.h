/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the commands of `tapeswap` share: the dispatch row, exit statuses,
 * error reports and output files. Single-threaded; nothing here outlives the
 * command that uses it.
 */
#ifndef TS_CLI_H
#define TS_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* Exit statuses of every command but `run` (see UX: 0 / 1 / 2). */
enum {
	TS_EXIT_YES = 0,
	/* A valid "no": the limit does not fit. */
	TS_EXIT_NO = 1,
	/* Usage or bad input. */
	TS_EXIT_BAD = 2,
};

/*
 * Where libtapeswap.so lies beside the folder of the program: in the build
 * folder all lie together, installed there are bin and lib.
 */
#define TS_CLI_LIBRARY_PLACES                                                  \
	"libtapeswap.so", "../" TS_LIBDIR "/libtapeswap.so",                   \
	        "../lib/libtapeswap.so"

/* One command. @fn gets its own name as argv[0] and returns an exit status. */
struct ts_cli_command {
	const char *name;
	int (*fn)(int argc, char **argv);
	const char *help;
};

int ts_cli_run(int argc, char **argv);
/* Whether `run --sim` has what it wants beside this program. */
bool ts_cli_can_sim(void);
int ts_cli_workload(int argc, char **argv);
int ts_cli_plan(int argc, char **argv);
int ts_cli_simulate(int argc, char **argv);
int ts_cli_trace(int argc, char **argv);
int ts_cli_report(int argc, char **argv);
int ts_cli_bound(int argc, char **argv);
int ts_cli_sweep(int argc, char **argv);
int ts_cli_tables(int argc, char **argv);
int ts_cli_inspect(int argc, char **argv);
int ts_cli_doctor(int argc, char **argv);
int ts_cli_schema(int argc, char **argv);

/*
 * Prints "error: ..." and, where @hint is not NULL, "hint: ..." to stderr.
 * Returns TS_EXIT_BAD, so that a command can return it.
 */
int ts_cli_bad(const char *hint, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/*
 * getopt_long() for these commands, where @letters begins with ':' or "+:":
 * what is wrong with an option is said, and is '?'.
 */
struct option;
int ts_cli_option(int argc, char **argv, const char *letters,
        const struct option *options);

/*
 * Whether as many names as @wanted, words separated by spaces, come after the
 * options: TS_EXIT_BAD, and said, where there are fewer or more.
 */
int ts_cli_check_names(int argc, char **argv, const char *wanted);

struct ts_cli_file {
	FILE *stream;
	char *path;      /* NULL: stdout */
	char *target;    /* what @path leads to; NULL: it is written itself */
	char *temporary; /* beside @target */
};

/*
 * Opens @path for writing beside its final name; ts_cli_commit() renames it
 * into place and says so on stderr or, with @keep false, removes it. What is
 * no file is written itself (base/output.h), and "-" is stdout. Return 0 or
 * -errno.
 */
int ts_cli_open(struct ts_cli_file *file, const char *path);
int ts_cli_commit(struct ts_cli_file *file, bool keep);

/* Says that @path ("-": stdout) is not written: -@err. TS_EXIT_BAD. */
int ts_cli_bad_output(const char *path, int err);

/* Whether both, where neither is NULL, are one file, or both are "-". */
bool ts_cli_is_same_file(const char *a, const char *b);

/*
 * Whether the file at @output, which may be NULL or "-", can be written, and
 * may be by a command that reads @input (NULL: none): TS_EXIT_BAD, and said,
 * where it cannot or they are one.
 */
int ts_cli_check_output(const char *output, const char *input);

/* New object with schema, schema_version and tool_version; the caller owns. */
json_t *ts_cli_json_object(const char *schema);

/* Writes @root to @path ("-": stdout) with sorted keys. 0 or -errno. */
int ts_cli_write_json(const char *path, const json_t *root);

/*
 * Reads a size as settings have it: bytes, or a number with KiB, MiB, GiB; or a
 * share in % of @whole_bytes where that is not 0. 0 or -EINVAL.
 */
int ts_cli_parse_bytes(
        const char *text, uint64_t whole_bytes, uint64_t *ret_bytes);

#endif
