/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the calling thread is in the agent: driver calls that it makes then,
 * or that a profiler's callback makes out of one of these, go straight to the
 * driver. Wrappers set it (intercept/guard.h), and threads of the agent's own
 * for all their life.
 */
#ifndef TS_INSIDE_H
#define TS_INSIDE_H

#include <stdbool.h>

extern __thread bool ts_inside __attribute__((tls_model("initial-exec")));

#endif
