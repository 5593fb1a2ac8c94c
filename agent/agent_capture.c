/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which streams capture, and waiting for their end. Guarded by ts_agent.lock;
 * ts_agent.capturing counts them for those who only want to know whether any
 * does.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/remake.h"

/* As long as other threads' captures are waited for by an op at most. */
#define WAIT_SECONDS 2

void ts_captures_init(struct ts_captures *captures)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&captures->fewer, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static bool make_place(struct ts_captures *captures)
{
	size_t capacity = 2 * captures->capacity + 8;
	struct ts_capture *items;

	if (captures->count < captures->capacity)
		return true;
	items = realloc(captures->items, capacity * sizeof(*items));
	if (!items)
		return false;
	captures->items = items;
	captures->capacity = capacity;
	return true;
}

void ts_agent_before_capture(void)
{
	/* Nothing is launched for it while something captures. */
	if (!ts_remake_all())
		ts_log(TS_LOG_DEBUG,
		        "remake: not all could be before a capture");
	/* Streams that capture already take no events. */
	if (atomic_load(&ts_agent.capturing))
		return;
	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		struct ts_pager *pager = ts_agent_pager(device);

		if (pager)
			ts_pager_capture_begins(pager);
	}
}

void ts_agent_capture_begins(ts_stream_key stream)
{
	struct ts_captures *captures = &ts_agent.captures;
	struct ts_capture capture = {
	        .stream = stream, .thread = pthread_self()};

	ts_agent.ops->ctx_get_current(&capture.context);
	/* What is captured from now on is not let go. */
	ts_mutex_lock(&ts_agent.graphs.lock);
	ts_mutex_lock(&ts_agent.lock);
	/* Without a place for it nothing is moved for good: safe, if slow. */
	if (make_place(captures))
		captures->items[captures->count++] = capture;
	atomic_fetch_add(&ts_agent.capturing, 1);
	ts_mutex_unlock(&ts_agent.lock);
	ts_mutex_unlock(&ts_agent.graphs.lock);
}

/* What identifies the captures that are over. */
struct over {
	ts_stream_key stream; /* 0: any */
	CUcontext context;    /* NULL: any */
};

/* Per-thread default streams have one handle: the thread tells them apart. */
static bool is_over(const struct ts_capture *capture, const struct over *over)
{
	if (over->stream && over->stream != capture->stream)
		return false;
	if (over->stream == TS_STREAM_PER_THREAD &&
	        !pthread_equal(capture->thread, pthread_self()))
		return false;
	return !over->context || over->context == capture->context;
}

static void take_out(const struct over *over)
{
	struct ts_captures *captures = &ts_agent.captures;

	ts_mutex_lock(&ts_agent.lock);
	for (size_t i = captures->count; i--;) {
		if (!is_over(&captures->items[i], over))
			continue;
		captures->items[i] = captures->items[--captures->count];
		atomic_fetch_sub(&ts_agent.capturing, 1);
		pthread_cond_broadcast(&captures->fewer);
	}
	ts_mutex_unlock(&ts_agent.lock);
	/* It may have come to nothing. */
	ts_agent_graph_gone();
}

/* Other answers leave the capture going on, or there was none. */
void ts_agent_capture_ends(ts_stream_key stream, CUresult result)
{
	if (result != CUDA_SUCCESS &&
	        result != CUDA_ERROR_STREAM_CAPTURE_UNJOINED &&
	        result != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
		return;
	take_out(&(struct over){stream, NULL});
	ts_agent_after_captures();
}

void ts_captures_of_stream_end(ts_stream_key stream)
{
	if (atomic_load(&ts_agent.capturing))
		take_out(&(struct over){stream, NULL});
}

void ts_captures_of_context_end(CUcontext context)
{
	take_out(&(struct over){0, context});
}

static bool is_own(const struct ts_captures *captures)
{
	for (size_t i = 0; i < captures->count; i++)
		if (pthread_equal(captures->items[i].thread, pthread_self()))
			return true;
	return false;
}

bool ts_captures_wait(void)
{
	struct ts_captures *captures = &ts_agent.captures;
	struct timespec until;
	int rc = 0;
	bool over;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_SECONDS;
	ts_mutex_lock(&ts_agent.lock);
	/* The end of its own capture a thread would wait for in vain. */
	while (atomic_load(&ts_agent.capturing) && !is_own(captures) && !rc)
		rc = ts_cond_wait_until(
		        &captures->fewer, &ts_agent.lock, &until);
	over = !atomic_load(&ts_agent.capturing);
	ts_mutex_unlock(&ts_agent.lock);
	return over;
}
