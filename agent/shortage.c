/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lines for what cannot run, and what the program gets instead. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/hash.h"

/* More lines than these of a kind tell nobody anything. */
#define LINES_MAX 8

/* Rounded up, so that the setting a line names does suffice. */
static uint64_t mib_up(uint64_t bytes)
{
	return (bytes + (1 << 20) - 1) >> 20;
}

static bool is_driver_error(const struct ts_shortage *shortage)
{
	return shortage->short_of == TS_SHORT_DRIVER &&
	       shortage->result != CUDA_ERROR_OUT_OF_MEMORY;
}

static uint64_t cause_of(const char *what, const struct ts_shortage *shortage)
{
	uint64_t cause = ts_hash(TS_HASH_START, what, strlen(what));

	cause = ts_hash_word(cause, shortage->short_of);
	cause = ts_hash_word(cause, shortage->result);
	cause = ts_hash_word(cause, mib_up(shortage->need_bytes));
	return ts_hash_word(cause, mib_up(shortage->least_limit_bytes));
}

/* A program that tries again is not told again. */
static bool is_new(uint64_t cause, bool of_driver)
{
	/* Guarded by ts_agent.lock. */
	static struct {
		uint64_t causes[LINES_MAX];
		size_t count;
	} kinds[2], *told;
	bool found = false;

	ts_mutex_lock(&ts_agent.lock);
	told = &kinds[of_driver];
	for (size_t i = 0; i < told->count && !found; i++)
		found = told->causes[i] == cause;
	found |= told->count == LINES_MAX;
	if (!found)
		told->causes[told->count++] = cause;
	ts_mutex_unlock(&ts_agent.lock);
	return !found;
}

static void say_driver(const char *what, const struct ts_shortage *shortage)
{
	const char *call = shortage->call ? shortage->call : "the driver";
	const char *name = NULL;

	if (ts_agent.ops->error_name(shortage->result, &name) != CUDA_SUCCESS)
		name = NULL;
	ts_log(TS_LOG_ERROR,
	        "%s: %s cannot be made resident: %s answers error %d%s%s. "
	        "Remedy: %s",
	        is_driver_error(shortage) ? "driver error" : "out of memory",
	        what, call, (int)shortage->result, name ? ", " : "",
	        name ? name : "",
	        is_driver_error(shortage)
	                ? "CUDA_LAUNCH_BLOCKING=1 shows which op fails, "
	                  "TAPESWAP_MODE=off whether it does so by itself"
	                : "less in other use, on the device or the host");
}

static void say_device(const char *what, const struct ts_shortage *shortage)
{
	const char *known = shortage->whole_step
	                            ? ""
	                            : " at least, for later ops may need more";

	if (shortage->least_limit_bytes > shortage->device_bytes) {
		ts_log(TS_LOG_ERROR,
		        "out of memory: %s needs %s at once, and no limit that "
		        "the device has memory for, %s with %s of it in use "
		        "by the CUDA context and others, would do. Remedy: "
		        "smaller tensors, as of a smaller "
		        "batch",
		        what, ts_size(shortage->need_bytes).text,
		        ts_size(shortage->device_bytes).text,
		        ts_size(shortage->other_bytes).text);
		return;
	}
	ts_log(TS_LOG_ERROR,
	        "out of memory: %s needs %s at once, limit %s with %s of it in "
	        "use by the CUDA context and others. Remedy: "
	        "TAPESWAP_LIMIT=%" PRIu64 "MiB%s",
	        what, ts_size(shortage->need_bytes).text,
	        ts_size(shortage->limit_bytes).text,
	        ts_size(shortage->other_bytes).text,
	        mib_up(shortage->least_limit_bytes), known);
}

/* How much more is going to be captured nobody knows. */
static void say_capturing(const char *what, const struct ts_shortage *shortage)
{
	char remedy[96] = "less on the device before it";

	if (shortage->least_limit_bytes <= shortage->device_bytes)
		snprintf(remedy, sizeof(remedy),
		        "TAPESWAP_LIMIT=%" PRIu64
		        "MiB at least, for later ops may need more",
		        mib_up(shortage->least_limit_bytes));
	ts_log(TS_LOG_ERROR,
	        "out of memory: %s needs %s, limit %s, and nothing can be "
	        "moved while a graph is captured. Remedy: %s",
	        what, ts_size(shortage->need_bytes).text,
	        ts_size(shortage->limit_bytes).text, remedy);
}

void ts_agent_say_shortage(const char *what, const struct ts_shortage *shortage)
{
	atomic_fetch_add(is_driver_error(shortage) ? &ts_agent.driver_errors
	                                           : &ts_agent.shortages,
	        1);
	if (!is_new(cause_of(what, shortage), is_driver_error(shortage)))
		return;
	switch (shortage->short_of) {
	case TS_SHORT_OF_DEVICE:
		say_device(what, shortage);
		return;
	case TS_SHORT_OF_HOST:
		ts_log(TS_LOG_ERROR,
		        "out of memory: pinned host %s of %s, for %s. Remedy: "
		        "a higher TAPESWAP_HOST_LIMIT or TAPESWAP_LIMIT",
		        ts_size(shortage->host_used_bytes).text,
		        ts_size(shortage->host_limit_bytes).text, what);
		return;
	case TS_SHORT_CAPTURING:
		say_capturing(what, shortage);
		return;
	case TS_SHORT_DRIVER:
		say_driver(what, shortage);
		return;
	}
}

CUresult ts_agent_shortage_result(const struct ts_shortage *shortage)
{
	if (shortage->short_of == TS_SHORT_DRIVER &&
	        shortage->result != CUDA_SUCCESS)
		return shortage->result;
	return CUDA_ERROR_OUT_OF_MEMORY;
}
