/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts the calls that manage virtual memory, which stop the device on some
 * drivers: reserving, creating, mapping, opening, and their opposites. For the
 * whole process; any thread, no lock.
 */
#ifndef TS_VMM_CALLS_H
#define TS_VMM_CALLS_H

#include <stdint.h>

#include "runtime/ops.h"

/* @ops, whose calls are counted from now on. There is one such table. */
const struct ts_gpu_ops *ts_vmm_counted(const struct ts_gpu_ops *ops);

/* Calls so far through that table, those that failed among them. */
uint64_t ts_vmm_calls(void);

#endif
