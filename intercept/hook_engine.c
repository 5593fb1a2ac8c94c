/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PyTorch's autograd engine: torch::autograd::Engine::evaluate_function runs
 * one node of a backward. It throws C++ exceptions, which pass through here:
 * this file is compiled with -fexceptions and leaves by a clean-up handler.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/base/log.h"
#include "agent/turn.h"
#include "intercept/real_dlsym.h"

#define NAME                                                                   \
	"_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_"    \
	"9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_"                 \
	"10ReadyQueueEE"

/* Engine, graph task, node, inputs, queue: references are pointers here. */
typedef void evaluate_function(
        void *engine, void *task, void *node, void *inputs, void *queue);

extern evaluate_function ts_hook_evaluate __asm__(NAME)
        __attribute__((visibility("default")));

static evaluate_function *real_evaluate(const void *caller)
{
	static _Atomic(evaluate_function *) known;
	evaluate_function *found =
	        atomic_load_explicit(&known, memory_order_relaxed);

	if (found)
		return found;
	found = (evaluate_function *)ts_next_for(caller, NAME);
	if (!found) {
		/* A gradient left out in silence is worse than an end. */
		ts_log(TS_LOG_ERROR, "no autograd engine defines " NAME);
		abort();
	}
	atomic_store_explicit(&known, found, memory_order_relaxed);
	return found;
}

static void leave(const int *unused)
{
	(void)unused;
	ts_turn_node_ends();
}

void ts_hook_evaluate(
        void *engine, void *task, void *node, void *inputs, void *queue)
{
	evaluate_function *real = real_evaluate(__builtin_return_address(0));
	int scope __attribute__((unused, cleanup(leave))) = 0;

	ts_turn_node_begins();
	real(engine, task, node, inputs, queue);
}
