/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernel launches of the simulated cuBLAS. Owns the PTX module loaded lazily
 * into each context that launches, kept until the process ends or the context
 * is replaced by another at the same address.
 *
 * Called by any thread. modules_lock guards the list; it is never held across
 * a driver call, since an interposer may stand behind one: a module that two
 * threads load at once is unloaded again by the one that comes second.
 */
#include "simblas.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct module {
	struct module *next;
	CUcontext context;
	unsigned long long context_id;
	CUmodule module;
	CUfunction functions[SG_BLAS_KERNEL_COUNT];
	int sm_count;
};

static struct module *modules; /* Guarded by modules_lock. */
static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;

enum sg_blas_kernel sg_blas_gemm_kernel(
        enum simblas_family family, enum simblas_class class)
{
	static const struct {
		enum simblas_family family;
		enum simblas_class class;
	} kernels[] = {
#define ROW(name, family, class) {family, class},
	        SIMBLAS_KERNELS(ROW)
#undef ROW
	};
	unsigned i;

	for (i = 0; i < SG_BLAS_KERNEL_COUNT; i++)
		if (kernels[i].family == family && kernels[i].class == class)
			break;
	return (enum sg_blas_kernel)i;
}

int sg_blas_enter(const struct sg_blas_handle *handle)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	CUcontext current = NULL;
	CUresult result;

	if (!driver)
		return -ENODEV;
	result = driver->cuCtxGetCurrent(&current);
	if (result == CUDA_SUCCESS && !current)
		result = driver->cuCtxSetCurrent(handle->context);
	return sg_blas_errno(result);
}

/* The caller holds modules_lock. */
static struct module *find_locked(CUcontext context, unsigned long long id)
{
	struct module *m;

	for (m = modules; m; m = m->next)
		if (m->context == context && m->context_id == id)
			return m;
	return NULL;
}

static int module_load(const struct sg_blas_driver *driver, CUcontext context,
        unsigned long long id, struct module **ret_module)
{
	struct module *m = calloc(1, sizeof(*m));
	CUdevice device;
	CUresult result;
	unsigned i;

	if (!m)
		return -ENOMEM;
	m->context = context;
	m->context_id = id;
	result = driver->cuCtxGetDevice(&device);
	if (result == CUDA_SUCCESS)
		result = driver->cuDeviceGetAttribute(&m->sm_count,
		        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	if (result == CUDA_SUCCESS)
		result = driver->cuModuleLoadData(&m->module, sg_blas_ptx);
	if (result != CUDA_SUCCESS)
		goto out_free;
	for (i = 0; i < SG_BLAS_KERNEL_COUNT; i++) {
		result = driver->cuModuleGetFunction(&m->functions[i],
		        m->module, sg_blas_kernel_name((enum sg_blas_kernel)i));
		if (result != CUDA_SUCCESS)
			goto out_unload;
	}
	*ret_module = m;
	return 0;

out_unload:
	driver->cuModuleUnload(m->module);
out_free:
	free(m);
	return sg_blas_errno(result);
}

/* The module of the current context, loaded if need be. */
static int module_get(
        const struct sg_blas_driver *driver, struct module **ret_module)
{
	struct module *m, *mine = NULL;
	unsigned long long id;
	CUcontext context;
	CUresult result;
	int err;

	result = driver->cuCtxGetCurrent(&context);
	if (result != CUDA_SUCCESS)
		return sg_blas_errno(result);
	if (!context)
		return -ENODEV;
	result = driver->cuCtxGetId(context, &id);
	if (result != CUDA_SUCCESS)
		return sg_blas_errno(result);

	pthread_mutex_lock(&modules_lock);
	m = find_locked(context, id);
	pthread_mutex_unlock(&modules_lock);
	if (!m) {
		err = module_load(driver, context, id, &mine);
		if (err)
			return err;
		pthread_mutex_lock(&modules_lock);
		m = find_locked(context, id);
		if (!m) {
			mine->next = modules;
			modules = mine;
			m = mine;
			mine = NULL;
		}
		pthread_mutex_unlock(&modules_lock);
	}
	if (mine) {
		driver->cuModuleUnload(mine->module);
		free(mine);
	}
	*ret_module = m;
	return 0;
}

int sg_blas_sm_count(int *ret_count)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	struct module *m;
	int err;

	if (!driver)
		return -ENODEV;
	err = module_get(driver, &m);
	if (err)
		return err;
	*ret_count = m->sm_count;
	return 0;
}

/* They fill the array that cuLaunchKernel takes. */
#define ADDRESS(name)   addresses[count++] = &p->name;
#define ADDRESSES(LIST) LIST(ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, )

static void gemm_addresses(struct simblas_gemm *p, void **addresses)
{
	unsigned count = 0;

	ADDRESSES(SIMBLAS_GEMM_PARAMS)
}

static void gemv_addresses(struct simblas_gemv *p, void **addresses)
{
	unsigned count = 0;

	ADDRESSES(SIMBLAS_GEMV_PARAMS)
}

static void vec_addresses(struct simblas_vec *p, void **addresses)
{
	unsigned count = 0;

	ADDRESSES(SIMBLAS_VEC_PARAMS)
}

static void params_addresses(
        enum sg_blas_kernel kernel, void *params, void **addresses)
{
	static const enum simblas_family families[] = {
#define ROW(name, family, class) family,
	        SIMBLAS_KERNELS(ROW)
#undef ROW
	};

	switch (families[kernel]) {
	case SIMBLAS_GEMV:
		gemv_addresses(params, addresses);
		break;
	case SIMBLAS_VEC:
		vec_addresses(params, addresses);
		break;
	default:
		gemm_addresses(params, addresses);
		break;
	}
}

int sg_blas_launch(enum sg_blas_kernel kernel, CUstream stream,
        const unsigned grid[3], unsigned threads, void *params)
{
	/* More than any kernel has. */
	void *addresses[sizeof(struct simblas_gemm) / 4];
	const struct sg_blas_driver *driver = sg_blas_driver();
	struct module *m;
	int err;

	if (!driver)
		return -ENODEV;
	err = module_get(driver, &m);
	if (err)
		return err;
	params_addresses(kernel, params, addresses);
	return sg_blas_errno(
	        driver->cuLaunchKernel(m->functions[kernel], grid[0], grid[1],
	                grid[2], threads, 1, 1, 0, stream, addresses, NULL));
}
