/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fake_kernel.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/simgpu/clients/code_images.h"

#define PAGE_BYTES (2ull << 20)

void *fake_symbol(const char *symbol)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	void *function = driver ? dlsym(driver, symbol) : NULL;

	if (!function) {
		printf("no %s\n", symbol);
		exit(1);
	}
	return function;
}

CUresult fake_launch(const char *name, CUdeviceptr table, CUstream stream)
{
	static const uint32_t sizes[] = {8};
	struct image_kernel image = {
	        .name = name, .param_bytes = sizes, .n_params = 1, .regs = 32};
	struct buffer cubin = image_cubin(80, &image, 1, NULL, 0);
	void *params[] = {&table};
	CUfunction kernel;
	CUmodule module;
	CUresult rc = FAKE_DRIVER(cuModuleLoadData)(&module, cubin.data);

	buffer_free(&cubin);
	if (rc == CUDA_SUCCESS)
		rc = FAKE_DRIVER(cuModuleGetFunction)(&kernel, module, name);
	if (rc == CUDA_SUCCESS)
		rc = FAKE_DRIVER(cuLaunchKernel)(
		        kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
	return rc;
}

bool fake_is_there(CUdeviceptr address, size_t bytes)
{
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

	for (size_t at = 0; at < bytes; at += PAGE_BYTES) {
		unsigned long long flags = 0;

		if (FAKE_DRIVER(cuMemGetAccess)(
		            &flags, &device, address + at) != CUDA_SUCCESS ||
		        flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return false;
	}
	return true;
}
