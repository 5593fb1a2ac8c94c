/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels for clients that need one of a layout of their own: whoever
 * includes this has OK of mem_client.h or ctl_client.h.
 */
#ifndef KERNEL_CLIENT_H
#define KERNEL_CLIENT_H

#include "code_images.h"

#include <cuda.h>

/* Of n parameters of the given sizes, for compute capability sm, in the
 * current context. */
static inline CUfunction client_kernel_of(
        int sm, const char *name, const uint32_t *param_bytes, unsigned n)
{
	struct image_kernel image = {.name = name,
	        .param_bytes = param_bytes,
	        .n_params = n,
	        .regs = 32};
	struct buffer cubin = image_cubin(sm, &image, 1, NULL, 0);
	CUfunction kernel;
	CUmodule module;

	OK(cuModuleLoadData(&module, cubin.data));
	OK(cuModuleGetFunction(&kernel, module, name));
	buffer_free(&cubin);
	return kernel;
}

/* Of n pointers, at most four. */
static inline CUfunction client_kernel(const char *name, unsigned n)
{
	static const uint32_t pointers[] = {8, 8, 8, 8};

	return client_kernel_of(80, name, pointers, n);
}

#endif
