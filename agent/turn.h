/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the calling thread runs a backward now. PyTorch's engine tells it
 * (intercept/hook_engine.c); where it never did, ops of another thread than
 * the first one's are taken for a backward's, since that is where autograd
 * launches them. Any thread, no lock.
 */
#ifndef TS_TURN_H
#define TS_TURN_H

#include <stdbool.h>

/* The engine begins or ends to evaluate a node on this thread. */
void ts_turn_node_begins(void);
void ts_turn_node_ends(void);

bool ts_turn_in_backward(void);

/* True where the engine itself tells, and not only threads. */
bool ts_turn_is_told(void);

#endif
