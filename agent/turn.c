/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/turn.h"

#include <stdatomic.h>

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/* Nodes evaluate nodes: checkpoints run a backward inside a backward. */
static __thread unsigned int depth INITIAL_EXEC;
/* Its address tells threads apart. */
static __thread char thread_mark INITIAL_EXEC;

static atomic_bool told;
static _Atomic(const char *) first_thread;

void ts_turn_node_begins(void)
{
	if (!depth++ && !atomic_load_explicit(&told, memory_order_relaxed))
		atomic_store_explicit(&told, true, memory_order_relaxed);
}

void ts_turn_node_ends(void)
{
	depth--;
}

bool ts_turn_is_told(void)
{
	return atomic_load_explicit(&told, memory_order_relaxed);
}

bool ts_turn_in_backward(void)
{
	const char *first;

	if (ts_turn_is_told())
		return depth > 0;
	first = atomic_load_explicit(&first_thread, memory_order_relaxed);
	if (!first && atomic_compare_exchange_strong(
	                      &first_thread, &first, &thread_mark))
		return false;
	return first != &thread_mark;
}
