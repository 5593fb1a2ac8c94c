/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Steps as the program tells them (hook_step.c). */
#ifndef TS_HOOK_STEP_H
#define TS_HOOK_STEP_H

/* Says in a line where TAPESWAP_STEP_RANGE cannot have an effect. */
void ts_step_check_range(void);

#endif
