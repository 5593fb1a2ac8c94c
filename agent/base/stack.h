/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the agent leaves behind on the program's stack. Parameter blocks that
 * are not filled to the end carry what was on the stack before, and an address
 * in one cannot be told from an operand: those of pages that were just moved
 * out would bring these back. Any thread, each for its own stack.
 */
#ifndef TS_STACK_H
#define TS_STACK_H

#include <stdint.h>

/* How far down; 0: nothing was left. */
extern __thread uintptr_t ts_stack_lowest
        __attribute__((tls_model("initial-exec")));

/*
 * This thread is about to give the driver addresses of pages that move: from
 * here down, as far as the driver surely goes, they may lie on its stack.
 */
void ts_stack_soil(void);

/* See ts_stack_wipe(). */
void ts_stack_clear(void);

/*
 * Where addresses were left below the caller's frame: clears it, down to where
 * they were left and no further. Wrappers do so as they end.
 */
static inline void ts_stack_wipe(void)
{
	if (ts_stack_lowest)
		ts_stack_clear();
}

#endif
