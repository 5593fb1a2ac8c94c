/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One lock for the state of all helpers, a leaf: a fork happens under it, with
 * none of them at work.
 */
#include "runtime/helper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "agent/base/inside.h"
#include "agent/base/lock.h"

#define STACK_BYTES  (1u << 20)
#define EXIT_SECONDS 1

/* Work whose asker does not wait until a busy helper comes to it. */
#define NOT_QUEUED TS_HELP_AHEAD

static struct ts_mutex state = {PTHREAD_MUTEX_INITIALIZER, TS_RANK_HELPER};
static struct ts_list running = {&running, &running};
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
/* Under the lock: threads that fork, and wait for helpers to stand still. */
static unsigned int forking;

static struct ts_helper *helper_at(struct ts_list *at)
{
	return ts_container_of(at, struct ts_helper, list);
}

static void *run(void *data)
{
	struct ts_helper *helper = data;
	unsigned int what;

	pthread_setname_np(pthread_self(), "tapeswap");
	/* A callback that allocates would wait for what this thread holds. */
	ts_inside = true;
	ts_mutex_lock(&state);
	while (!helper->quit) {
		/* Who is asked for more all the time would let none fork. */
		if (!helper->asked || forking) {
			ts_cond_wait(&helper->change, &state);
			continue;
		}
		what = helper->asked;
		helper->asked = 0;
		helper->working = true;
		ts_mutex_unlock(&state);
		helper->work(helper->data, what);
		ts_mutex_lock(&state);
		helper->working = false;
		pthread_cond_broadcast(&helper->change);
	}
	ts_mutex_unlock(&state);
	return NULL;
}

/* ------------------------------------------------------------------- forks */

static void before_fork(void)
{
	struct ts_list *at;

	ts_mutex_lock(&state);
	forking++;
	at = running.next;
	while (at != &running) {
		struct ts_helper *helper = helper_at(at);

		at = at->next;
		if (!helper->working)
			continue;
		ts_cond_wait(&helper->change, &state);
		/* The list may have changed, and others begun to work. */
		at = running.next;
	}
}

static void after_fork(void)
{
	struct ts_list *at;

	forking--;
	for (at = running.next; at != &running; at = at->next)
		pthread_cond_broadcast(&helper_at(at)->change);
	ts_mutex_unlock(&state);
}

/* The threads are not there, and what one waited for is to be made anew. */
static void in_child(void)
{
	while (!ts_list_empty(&running)) {
		struct ts_helper *helper = helper_at(running.next);

		helper->running = false;
		helper->threaded = false;
		helper->asked = 0;
		pthread_cond_init(&helper->change, NULL);
		ts_list_remove(&helper->list);
	}
	forking = 0;
	ts_mutex_unlock(&state);
}

/*
 * The driver ends in a handler of its own, which is older and so runs later: a
 * helper's calls must be over by then.
 */
static void at_exit(void)
{
	struct ts_helper *helper = NULL;

	do {
		ts_mutex_lock(&state);
		helper = ts_list_empty(&running) ? NULL
		                                 : helper_at(running.next);
		ts_mutex_unlock(&state);
		if (helper)
			ts_helper_stop(helper, true);
	} while (helper);
}

static void watch(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
	atexit(at_exit);
}

/* ------------------------------------------------------------------ public */

void ts_helper_init(struct ts_helper *helper, bool threaded,
        void (*work)(void *data, unsigned int what), void *data)
{
	*helper = (struct ts_helper){
	        .work = work, .data = data, .threaded = threaded};
	ts_list_init(&helper->list);
	pthread_cond_init(&helper->change, NULL);
	if (threaded)
		pthread_once(&watch_once, watch);
}

/* Under the lock. Signals are the program's affair. */
static void start(struct ts_helper *helper)
{
	pthread_attr_t attributes;
	sigset_t all, before;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	helper->running =
	        !pthread_create(&helper->thread, &attributes, run, helper);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	/* Without a thread it is done without one. */
	helper->threaded = helper->running;
	if (helper->running)
		ts_list_append(&running, &helper->list);
}

void ts_helper_ask(struct ts_helper *helper, unsigned int what)
{
	unsigned int own = what;

	ts_mutex_lock(&state);
	if (helper->threaded && !helper->running)
		start(helper);
	if (helper->running) {
		own = helper->asked & what & NOT_QUEUED;
		helper->asked = (helper->asked | what) & ~own;
		pthread_cond_broadcast(&helper->change);
	}
	ts_mutex_unlock(&state);
	if (own)
		helper->work(helper->data, own);
}

void ts_helper_rest(struct ts_helper *helper)
{
	ts_mutex_lock(&state);
	helper->asked = 0;
	while (helper->working)
		ts_cond_wait(&helper->change, &state);
	ts_mutex_unlock(&state);
}

void ts_helper_stop(struct ts_helper *helper, bool exiting)
{
	struct timespec until;
	bool join;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += EXIT_SECONDS;
	ts_mutex_lock(&state);
	join = helper->running;
	helper->quit = true;
	helper->running = false;
	helper->threaded = false;
	ts_list_remove(&helper->list);
	pthread_cond_broadcast(&helper->change);
	while (exiting && join && helper->working && rc != ETIMEDOUT)
		rc = ts_cond_wait_until(&helper->change, &state, &until);
	if (exiting && helper->working)
		join = false;
	ts_mutex_unlock(&state);
	if (join)
		pthread_join(helper->thread, NULL);
}

void ts_helper_finish(struct ts_helper *helper)
{
	pthread_cond_destroy(&helper->change);
}
