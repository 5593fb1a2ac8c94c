/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is said of plans at the normal log level, each once. Guarded by the lock
 * of planned.c.
 */
#ifndef TS_PLANNED_SAY_H
#define TS_PLANNED_SAY_H

#include <stdint.h>

#include "planner/plan.h"

void ts_planned_say_plan(const struct ts_plan *plan);

/* No plan fits; @least_bytes: a limit that one fits into, or 0. */
void ts_planned_say_none(uint64_t least_bytes);

/* At the end no plan is there to be written to @path, which the user named. */
void ts_planned_say_unwritten(const char *path);

#endif
