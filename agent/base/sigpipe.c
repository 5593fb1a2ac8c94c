/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/sigpipe.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static sigset_t the_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	return set;
}

void ts_sigpipe_hold(struct ts_sigpipe *held)
{
	sigset_t set = the_signal(), pending;

	sigpending(&pending);
	held->was_pending = sigismember(&pending, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &set, &held->before);
}

void ts_sigpipe_let_go(const struct ts_sigpipe *held)
{
	const struct timespec now = {0};
	sigset_t set = the_signal();
	int saved = errno;

	if (!held->was_pending)
		while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &held->before, NULL);
	errno = saved;
}
