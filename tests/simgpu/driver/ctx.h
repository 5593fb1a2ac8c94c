/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Contexts, as the control part's files see them. Guarded by the lock; the
 * stack of current contexts belongs to its thread.
 */
#ifndef SG_CTX_H
#define SG_CTX_H

#include "tests/simgpu/driver/sg.h"

/* NULL means the current context. Returns NULL unless it is alive. */
struct sg_ctx *sg_ctx_resolve(CUcontext ctx);
/* All contexts alive, linked by next. */
struct sg_ctx *sg_ctx_first(void);

#endif
