/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/nosignal.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static const int held_signals[] = {SIGPIPE, SIGXFSZ};

#define HELD (sizeof(held_signals) / sizeof(held_signals[0]))

void ts_nosignal_hold(struct ts_nosignal *held)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < HELD; i++)
		sigaddset(&set, held_signals[i]);
	sigpending(&held->pending);
	pthread_sigmask(SIG_BLOCK, &set, &held->before);
}

void ts_nosignal_let_go(const struct ts_nosignal *held)
{
	const struct timespec now = {0};
	sigset_t ours;
	int saved = errno;

	sigemptyset(&ours);
	for (size_t i = 0; i < HELD; i++)
		if (!sigismember(&held->pending, held_signals[i]))
			sigaddset(&ours, held_signals[i]);
	while (sigtimedwait(&ours, NULL, &now) > 0 || errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &held->before, NULL);
	errno = saved;
}
