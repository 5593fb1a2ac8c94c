/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions: attributes, names, parameter layouts and loading state. An
 * attribute set on the function comes before one set on its kernel, and that
 * before what was compiled in. Called under sg_lock.
 */
#include "tests/simgpu/driver/code.h"

/* What a block may have without asking for more. */
#define DEFAULT_SHARED_BYTES 49152
#define MAX_THREADS          1024
#define WARP                 32
#define REGS_PER_BLOCK       65536
#define REG_GRANULE          256 /* registers are given to a warp by these */

static int max_threads(const struct sg_code_kernel *kernel)
{
	int limit = MAX_THREADS;

	if (kernel->max_threads && kernel->max_threads < limit)
		limit = kernel->max_threads;
	if (kernel->regs > 0) {
		int per_warp = (kernel->regs * WARP + REG_GRANULE - 1) /
		               REG_GRANULE * REG_GRANULE;
		int by_regs = REGS_PER_BLOCK / per_warp * WARP;

		if (by_regs < limit)
			limit = by_regs;
	}
	return limit;
}

/* An attribute as compiled, before anything was set. */
static int compiled_attribute(const struct sg_code *code,
        const struct sg_code_kernel *kernel, int attribute)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		return max_threads(kernel);
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		return kernel->shared_bytes;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		return code->const_bytes;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		return kernel->local_bytes;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		return kernel->regs;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		return code->ptx_version;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		return code->sm;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return kernel->shared_bytes < DEFAULT_SHARED_BYTES
		               ? DEFAULT_SHARED_BYTES - kernel->shared_bytes
		               : 0;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return -1;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		return kernel->cluster_required;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		return (int)kernel
		        ->cluster[attribute -
		                  CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
	default:
		return 0;
	}
}

int sg_kernel_attribute(const struct sg_kernel *kernel,
        const struct sg_device *dev, int attribute)
{
	const struct sg_code *code = kernel->library->code;

	if (kernel->attributes && kernel->attributes[dev->ordinal][attribute] !=
	                                  SG_ATTRIBUTE_UNSET)
		return kernel->attributes[dev->ordinal][attribute];
	return compiled_attribute(
	        code, &code->kernels[kernel->index], attribute);
}

int sg_function_attribute(const struct sg_function *fn, int attribute)
{
	const struct sg_module *module = fn->module;
	const struct sg_library *library = module->library;

	if (fn->attributes[attribute] != SG_ATTRIBUTE_UNSET)
		return fn->attributes[attribute];
	if (library && library->code && library->kernels[fn->index])
		return sg_kernel_attribute(library->kernels[fn->index],
		        module->ctx->dev, attribute);
	return compiled_attribute(
	        module->code, &module->code->kernels[fn->index], attribute);
}

CUresult sg_attribute_check(const struct sg_code_kernel *kernel,
        const struct sg_model *model, int attribute, int value)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || value > model->shared_per_block_optin_bytes -
		                                 kernel->shared_bytes)
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return value >= -1 && value <= 100 ? CUDA_SUCCESS
		                                   : CUDA_ERROR_INVALID_VALUE;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		if (model->sm_major < 9)
			return CUDA_ERROR_NOT_SUPPORTED;
		/* What was compiled in stays. */
		if (kernel->cluster[0])
			return CUDA_ERROR_NOT_PERMITTED;
		return value >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		return value == 0 || value == 1 ? CUDA_SUCCESS
		                                : CUDA_ERROR_INVALID_VALUE;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return value >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT &&
		                       value <=
		                               CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING
		               ? CUDA_SUCCESS
		               : CUDA_ERROR_INVALID_VALUE;
	default: /* the others are read-only */
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult sg_function_resolve(CUfunction handle, struct sg_function **ret_fn)
{
	struct sg_handle *h = (struct sg_handle *)handle;

	if (h && (h->magic == SG_MAGIC_KERNEL || h->was == SG_MAGIC_KERNEL)) {
		if (!sg_handle_ok(h, SG_MAGIC_KERNEL))
			return CUDA_ERROR_INVALID_HANDLE;
		return sg_kernel_function((struct sg_kernel *)h, ret_fn);
	}
	if (!sg_handle_ok(h, SG_MAGIC_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_fn = (struct sg_function *)h;
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------ entry points */

SG_EXPORT CUresult cuFuncGetAttribute(
        int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	struct sg_function *fn;
	CUresult r;

	SG_API(cuFuncGetAttribute, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!pi || (unsigned)attrib >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(hfunc, &fn);
	if (r == CUDA_SUCCESS)
		*pi = sg_function_attribute(fn, (int)attrib);
	return r;
}

SG_EXPORT CUresult cuFuncSetAttribute(
        CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	struct sg_function *fn;
	CUresult r;

	SG_API(cuFuncSetAttribute, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	r = sg_function_resolve(hfunc, &fn);
	if (r != CUDA_SUCCESS)
		return r;
	r = sg_attribute_check(&fn->module->code->kernels[fn->index],
	        &fn->module->ctx->dev->model, (int)attrib, value);
	if (r != CUDA_SUCCESS)
		return r;
	fn->attributes[attrib] = value;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	struct sg_function *fn;

	SG_API(cuFuncSetCacheConfig, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	/* A preference; it changes nothing that is modelled. */
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	return sg_function_resolve(hfunc, &fn);
}

SG_EXPORT CUresult cuFuncSetSharedMemConfig(
        CUfunction hfunc, CUsharedconfig config)
{
	struct sg_function *fn;

	SG_API(cuFuncSetSharedMemConfig, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	/* Bank widths ended with sm_3x; later devices accept and ignore it. */
	if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return sg_function_resolve(hfunc, &fn);
}

SG_EXPORT CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct sg_function *fn;
	CUresult r;

	SG_API(cuFuncGetModule, SG_COST_API, SG_NEED_INIT);
	if (!hmod)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(hfunc, &fn);
	if (r == CUDA_SUCCESS)
		*hmod = (CUmodule)fn->module;
	return r;
}

SG_EXPORT CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	struct sg_function *fn;
	CUresult r;

	SG_API(cuFuncGetName, SG_COST_API, SG_NEED_INIT);
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(hfunc, &fn);
	if (r == CUDA_SUCCESS)
		*name = fn->name;
	return r;
}

SG_EXPORT CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex,
        size_t *paramOffset, size_t *paramSize)
{
	struct sg_function *fn;
	CUresult r;

	SG_API(cuFuncGetParamInfo, SG_COST_API, SG_NEED_INIT);
	if (!paramOffset)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(func, &fn);
	if (r != CUDA_SUCCESS)
		return r;
	if (paramIndex >= fn->n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*paramOffset = fn->params[paramIndex].offset_bytes;
	if (paramSize)
		*paramSize = fn->params[paramIndex].size_bytes;
	return CUDA_SUCCESS;
}

/* Of CUDA 13.2; older headers do not declare it. */
SG_EXPORT CUresult cuFuncGetParamCount(CUfunction func, size_t *paramCount);
SG_EXPORT CUresult cuFuncGetParamCount(CUfunction func, size_t *paramCount)
{
	struct sg_function *fn;
	CUresult r;

	SG_API(cuFuncGetParamCount, SG_COST_API, SG_NEED_INIT);
	if (!paramCount)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(func, &fn);
	if (r == CUDA_SUCCESS)
		*paramCount = fn->n_params;
	return r;
}

SG_EXPORT CUresult cuFuncIsLoaded(
        CUfunctionLoadingState *state, CUfunction function)
{
	struct sg_function *fn = (struct sg_function *)function;

	SG_API(cuFuncIsLoaded, SG_COST_API, SG_NEED_INIT);
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(fn, SG_MAGIC_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*state = fn->loaded ? CU_FUNCTION_LOADING_STATE_LOADED
	                    : CU_FUNCTION_LOADING_STATE_UNLOADED;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuFuncLoad(CUfunction function)
{
	struct sg_function *fn = (struct sg_function *)function;

	SG_API(cuFuncLoad, SG_COST_API, SG_NEED_INIT);
	if (!sg_handle_ok(fn, SG_MAGIC_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	fn->loaded = true;
	return CUDA_SUCCESS;
}
