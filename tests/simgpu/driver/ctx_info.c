/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Settings of the current context: flags, limits, cache preference, affinity,
 * peers. Guarded by the lock.
 */
#include "tests/simgpu/driver/ctx.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"
#include "tests/simgpu/driver/stream.h"

CUresult cuCtxGetFlags(unsigned *flags)
{
	SG_API(cuCtxGetFlags, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = sg_ctx_current()->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags)
{
	SG_API(cuCtxSetFlags, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	sg_ctx_current()->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	SG_API(cuCtxGetLimit, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = sg_ctx_current()->limits[limit];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct sg_ctx *ctx;
	SG_API(cuCtxSetLimit, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	ctx = sg_ctx_current();
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		value = (value + 15) & ~(size_t)15;
		break;
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		if (value > 128)
			value = 128;
		break;
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE: {
		int most = 0;

		sg_model_attribute(&ctx->dev->model,
		        CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
		        &most);
		if (value > (size_t)most)
			value = (size_t)most;
		break;
	}
	case CU_LIMIT_PRINTF_FIFO_SIZE:
	case CU_LIMIT_MALLOC_HEAP_SIZE:
	case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
		break;
	default:
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
	ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	SG_API(cuCtxGetCacheConfig, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = sg_ctx_current()->cache_config;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	SG_API(cuCtxSetCacheConfig, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	sg_ctx_current()->cache_config = config;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	SG_API(cuCtxGetSharedMemConfig, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	/* Fixed on every device since Maxwell. */
	*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	SG_API(cuCtxSetSharedMemConfig, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	SG_API(cuCtxGetStreamPriorityRange, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (least)
		*least = SG_PRIORITY_LEAST;
	if (greatest)
		*greatest = SG_PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	SG_API(cuCtxResetPersistingL2Cache, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetExecAffinity(
        CUexecAffinityParam *param, CUexecAffinityType type)
{
	SG_API(cuCtxGetExecAffinity, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if (!param || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	param->type = type;
	param->param.smCount.val =
	        (unsigned)sg_ctx_current()->dev->model.sm_count;
	return CUDA_SUCCESS;
}

/* Reference counts of ordinary contexts are gone since CUDA 4. */
CUresult cuCtxAttach(CUcontext *ctx, unsigned flags)
{
	SG_API(cuCtxAttach, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if (!ctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return sg_not_supported("cuCtxAttach");
}

CUresult cuCtxDetach(CUcontext ctx)
{
	SG_API(cuCtxDetach, SG_COST_NONE, SG_NEED_INIT);
	return cuCtxDestroy_v2(ctx);
}

/* ------------------------------------------------------------------- peers */

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags)
{
	const struct sg_ctx *peer = (const struct sg_ctx *)handle;
	struct sg_ctx *ctx;
	uint64_t bit;
	SG_API(cuCtxEnablePeerAccess, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	ctx = sg_ctx_current();
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(peer, SG_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (peer->dev == ctx->dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ctx->dev->model.peer_access)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	bit = (uint64_t)1 << peer->dev->ordinal;
	if (ctx->peers & bit)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	ctx->peers |= bit;
	return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle)
{
	const struct sg_ctx *peer = (const struct sg_ctx *)handle;
	struct sg_ctx *ctx;
	uint64_t bit;
	SG_API(cuCtxDisablePeerAccess, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	ctx = sg_ctx_current();
	if (!sg_handle_ok(peer, SG_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	bit = (uint64_t)1 << peer->dev->ordinal;
	if (!(ctx->peers & bit))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	ctx->peers &= ~bit;
	return CUDA_SUCCESS;
}
