/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies that have no fixed place among the ops of a step: those of threads
 * that only copy, on streams of their own, as gloo's do for the ranks of a
 * group. A thread that launches kernels may take part: it fetches what these
 * threads bring back. Memory is there for such copies as for all others; steps
 * are found, recorded and planned without them. Any thread; no lock.
 */
#ifndef TS_BESIDE_H
#define TS_BESIDE_H

#include "agent/op.h"

/*
 * Op @op comes next on this thread. True where it is such a copy: from the
 * first one on that a thread makes which never launched anything, while others
 * have, all copies are on streams that nothing was launched on.
 */
bool ts_beside_op(const struct ts_op *op);

/* Whether there were such copies so far. */
bool ts_beside_any(void);

#endif
