/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How programs here begin: the first device's context, and a kernel "touch"
 * with one parameter, a pointer. A driver call that fails ends the program.
 */
#ifndef TESTS_PRELOAD_TOUCH_H
#define TESTS_PRELOAD_TOUCH_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/preload/must.h"
#include "tests/simgpu/clients/code_images.h"

static inline void start_touch(CUcontext *ret_context, CUfunction *ret_kernel)
{
	static const uint32_t sizes[] = {8};
	struct image_kernel image = {.name = "touch",
	        .param_bytes = sizes,
	        .n_params = 1,
	        .regs = 32};
	struct buffer cubin = image_cubin(80, &image, 1, NULL, 0);
	CUmodule module;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(ret_context, 0));
	MUST(cuCtxSetCurrent(*ret_context));
	MUST(cuModuleLoadData(&module, cubin.data));
	MUST(cuModuleGetFunction(ret_kernel, module, "touch"));
	buffer_free(&cubin);
}

#endif
