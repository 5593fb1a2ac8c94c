/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Modules: program code in a context. Owns the list of modules, their
 * functions and the device memory of their variables. Called under sg_lock.
 *
 * Modules never share variables, as on the real driver; unloading kills the
 * function handles but keeps their memory, so that later use is noticed.
 */
#include "tests/simgpu/driver/code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE_ALIGN 256u /* as the real driver places them */

static struct sg_module *modules, *dead_modules;
static uint64_t module_ids, function_ids;

CUresult sg_read_file(const char *path, uint8_t **ret_data, size_t *ret_bytes)
{
	CUresult result = CUDA_ERROR_FILE_NOT_FOUND;
	FILE *file = fopen(path, "rbe");
	uint8_t *data = NULL;
	long bytes;

	if (!file)
		return result;
	if (fseek(file, 0, SEEK_END) || (bytes = ftell(file)) < 0 ||
	        fseek(file, 0, SEEK_SET))
		goto out_close;
	data = malloc((size_t)bytes + 1);
	if (!data) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
		goto out_close;
	}
	if (fread(data, 1, (size_t)bytes, file) != (size_t)bytes) {
		free(data);
		goto out_close;
	}
	data[bytes] = 0;
	*ret_data = data;
	*ret_bytes = (size_t)bytes;
	result = CUDA_SUCCESS;
out_close:
	fclose(file);
	return result;
}

CUresult sg_jit_options(
        unsigned count, const CUjit_option *options, void **values)
{
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		if (options[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
		if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
		        options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			values[i] = NULL; /* bytes filled: none */
	}
	return CUDA_SUCCESS;
}

static CUresult place_variables(struct sg_module *module)
{
	const struct sg_code *code = module->code;
	uint64_t bytes = 0;

	if (!code->n_variables)
		return CUDA_SUCCESS;
	module->variable_offsets =
	        sg_xcalloc(code->n_variables, sizeof(uint64_t));
	for (unsigned i = 0; i < code->n_variables; i++) {
		module->variable_offsets[i] = bytes;
		bytes += (code->variables[i].bytes + VARIABLE_ALIGN - 1) &
		         ~(uint64_t)(VARIABLE_ALIGN - 1);
		if (bytes > module->ctx->dev->model.memory_bytes)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (sg_static_alloc(module->ctx->dev, bytes, &module->variables_va) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

CUresult sg_module_new(struct sg_ctx *ctx, struct sg_code *code,
        struct sg_library *library, struct sg_module **ret_module)
{
	struct sg_module *module = sg_xcalloc(1, sizeof(*module));
	CUresult r;

	module->ctx = ctx;
	module->code = sg_code_ref(code);
	module->library = library;
	r = place_variables(module);
	if (r != CUDA_SUCCESS) {
		sg_code_unref(code);
		free(module->variable_offsets);
		free(module);
		return r;
	}
	module->functions =
	        sg_xcalloc(code->n_kernels + 1, sizeof(*module->functions));
	module->h.magic = SG_MAGIC_MODULE;
	module->h.id = ++module_ids;
	module->next = modules;
	modules = module;
	*ret_module = module;
	return CUDA_SUCCESS;
}

static void kill_handle(struct sg_handle *h)
{
	h->was = h->magic;
	h->magic = SG_MAGIC_DEAD;
}

void sg_module_unload(struct sg_module *module)
{
	for (struct sg_module **at = &modules; *at; at = &(*at)->next) {
		if (*at == module) {
			*at = module->next;
			break;
		}
	}
	/* Kernels that run or wait to run still use code and variables. */
	sg_device_drain(module->ctx->dev);
	for (unsigned i = 0; i < module->code->n_kernels; i++)
		if (module->functions[i])
			kill_handle(&module->functions[i]->h);
	if (module->variables_va)
		sg_static_free(module->ctx->dev, module->variables_va);
	module->variables_va = 0;
	kill_handle(&module->h);
	/* Names and layouts stay: reports and dead handles refer to them. */
	module->next = dead_modules;
	dead_modules = module;
}

struct sg_module *sg_module_of_library(
        const struct sg_library *library, const struct sg_ctx *ctx)
{
	for (struct sg_module *m = modules; m; m = m->next)
		if (m->library == library && m->ctx == ctx)
			return m;
	return NULL;
}

void sg_module_unload_library(const struct sg_library *library)
{
	struct sg_module *next;

	for (struct sg_module *m = modules; m; m = next) {
		next = m->next;
		if (m->library == library)
			sg_module_unload(m);
	}
}

void sg_code_ctx_gone(struct sg_ctx *ctx)
{
	struct sg_module *next;

	for (struct sg_module *m = modules; m; m = next) {
		next = m->next;
		if (m->ctx == ctx)
			sg_module_unload(m);
	}
}

struct sg_function *sg_module_function(struct sg_module *module, unsigned index)
{
	const struct sg_code_kernel *kernel = &module->code->kernels[index];
	struct sg_function *fn = module->functions[index];

	if (fn)
		return fn;
	fn = sg_xcalloc(1, sizeof(*fn));
	fn->h.magic = SG_MAGIC_FUNCTION;
	fn->h.id = ++function_ids;
	fn->module = module;
	fn->index = index;
	fn->name = kernel->name;
	fn->params = kernel->params;
	fn->n_params = kernel->n_params;
	fn->params_bytes = kernel->params_bytes;
	fn->regs = kernel->regs;
	fn->static_shared_bytes = kernel->shared_bytes;
	fn->local_bytes = kernel->local_bytes;
	fn->const_bytes = module->code->const_bytes;
	fn->ptx_version = module->code->ptx_version;
	fn->binary_version = module->code->sm;
	for (size_t i = 0;
	        i < sizeof(fn->attributes) / sizeof(fn->attributes[0]); i++)
		fn->attributes[i] = SG_ATTRIBUTE_UNSET;
	fn->max_threads = sg_function_attribute(
	        fn, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
	fn->max_dynamic_shared_bytes = sg_function_attribute(
	        fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
	module->functions[index] = fn;
	return fn;
}

CUresult sg_module_variable(const struct sg_module *module, const char *name,
        CUdeviceptr *ret_va, size_t *ret_bytes)
{
	int index = sg_code_find_variable(module->code, name);

	if (index < 0)
		return CUDA_ERROR_NOT_FOUND;
	if (ret_va)
		*ret_va =
		        module->variables_va + module->variable_offsets[index];
	if (ret_bytes)
		*ret_bytes = module->code->variables[index].bytes;
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------ entry points */

static CUresult load_image(
        const void *image, size_t bytes, CUmodule *ret_module)
{
	struct sg_ctx *ctx = sg_ctx_current();
	int sm = sg_model_sm(&ctx->dev->model);
	struct sg_module *module;
	struct sg_image found;
	struct sg_code *code;
	CUresult r;

	r = sg_capture_unsafe();
	if (r != CUDA_SUCCESS)
		return r;
	r = sg_image_find(image, bytes, sm, &found);
	if (r != CUDA_SUCCESS)
		return r;
	r = sg_code_load(&found, sm, &code);
	if (r != CUDA_SUCCESS)
		return r;
	r = sg_module_new(ctx, code, NULL, &module);
	sg_code_unref(code);
	if (r == CUDA_SUCCESS)
		*ret_module = (CUmodule)module;
	return r;
}

SG_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	uint8_t *data;
	size_t bytes;
	CUresult r;

	SG_API(cuModuleLoad, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_read_file(fname, &data, &bytes);
	if (r != CUDA_SUCCESS)
		return r;
	r = load_image(data, bytes, module);
	free(data);
	return r;
}

SG_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	SG_API(cuModuleLoadData, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	return load_image(image, SIZE_MAX, module);
}

SG_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
        unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	CUresult r;

	SG_API(cuModuleLoadDataEx, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_jit_options(numOptions, options, optionValues);
	if (r != CUDA_SUCCESS)
		return r;
	return load_image(image, SIZE_MAX, module);
}

SG_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	SG_API(cuModuleLoadFatBinary, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!module || !fatCubin)
		return CUDA_ERROR_INVALID_VALUE;
	return load_image(fatCubin, SIZE_MAX, module);
}

SG_EXPORT CUresult cuModuleUnload(CUmodule hmod)
{
	struct sg_module *module = (struct sg_module *)hmod;
	CUresult r;

	SG_API(cuModuleUnload, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!sg_handle_ok(module, SG_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (module->library) /* goes with its library */
		return CUDA_ERROR_NOT_PERMITTED;
	r = sg_capture_unsafe();
	if (r != CUDA_SUCCESS)
		return r;
	sg_module_unload(module);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SG_API(cuModuleGetLoadingMode, SG_COST_API, SG_NEED_INIT);
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleGetFunction(
        CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct sg_module *module = (struct sg_module *)hmod;
	struct sg_function *fn;
	int index;

	SG_API(cuModuleGetFunction, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!hfunc || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(module, SG_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	index = sg_code_find_kernel(module->code, name);
	if (index < 0)
		return CUDA_ERROR_NOT_FOUND;
	fn = sg_module_function(module, (unsigned)index);
	fn->loaded = true;
	*hfunc = (CUfunction)fn;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	struct sg_module *module = (struct sg_module *)mod;

	SG_API(cuModuleGetFunctionCount, SG_COST_API, SG_NEED_INIT);
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(module, SG_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	*count = module->code->n_kernels;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleEnumerateFunctions(
        CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct sg_module *module = (struct sg_module *)mod;

	SG_API(cuModuleEnumerateFunctions, SG_COST_API, SG_NEED_INIT);
	if (!functions || !numFunctions)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(module, SG_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < numFunctions && i < module->code->n_kernels;
	        i++)
		functions[i] = (CUfunction)sg_module_function(module, i);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleGetGlobal_v2(
        CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct sg_module *module = (struct sg_module *)hmod;

	SG_API(cuModuleGetGlobal_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(module, SG_MAGIC_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	return sg_module_variable(module, name, dptr, bytes);
}
