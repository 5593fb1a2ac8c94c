/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuBLAS, by its exported symbols: a work space that the program gives to it
 * is scratch, whatever passes through it. Which function to go on with is
 * looked up once.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "intercept/guard.h"
#include "intercept/real_dlsym.h"

#define SYMBOL "cublasSetWorkspace_v2"

/* cublasStatus_t: the header is not needed for two numbers. */
#define STATUS_NOT_SUPPORTED 15
#define STATUS_SUCCESS       0

typedef int set_workspace(void *handle, void *workspace, size_t bytes);

extern set_workspace ts_hook_set_workspace __asm__(SYMBOL)
        __attribute__((visibility("default")));

static set_workspace *real_function(const void *caller)
{
	static _Atomic(set_workspace *) known;
	set_workspace *found =
	        atomic_load_explicit(&known, memory_order_relaxed);

	if (found)
		return found;
	found = (set_workspace *)ts_next_for(caller, SYMBOL);
	atomic_store_explicit(&known, found, memory_order_relaxed);
	return found;
}

int ts_hook_set_workspace(void *handle, void *workspace, size_t bytes)
{
	set_workspace *real = real_function(__builtin_return_address(0));
	int status =
	        real ? real(handle, workspace, bytes) : STATUS_NOT_SUPPORTED;

	if (status != STATUS_SUCCESS || !workspace || !bytes || !ts_enter())
		return status;
	ts_agent_scratch((CUdeviceptr)(uintptr_t)workspace);
	ts_leave();
	return status;
}
