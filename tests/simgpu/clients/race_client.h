/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the clients that test race detection and mutations share: a scenario
 * runs in a child, which writes its report at its end; the parent reads it.
 */
#ifndef RACE_CLIENT_H
#define RACE_CLIENT_H

#include "mem_client.h"

#include "kernel_client.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What scenario leaves behind, with a setting made before it, or none. */
static inline json_t *race_report(
        void (*scenario)(void), const char *name, const char *value)
{
	char path[] = "/tmp/race_report_XXXXXX";
	json_t *report;
	json_error_t error;
	int fd = mkstemp(path), status;
	pid_t pid;

	ck_assert_int_ge(fd, 0);
	close(fd);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		setenv("SIMGPU_REPORT", path, 1);
		if (name)
			setenv(name, value, 1);
		scenario();
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	report = json_load_file(path, 0, &error);
	unlink(path);
	ck_assert_msg(report, "%s", error.text);
	return report;
}

static inline json_int_t race_number(json_t *report, const char *name)
{
	json_t *value = json_object_get(report, name);

	ck_assert_msg(json_is_integer(value), "no number %s", name);
	return json_integer_value(value);
}

static inline void race_launch(
        CUfunction kernel, CUdeviceptr a, CUdeviceptr b, CUstream stream)
{
	void *params[] = {&a, &b};

	OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static inline CUstream race_stream(unsigned flags)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, flags));
	return stream;
}

static inline CUdeviceptr race_device(size_t bytes)
{
	CUdeviceptr p;

	OK(cuMemAlloc(&p, bytes));
	return p;
}

static inline void *race_pinned(size_t bytes)
{
	void *p;

	OK(cuMemHostAlloc(&p, bytes, 0));
	return p;
}

/* stream waits for what is now in other. */
static inline void race_order(CUstream stream, CUstream other)
{
	CUevent event;

	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(event, other));
	OK(cuStreamWaitEvent(stream, event, 0));
	OK(cuEventDestroy(event));
}

#endif
