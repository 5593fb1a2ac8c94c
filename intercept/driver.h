/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The real driver: a table of its functions, filled once from libcuda.so.1
 * and constant from then on. Entries the driver lacks (all of them before the
 * table is filled, or where there is no driver) answer
 * CUDA_ERROR_NOT_SUPPORTED, so that no caller has to ask first.
 */
#ifndef TS_DRIVER_H
#define TS_DRIVER_H

#include "runtime/cuda_types.h"
#include <stdbool.h>

#include "runtime/ops.h"

struct ts_driver {
#define TS_HOOK(symbol, name, version, type, need) type fn_##symbol;
#define TS_CALL(symbol, name, version, type, need) type fn_##symbol;
#include "intercept/cuda_hooks.def"
};

extern struct ts_driver ts_driver;

/*
 * Fills the table, once in the life of the process. With @load the driver is
 * loaded where it is not yet; without, a driver that is not loaded leaves
 * everything as it is. Returns 0; -ENOENT where there is no driver; -ENOSYS
 * where a required function is missing, with its name in @ret_missing.
 */
int ts_driver_resolve(bool load, const char **ret_missing);

/* What ts_driver_resolve() last came to; takes no lock. */
int ts_driver_state(const char **ret_missing);

/* The table's part that the runtime and the agent call. */
const struct ts_gpu_ops *ts_driver_gpu_ops(void);

/* True where the driver has the function in @entry of the table. */
bool ts_driver_has(const void *entry);

#endif
