/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Start of the simulated driver and its entry guard. Owns the one lock, the
 * list of functions called and the helpers that everything uses. Called by
 * every exported function, on any thread.
 */
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_VERSION    13020
#define MEMORY_ERROR_TEXT 100

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* Guarded by lock. */
static bool started, initialised, forked;
static CUresult start_result;
static pid_t owner;
static struct sg_api *apis;
static char *error_texts[MEMORY_ERROR_TEXT];
static const struct sg_device *error_devices[MEMORY_ERROR_TEXT];
static unsigned error_count;

static __thread unsigned lock_depth;
static _Atomic(simgpu_api_callback) api_callback;

void sg_lock(void)
{
	pthread_mutex_lock(&lock);
	lock_depth++;
}

void sg_unlock(void)
{
	lock_depth--;
	pthread_mutex_unlock(&lock);
}

unsigned sg_unlock_all(void)
{
	unsigned depth = lock_depth;

	while (lock_depth)
		sg_unlock();
	return depth;
}

void sg_lock_again(unsigned depth)
{
	while (depth--)
		sg_lock();
}

void *sg_xcalloc(size_t n, size_t bytes)
{
	void *p = calloc(n ? n : 1, bytes ? bytes : 1);

	if (!p) {
		sg_say("out of host memory");
		abort();
	}
	return p;
}

void *sg_xrealloc(void *p, size_t bytes)
{
	void *bigger = realloc(p, bytes ? bytes : 1);

	if (!bigger) {
		sg_say("out of host memory");
		abort();
	}
	return bigger;
}

char *sg_xstrdup(const char *s)
{
	size_t bytes = strlen(s) + 1;

	return memcpy(sg_xcalloc(1, bytes), s, bytes);
}

void sg_say(const char *fmt, ...)
{
	char line[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fprintf(stderr, "simgpu: %s\n", line);
}

CUresult sg_not_supported(const char *what)
{
	static char **named;
	static size_t named_count;

	sg_lock();
	for (size_t i = 0; i < named_count; i++) {
		if (!strcmp(named[i], what))
			goto out;
	}
	named = sg_xrealloc(named, (named_count + 1) * sizeof(*named));
	named[named_count++] = sg_xstrdup(what);
	sg_say("%s is not supported", what);
out:
	sg_unlock();
	return CUDA_ERROR_NOT_SUPPORTED;
}

__attribute__((format(printf, 2, 0))) static void keep_error(
        struct sg_device *dev, const char *fmt, va_list args)
{
	char text[512];

	vsnprintf(text, sizeof(text), fmt, args);
	dev->count.memory_errors++;
	if (error_count == MEMORY_ERROR_TEXT)
		return;
	sg_say("memory error on device %d: %s", dev->ordinal, text);
	error_texts[error_count] = sg_xstrdup(text);
	error_devices[error_count++] = dev;
}

void sg_memory_error(struct sg_device *dev, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	keep_error(dev, fmt, args);
	va_end(args);
}

void sg_sticky_error(
        struct sg_device *dev, CUresult error, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	keep_error(dev, fmt, args);
	va_end(args);
	if (dev->sticky == CUDA_SUCCESS)
		dev->sticky = error;
}

const char *sg_memory_error_text(const struct sg_device *dev, unsigned i)
{
	for (unsigned e = 0; e < error_count; e++) {
		if (error_devices[e] == dev && i-- == 0)
			return error_texts[e];
	}
	return NULL;
}

void *sg_handle_new(size_t bytes, enum sg_magic magic)
{
	static struct sg_handle **handles;
	static size_t count, room;
	struct sg_handle *h = sg_xcalloc(1, bytes);

	h->magic = magic;
	if (count == room) {
		room = room ? room * 2 : 256;
		handles =
		        sg_xrealloc(handles, room * sizeof(struct sg_handle *));
	}
	handles[count++] = h;
	return h;
}

void sg_handle_kill(void *p)
{
	struct sg_handle *h = p;

	h->was = h->magic;
	h->magic = SG_MAGIC_DEAD;
}

bool sg_handle_ok(const void *p, enum sg_magic magic)
{
	const struct sg_handle *h = p;
	struct sg_ctx *ctx;

	if (!h)
		return false;
	if (h->magic == magic)
		return true;
	if (h->magic == SG_MAGIC_DEAD && h->was == magic && sg_device_count) {
		ctx = sg_ctx_current();
		sg_memory_error(ctx ? ctx->dev : &sg_devices[0],
		        "use of destroyed %s",
		        magic == SG_MAGIC_STREAM  ? "stream"
		        : magic == SG_MAGIC_EVENT ? "event"
		        : magic == SG_MAGIC_CTX   ? "context"
		        : magic == SG_MAGIC_GRAPH ? "graph"
		                                  : "handle");
	}
	return false;
}

/* ------------------------------------------------------------------- start */

static void before_fork(void)
{
	sg_lock();
}

static void after_fork_parent(void)
{
	sg_unlock();
}

static void after_fork_child(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
	lock_depth = 0;
	if (initialised)
		forked = true;
}

CUresult sg_start(void)
{
	if (started)
		return start_result;
	started = true;
	start_result = CUDA_ERROR_INVALID_VALUE;
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	if (sg_settings_read())
		return start_result;
	if (sg_settings.fail && sg_fault_read(sg_settings.fail))
		return start_result;
	if (sg_settings.mutate && sg_mutate_read(sg_settings.mutate))
		return start_result;
	if (sg_devices_create())
		return start_result;
	start_result = CUDA_SUCCESS;
	return start_result;
}

bool sg_initialised(void)
{
	return initialised;
}

bool sg_owns_process(void)
{
	return initialised && !forked && owner == getpid();
}

/* ------------------------------------------------------------- entry guard */

struct sg_api *sg_api_first(void)
{
	return apis;
}

struct sg_api *sg_api_next(const struct sg_api *api)
{
	return api->next;
}

static void charge(enum sg_cost cost)
{
	const struct sg_ctx *ctx = sg_ctx_current();
	const struct sg_model *model;

	if (cost == SG_COST_NONE || !sg_device_count)
		return;
	model = ctx ? &ctx->dev->model : &sg_devices[0].model;
	switch (cost) {
	case SG_COST_LAUNCH:
		sg_host_advance(model->launch_host_ns);
		break;
	case SG_COST_COPY:
		sg_host_advance(model->copy_host_ns);
		break;
	case SG_COST_EVENT:
		sg_host_advance(model->event_host_ns);
		break;
	default:
		sg_host_advance(model->api_host_ns);
	}
}

SG_EXPORT void simgpu_set_api_callback(simgpu_api_callback callback)
{
	atomic_store(&api_callback, callback);
}

/* Not of what the driver itself calls, nor of what the callback does. */
static void tell(const struct sg_api *api)
{
	static __thread bool telling;
	simgpu_api_callback callback =
	        atomic_load_explicit(&api_callback, memory_order_relaxed);

	if (!callback || telling || lock_depth)
		return;
	telling = true;
	callback(api->name);
	telling = false;
}

CUresult sg_enter(struct sg_guard *guard, struct sg_api *api)
{
	CUresult r;

	tell(api);
	sg_lock();
	guard->locked = true;
	r = sg_start();
	if (r)
		return r;
	sg_races_judge_touches();
	if (!api->listed) {
		api->listed = true;
		api->next = apis;
		apis = api;
	}
	api->calls++;
	if (api->flags & (SG_NEED_INIT | SG_NEED_CTX)) {
		struct sg_ctx *ctx;

		if (!initialised || forked)
			return CUDA_ERROR_NOT_INITIALIZED;
		ctx = sg_ctx_current();
		if ((api->flags & SG_NEED_CTX) && !ctx)
			return CUDA_ERROR_INVALID_CONTEXT;
		(ctx ? ctx->dev : &sg_devices[0])->count.api_calls++;
	}
	r = sg_fault_check(api);
	if (r)
		return r;
	if ((api->flags & SG_NEED_CTX) && !(api->flags & SG_NO_STICKY)) {
		r = sg_ctx_error();
		if (r)
			return r;
	}
	charge(api->cost);
	return CUDA_SUCCESS;
}

void sg_leave(struct sg_guard *guard)
{
	if (guard->locked)
		sg_unlock();
}

/* --------------------------------------------------------------- functions */

CUresult cuInit(unsigned flags)
{
	SG_API(cuInit, SG_COST_NONE, 0);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!sg_device_count)
		return CUDA_ERROR_NO_DEVICE;
	if (!initialised) {
		initialised = true;
		owner = getpid();
	}
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	SG_API(cuDriverGetVersion, SG_COST_NONE, 0);
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = DRIVER_VERSION;
	return CUDA_SUCCESS;
}

static void __attribute__((destructor)) at_exit(void)
{
	sg_lock();
	sg_report_write();
	sg_unlock();
}
