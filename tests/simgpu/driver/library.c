/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Libraries and kernels: program code without a context. Owns the list of
 * libraries; a library's image is parsed when something is first asked of it,
 * and loaded into a context when a kernel's function is first wanted there.
 * Called under sg_lock.
 *
 * One image serves all devices, that for the first: in a context of a device
 * of another compute capability a library has no code yet.
 */
#include "tests/simgpu/driver/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sg_library *libraries, *dead_libraries;
static uint64_t library_ids, kernel_ids;

static int device_sm(void)
{
	return sg_model_sm(&sg_devices[0].model);
}

/* Reads options; true if the program keeps the code for us. */
static CUresult read_options(unsigned count, const CUlibraryOption *options,
        void **values, bool *ret_preserved)
{
	*ret_preserved = false;
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			*ret_preserved = values[i] != NULL;
		else if (options[i] !=
		         CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult load_library(
        const void *code, size_t bytes, bool preserved, CUlibrary *ret_library)
{
	struct sg_library *library;
	struct sg_image image;
	CUresult r = sg_image_find(code, bytes, device_sm(), &image);

	if (r != CUDA_SUCCESS)
		return r;
	library = sg_xcalloc(1, sizeof(*library));
	if (!preserved) {
		library->copy = malloc(image.bytes ? image.bytes : 1);
		if (!library->copy) {
			free(library);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(library->copy, image.data, image.bytes);
		image.data = library->copy;
	}
	library->image = image;
	library->h.magic = SG_MAGIC_LIBRARY;
	library->h.id = ++library_ids;
	library->next = libraries;
	libraries = library;
	*ret_library = (CUlibrary)library;
	return CUDA_SUCCESS;
}

/* Parses the library's code if that has not happened yet. */
static CUresult need_code(struct sg_library *library)
{
	CUresult r;

	if (library->code)
		return CUDA_SUCCESS;
	r = sg_code_load(&library->image, device_sm(), &library->code);
	if (r != CUDA_SUCCESS)
		return r;
	free(library->copy);
	library->copy = NULL;
	library->kernels = sg_xcalloc(
	        library->code->n_kernels + 1, sizeof(*library->kernels));
	return CUDA_SUCCESS;
}

static CUkernel library_kernel(struct sg_library *library, unsigned index)
{
	struct sg_kernel *kernel = library->kernels[index];

	if (!kernel) {
		kernel = sg_xcalloc(1, sizeof(*kernel));
		kernel->h.magic = SG_MAGIC_KERNEL;
		kernel->h.id = ++kernel_ids;
		kernel->library = library;
		kernel->index = index;
		library->kernels[index] = kernel;
	}
	return (CUkernel)kernel;
}

/* The library's module in the current context; loads it there. */
static CUresult library_module(
        struct sg_library *library, struct sg_module **ret_module)
{
	struct sg_ctx *ctx = sg_ctx_current();
	struct sg_module *module;
	CUresult r;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (sg_model_sm(&ctx->dev->model) != device_sm())
		return sg_not_supported("library on a second kind of device");
	module = sg_module_of_library(library, ctx);
	if (!module) {
		r = need_code(library);
		if (r != CUDA_SUCCESS)
			return r;
		r = sg_module_new(ctx, library->code, library, &module);
		if (r != CUDA_SUCCESS)
			return r;
	}
	*ret_module = module;
	return CUDA_SUCCESS;
}

CUresult sg_kernel_function(
        struct sg_kernel *kernel, struct sg_function **ret_fn)
{
	struct sg_module *module;
	CUresult r = library_module(kernel->library, &module);

	if (r != CUDA_SUCCESS)
		return r;
	*ret_fn = sg_module_function(module, kernel->index);
	(*ret_fn)->loaded = true;
	return CUDA_SUCCESS;
}

/* --------------------------------------------------------------- libraries */

SG_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code,
        CUjit_option *jitOptions, void **jitOptionsValues,
        unsigned int numJitOptions, CUlibraryOption *libraryOptions,
        void **libraryOptionValues, unsigned int numLibraryOptions)
{
	bool preserved;
	CUresult r;

	SG_API(cuLibraryLoadData, SG_COST_API, SG_NEED_INIT);
	if (!library || !code)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_jit_options(numJitOptions, jitOptions, jitOptionsValues);
	if (r != CUDA_SUCCESS)
		return r;
	r = read_options(numLibraryOptions, libraryOptions, libraryOptionValues,
	        &preserved);
	if (r != CUDA_SUCCESS)
		return r;
	return load_library(code, SIZE_MAX, preserved, library);
}

SG_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library,
        const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
        unsigned int numJitOptions, CUlibraryOption *libraryOptions,
        void **libraryOptionValues, unsigned int numLibraryOptions)
{
	bool preserved;
	uint8_t *data;
	size_t bytes;
	CUresult r;

	SG_API(cuLibraryLoadFromFile, SG_COST_API, SG_NEED_INIT);
	if (!library || !fileName)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_jit_options(numJitOptions, jitOptions, jitOptionsValues);
	if (r != CUDA_SUCCESS)
		return r;
	r = read_options(numLibraryOptions, libraryOptions, libraryOptionValues,
	        &preserved);
	if (r != CUDA_SUCCESS)
		return r;
	/* Preserving is for code in memory. */
	if (preserved)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_read_file(fileName, &data, &bytes);
	if (r != CUDA_SUCCESS)
		return r;
	r = load_library(data, bytes, false, library);
	free(data);
	return r;
}

SG_EXPORT CUresult cuLibraryUnload(CUlibrary handle)
{
	struct sg_library *library = (struct sg_library *)handle;

	SG_API(cuLibraryUnload, SG_COST_API, SG_NEED_INIT);
	if (!sg_handle_ok(library, SG_MAGIC_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	sg_module_unload_library(library);
	for (struct sg_library **at = &libraries; *at; at = &(*at)->next) {
		if (*at == library) {
			*at = library->next;
			break;
		}
	}
	for (unsigned i = 0; library->code && i < library->code->n_kernels;
	        i++) {
		struct sg_kernel *kernel = library->kernels[i];

		if (!kernel)
			continue;
		kernel->h.was = kernel->h.magic;
		kernel->h.magic = SG_MAGIC_DEAD;
	}
	library->h.was = library->h.magic;
	library->h.magic = SG_MAGIC_DEAD;
	/* The dead handles stay, so that their use is noticed. */
	library->next = dead_libraries;
	dead_libraries = library;
	free(library->copy);
	library->copy = NULL;
	sg_code_unref(library->code);
	library->code = NULL;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLibraryGetKernel(
        CUkernel *pKernel, CUlibrary handle, const char *name)
{
	struct sg_library *library = (struct sg_library *)handle;
	CUresult r;
	int index;

	SG_API(cuLibraryGetKernel, SG_COST_API, SG_NEED_INIT);
	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(library, SG_MAGIC_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	r = need_code(library);
	if (r != CUDA_SUCCESS)
		return r;
	index = sg_code_find_kernel(library->code, name);
	if (index < 0)
		return CUDA_ERROR_NOT_FOUND;
	*pKernel = library_kernel(library, (unsigned)index);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	struct sg_library *library = (struct sg_library *)lib;
	CUresult r;

	SG_API(cuLibraryGetKernelCount, SG_COST_API, SG_NEED_INIT);
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(library, SG_MAGIC_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	r = need_code(library);
	if (r == CUDA_SUCCESS)
		*count = library->code->n_kernels;
	return r;
}

SG_EXPORT CUresult cuLibraryEnumerateKernels(
        CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct sg_library *library = (struct sg_library *)lib;
	CUresult r;

	SG_API(cuLibraryEnumerateKernels, SG_COST_API, SG_NEED_INIT);
	if (!kernels || !numKernels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(library, SG_MAGIC_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	r = need_code(library);
	for (unsigned i = 0; r == CUDA_SUCCESS && i < numKernels &&
	                     i < library->code->n_kernels;
	        i++)
		kernels[i] = library_kernel(library, i);
	return r;
}

SG_EXPORT CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary handle)
{
	struct sg_library *library = (struct sg_library *)handle;
	struct sg_module *module;
	CUresult r;

	SG_API(cuLibraryGetModule, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!pMod)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(library, SG_MAGIC_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	r = library_module(library, &module);
	if (r == CUDA_SUCCESS)
		*pMod = (CUmodule)module;
	return r;
}

SG_EXPORT CUresult cuLibraryGetGlobal(
        CUdeviceptr *dptr, size_t *bytes, CUlibrary handle, const char *name)
{
	struct sg_library *library = (struct sg_library *)handle;
	struct sg_module *module;
	CUresult r;

	SG_API(cuLibraryGetGlobal, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(library, SG_MAGIC_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	r = library_module(library, &module);
	if (r != CUDA_SUCCESS)
		return r;
	return sg_module_variable(module, name, dptr, bytes);
}

SG_EXPORT CUresult cuLibraryGetManaged(
        CUdeviceptr *dptr, size_t *bytes, CUlibrary handle, const char *name)
{
	struct sg_library *library = (struct sg_library *)handle;
	CUresult r;
	int index;

	SG_API(cuLibraryGetManaged, SG_COST_API, SG_NEED_INIT);
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(library, SG_MAGIC_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	r = need_code(library);
	if (r != CUDA_SUCCESS)
		return r;
	index = sg_code_find_variable(library->code, name);
	if (index < 0 || !library->code->variables[index].managed)
		return CUDA_ERROR_NOT_FOUND;
	return sg_not_supported("managed variables");
}

SG_EXPORT CUresult cuLibraryGetUnifiedFunction(
        void **fptr, CUlibrary handle, const char *symbol)
{
	struct sg_library *library = (struct sg_library *)handle;

	SG_API(cuLibraryGetUnifiedFunction, SG_COST_API, SG_NEED_INIT);
	if (!fptr || !symbol)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(library, SG_MAGIC_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	/* No device of ours shares function pointers with the host. */
	return CUDA_ERROR_NOT_FOUND;
}

/* ----------------------------------------------------------------- kernels */

static bool kernel_ok(CUkernel handle)
{
	return sg_handle_ok(handle, SG_MAGIC_KERNEL);
}

static const struct sg_code_kernel *kernel_code(const struct sg_kernel *kernel)
{
	return &kernel->library->code->kernels[kernel->index];
}

static bool device_ok(CUdevice dev)
{
	return dev >= 0 && (unsigned)dev < sg_device_count;
}

SG_EXPORT CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel handle)
{
	struct sg_function *fn;
	CUresult r;

	SG_API(cuKernelGetFunction, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!pFunc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_ok(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_kernel_function((struct sg_kernel *)handle, &fn);
	if (r == CUDA_SUCCESS)
		*pFunc = (CUfunction)fn;
	return r;
}

SG_EXPORT CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel handle)
{
	SG_API(cuKernelGetLibrary, SG_COST_API, SG_NEED_INIT);
	if (!pLib)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_ok(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*pLib = (CUlibrary)((struct sg_kernel *)handle)->library;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuKernelGetName(const char **name, CUkernel handle)
{
	SG_API(cuKernelGetName, SG_COST_API, SG_NEED_INIT);
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_ok(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*name = kernel_code((struct sg_kernel *)handle)->name;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuKernelGetParamInfo(CUkernel handle, size_t paramIndex,
        size_t *paramOffset, size_t *paramSize)
{
	const struct sg_code_kernel *kernel;

	SG_API(cuKernelGetParamInfo, SG_COST_API, SG_NEED_INIT);
	if (!paramOffset)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_ok(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	kernel = kernel_code((struct sg_kernel *)handle);
	if (paramIndex >= kernel->n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*paramOffset = kernel->params[paramIndex].offset_bytes;
	if (paramSize)
		*paramSize = kernel->params[paramIndex].size_bytes;
	return CUDA_SUCCESS;
}

/* Of CUDA 13.2; older headers do not declare it. */
SG_EXPORT CUresult cuKernelGetParamCount(CUkernel handle, size_t *paramCount);
SG_EXPORT CUresult cuKernelGetParamCount(CUkernel handle, size_t *paramCount)
{
	SG_API(cuKernelGetParamCount, SG_COST_API, SG_NEED_INIT);
	if (!paramCount)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_ok(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*paramCount = kernel_code((struct sg_kernel *)handle)->n_params;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuKernelGetAttribute(
        int *pi, CUfunction_attribute attrib, CUkernel handle, CUdevice dev)
{
	SG_API(cuKernelGetAttribute, SG_COST_API, SG_NEED_INIT);
	if (!pi || (unsigned)attrib >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel_ok(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!device_ok(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pi = sg_kernel_attribute(
	        (struct sg_kernel *)handle, &sg_devices[dev], (int)attrib);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuKernelSetAttribute(
        CUfunction_attribute attrib, int val, CUkernel handle, CUdevice dev)
{
	struct sg_kernel *kernel = (struct sg_kernel *)handle;
	CUresult r;

	SG_API(cuKernelSetAttribute, SG_COST_API, SG_NEED_INIT);
	if (!kernel_ok(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!device_ok(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	r = sg_attribute_check(
	        kernel_code(kernel), &sg_devices[dev].model, (int)attrib, val);
	if (r != CUDA_SUCCESS)
		return r;
	if (!kernel->attributes) {
		kernel->attributes = sg_xcalloc(
		        sg_device_count, sizeof(*kernel->attributes));
		for (unsigned d = 0; d < sg_device_count; d++)
			for (int a = 0; a < SG_FUNCTION_ATTRIBUTES; a++)
				kernel->attributes[d][a] = SG_ATTRIBUTE_UNSET;
	}
	kernel->attributes[dev][attrib] = val;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuKernelSetCacheConfig(
        CUkernel handle, CUfunc_cache config, CUdevice dev)
{
	SG_API(cuKernelSetCacheConfig, SG_COST_API, SG_NEED_INIT);
	if (!kernel_ok(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!device_ok(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	/* A preference; it changes nothing that is modelled. */
	return (unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL
	               ? CUDA_SUCCESS
	               : CUDA_ERROR_INVALID_VALUE;
}
