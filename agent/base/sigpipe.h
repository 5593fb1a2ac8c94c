/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes of ours to a pipe that nobody reads any more fail, and end no program:
 * the signal of this thread is held back, and taken away where it came by them.
 * No state beside the caller's; any thread, where no lock of ours is needed.
 */
#ifndef TS_SIGPIPE_H
#define TS_SIGPIPE_H

#include <signal.h>
#include <stdbool.h>

struct ts_sigpipe {
	sigset_t before;
	bool was_pending; /* it is the program's, and stays */
};

void ts_sigpipe_hold(struct ts_sigpipe *held);
void ts_sigpipe_let_go(const struct ts_sigpipe *held);

#endif
