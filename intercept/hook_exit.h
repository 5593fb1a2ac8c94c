/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The end of a program by a signal that it sends itself. */
#ifndef TS_HOOK_EXIT_H
#define TS_HOOK_EXIT_H

/* Once, when the agent has started; what it looks up no handler could. */
void ts_exit_init(void);

#endif
