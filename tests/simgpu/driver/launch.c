/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Launches: every entry point that starts a kernel, the checks they share, and
 * the issue of captured work. Called under sg_lock on the program's threads.
 *
 * A launch carries a copy of its parameters, laid out as the kernel expects
 * them with zeros in the gaps. Plain launches build it on the stack; only
 * captured ones live longer (sg_launch_dup).
 */
#include "tests/simgpu/driver/code.h"
#include "tests/simgpu/driver/content_exact.h"
#include "tests/simgpu/driver/mutate.h"

#include <stdlib.h>
#include <string.h>

#define GRID_MAX_X  0x7fffffffu
#define GRID_MAX_YZ 65535u
#define BLOCK_MAX   1024u
#define BLOCK_MAX_Z 64u

/* ------------------------------------------------------------------ checks */

static CUresult check_dimensions(const struct sg_launch *launch)
{
	const uint32_t *grid = launch->grid, *block = launch->block;
	const struct sg_function *fn = launch->fn;
	uint64_t threads;

	if (!grid[0] || !grid[1] || !grid[2] || grid[0] > GRID_MAX_X ||
	        grid[1] > GRID_MAX_YZ || grid[2] > GRID_MAX_YZ)
		return CUDA_ERROR_INVALID_VALUE;
	if (!block[0] || !block[1] || !block[2] || block[0] > BLOCK_MAX ||
	        block[1] > BLOCK_MAX || block[2] > BLOCK_MAX_Z)
		return CUDA_ERROR_INVALID_VALUE;
	threads = (uint64_t)block[0] * block[1] * block[2];
	if (threads > BLOCK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > (uint64_t)fn->max_threads)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (launch->shared_bytes >
	        (uint64_t)sg_function_attribute(
	                fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Fills the cluster a kernel was compiled for or asks for, and checks it. */
static CUresult check_cluster(struct sg_launch *launch)
{
	static const int required[3] = {
	        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
	        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
	        CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
	const struct sg_function *fn = launch->fn;
	bool asked = launch->cluster[0] != 0;
	uint64_t blocks = 1;

	if (sg_function_attribute(fn, required[0]) > 0) {
		for (int i = 0; i < 3; i++) {
			int n = sg_function_attribute(fn, required[i]);
			uint32_t size = n > 0 ? (uint32_t)n : 1;

			if (asked && launch->cluster[i] != size)
				return CUDA_ERROR_INVALID_VALUE;
			launch->cluster[i] = size;
		}
	} else if (!asked) {
		return sg_function_attribute(
		               fn, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)
		               ? CUDA_ERROR_INVALID_CLUSTER_SIZE
		               : CUDA_SUCCESS;
	}
	for (int i = 0; i < 3; i++) {
		if (!launch->cluster[i])
			return CUDA_ERROR_INVALID_VALUE;
		if (launch->grid[i] % launch->cluster[i])
			return CUDA_ERROR_INVALID_VALUE;
		blocks *= launch->cluster[i];
	}
	if (blocks == 1)
		return CUDA_SUCCESS;
	if (fn->module->ctx->dev->model.sm_major < 9)
		return CUDA_ERROR_NOT_SUPPORTED;
	return blocks <= sg_cluster_limit(fn) ? CUDA_SUCCESS
	                                      : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/* Blocks of a cooperative launch must all be resident at once. */
static CUresult check_cooperative(const struct sg_launch *launch)
{
	const struct sg_function *fn = launch->fn;
	uint64_t blocks =
	        (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
	uint64_t resident =
	        (uint64_t)sg_occupancy_blocks(fn,
	                launch->block[0] * launch->block[1] * launch->block[2],
	                launch->shared_bytes) *
	        (uint64_t)fn->module->ctx->dev->model.sm_count;

	return blocks <= resident ? CUDA_SUCCESS
	                          : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

/* Reads the buffer form: pairs of a tag and a pointer, then the end tag. */
static CUresult read_extra(
        void **extra, const void **ret_buffer, size_t *ret_bytes)
{
	const size_t *bytes = NULL;

	*ret_buffer = NULL;
	for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*ret_buffer = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			bytes = extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (!*ret_buffer || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_bytes = *bytes;
	return CUDA_SUCCESS;
}

/* Copies parameters into out, params_bytes of fn. */
static CUresult read_params(
        const struct sg_function *fn, void **params, void **extra, uint8_t *out)
{
	const void *buffer;
	size_t bytes;
	CUresult r;

	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fn->n_params)
		return CUDA_SUCCESS;
	if (extra) {
		r = read_extra(extra, &buffer, &bytes);
		if (r != CUDA_SUCCESS)
			return r;
		if (bytes < fn->params_bytes)
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(out, buffer, fn->params_bytes);
		return CUDA_SUCCESS;
	}
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	memset(out, 0, fn->params_bytes);
	for (unsigned i = 0; i < fn->n_params; i++) {
		if (!params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(out + fn->params[i].offset_bytes, params[i],
		        fn->params[i].size_bytes);
	}
	return CUDA_SUCCESS;
}

/* --------------------------------------------------- launches that outlive */

/* The parameters follow the struct in one allocation. */
static struct sg_launch *launch_alloc(uint32_t params_bytes)
{
	struct sg_launch *launch =
	        sg_xcalloc(1, sizeof(*launch) + params_bytes);

	launch->params = (uint8_t *)(launch + 1);
	return launch;
}

struct sg_launch *sg_launch_dup(const struct sg_launch *launch)
{
	struct sg_launch *copy = launch_alloc(launch->fn->params_bytes);
	uint8_t *params = copy->params;

	*copy = *launch;
	copy->params = params;
	if (launch->fn->params_bytes)
		memcpy(params, launch->params, launch->fn->params_bytes);
	return copy;
}

void sg_launch_free(struct sg_launch *launch)
{
	free(launch);
}

CUresult sg_launch_make(CUfunction fn, const struct sg_launch *shape,
        void **params, void **extra, struct sg_launch **ret_launch)
{
	uint8_t bytes[SG_PARAMS_MAX_BYTES];
	struct sg_launch launch = *shape;
	CUresult r = sg_function_resolve(fn, &launch.fn);

	launch.params = bytes;
	if (r == CUDA_SUCCESS)
		r = check_dimensions(&launch);
	if (r == CUDA_SUCCESS)
		r = check_cluster(&launch);
	if (r == CUDA_SUCCESS)
		r = read_params(launch.fn, params, extra, bytes);
	if (r == CUDA_SUCCESS)
		*ret_launch = sg_launch_dup(&launch);
	return r;
}

/* ------------------------------------------------------------------- issue */

CUresult sg_launch_issue(
        const struct sg_launch *launch, struct sg_stream *stream)
{
	struct sg_op *op;
	CUresult error;

	/* A graph may have outlived the module. */
	if (!sg_handle_ok(launch->fn, SG_MAGIC_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	op = sg_op_new(SG_OP_KERNEL, stream);
	op->engine = SG_ENGINE_COMPUTE;
	op->name = launch->fn->name;
	op->details.regs = (uint32_t)launch->fn->regs;
	op->details.static_shared_bytes =
	        (uint32_t)launch->fn->static_shared_bytes;
	op->details.dynamic_shared_bytes = launch->shared_bytes;
	op->details.async = true;
	memcpy(op->grid, launch->grid, sizeof(op->grid));
	memcpy(op->block, launch->block, sizeof(op->block));
	launch->fn->loaded = true;
	sg_kernel_describe(launch, op);
	sg_mutate_launch(launch, op);
	sg_trace_launch(launch, op);
	sg_op_ref(op);
	error = sg_op_enqueue(op);
	if (error == CUDA_SUCCESS && sg_content_exact() && !op->dev->sticky)
		sg_exact_launch(launch, op);
	sg_op_unref(op);
	return error;
}

static CUresult issue_host(
        const struct sg_node_work *work, struct sg_stream *stream)
{
	struct sg_op *op = sg_op_new(SG_OP_HOST_FN, stream);

	op->engine = SG_ENGINE_NONE;
	op->host_fn = work->host.fn;
	op->host_arg = work->host.arg;
	return sg_op_enqueue(op);
}

CUresult sg_node_issue(
        const struct sg_node_work *work, struct sg_stream *stream)
{
	switch (work->kind) {
	case SG_NODE_KERNEL:
		return sg_launch_issue(work->launch, stream);
	case SG_NODE_MEMCPY:
		return sg_copy_issue(&work->copy, stream, false);
	case SG_NODE_MEMSET:
		return sg_memset_issue(&work->set, stream, false);
	case SG_NODE_HOST:
		return issue_host(work, stream);
	case SG_NODE_MEM_ALLOC:
	case SG_NODE_MEM_FREE:
		return sg_not_supported("memory node of a graph");
	default: /* the graph's own: events, children, empty nodes */
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* A launch call's arguments, whichever form it came in. */
struct request {
	CUfunction fn;
	uint32_t grid[3], block[3], shared_bytes;
	CUstream stream;
	bool per_thread;
	void **params, **extra;
	uint32_t cluster[3];
	bool cooperative, programmatic;
};

static CUresult do_launch(const struct request *request)
{
	uint8_t params[SG_PARAMS_MAX_BYTES];
	struct sg_launch launch = {
	        .shared_bytes = request->shared_bytes,
	        .cooperative = request->cooperative,
	        .programmatic = request->programmatic,
	        .params = params,
	};
	struct sg_stream *stream;
	CUresult r;

	r = sg_function_resolve(request->fn, &launch.fn);
	if (r != CUDA_SUCCESS)
		return r;
	r = sg_stream_resolve(request->stream, request->per_thread, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	if (launch.fn->module->ctx != stream->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	memcpy(launch.grid, request->grid, sizeof(launch.grid));
	memcpy(launch.block, request->block, sizeof(launch.block));
	memcpy(launch.cluster, request->cluster, sizeof(launch.cluster));
	r = check_dimensions(&launch);
	if (r == CUDA_SUCCESS)
		r = check_cluster(&launch);
	if (r == CUDA_SUCCESS && launch.cooperative)
		r = check_cooperative(&launch);
	if (r == CUDA_SUCCESS)
		r = read_params(
		        launch.fn, request->params, request->extra, params);
	if (r != CUDA_SUCCESS)
		return r;
	if (stream->capture) {
		struct sg_node_work work = {
		        .kind = SG_NODE_KERNEL,
		        .launch = sg_launch_dup(&launch),
		};

		return sg_capture_add(stream, &work);
	}
	return sg_launch_issue(&launch, stream);
}

static CUresult read_attribute(
        struct request *request, const CUlaunchAttribute *attribute)
{
	const CUlaunchAttributeValue *value = &attribute->value;

	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		/* Hints: they change nothing that is modelled. */
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		request->cooperative = value->cooperative != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		if (!value->clusterDim.x || !value->clusterDim.y ||
		        !value->clusterDim.z)
			return CUDA_ERROR_INVALID_VALUE;
		request->cluster[0] = value->clusterDim.x;
		request->cluster[1] = value->clusterDim.y;
		request->cluster[2] = value->clusterDim.z;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		/* May overlap its predecessor; here it never does. */
		request->programmatic =
		        value->programmaticStreamSerializationAllowed != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return sg_not_supported("programmatic launch event");
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return sg_not_supported("launch completion event");
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return sg_not_supported("device-updatable kernel node");
	default: /* of streams only, or unknown */
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f,
        void **params, void **extra, bool per_thread)
{
	struct request request;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	request = (struct request){
	        .fn = f,
	        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
	        .block = {config->blockDimX, config->blockDimY,
	                config->blockDimZ},
	        .shared_bytes = config->sharedMemBytes,
	        .stream = config->hStream,
	        .per_thread = per_thread,
	        .params = params,
	        .extra = extra,
	};
	for (unsigned i = 0; i < config->numAttrs; i++) {
		CUresult r = read_attribute(&request, &config->attrs[i]);

		if (r != CUDA_SUCCESS)
			return r;
	}
	return do_launch(&request);
}

/* ------------------------------------------------------------ entry points */

SG_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX,
        unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
        unsigned int blockDimY, unsigned int blockDimZ,
        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
        void **extra)
{
	SG_API(cuLaunchKernel, SG_COST_LAUNCH, SG_NEED_INIT | SG_NEED_CTX);
	return do_launch(&(struct request){
	        .fn = f,
	        .grid = {gridDimX, gridDimY, gridDimZ},
	        .block = {blockDimX, blockDimY, blockDimZ},
	        .shared_bytes = sharedMemBytes,
	        .stream = hStream,
	        .params = kernelParams,
	        .extra = extra,
	});
}

SG_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX,
        unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
        unsigned int blockDimY, unsigned int blockDimZ,
        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
        void **extra)
{
	SG_API(cuLaunchKernel_ptsz, SG_COST_LAUNCH, SG_NEED_INIT | SG_NEED_CTX);
	return do_launch(&(struct request){
	        .fn = f,
	        .grid = {gridDimX, gridDimY, gridDimZ},
	        .block = {blockDimX, blockDimY, blockDimZ},
	        .shared_bytes = sharedMemBytes,
	        .stream = hStream,
	        .per_thread = true,
	        .params = kernelParams,
	        .extra = extra,
	});
}

SG_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f,
        void **kernelParams, void **extra)
{
	SG_API(cuLaunchKernelEx, SG_COST_LAUNCH, SG_NEED_INIT | SG_NEED_CTX);
	return launch_ex(config, f, kernelParams, extra, false);
}

SG_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config,
        CUfunction f, void **kernelParams, void **extra)
{
	SG_API(cuLaunchKernelEx_ptsz, SG_COST_LAUNCH,
	        SG_NEED_INIT | SG_NEED_CTX);
	return launch_ex(config, f, kernelParams, extra, true);
}

SG_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f,
        unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
	SG_API(cuLaunchCooperativeKernel, SG_COST_LAUNCH,
	        SG_NEED_INIT | SG_NEED_CTX);
	return do_launch(&(struct request){
	        .fn = f,
	        .grid = {gridDimX, gridDimY, gridDimZ},
	        .block = {blockDimX, blockDimY, blockDimZ},
	        .shared_bytes = sharedMemBytes,
	        .stream = hStream,
	        .params = kernelParams,
	        .cooperative = true,
	});
}

SG_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f,
        unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
	SG_API(cuLaunchCooperativeKernel_ptsz, SG_COST_LAUNCH,
	        SG_NEED_INIT | SG_NEED_CTX);
	return do_launch(&(struct request){
	        .fn = f,
	        .grid = {gridDimX, gridDimY, gridDimZ},
	        .block = {blockDimX, blockDimY, blockDimZ},
	        .shared_bytes = sharedMemBytes,
	        .stream = hStream,
	        .per_thread = true,
	        .params = kernelParams,
	        .cooperative = true,
	});
}
