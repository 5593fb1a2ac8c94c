/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wrappers: one for each TS_HOOK row, of the type the row names, exported
 * under the driver's symbol. They run on the program's threads. Each begins
 * with ts_enter() (guard.h), tells the agent, calls the driver through
 * ts_driver, tells the agent again; they differ in what they tell only.
 */
#ifndef TS_HOOKS_H
#define TS_HOOKS_H

#include "runtime/cuda_types.h"

#define TS_HOOK(symbol, name, version, type, need)                             \
	extern __typeof__(*(type)0) ts_hook_##symbol __asm__(#symbol)          \
	        __attribute__((visibility("default")));
#include "intercept/cuda_hooks.def"

#endif
