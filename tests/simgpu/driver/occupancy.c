/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Occupancy: how many blocks of a function fit on a multiprocessor, from the
 * device's threads, blocks, registers and shared memory. Called under sg_lock
 * (which callbacks for shared memory sizes may take again).
 */
#include "tests/simgpu/driver/code.h"

#include <limits.h>

#define WARP           32u
#define REG_GRANULE    256u /* registers are given to a warp by these */
#define SUB_PROCESSORS 4u   /* a multiprocessor's, each with its registers */
/* Portable and largest number of blocks in a cluster, from sm_90 on. */
#define CLUSTER_PORTABLE 8u
#define CLUSTER_MAX      16u

static unsigned round_up(unsigned v, unsigned granule)
{
	return (v + granule - 1) / granule * granule;
}

/* Shared memory is given to a block by these. */
static unsigned shared_granule(const struct sg_model *model)
{
	return model->sm_major >= 8 ? 128 : 256;
}

/* Shared memory that the system keeps of each block. */
static unsigned reserved_shared_bytes(const struct sg_model *model)
{
	return model->sm_major >= 8 ? 1024 : 0;
}

/* Blocks that threads, blocks and registers allow. */
static unsigned blocks_without_shared(
        const struct sg_function *fn, unsigned threads)
{
	const struct sg_model *model = &fn->module->ctx->dev->model;
	unsigned warps = round_up(threads, WARP) / WARP;
	unsigned blocks = (unsigned)model->blocks_per_sm;
	unsigned by_threads = (unsigned)model->threads_per_sm / WARP / warps;

	if (by_threads < blocks)
		blocks = by_threads;
	if (fn->regs > 0) {
		unsigned per_warp =
		        round_up((unsigned)fn->regs * WARP, REG_GRANULE);
		unsigned sub = (unsigned)model->regs_per_sm / SUB_PROCESSORS;
		unsigned by_regs = sub / per_warp * SUB_PROCESSORS / warps;

		if (by_regs < blocks)
			blocks = by_regs;
	}
	return blocks;
}

int sg_occupancy_blocks(
        const struct sg_function *fn, unsigned threads, uint64_t dynamic_bytes)
{
	const struct sg_model *model = &fn->module->ctx->dev->model;
	uint64_t asked = (uint64_t)fn->static_shared_bytes + dynamic_bytes;
	unsigned blocks, shared;

	if (!threads || threads > (unsigned)fn->max_threads)
		return 0;
	if (asked > (uint64_t)model->shared_per_block_optin_bytes)
		return 0;
	blocks = blocks_without_shared(fn, threads);
	shared = round_up((unsigned)asked + reserved_shared_bytes(model),
	        shared_granule(model));
	if (shared && (unsigned)model->shared_per_sm_bytes / shared < blocks)
		blocks = (unsigned)model->shared_per_sm_bytes / shared;
	return (int)blocks;
}

unsigned sg_cluster_limit(const struct sg_function *fn)
{
	if (fn->module->ctx->dev->model.sm_major < 9)
		return 1;
	return sg_function_attribute(
	               fn, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
	               ? CLUSTER_MAX
	               : CLUSTER_PORTABLE;
}

/* ------------------------------------------------------------ entry points */

static CUresult active_blocks(int *numBlocks, CUfunction func, int blockSize,
        size_t dynamicSMemSize, unsigned flags)
{
	struct sg_function *fn;
	CUresult r;

	if (!numBlocks || blockSize <= 0 ||
	        flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(func, &fn);
	if (r == CUDA_SUCCESS)
		*numBlocks = sg_occupancy_blocks(
		        fn, (unsigned)blockSize, dynamicSMemSize);
	return r;
}

SG_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
        int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
	SG_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return active_blocks(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

SG_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize,
        unsigned int flags)
{
	SG_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	        SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return active_blocks(
	        numBlocks, func, blockSize, dynamicSMemSize, flags);
}

/* Of the block sizes that are whole warps, the one that keeps most threads
 * resident; the larger one where two do equally well. */
static CUresult potential_block_size(int *minGridSize, int *blockSize,
        CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
        size_t dynamicSMemSize, int blockSizeLimit, unsigned flags)
{
	unsigned limit, best_threads = 0, best_size = 0, best_blocks = 0;
	struct sg_function *fn;
	CUresult r;

	if (!minGridSize || !blockSize || blockSizeLimit < 0 ||
	        flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(func, &fn);
	if (r != CUDA_SUCCESS)
		return r;
	limit = (unsigned)fn->max_threads;
	if (blockSizeLimit && (unsigned)blockSizeLimit < limit)
		limit = (unsigned)blockSizeLimit;
	for (unsigned size = round_up(limit, WARP); size; size -= WARP) {
		unsigned threads = size < limit ? size : limit;
		size_t dynamic =
		        blockSizeToDynamicSMemSize
		                ? blockSizeToDynamicSMemSize((int)threads)
		                : dynamicSMemSize;
		unsigned blocks =
		        (unsigned)sg_occupancy_blocks(fn, threads, dynamic);

		if (blocks * threads > best_threads) {
			best_threads = blocks * threads;
			best_size = threads;
			best_blocks = blocks;
		}
	}
	if (!best_size)
		return CUDA_ERROR_INVALID_VALUE;
	*blockSize = (int)best_size;
	*minGridSize = (int)best_blocks * fn->module->ctx->dev->model.sm_count;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize,
        int *blockSize, CUfunction func,
        CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
        int blockSizeLimit)
{
	SG_API(cuOccupancyMaxPotentialBlockSize, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return potential_block_size(minGridSize, blockSize, func,
	        blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

SG_EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize,
        int *blockSize, CUfunction func,
        CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
        int blockSizeLimit, unsigned int flags)
{
	SG_API(cuOccupancyMaxPotentialBlockSizeWithFlags, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return potential_block_size(minGridSize, blockSize, func,
	        blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit,
	        flags);
}

SG_EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(
        size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	const struct sg_model *model;
	unsigned share, taken, limit;
	struct sg_function *fn;
	CUresult r;

	SG_API(cuOccupancyAvailableDynamicSMemPerBlock, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(func, &fn);
	if (r != CUDA_SUCCESS)
		return r;
	if (blockSize > fn->max_threads ||
	        (unsigned)numBlocks >
	                blocks_without_shared(fn, (unsigned)blockSize))
		return CUDA_ERROR_INVALID_VALUE;
	model = &fn->module->ctx->dev->model;
	share = (unsigned)model->shared_per_sm_bytes / (unsigned)numBlocks /
	        shared_granule(model) * shared_granule(model);
	taken = reserved_shared_bytes(model) +
	        (unsigned)fn->static_shared_bytes;
	limit = (unsigned)model->shared_per_block_optin_bytes -
	        (unsigned)fn->static_shared_bytes;
	if (share < taken)
		return CUDA_ERROR_INVALID_VALUE;
	*dynamicSmemSize = share - taken < limit ? share - taken : limit;
	return CUDA_SUCCESS;
}

/* Blocks per cluster that the function was compiled for; 0: any. To ret_dims
 * go their extents. */
static unsigned compiled_cluster(
        const struct sg_function *fn, unsigned *ret_dims)
{
	static const int attributes[3] = {
	        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
	        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
	        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
	unsigned blocks = 1;

	if (sg_function_attribute(fn, attributes[0]) <= 0)
		return 0;
	for (int i = 0; i < 3; i++) {
		int n = sg_function_attribute(fn, attributes[i]);

		ret_dims[i] = n > 0 ? (unsigned)n : 1;
		blocks *= ret_dims[i];
	}
	return blocks;
}

/* Blocks per cluster that config asks for, which must be what the function was
 * compiled for if that is anything; 0: none, or another. */
static unsigned cluster_blocks(
        const struct sg_function *fn, const CUlaunchConfig *config)
{
	unsigned dims[3], compiled = compiled_cluster(fn, dims);

	for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
		const CUlaunchAttribute *a = &config->attrs[i];

		if (a->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		if (compiled && (a->value.clusterDim.x != dims[0] ||
		                        a->value.clusterDim.y != dims[1] ||
		                        a->value.clusterDim.z != dims[2]))
			return 0;
		return a->value.clusterDim.x * a->value.clusterDim.y *
		       a->value.clusterDim.z;
	}
	return compiled;
}

static CUresult cluster_query(const int *out, CUfunction func,
        const CUlaunchConfig *config, struct sg_function **ret_fn,
        unsigned *ret_threads)
{
	uint64_t threads;
	CUresult r;

	if (!out || !config)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_function_resolve(func, ret_fn);
	if (r != CUDA_SUCCESS)
		return r;
	if ((*ret_fn)->module->ctx->dev->model.sm_major < 9)
		return CUDA_ERROR_NOT_SUPPORTED;
	threads = (uint64_t)config->blockDimX * config->blockDimY;
	if (!threads || threads > 1024 || !config->blockDimZ ||
	        threads * config->blockDimZ > (unsigned)(*ret_fn)->max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_threads = (unsigned)threads * config->blockDimZ;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuOccupancyMaxPotentialClusterSize(
        int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	struct sg_function *fn;
	unsigned threads, compiled, dims[3];
	CUresult r;

	SG_API(cuOccupancyMaxPotentialClusterSize, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	r = cluster_query(clusterSize, func, config, &fn, &threads);
	if (r != CUDA_SUCCESS)
		return r;
	if (!sg_occupancy_blocks(fn, threads, config->sharedMemBytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* Dimensions in config are ignored. */
	compiled = compiled_cluster(fn, dims);
	*clusterSize = (int)(compiled ? compiled : sg_cluster_limit(fn));
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuOccupancyMaxActiveClusters(
        int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	struct sg_function *fn;
	unsigned threads, size, blocks;
	CUresult r;

	SG_API(cuOccupancyMaxActiveClusters, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	r = cluster_query(numClusters, func, config, &fn, &threads);
	if (r != CUDA_SUCCESS)
		return r;
	size = cluster_blocks(fn, config);
	if (!size || size > sg_cluster_limit(fn))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	blocks = (unsigned)sg_occupancy_blocks(
	                 fn, threads, config->sharedMemBytes) *
	         (unsigned)fn->module->ctx->dev->model.sm_count;
	*numClusters = (int)(blocks / size);
	return CUDA_SUCCESS;
}
