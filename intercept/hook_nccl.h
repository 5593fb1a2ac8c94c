/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What other wrappers ask and tell about NCCL. */
#ifndef TS_HOOK_NCCL_H
#define TS_HOOK_NCCL_H

#include <stdbool.h>

/*
 * True where an allocation is one of NCCL's own: made inside one of its calls
 * on this thread, or from its code at @caller on any.
 */
bool ts_nccl_allocates(const void *caller);

/*
 * Around a call that makes a communicator; what enter answers is for leave.
 * Collectives do this by themselves.
 */
bool ts_nccl_enter(void);
void ts_nccl_leave(bool entered);

/* From now on kernels may come from threads of NCCL's own. */
void ts_nccl_launches_elsewhere(void);

#endif
