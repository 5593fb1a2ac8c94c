/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Python ends itself by SIGINT after an interrupt that nobody caught, and runs
 * no exit handler then: the last word is said before that. No signal handler is
 * installed, and nothing of the program's is changed. Any thread may call
 * kill(), from signal handlers too; no lock.
 */
#include "intercept/hook_exit.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "agent/agent.h"
#include "intercept/guard.h"
#include "intercept/real_dlsym.h"

int kill(pid_t pid, int number) __attribute__((visibility("default")));

/* Of the Python this process has, set before the first op; or NULL. */
static int (*python_runs)(void);

void ts_exit_init(void)
{
	*(void **)&python_runs =
	        ts_real_dlsym(RTLD_DEFAULT, "Py_IsInitialized");
}

/*
 * Elsewhere kill() may have been called by a signal handler, and what that has
 * interrupted may hold any lock. An interpreter that is over, on the thread
 * that had it, has but this to do.
 */
static bool python_ends(int number)
{
	struct sigaction action;

	return number == SIGINT && python_runs && !python_runs() &&
	       syscall(SYS_gettid) == getpid() &&
	       !sigaction(number, NULL, &action) &&
	       !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL;
}

int kill(pid_t pid, int number)
{
	if (ts_phase == TS_PHASE_ACTIVE && !ts_inside && pid == getpid() &&
	        python_ends(number))
		ts_agent_stop();
	return (int)syscall(SYS_kill, pid, number);
}
