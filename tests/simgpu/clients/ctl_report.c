/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Faults on request and the report: a child runs a scenario, its parent reads
 * what the device says of it.
 */
#include "ctl_client.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/ctl_report_XXXXXX";

static void make_folder(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* Runs scenario in a child that reports to folder/NAME; returns its pid. */
static pid_t run(void (*scenario)(void), const char *name)
{
	char path[64];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		setenv("SIMGPU_REPORT", path, 1);
		scenario();
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	return pid;
}

static json_t *load(const char *name)
{
	char path[64];
	json_error_t error;
	json_t *report;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	report = json_load_file(path, 0, &error);
	ck_assert_msg(report != NULL, "%s: %s", path, error.text);
	return report;
}

static json_int_t number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	ck_assert_msg(json_is_integer(value), "no number %s", key);
	return json_integer_value(value);
}

static void work(void)
{
	CUstream stream;
	CUdeviceptr a;
	void *p;

	client_start("a100-80g-pcie4");
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	a = client_device(COPY_BYTES);
	p = client_pinned(COPY_BYTES);
	OK(cuMemcpyHtoDAsync_v2(a, p, COPY_BYTES, stream));
	OK(cuMemcpyDtoHAsync_v2(p, a, 1000, stream));
	OK(cuMemcpyDtoDAsync_v2(a, a + 4096, 512, stream));
	OK(cuMemsetD8Async(a, 0, 256, stream));
	/* The host ends while the device is still at work. */
}

START_TEST(the_report_counts_what_was_done)
{
	const json_t *busy, *calls, *first;
	json_t *report;

	run(work, "report.json");
	report = load("report.json");
	ck_assert_str_eq(json_string_value(json_object_get(report, "device")),
	        "a100-80g-pcie4");
	ck_assert_int_eq(number(report, "copies"), 3);
	ck_assert_int_eq(number(report, "memsets"), 1);
	ck_assert_int_eq(number(report, "launches"), 0);
	ck_assert_int_eq(number(report, "bytes_h2d"), COPY_BYTES);
	ck_assert_int_eq(number(report, "bytes_d2h"), 1000);
	ck_assert_int_eq(number(report, "bytes_d2d"), 512);
	ck_assert_int_eq(number(report, "memory_errors"), 0);
	ck_assert_int_eq(number(report, "context_bytes"), 500 << 20);
	ck_assert_int_ge(number(report, "physical_peak_bytes"),
	        (500 << 20) + COPY_BYTES);
	ck_assert_int_ge(number(report, "allocated_peak_bytes"), COPY_BYTES);
	busy = json_object_get(report, "busy_ns");
	ck_assert_int_eq(number(busy, "h2d"), 10000 + 2000000);
	ck_assert_int_eq(number(busy, "d2h"), 10000 + 40);
	ck_assert_int_gt(number(busy, "compute"), 2 * 5000);
	ck_assert_int_ge(number(report, "virtual_ns"),
	        number(busy, "h2d") + number(busy, "d2h") +
	                number(busy, "compute"));
	calls = json_object_get(report, "api_call_counts");
	ck_assert_int_eq(number(calls, "cuMemcpyHtoDAsync_v2"), 1);
	ck_assert_int_eq(number(calls, "cuInit"), 1);
	first = json_array_get(json_object_get(report, "devices"), 0);
	ck_assert_int_eq(number(first, "copies"), 3);
	json_decref(report);
}
END_TEST

START_TEST(the_same_run_gives_the_same_bytes)
{
	char command[128];

	run(work, "one");
	run(work, "two");
	snprintf(command, sizeof(command), "cmp %s/one %s/two", folder, folder);
	ck_assert_int_eq(system(command), 0);
}
END_TEST

static void misuse(void)
{
	CUstream stream;

	client_start("tiny-1g");
	stream = client_stream(CU_STREAM_NON_BLOCKING);
	OK(cuStreamDestroy_v2(stream));
	for (int i = 0; i < 150; i++)
		FAILS(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
}

START_TEST(memory_errors_are_counted_and_the_first_are_told)
{
	const json_t *texts;
	json_t *report;

	run(misuse, "report.json");
	report = load("report.json");
	ck_assert_int_eq(number(report, "memory_errors"), 150);
	texts = json_object_get(report, "memory_error_texts");
	ck_assert_uint_eq(json_array_size(texts), 100);
	ck_assert_str_eq(json_string_value(json_array_get(texts, 0)),
	        "use of destroyed stream");
	json_decref(report);
}
END_TEST

static void fork_while_running(void)
{
	pid_t pid;

	work();
	pid = fork();
	if (pid == 0)
		exit(0);
	waitpid(pid, NULL, 0);
	/* The child wrote none: there is none yet. */
	ck_assert_int_ne(access(getenv("SIMGPU_REPORT"), F_OK), 0);
}

START_TEST(only_the_process_that_called_init_reports)
{
	run(fork_while_running, "report.json");
	json_decref(load("report.json"));
}
END_TEST

static void nothing(void)
{
	int version;

	OK(cuDriverGetVersion(&version));
}

START_TEST(no_init_no_report)
{
	char path[64];

	run(nothing, "report.json");
	snprintf(path, sizeof(path), "%s/report.json", folder);
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(percent_p_is_the_process)
{
	char name[64];
	pid_t pid = run(work, "a-%p-b.json");

	snprintf(name, sizeof(name), "a-%ld-b.json", (long)pid);
	json_decref(load(name));
}
END_TEST

/* ------------------------------------------------------------------ faults */

START_TEST(the_nth_call_fails)
{
	CUstream stream;
	CUdeviceptr a;
	CUevent event;

	setenv("SIMGPU_FAIL",
	        "cuMemAlloc_v2:2,cuStreamCreate:1:CUDA_ERROR_UNKNOWN,"
	        "cuEventRecord:3:719,cuMemAlloc_v2:4:1",
	        1);
	client_start("tiny-1g");
	OK(cuMemAlloc_v2(&a, 256));
	FAILS(cuMemAlloc_v2(&a, 256), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&a, 256));
	FAILS(cuMemAlloc_v2(&a, 256), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAlloc_v2(&a, 256));
	FAILS(cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
	OK(cuStreamCreate(&stream, 0));
	OK(cuEventCreate(&event, 0));
	OK(cuEventRecord(event, stream));
	OK(cuEventRecord(event, stream));
	FAILS(cuEventRecord(event, stream), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuEventRecord(event, stream));
	/* A fault of one call is not sticky. */
	OK(cuCtxSynchronize());
}
END_TEST

START_TEST(a_failing_call_does_nothing)
{
	size_t before, after, total;
	CUdeviceptr a = 1;

	setenv("SIMGPU_FAIL", "cuMemAlloc_v2:1", 1);
	client_start("tiny-1g");
	OK(cuMemGetInfo_v2(&before, &total));
	FAILS(cuMemAlloc_v2(&a, 64 << 20), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemGetInfo_v2(&after, &total));
	ck_assert_uint_eq(before, after);
	ck_assert_uint_eq(a, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl_report");
	TCase *tests = tcase_create("all");

	tcase_add_checked_fixture(tests, make_folder, remove_folder);
	tcase_add_test(tests, the_report_counts_what_was_done);
	tcase_add_test(tests, the_same_run_gives_the_same_bytes);
	tcase_add_test(tests, memory_errors_are_counted_and_the_first_are_told);
	tcase_add_test(tests, only_the_process_that_called_init_reports);
	tcase_add_test(tests, no_init_no_report);
	tcase_add_test(tests, percent_p_is_the_process);
	tcase_add_test(tests, the_nth_call_fails);
	tcase_add_test(tests, a_failing_call_does_nothing);
	suite_add_tcase(suite, tests);
	return client_run(suite);
}
