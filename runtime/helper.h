/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread that does what would keep a launching thread waiting and can be done
 * apart from it. The pager of one device has it pin host memory before that is
 * needed, and move pages ahead of need; the agent has one write its status. It
 * is started when first asked; inline there is none, and whoever asks does the
 * work.
 *
 * Any thread asks, holding no lock. Around a fork the helper stands still; a
 * child has none, and does the work itself.
 */
#ifndef TS_HELPER_H
#define TS_HELPER_H

#include <pthread.h>
#include <stdbool.h>

#include "agent/base/list.h"

/* What can be asked for, as bits; the work of one comes in this order. */
enum ts_help {
	TS_HELP_PIN = 1,    /* host memory, see hostpool.h */
	TS_HELP_AHEAD = 2,  /* see ahead.c; the asker's if not in time */
	TS_HELP_STATUS = 4, /* the file of TAPESWAP_STATUS is rewritten */
};

struct ts_helper {
	/* Constant after ts_helper_init(). */
	void (*work)(void *data, unsigned int what);
	void *data;

	struct ts_list list; /* of all that run */
	pthread_t thread;
	pthread_cond_t change; /* of what stands below */
	unsigned int asked;    /* bits nobody has taken up yet */
	bool threaded;         /* a thread may be started */
	bool running, quit, working;
};

void ts_helper_init(struct ts_helper *helper, bool threaded,
        void (*work)(void *data, unsigned int what), void *data);

/* Has @what done: soon, or before this returns. */
void ts_helper_ask(struct ts_helper *helper, unsigned int what);

/* What was asked for is done, or forgotten: nothing needs it. */
void ts_helper_rest(struct ts_helper *helper);

/*
 * Ends the thread once it has done what it is at; what is asked for later the
 * asker does. At the process's exit it is waited for a second at most, for it
 * may need what the exiting thread holds.
 */
void ts_helper_stop(struct ts_helper *helper, bool exiting);

void ts_helper_finish(struct ts_helper *helper);

#endif
