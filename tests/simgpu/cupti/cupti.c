/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libcupti.so.13 of the simulated GPU: subscription and correlation. There is
 * one subscriber at a time; SIMGPU_CUPTI=taken acts as if another tool were
 * it. No callbacks are made: a subscriber is only kept. Callable from any
 * thread; cupti_lock guards the state.
 */
#include "activity.h"

#include <cupti.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/driver/simgpu_private.h"

struct CUpti_Subscriber_st {
	CUpti_CallbackFunc callback;
	void *user;
};

enum { CORRELATION_DEPTH_MAX = 64 };
struct correlation_stack {
	uint64_t ids[CORRELATION_DEPTH_MAX];
	unsigned depth;
};

static pthread_mutex_t cupti_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by cupti_lock. */
static CUpti_SubscriberHandle subscriber;

static CUptiResult missing(const char *name, bool *said)
{
	if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
		fprintf(stderr, "simgpu: %s is not supported\n", name);
	return CUPTI_ERROR_NOT_SUPPORTED;
}

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version)
{
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*version = CUPTI_API_VERSION;
	return CUPTI_SUCCESS;
}

#define NAME(result)                                                           \
	{                                                                      \
		result, #result                                                \
	}
static const struct {
	CUptiResult result;
	const char *name;
} result_names[] = {
        NAME(CUPTI_SUCCESS),
        NAME(CUPTI_ERROR_INVALID_PARAMETER),
        NAME(CUPTI_ERROR_INVALID_DEVICE),
        NAME(CUPTI_ERROR_INVALID_CONTEXT),
        NAME(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID),
        NAME(CUPTI_ERROR_INVALID_EVENT_ID),
        NAME(CUPTI_ERROR_INVALID_EVENT_NAME),
        NAME(CUPTI_ERROR_INVALID_OPERATION),
        NAME(CUPTI_ERROR_OUT_OF_MEMORY),
        NAME(CUPTI_ERROR_HARDWARE),
        NAME(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT),
        NAME(CUPTI_ERROR_API_NOT_IMPLEMENTED),
        NAME(CUPTI_ERROR_MAX_LIMIT_REACHED),
        NAME(CUPTI_ERROR_NOT_READY),
        NAME(CUPTI_ERROR_NOT_COMPATIBLE),
        NAME(CUPTI_ERROR_NOT_INITIALIZED),
        NAME(CUPTI_ERROR_INVALID_METRIC_ID),
        NAME(CUPTI_ERROR_INVALID_METRIC_NAME),
        NAME(CUPTI_ERROR_QUEUE_EMPTY),
        NAME(CUPTI_ERROR_INVALID_HANDLE),
        NAME(CUPTI_ERROR_INVALID_STREAM),
        NAME(CUPTI_ERROR_INVALID_KIND),
        NAME(CUPTI_ERROR_INVALID_EVENT_VALUE),
        NAME(CUPTI_ERROR_DISABLED),
        NAME(CUPTI_ERROR_INVALID_MODULE),
        NAME(CUPTI_ERROR_INVALID_METRIC_VALUE),
        NAME(CUPTI_ERROR_HARDWARE_BUSY),
        NAME(CUPTI_ERROR_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE),
        NAME(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES),
        NAME(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS),
        NAME(CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE),
        NAME(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES),
        NAME(CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED),
        NAME(CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE),
        NAME(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES),
        NAME(CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED),
        NAME(CUPTI_ERROR_INVALID_CHIP_NAME),
        NAME(CUPTI_ERROR_UNKNOWN),
};

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **str)
{
	if (!str)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < sizeof(result_names) / sizeof(*result_names);
	        i++) {
		if (result_names[i].result == result) {
			*str = result_names[i].name;
			return CUPTI_SUCCESS;
		}
	}
	return CUPTI_ERROR_INVALID_PARAMETER;
}

/* ------------------------------------------------------------- subscription */

/* Checked with the other settings when the driver starts (settings.c), which
 * may be after a profiler subscribes. */
static bool taken_by_another_tool(void)
{
	const char *setting = getenv("SIMGPU_CUPTI");

	return setting && !strcmp(setting, "taken");
}

CUptiResult CUPTIAPI cuptiSubscribe(
        CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback, void *user)
{
	CUptiResult res = CUPTI_SUCCESS;
	CUpti_SubscriberHandle mine;

	if (!handle)
		return CUPTI_ERROR_INVALID_PARAMETER;
	mine = calloc(1, sizeof(*mine));
	if (!mine)
		return CUPTI_ERROR_OUT_OF_MEMORY;
	mine->callback = callback;
	mine->user = user;
	pthread_mutex_lock(&cupti_lock);
	if (subscriber || taken_by_another_tool())
		res = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	else
		subscriber = mine;
	pthread_mutex_unlock(&cupti_lock);
	if (res == CUPTI_SUCCESS)
		*handle = mine;
	else
		free(mine);
	return res;
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	CUptiResult res = CUPTI_SUCCESS;

	pthread_mutex_lock(&cupti_lock);
	if (!handle || handle != subscriber)
		res = CUPTI_ERROR_INVALID_PARAMETER;
	else
		subscriber = NULL;
	pthread_mutex_unlock(&cupti_lock);
	if (res == CUPTI_SUCCESS)
		free(handle);
	return res;
}

static CUptiResult check_subscriber(CUpti_SubscriberHandle handle)
{
	bool ok;

	pthread_mutex_lock(&cupti_lock);
	ok = handle && handle == subscriber;
	pthread_mutex_unlock(&cupti_lock);
	return ok ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

/* Accepted: the simulated GPU makes no callbacks. */
CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable,
        CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain,
        CUpti_CallbackId cbid)
{
	return check_subscriber(handle);
}

CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable,
        CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
	return check_subscriber(handle);
}

CUptiResult CUPTIAPI cuptiGetCallbackName(
        CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
	static bool said;

	return missing("cuptiGetCallbackName", &said);
}

CUptiResult CUPTIAPI cuptiFinalize(void)
{
	CUpti_SubscriberHandle old;

	pthread_mutex_lock(&cupti_lock);
	old = subscriber;
	subscriber = NULL;
	pthread_mutex_unlock(&cupti_lock);
	free(old);
	activity_reset();
	return CUPTI_SUCCESS;
}

/* -------------------------------------------------------------- correlation */

_Static_assert(SIMGPU_EXTERNAL_KINDS == CUPTI_EXTERNAL_CORRELATION_KIND_SIZE,
        "the driver keeps an id of each kind");

/* The driver's; written once. */
static pthread_once_t external_once = PTHREAD_ONCE_INIT;
static void (*set_external)(unsigned int kind, uint64_t id);

static void bind_external(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (driver)
		*(void **)&set_external = dlsym(driver, "simgpu_set_external");
}

/* What the calling thread issues carries the top of each stack. */
static void tell_driver(CUpti_ExternalCorrelationKind kind,
        const struct correlation_stack *stack)
{
	pthread_once(&external_once, bind_external);
	if (set_external)
		set_external((unsigned int)kind,
		        stack->depth ? stack->ids[stack->depth - 1] : 0);
}

/* The calling thread's stack of one kind of external id. */
static struct correlation_stack *stack_of(CUpti_ExternalCorrelationKind kind)
{
	static __thread struct correlation_stack
	        stacks[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];

	if ((int)kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID ||
	        kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE)
		return NULL;
	return &stacks[kind];
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(
        CUpti_ExternalCorrelationKind kind, uint64_t id)
{
	struct correlation_stack *stack = stack_of(kind);

	if (!stack)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (stack->depth == CORRELATION_DEPTH_MAX)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	stack->ids[stack->depth++] = id;
	tell_driver(kind, stack);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(
        CUpti_ExternalCorrelationKind kind, uint64_t *last_id)
{
	struct correlation_stack *stack = stack_of(kind);

	if (!stack)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!stack->depth)
		return CUPTI_ERROR_QUEUE_EMPTY;
	stack->depth--;
	if (last_id)
		*last_id = stack->ids[stack->depth];
	tell_driver(kind, stack);
	return CUPTI_SUCCESS;
}
