/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CUPTI, which has one user at a time: a profiler of the program's comes first,
 * and the agent gives up before the program asks for it.
 */
#include <stdint.h>

#include "agent/agent.h"
#include "intercept/guard.h"
#include "intercept/library.h"

/* CUptiResult: CUPTI_ERROR_NOT_SUPPORTED */
#define STATUS_NOT_SUPPORTED 27

#define HOOK(symbol)                                                           \
	extern symbol##_call ts_hook_##symbol __asm__(#symbol)                 \
	        __attribute__((visibility("default")))

#define REAL(symbol)                                                           \
	((symbol##_call *)ts_library_real(                                     \
	        TS_LIBRARY_##symbol, __builtin_return_address(0)))

/* May come before the first CUDA call, which is not made for that. */
static void yield(void)
{
	bool entered = ts_phase == TS_PHASE_ACTIVE && ts_enter();

	ts_agent_yield_cupti();
	if (entered)
		ts_leave();
}

typedef int cuptiSubscribe_call(void **subscriber, void *callback, void *data);
HOOK(cuptiSubscribe);

int ts_hook_cuptiSubscribe(void **subscriber, void *callback, void *data)
{
	cuptiSubscribe_call *real = REAL(cuptiSubscribe);

	if (!real)
		return STATUS_NOT_SUPPORTED;
	yield();
	return real(subscriber, callback, data);
}

typedef int cuptiSubscribe_v2_call(
        void **subscriber, void *callback, void *data, void *params);
HOOK(cuptiSubscribe_v2);

int ts_hook_cuptiSubscribe_v2(
        void **subscriber, void *callback, void *data, void *params)
{
	cuptiSubscribe_v2_call *real = REAL(cuptiSubscribe_v2);

	if (!real)
		return STATUS_NOT_SUPPORTED;
	yield();
	return real(subscriber, callback, data, params);
}

typedef int cuptiActivityRegisterCallbacks_call(void *request, void *complete);
HOOK(cuptiActivityRegisterCallbacks);

int ts_hook_cuptiActivityRegisterCallbacks(void *request, void *complete)
{
	cuptiActivityRegisterCallbacks_call *real =
	        REAL(cuptiActivityRegisterCallbacks);

	if (!real)
		return STATUS_NOT_SUPPORTED;
	yield();
	return real(request, complete);
}
