/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is told of JSON files without a tree, and where written ones go. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/output.h"
#include "agent/jsonlook.h"
#include "tests/unit/suite.h"

static char root[PATH_MAX], path[PATH_MAX + 16];

static void set_up(void)
{
	char made[] = "/tmp/tapeswap-jsonlook-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(made));
	ck_assert_ptr_nonnull(realpath(made, root));
	snprintf(path, sizeof(path), "%s/x.json", root);
}

static void tear_down(void)
{
	char command[PATH_MAX + 16];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

static void put(const char *text)
{
	FILE *file = fopen(path, "we");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(text, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

START_TEST(keys_of_the_object_itself_are_told)
{
	static const struct {
		const char *text;
		int rc;
		const char *schema;
		bool of_run;
	} files[] = {
	        {"{\"schema\": \"status\"}", 0, "status", false},
	        {" {\"a\": [{\"b\": 1}], \"schema\":\"tape\"}\n", 0, "tape",
	                false},
	        {"{\"schema\": \"p\", \"x\": {}, \"tape\": \"1\"}", 0, "p",
	                true},
	        {"{\"measured\": {}, \"schema\": \"p\"}", 0, "p", true},
	        /* Values, and keys of what is within, are none. */
	        {"{\"a\": {\"schema\": \"p\", \"tape\": 1}}", 0, "", false},
	        {"{\"a\": [\"tape\", \"schema\"], \"b\": \"tape\"}", 0, "",
	                false},
	        {"{\"a\": \"x\\\"}, {\\\\\", \"schema\": \"p\"}", 0, "p",
	                false},
	        {"{\"schema\": 1, \"tape\": 1}", 0, "", true},
	        {"{}", 0, "", false},
	        /* No objects, or none that is whole. */
	        {"", -EINVAL, "", false},
	        {"[{\"schema\": \"p\"}]", -EINVAL, "", false},
	        {"print(1)\n", -EINVAL, "", false},
	        {"{\"schema\": \"p\", ", -ENODATA, "p", false},
	        {"{\"schema\": \"p", -ENODATA, "", false},
	        {"{\"schema", -ENODATA, "", false},
	        {"{\"a\\", -ENODATA, "", false},
	        {"{", -ENODATA, "", false},
	};
	struct ts_jsonlook look;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		put(files[i].text);
		ck_assert_msg(ts_jsonlook(path, true, &look) == files[i].rc,
		        "%s", files[i].text);
		ck_assert_str_eq(look.schema, files[i].schema);
		ck_assert_msg(
		        look.of_run == files[i].of_run, "%s", files[i].text);
	}
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(ts_jsonlook(path, true, &look), -ENOENT);
}
END_TEST

START_TEST(more_than_the_schema_is_read_where_it_is_wanted)
{
	struct ts_jsonlook look;

	put("{\"schema\": \"p\", \"tape\": 1}");
	ck_assert_int_eq(ts_jsonlook(path, false, &look), 0);
	ck_assert(!look.of_run);
	ck_assert_int_eq(ts_jsonlook(path, true, &look), 0);
	ck_assert(look.of_run);
	put("{\"schema\": \"a very long name that no schema of ours has\"}");
	ck_assert_int_eq(ts_jsonlook(path, false, &look), 0);
	ck_assert_uint_eq(strlen(look.schema), TS_JSONLOOK_SCHEMA_BYTES - 1);
	put("{\"schema\": \"p\", \"schema_version\": \"2.1\", \"tape\": 1}");
	ck_assert_int_eq(ts_jsonlook(path, true, &look), 0);
	ck_assert_str_eq(look.version, "2.1");
	put("{\"schema\": \"p\", \"tape\": 1, \"a\": [1}");
	ck_assert_int_eq(ts_jsonlook(path, true, &look), -ENODATA);
}
END_TEST

/* What is written to the link @name goes to @file, in the folder; or itself. */
static void check_place(const char *name, const char *file)
{
	char link[PATH_MAX + 16], wanted[PATH_MAX + 16], *place;

	snprintf(link, sizeof(link), "%s/%s", root, name);
	snprintf(wanted, sizeof(wanted), "%s/%s", root, file ? file : "");
	ck_assert_int_eq(ts_output_place(link, &place), 0);
	if (file)
		ck_assert_str_eq(place, wanted);
	else
		ck_assert_ptr_null(place);
	free(place);
	ck_assert_int_eq(ts_output_check(link), 0);
}

START_TEST(too_large_files_are_not_read)
{
	struct ts_jsonlook look;

	put("{\"schema\": \"status\"");
	ck_assert_int_eq(ts_jsonlook(path, true, &look), -ENODATA);
	ck_assert_int_eq(truncate(path, TS_JSONLOOK_BYTES_MAX + 1), 0);
	ck_assert_int_eq(ts_jsonlook(path, true, &look), -EFBIG);
}
END_TEST

START_TEST(files_are_replaced_behind_links)
{
	char own[64], *place;
	int fd;

	put("");
	ck_assert_int_eq(chdir(root), 0);
	fd = open("x.json", O_WRONLY | O_CLOEXEC);
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	ck_assert_int_eq(mkdir("beside", 0700), 0);
	ck_assert_int_eq(symlink("x.json", "file"), 0);
	ck_assert_int_eq(symlink("../file", "beside/chain"), 0);
	ck_assert_int_eq(symlink("beside/new.json", "new"), 0);
	ck_assert_int_eq(symlink(own, "open"), 0);
	ck_assert_int_eq(symlink("open", "opened"), 0);
	ck_assert_int_eq(symlink("/dev/null", "device"), 0);
	ck_assert_int_eq(symlink("round", "round"), 0);
	ck_assert_int_eq(symlink("none/x.json", "none"), 0);
	check_place("x.json", "x.json");
	check_place("absent", "absent");
	check_place("file", "x.json");
	check_place("beside/chain", "x.json");
	check_place("new", "beside/new.json");
	check_place("open", NULL);
	check_place("opened", NULL);
	check_place("device", NULL);
	ck_assert_int_eq(ts_output_place("round", &place), -ELOOP);
	ck_assert_int_eq(ts_output_check("none/x.json"), -ELOOP);
	close(fd);
	ck_assert_int_eq(ts_output_check("/nowhere/x.json"), -ENOENT);
}
END_TEST

START_TEST(what_is_open_keeps_its_place)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	char own[64], text[16] = "";
	FILE *file;

	ck_assert_int_eq(write(fd, "one ", 4), 4);
	snprintf(own, sizeof(own), "/dev/fd/%d", fd);
	file = ts_output_open(own, false);
	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs("two ", file), 0);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_int_eq(write(fd, "three", 5), 5);
	ck_assert_int_eq(pread(fd, text, sizeof(text) - 1, 0), 13);
	ck_assert_str_eq(text, "one two three");
	close(fd);
	ck_assert_ptr_null(ts_output_open(own, false));
}
END_TEST

START_TEST(a_pipe_that_nobody_reads_is_not_waited_for)
{
	FILE *file;
	int reader;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_ptr_null(ts_output_open(path, false));
	ck_assert_int_eq(errno, ENXIO);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	file = ts_output_open(path, false);
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fcntl(fileno(file), F_GETFL) & O_NONBLOCK, 0);
	fclose(file);
	close(reader);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, keys_of_the_object_itself_are_told);
	tcase_add_test(tests, more_than_the_schema_is_read_where_it_is_wanted);
	tcase_add_test(tests, too_large_files_are_not_read);
	tcase_add_test(tests, files_are_replaced_behind_links);
	tcase_add_test(tests, what_is_open_keeps_its_place);
	tcase_add_test(tests, a_pipe_that_nobody_reads_is_not_waited_for);
}

int main(void)
{
	return run_suite("jsonlook", add_tests);
}
