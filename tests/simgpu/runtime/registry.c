/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What programs register: fat binaries, kernels (host stub address and mangled
 * name) and variables. Registration only records; a fat binary is handed to
 * the driver when one of its kernels or variables is first used, so that the
 * hundreds of megabytes of a large library are not touched at start.
 *
 * registry_lock guards everything here and is not held across the driver. Two
 * threads that load the same fat binary at once both load it; the second
 * unloads its copy.
 */
#include "registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "rt.h"
#include "table.h"

/* What nvcc leaves in .nvFatBinSegment, and what registration is given. */
struct wrapper {
	int magic, version;
	const void *data;
	/* Version 2 (relocatable code): the linked fat binaries. */
	const void *const *linked;
};
enum { WRAPPER_MAGIC = 0x466243b1 };

struct fatbin {
	const void *image;
	CUlibrary library;
	struct entry *entries;
};

/* A registered kernel or variable. */
struct entry {
	struct fatbin *fatbin;
	struct entry *next; /* of the same fat binary */
	const void *host;
	const char *name;
	CUkernel kernel;
	bool is_variable, is_managed;
};

/* A kernel's function in one context. */
struct bound {
	struct bound *next;
	CUcontext ctx;
	CUfunction function;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by registry_lock. */
static struct rt_table entries;   /* host address -> struct entry */
static struct rt_table kernels;   /* CUkernel -> itself */
static struct rt_table functions; /* CUfunction -> itself */
static struct rt_table bindings;  /* CUkernel -> struct bound */

static void free_bound(void *value)
{
	struct bound *bound = value, *next;

	for (; bound; bound = next) {
		next = bound->next;
		free(bound);
	}
}

static void forget_kernel_locked(CUkernel kernel)
{
	free_bound(rt_table_get(&bindings, kernel));
	rt_table_remove(&bindings, kernel);
	rt_table_remove(&kernels, kernel);
}

void rt_kernel_forget(CUkernel kernel)
{
	pthread_mutex_lock(&registry_lock);
	forget_kernel_locked(kernel);
	pthread_mutex_unlock(&registry_lock);
}

/* ------------------------------------------------------------ registration */

void **CUDARTAPI __cudaRegisterFatBinary(void *fat_cubin)
{
	const struct wrapper *wrapper = fat_cubin;
	struct fatbin *fatbin = calloc(1, sizeof(*fatbin));

	if (!fatbin)
		return NULL;
	fatbin->image = wrapper;
	if (wrapper->magic == WRAPPER_MAGIC) {
		fatbin->image = wrapper->data;
		if (wrapper->version == 2 && wrapper->linked &&
		        wrapper->linked[0])
			fatbin->image = wrapper->linked[0];
	}
	return (void **)fatbin;
}

void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle)
{
	/* Nothing to do: loading waits for the first use. */
	(void)handle;
}

void CUDARTAPI __cudaUnregisterFatBinary(void **handle)
{
	struct fatbin *fatbin = (struct fatbin *)handle;
	struct entry *entry, *next;

	if (!fatbin)
		return;
	pthread_mutex_lock(&registry_lock);
	for (entry = fatbin->entries; entry; entry = next) {
		next = entry->next;
		if (rt_table_get(&entries, entry->host) == entry)
			rt_table_remove(&entries, entry->host);
		if (entry->kernel)
			forget_kernel_locked(entry->kernel);
		free(entry);
	}
	pthread_mutex_unlock(&registry_lock);
	if (fatbin->library)
		drv()->LibraryUnload(fatbin->library);
	free(fatbin);
}

static void add(void **handle, const struct entry *from)
{
	struct fatbin *fatbin = (struct fatbin *)handle;
	struct entry *entry;

	if (!fatbin)
		return;
	entry = malloc(sizeof(*entry));
	if (!entry)
		goto out_of_memory;
	*entry = *from;
	entry->fatbin = fatbin;
	pthread_mutex_lock(&registry_lock);
	if (rt_table_put(&entries, entry->host, entry)) {
		pthread_mutex_unlock(&registry_lock);
		free(entry);
		goto out_of_memory;
	}
	entry->next = fatbin->entries;
	fatbin->entries = entry;
	pthread_mutex_unlock(&registry_lock);
	return;

out_of_memory:
	/* The caller takes no error; the name will be unknown when used. */
	fprintf(stderr, "simgpu: no memory to register %s\n", from->name);
}

void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host_fun,
        char *device_fun, const char *device_name, int thread_limit, uint3 *tid,
        uint3 *bid, dim3 *block, dim3 *grid, int *warp_size)
{
	add(handle, &(struct entry){.host = host_fun, .name = device_name});
}

void CUDARTAPI __cudaRegisterVar(void **handle, char *host_var,
        char *device_address, const char *device_name, int ext, size_t size,
        int constant, int global)
{
	add(handle, &(struct entry){.host = host_var,
	                    .name = device_name,
	                    .is_variable = true});
}

void CUDARTAPI __cudaRegisterManagedVar(void **handle, void **host_var,
        char *device_address, const char *device_name, int ext, size_t size,
        int constant, int global)
{
	add(handle, &(struct entry){.host = host_var,
	                    .name = device_name,
	                    .is_variable = true,
	                    .is_managed = true});
}

/* ----------------------------------------------------------------- loading */

/* Points the host's pointers of managed variables at them. */
static cudaError_t bind_managed(struct fatbin *fatbin, CUlibrary library)
{
	struct entry *entry;

	/* Entries are added before the first use only; the list is stable. */
	for (entry = fatbin->entries; entry; entry = entry->next) {
		CUdeviceptr ptr;
		size_t bytes;
		CUresult res;

		if (!entry->is_managed)
			continue;
		res = drv()->LibraryGetManaged(
		        &ptr, &bytes, library, entry->name);
		if (res != CUDA_SUCCESS)
			return rt_error_from(res);
		*(void **)(uintptr_t)entry->host = (void *)(uintptr_t)ptr;
	}
	return cudaSuccess;
}

static cudaError_t load(struct fatbin *fatbin, CUlibrary *ret_library)
{
	CUlibrary library, other;
	cudaError_t err;
	CUresult res;

	pthread_mutex_lock(&registry_lock);
	library = fatbin->library;
	pthread_mutex_unlock(&registry_lock);
	if (library) {
		*ret_library = library;
		return cudaSuccess;
	}
	res = drv()->LibraryLoadData(
	        &library, fatbin->image, NULL, NULL, 0, NULL, NULL, 0);
	if (res != CUDA_SUCCESS)
		return rt_error_from(res);
	err = bind_managed(fatbin, library);
	if (err) {
		drv()->LibraryUnload(library);
		return err;
	}
	pthread_mutex_lock(&registry_lock);
	other = fatbin->library;
	if (!other)
		fatbin->library = library;
	pthread_mutex_unlock(&registry_lock);
	if (other) {
		drv()->LibraryUnload(library);
		library = other;
	}
	*ret_library = library;
	return cudaSuccess;
}

char CUDARTAPI __cudaInitModule(void **handle)
{
	CUlibrary library;

	if (!handle || rt_enter())
		return 0;
	return rt_fail(load((struct fatbin *)handle, &library)) == cudaSuccess;
}

static struct entry *find(const void *host, bool is_variable)
{
	struct entry *entry;

	pthread_mutex_lock(&registry_lock);
	entry = host ? rt_table_get(&entries, host) : NULL;
	pthread_mutex_unlock(&registry_lock);
	return entry && entry->is_variable == is_variable ? entry : NULL;
}

static cudaError_t known(struct rt_table *table, void *handle)
{
	int err;

	pthread_mutex_lock(&registry_lock);
	err = rt_table_put(table, handle, handle);
	pthread_mutex_unlock(&registry_lock);
	return err ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t rt_kernel_known(CUkernel kernel)
{
	return known(&kernels, kernel);
}

cudaError_t rt_function_known(CUfunction function)
{
	return known(&functions, function);
}

static bool is_known(const struct rt_table *table, const void *handle)
{
	bool yes;

	pthread_mutex_lock(&registry_lock);
	yes = handle && rt_table_get(table, handle);
	pthread_mutex_unlock(&registry_lock);
	return yes;
}

cudaError_t rt_kernel(const void *func, CUkernel *ret_kernel)
{
	struct entry *entry = find(func, false);
	CUlibrary library;
	CUkernel kernel;
	cudaError_t err;
	CUresult res;

	if (!entry) {
		if (!is_known(&kernels, func))
			return cudaErrorInvalidDeviceFunction;
		*ret_kernel = (CUkernel)(uintptr_t)func;
		return cudaSuccess;
	}
	kernel = __atomic_load_n(&entry->kernel, __ATOMIC_ACQUIRE);
	if (kernel) {
		*ret_kernel = kernel;
		return cudaSuccess;
	}
	err = load(entry->fatbin, &library);
	if (err)
		return err;
	res = drv()->LibraryGetKernel(&kernel, library, entry->name);
	if (res == CUDA_ERROR_NOT_FOUND)
		return cudaErrorInvalidDeviceFunction;
	if (res != CUDA_SUCCESS)
		return rt_error_from(res);
	err = rt_kernel_known(kernel);
	if (err)
		return err;
	__atomic_store_n(&entry->kernel, kernel, __ATOMIC_RELEASE);
	*ret_kernel = kernel;
	return cudaSuccess;
}

static CUfunction bound_function(CUkernel kernel, CUcontext ctx)
{
	CUfunction function = NULL;
	struct bound *bound;

	pthread_mutex_lock(&registry_lock);
	bound = rt_table_get(&bindings, kernel);
	while (bound && bound->ctx != ctx)
		bound = bound->next;
	if (bound)
		function = bound->function;
	pthread_mutex_unlock(&registry_lock);
	return function;
}

cudaError_t rt_function(
        const void *func, CUcontext ctx, CUfunction *ret_function)
{
	struct bound *bound;
	CUfunction function;
	CUkernel kernel;
	cudaError_t err;
	CUresult res;

	err = rt_kernel(func, &kernel);
	if (err) {
		if (!is_known(&functions, func))
			return err;
		*ret_function = (CUfunction)(uintptr_t)func;
		return cudaSuccess;
	}
	function = bound_function(kernel, ctx);
	if (function) {
		*ret_function = function;
		return cudaSuccess;
	}
	res = drv()->KernelGetFunction(&function, kernel);
	if (res != CUDA_SUCCESS)
		return rt_error_from(res);
	bound = malloc(sizeof(*bound));
	if (!bound)
		return cudaErrorMemoryAllocation;
	bound->ctx = ctx;
	bound->function = function;
	pthread_mutex_lock(&registry_lock);
	bound->next = rt_table_get(&bindings, kernel);
	if (rt_table_put(&bindings, kernel, bound))
		free(bound); /* not cached; asked for again next time */
	pthread_mutex_unlock(&registry_lock);
	*ret_function = function;
	return cudaSuccess;
}

void rt_functions_forget(void)
{
	pthread_mutex_lock(&registry_lock);
	rt_table_clear(&bindings, free_bound);
	rt_table_clear(&functions, NULL);
	pthread_mutex_unlock(&registry_lock);
}

cudaError_t rt_symbol(
        const void *symbol, CUdeviceptr *ret_ptr, size_t *ret_bytes)
{
	struct entry *entry = find(symbol, true);
	CUlibrary library;
	cudaError_t err;
	CUresult res;

	if (!entry)
		return cudaErrorInvalidSymbol;
	err = load(entry->fatbin, &library);
	if (err)
		return err;
	if (entry->is_managed)
		res = drv()->LibraryGetManaged(
		        ret_ptr, ret_bytes, library, entry->name);
	else
		res = drv()->LibraryGetGlobal(
		        ret_ptr, ret_bytes, library, entry->name);
	if (res == CUDA_ERROR_NOT_FOUND)
		return cudaErrorInvalidSymbol;
	return rt_error_from(res);
}
