/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The public driver API as the real cuBLAS and NCCL reach it: libcuda.so.1 by
 * dlopen, its functions by cuGetProcAddress_v2, so that a preloaded interposer
 * sees the same look-ups and calls. Owns the function table, filled once under
 * pthread_once by the first thread that needs it and constant from then on.
 */
#include "simblas.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

typedef CUresult (*get_proc_address)(const char *symbol, void **ret_function,
        int version, cuuint64_t flags,
        CUdriverProcAddressQueryResult *ret_status);

static struct sg_blas_driver table;
static bool table_ready;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* cuda.h renames some functions to their versioned symbol; look-ups take the
 * plain name, so the suffix is cut off.
 */
static void plain_name(const char *symbol, char *out, size_t out_bytes)
{
	size_t i;

	for (i = 0; symbol[i] && i + 1 < out_bytes; i++) {
		if (symbol[i] == '_' && symbol[i + 1] == 'v')
			break;
		out[i] = symbol[i];
	}
	out[i] = '\0';
}

static bool look_up(
        get_proc_address get, const char *symbol, int version, void **ret_at)
{
	CUdriverProcAddressQueryResult status;
	char name[64];

	plain_name(symbol, name, sizeof(name));
	if (get(name, ret_at, version, CU_GET_PROC_ADDRESS_DEFAULT, &status) ==
	                CUDA_SUCCESS &&
	        *ret_at)
		return true;
	fprintf(stderr, "simgpu: libcuda.so.1 has no %s\n", name);
	return false;
}

static void table_fill(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	get_proc_address get;
	bool found = true;

	if (!library) {
		fprintf(stderr, "simgpu: %s\n", dlerror());
		return;
	}
	*(void **)&get = dlsym(library, "cuGetProcAddress_v2");
	if (!get) {
		fprintf(stderr, "simgpu: %s\n", dlerror());
		return;
	}
#define FIND_NAME(name) #name
#define FIND(name, version)                                                    \
	found &= look_up(get, FIND_NAME(name), version, (void **)&table.name);
	SG_BLAS_DRIVER(FIND)
#undef FIND
#undef FIND_NAME
	table_ready = found && table.cuInit(0) == CUDA_SUCCESS;
}

const struct sg_blas_driver *sg_blas_driver(void)
{
	pthread_once(&table_once, table_fill);
	return table_ready ? &table : NULL;
}

int sg_blas_errno(CUresult result)
{
	switch (result) {
	case CUDA_SUCCESS:
		return 0;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case CUDA_ERROR_NOT_SUPPORTED:
		return -ENOTSUP;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_DEINITIALIZED:
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_INVALID_CONTEXT:
		return -ENODEV;
	default:
		return -EIO;
	}
}
