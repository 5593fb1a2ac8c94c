/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernel launches of the simulated cuBLAS. Owns the list of contexts into which
 * the PTX module was loaded, each at its first use, kept until the process
 * ends.
 *
 * Called by any thread. contexts_lock guards the list; it is never held across
 * a driver call, since an interposer may stand behind one: a module that two
 * threads load at once is unloaded again by the one that comes second.
 */
#include "simblas.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct sg_blas_context *contexts; /* Guarded by contexts_lock. */
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

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

/* The caller holds contexts_lock. */
static struct sg_blas_context *find_locked(
        CUcontext context, unsigned long long id)
{
	struct sg_blas_context *c;

	for (c = contexts; c; c = c->next)
		if (c->context == context && c->id == id)
			return c;
	return NULL;
}

/*
 * The first call may come while a stream captures. Loading a module would end
 * the capture unless the thread is in relaxed mode meanwhile.
 */
static CUresult module_load(
        const struct sg_blas_driver *driver, struct sg_blas_context *c)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult result;
	unsigned i;

	result = driver->cuThreadExchangeStreamCaptureMode(&mode);
	if (result != CUDA_SUCCESS)
		return result;
	result = driver->cuModuleLoadData(&c->module, sg_blas_ptx);
	for (i = 0; i < SG_BLAS_KERNEL_COUNT && result == CUDA_SUCCESS; i++)
		result = driver->cuModuleGetFunction(&c->functions[i],
		        c->module, sg_blas_kernel_name((enum sg_blas_kernel)i));
	driver->cuThreadExchangeStreamCaptureMode(&mode);
	return result;
}

/* Loads the module into the current context, which this is. */
static int context_load(const struct sg_blas_driver *driver, CUcontext context,
        unsigned long long id, struct sg_blas_context **ret_context)
{
	struct sg_blas_context *c = calloc(1, sizeof(*c));
	CUdevice device;
	CUresult result;

	if (!c)
		return -ENOMEM;
	c->context = context;
	c->id = id;
	result = driver->cuCtxGetDevice(&device);
	if (result == CUDA_SUCCESS)
		result = driver->cuDeviceGetAttribute(&c->sm_count,
		        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	if (result == CUDA_SUCCESS)
		result = module_load(driver, c);
	if (result == CUDA_SUCCESS) {
		*ret_context = c;
		return 0;
	}
	if (c->module)
		driver->cuModuleUnload(c->module);
	free(c);
	return sg_blas_errno(result);
}

/* Adds a loaded context, unless another thread came first: then that one. */
static struct sg_blas_context *context_add(
        const struct sg_blas_driver *driver, struct sg_blas_context *mine)
{
	struct sg_blas_context *c;

	pthread_mutex_lock(&contexts_lock);
	c = find_locked(mine->context, mine->id);
	if (!c) {
		mine->next = contexts;
		contexts = mine;
	}
	pthread_mutex_unlock(&contexts_lock);
	if (!c)
		return mine;
	driver->cuModuleUnload(mine->module);
	free(mine);
	return c;
}

static int context_get(const struct sg_blas_driver *driver, CUcontext context,
        const struct sg_blas_context **ret_context)
{
	struct sg_blas_context *c;
	unsigned long long id;
	CUresult result;
	int err;

	result = driver->cuCtxGetId(context, &id);
	if (result != CUDA_SUCCESS)
		return sg_blas_errno(result);
	pthread_mutex_lock(&contexts_lock);
	c = find_locked(context, id);
	pthread_mutex_unlock(&contexts_lock);
	if (!c) {
		err = context_load(driver, context, id, &c);
		if (err)
			return err;
		c = context_add(driver, c);
	}
	*ret_context = c;
	return 0;
}

int sg_blas_enter(const struct sg_blas_handle *handle,
        const struct sg_blas_context **ret_context)
{
	const struct sg_blas_driver *driver = sg_blas_driver();
	CUcontext current = NULL;
	CUresult result;

	if (!driver)
		return -ENODEV;
	result = driver->cuCtxGetCurrent(&current);
	if (result == CUDA_SUCCESS && !current) {
		current = handle->context;
		result = driver->cuCtxSetCurrent(current);
	}
	if (result != CUDA_SUCCESS)
		return sg_blas_errno(result);
	return context_get(driver, current, ret_context);
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

int sg_blas_launch(const struct sg_blas_context *context,
        enum sg_blas_kernel kernel, CUstream stream, const unsigned grid[3],
        unsigned threads, void *params)
{
	/* More than any kernel has. */
	void *addresses[sizeof(struct simblas_gemm) / 4];

	params_addresses(kernel, params, addresses);
	return sg_blas_errno(sg_blas_driver()->cuLaunchKernel(
	        context->functions[kernel], grid[0], grid[1], grid[2], threads,
	        1, 1, 0, stream, addresses, NULL));
}
