/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the agent leaves behind on the program's stack. Parameter blocks that
 * are not filled to the end carry what was on the stack before, and an address
 * in one cannot be told from an operand: those of pages that were just moved
 * out would bring these back. Any thread, each for its own stack.
 */
#ifndef TS_STACK_H
#define TS_STACK_H

/* This thread is working with the addresses of pages that move. */
void ts_stack_soil(void);

/*
 * If it did since it was last called: clears what lies below the caller's
 * frame, as far down as moving pages goes.
 */
void ts_stack_wipe(void);

#endif
