/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers that differ in their arguments only: a driver function comes for
 * the legacy and for the per-thread default stream, blocking and asynchronous,
 * and for several widths. Each macro makes one whole function of such a shape,
 * each use is one row of a family. @symbol is pasted only: many names are
 * macros of cuda.h, and a macro that passes one on must paste it together
 * itself.
 */
#ifndef TS_WRAPPER_H
#define TS_WRAPPER_H

#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

/* Of an op: @begin tells of &op and says whether it may be issued. */
#define TS_OP_WRAPPER(symbol, parameters, arguments, begin)                    \
	CUresult ts_hook_##symbol parameters                                   \
	{                                                                      \
		struct ts_op op;                                               \
		CUresult rc = begin;                                           \
                                                                               \
		if (rc == CUDA_SUCCESS)                                        \
			rc = ts_driver.fn_##symbol arguments;                  \
		return ts_op_end(&op, rc);                                     \
	}

/* Of a call that carries addresses away: @pin says whether they stay. */
#define TS_PIN_WRAPPER(symbol, parameters, arguments, pin)                     \
	CUresult ts_hook_##symbol parameters                                   \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol arguments;                \
		rc = pin;                                                      \
		if (rc == CUDA_SUCCESS)                                        \
			rc = ts_driver.fn_##symbol arguments;                  \
		ts_leave();                                                    \
		return rc;                                                     \
	}

#endif
