/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When the library wakes up and when it speaks for the last time. One look at
 * standard error apart, nothing runs before the first CUDA call; a process
 * without one is left alone.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/auxv.h>

#include "agent/agent.h"
#include "agent/base/log.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hook_exit.h"
#include "intercept/hook_step.h"

_Atomic int ts_phase = TS_PHASE_FRESH;

static pthread_once_t start_once = PTHREAD_ONCE_INIT;

/* A CUDA context does not survive fork, nor do locks other threads held. */
static void after_fork_in_child(void)
{
	ts_phase = TS_PHASE_OFF;
}

static int start_phase(void)
{
	const char *missing;
	int rc;

	if (getauxval(AT_SECURE))
		return TS_PHASE_OFF;
	rc = ts_driver_state(&missing);
	if (missing) {
		ts_log(TS_LOG_ERROR, "off: the driver has no %s", missing);
		return TS_PHASE_OFF;
	}
	if (rc)
		return TS_PHASE_OFF;
	rc = ts_agent_start(ts_driver_gpu_ops());
	if (rc == TS_AGENT_REFUSED)
		return TS_PHASE_REFUSED;
	if (rc == TS_AGENT_OFF)
		return TS_PHASE_OFF;
	ts_step_check_range();
	ts_exit_init();
	pthread_atfork(NULL, NULL, after_fork_in_child);
	return TS_PHASE_ACTIVE;
}

static void start(void)
{
	ts_phase = start_phase();
}

void ts_start(void)
{
	const char *missing;

	if (ts_inside || ts_phase != TS_PHASE_FRESH)
		return;
	/*
	 * Loading the driver may call back into the wrappers, and waits for
	 * the loader, whose lock another thread may hold that comes here.
	 */
	ts_inside = true;
	/* Programs with more rights than their callers' get no new library. */
	ts_driver_resolve(!getauxval(AT_SECURE), &missing);
	pthread_once(&start_once, start);
	ts_inside = false;
}

/* Before the program can have opened anything in its place. */
__attribute__((constructor)) static void load(void)
{
	ts_log_begin();
}

/*
 * The last word. Destructors of a preloaded library run after the program's
 * and all exit handlers, so that what those still launch is counted; the
 * driver may be gone by now and is not called.
 */
__attribute__((destructor)) static void stop(void)
{
	if (ts_phase == TS_PHASE_ACTIVE)
		ts_agent_stop();
}
