/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that ends itself by a signal, as Python does after an interrupt
 * that nobody caught, runs no exit handler: the last word is said before that.
 * No signal handler is installed, and nothing of the program's is changed.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "agent/agent.h"
#include "intercept/guard.h"

int kill(pid_t pid, int number) __attribute__((visibility("default")));

/*
 * A signal that users and schedulers end programs with, and that ends this one.
 * Not from within its handler, where it is blocked: what was interrupted may
 * hold any lock. Nor one that tells of a crash, for the same reason.
 */
static bool ends_by(int number)
{
	struct sigaction action;
	sigset_t blocked;

	if (number != SIGINT && number != SIGTERM && number != SIGHUP)
		return false;
	if (sigaction(number, NULL, &action) || action.sa_flags & SA_SIGINFO ||
	        action.sa_handler != SIG_DFL)
		return false;
	return !pthread_sigmask(SIG_BLOCK, NULL, &blocked) &&
	       !sigismember(&blocked, number);
}

/* As the C library's, which may be called from signal handlers. */
int kill(pid_t pid, int number)
{
	if (ts_phase == TS_PHASE_ACTIVE && !ts_inside && pid == getpid() &&
	        ends_by(number))
		ts_agent_stop();
	return (int)syscall(SYS_kill, pid, number);
}
