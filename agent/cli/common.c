/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/output.h"
#include "agent/config.h"

int ts_cli_bad(const char *hint, const char *fmt, ...)
{
	va_list ap;

	fputs("tapeswap: error: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (hint)
		fprintf(stderr, "tapeswap: hint: %s\n", hint);
	return TS_EXIT_BAD;
}

static void hint_at_help(const char *command)
{
	fprintf(stderr, "tapeswap: hint: tapeswap %s --help explains it\n",
	        command);
}

/* Whether @argument, up to any "=", begins the long option @option. */
static bool begins(const char *argument, const struct option *option)
{
	return !strncmp(argument, "--", 2) &&
	       !strncmp(argument + 2, option->name, strcspn(argument + 2, "="));
}

/* Whether @argument is the long option @found, which takes none, with one. */
static bool has_value(
        const char *argument, int found, const struct option *options)
{
	for (; options->name; options++)
		if (options->val == found && strchr(argument, '=') &&
		        begins(argument, options))
			return true;
	return false;
}

/* What @argument may mean, for a message; "" where it means nothing. */
static void list_meanings(const char *argument, const struct option *options,
        char *meanings, size_t size)
{
	size_t length = 0;

	*meanings = '\0';
	for (; options->name && length < size; options++) {
		if (begins(argument, options))
			length += (size_t)snprintf(meanings + length,
			        size - length, "%s--%s", length ? ", " : "",
			        options->name);
	}
}

/* @argument, which getopt_long() refused: "" where that is not known. */
static void say_refused(const char *argument, const struct option *options)
{
	char meanings[256];

	list_meanings(argument, options, meanings, sizeof(meanings));
	if (optopt && has_value(argument, optopt, options))
		ts_cli_bad(NULL, "option '%s' takes no value", argument);
	else if (optopt)
		ts_cli_bad(NULL, "unknown option '-%c'", optopt);
	else if (*meanings)
		ts_cli_bad(NULL, "option '%s' may be any of %s", argument,
		        meanings);
	else
		ts_cli_bad(NULL, "unknown option '%s'", argument);
}

int ts_cli_option(int argc, char **argv, const char *letters,
        const struct option *options)
{
	int before = optind, found;

	opterr = 0;
	found = getopt_long(argc, argv, letters, options, NULL);
	if (found != '?' && found != ':')
		return found;
	if (found == ':')
		ts_cli_bad(NULL, "option '%s' wants a value", argv[optind - 1]);
	else
		/* A letter with more behind it: its argument is not passed. */
		say_refused(optind == before ? "" : argv[optind - 1], options);
	hint_at_help(argv[0]);
	return '?';
}

int ts_cli_check_names(int argc, char **argv, const char *wanted)
{
	int count = *wanted != '\0';

	for (const char *at = wanted; *at; at++)
		count += *at == ' ';
	if (argc - optind == count)
		return TS_EXIT_YES;
	if (argc - optind > count)
		ts_cli_bad(NULL, "'%s' is one argument too many",
		        argv[optind + count]);
	else
		ts_cli_bad(NULL, "%s wants %s", argv[0], wanted);
	hint_at_help(argv[0]);
	return TS_EXIT_BAD;
}

static int open_stream(struct ts_cli_file *file)
{
	if (!file->target) {
		file->stream = ts_output_open(file->path, true);
		return file->stream ? 0 : -errno;
	}
	if (asprintf(&file->temporary, "%s.tmp.%ld", file->target,
	            (long)getpid()) < 0) {
		file->temporary = NULL;
		return -ENOMEM;
	}
	file->stream = fopen(file->temporary, "we");
	return file->stream ? 0 : -errno;
}

static void drop_names(struct ts_cli_file *file)
{
	free(file->path);
	free(file->target);
	free(file->temporary);
}

int ts_cli_open(struct ts_cli_file *file, const char *path)
{
	int err;

	memset(file, 0, sizeof(*file));
	if (!strcmp(path, "-")) {
		file->stream = stdout;
		return 0;
	}
	file->path = strdup(path);
	if (!file->path)
		return -ENOMEM;
	err = ts_output_place(path, &file->target);
	if (!err)
		err = open_stream(file);
	if (err)
		drop_names(file);
	return err;
}

/* Why what was written before has not arrived: it is tried once more. */
static int why_broken(FILE *stream)
{
	if (!ferror(stream))
		return 0;
	clearerr(stream);
	errno = 0;
	return fflush(stream) && errno ? -errno : -EIO;
}

static int put_in_place(struct ts_cli_file *file, bool keep)
{
	bool replaced = !access(file->path, F_OK);
	int err = why_broken(file->stream);

	if (fclose(file->stream) && !err)
		err = -errno;
	if (!file->temporary)
		return err;
	if (!err && keep && rename(file->temporary, file->target))
		err = -errno;
	if (err || !keep)
		unlink(file->temporary);
	else
		fprintf(stderr, "tapeswap: %s %s\n",
		        replaced ? "replaced" : "wrote", file->path);
	return err;
}

int ts_cli_commit(struct ts_cli_file *file, bool keep)
{
	int err;

	if (!file->path)
		return fflush(file->stream) ? -errno : why_broken(file->stream);
	err = put_in_place(file, keep);
	drop_names(file);
	return err;
}

int ts_cli_bad_output(const char *path, int err)
{
	return ts_cli_bad(NULL, "%s cannot be written: %s",
	        strcmp(path, "-") ? path : "standard output", strerror(-err));
}

bool ts_cli_is_same_file(const char *a, const char *b)
{
	struct stat first, second;

	if (!a || !b)
		return false;
	if (stat(a, &first))
		return !strcmp(a, b);
	return S_ISREG(first.st_mode) && !stat(b, &second) &&
	       first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

int ts_cli_check_output(const char *output, const char *input)
{
	int rc;

	if (!output || !strcmp(output, "-"))
		return TS_EXIT_YES;
	rc = ts_output_check(output);
	if (rc)
		return ts_cli_bad_output(output, rc);
	if (!input || !ts_cli_is_same_file(output, input))
		return TS_EXIT_YES;
	return ts_cli_bad("name another file for what is made of it",
	        "%s is read, and would be written over", output);
}

json_t *ts_cli_json_object(const char *schema)
{
	return json_pack("{s:s, s:s, s:s}", "schema", schema, "schema_version",
	        "1.0", "tool_version", TS_VERSION);
}

int ts_cli_write_json(const char *path, const json_t *root)
{
	struct ts_cli_file file;
	int err = ts_cli_open(&file, path);

	if (err)
		return err;
	/* Neither tells why: a write in their middle, mostly. */
	errno = 0;
	if (json_dumpf(root, file.stream, JSON_INDENT(1) | JSON_SORT_KEYS) ||
	        fputc('\n', file.stream) == EOF)
		err = errno ? -errno : -EIO;
	int closed = ts_cli_commit(&file, !err);

	return err ? err : closed;
}

int ts_cli_parse_bytes(
        const char *text, uint64_t whole_bytes, uint64_t *ret_bytes)
{
	struct ts_limit size;

	if (ts_config_read_size(text, whole_bytes != 0, &size))
		return -EINVAL;
	*ret_bytes = size.unit == TS_LIMIT_PERCENT
	                     ? (uint64_t)((double)whole_bytes *
	                                  (double)size.value / 10000)
	                     : size.value;
	return 0;
}
