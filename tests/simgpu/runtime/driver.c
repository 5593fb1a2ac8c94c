/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The driver tables: found once, on the first API call of any thread, by
 * dlopen and cuGetProcAddress_v2, all names at once and before cuInit, as the
 * vendor's runtime does it. Written under pthread_once, read-only afterwards.
 */
#include "rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct rt_driver rt_drivers[2];
PFN_cuGetProcAddress_v12000 rt_get_proc_address;

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static cudaError_t init_error;

struct row {
	const char *name;
	size_t offset;
	int version, pt_version;
};

static const struct row rows[] = {
#define RT_DRV(name, version, pt_version)                                      \
	{"cu" #name, offsetof(struct rt_driver, name), version, pt_version},
#include "driver.def"
#undef RT_DRV
};

/* In the place of functions an older driver has not. */
static CUresult absent(void)
{
	return CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;
}

static void *look_up(const char *name, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	void *ptr = NULL;

	if (rt_get_proc_address(name, &ptr, version, flags, &status) !=
	                CUDA_SUCCESS ||
	        status != CU_GET_PROC_ADDRESS_SUCCESS || !ptr)
		ptr = (void *)(uintptr_t)absent;
	return ptr;
}

static void fill_tables(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		void *legacy = look_up(row->name, row->version,
		        CU_GET_PROC_ADDRESS_LEGACY_STREAM);
		void *per_thread = legacy;

		if (row->pt_version)
			per_thread = look_up(row->name, row->pt_version,
			        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
		memcpy((char *)&rt_drivers[0] + row->offset, &legacy,
		        sizeof(legacy));
		memcpy((char *)&rt_drivers[1] + row->offset, &per_thread,
		        sizeof(per_thread));
	}
}

static void init(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	void *ptr;

	if (!lib) {
		init_error = cudaErrorInsufficientDriver;
		return;
	}
	ptr = dlsym(lib, "cuGetProcAddress_v2");
	if (!ptr) {
		init_error = cudaErrorInsufficientDriver;
		return;
	}
	memcpy(&rt_get_proc_address, &ptr, sizeof(ptr));
	fill_tables();
	init_error = rt_error_from(rt_drivers[0].Init(0));
}

cudaError_t rt_driver_init(void)
{
	pthread_once(&init_once, init);
	return init_error;
}

cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
	cudaError_t err;

	if (!version)
		return rt_fail(cudaErrorInvalidValue);
	/* Without a driver the version is 0, which is no error. */
	err = rt_driver_init();
	if (err == cudaErrorInsufficientDriver) {
		*version = 0;
		return cudaSuccess;
	}
	return rt_done(drv()->DriverGetVersion(version));
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return rt_fail(cudaErrorInvalidValue);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetExportTable(
        const void **table, const cudaUUID_t *id)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->GetExportTable(table, id));
}
