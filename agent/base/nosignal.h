/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes of ours to a pipe that nobody reads any more, or beyond the size that
 * files may have, fail and end no program: this thread's signals of that kind
 * are held back, and taken away where they came by them. No state beside the
 * caller's; any thread.
 */
#ifndef TS_NOSIGNAL_H
#define TS_NOSIGNAL_H

#include <signal.h>

struct ts_nosignal {
	sigset_t before;
	sigset_t pending; /* these are the program's, and stay */
};

void ts_nosignal_hold(struct ts_nosignal *held);
void ts_nosignal_let_go(const struct ts_nosignal *held);

#endif
