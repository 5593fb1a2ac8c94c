/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that a stream runs on the host. In virtual time they take none. In
 * real time one thread of the driver runs them in order of arrival, at once:
 * the effects of earlier ops on memory are there already, since they apply when
 * an op arrives. Whoever waits for an op behind a function waits for the
 * function too. Guarded by the lock; the functions run without it.
 */
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/sg.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct call {
	CUhostFn fn;
	void *arg;
	struct call *next;
};

/* Guarded by mutex, which is taken with or without the driver's lock, and
 * under which nothing else is taken. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_cond_t returned = PTHREAD_COND_INITIALIZER;
static struct call *first, **tail = &first;
static uint64_t pushed, finished;

static pthread_t thread; /* guarded by the driver's lock */
static pid_t thread_owner;

static void *run(void *unused)
{
	pthread_mutex_lock(&mutex);
	for (;;) {
		struct call *call = first;

		if (!call) {
			pthread_cond_wait(&wake, &mutex);
			continue;
		}
		first = call->next;
		if (!first)
			tail = &first;
		pthread_mutex_unlock(&mutex);
		call->fn(call->arg);
		free(call);
		pthread_mutex_lock(&mutex);
		finished++;
		pthread_cond_broadcast(&returned);
	}
	return NULL;
}

static void start_thread(void)
{
	sigset_t all, old;

	if (thread_owner == getpid())
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, run, NULL)) {
		sg_say("cannot start the thread for host functions");
		abort();
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_detach(thread);
	thread_owner = getpid();
}

static uint64_t push(CUhostFn fn, void *arg)
{
	struct call *call = sg_xcalloc(1, sizeof(*call));
	uint64_t gate;

	start_thread();
	call->fn = fn;
	call->arg = arg;
	pthread_mutex_lock(&mutex);
	*tail = call;
	tail = &call->next;
	gate = ++pushed;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&mutex);
	return gate;
}

void sg_hostfn_push(struct sg_op *op)
{
	op->host_gate = push(op->host_fn, op->host_arg);
}

void sg_hostfn_call(CUhostFn fn, void *arg)
{
	push(fn, arg);
}

uint64_t sg_hostfn_latest(void)
{
	uint64_t latest;

	pthread_mutex_lock(&mutex);
	latest = pushed;
	pthread_mutex_unlock(&mutex);
	return latest;
}

bool sg_hostfn_done(uint64_t gate)
{
	bool done;

	if (!gate)
		return true;
	pthread_mutex_lock(&mutex);
	done = finished >= gate;
	pthread_mutex_unlock(&mutex);
	return done;
}

void sg_hostfn_wait(uint64_t gate)
{
	unsigned depth;

	if (sg_hostfn_done(gate))
		return;
	if (thread_owner == getpid() && pthread_equal(thread, pthread_self()))
		return;
	depth = sg_unlock_all();
	pthread_mutex_lock(&mutex);
	while (finished < gate)
		pthread_cond_wait(&returned, &mutex);
	pthread_mutex_unlock(&mutex);
	sg_lock_again(depth);
}
