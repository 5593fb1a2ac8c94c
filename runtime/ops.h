/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The driver as runtime/ and agent/ see it: a struct of function pointers.
 * intercept/driver.c fills it with the real driver's functions, tests with
 * their own. Every member can be called: what a driver lacks answers
 * CUDA_ERROR_NOT_SUPPORTED.
 */
#ifndef TS_OPS_H
#define TS_OPS_H

#include "runtime/cuda_types.h"

struct ts_gpu_ops {
#define TS_GPU_OP(member, symbol, type) type member;
#include "runtime/gpu_ops.def"
};

/* 0, or the negative errno closest to what the driver says. */
int ts_gpu_errno(CUresult result);

/*
 * Returns @result of @call, a constant, and notes the call where it failed, for
 * the line that may come of it. Of this thread alone.
 */
CUresult ts_gpu_said(const char *call, CUresult result);

/* What this thread noted last. */
CUresult ts_gpu_said_last(void);

/* The call that this thread noted last; NULL where it said anything else. */
const char *ts_gpu_call_that_said(CUresult result);

#endif
