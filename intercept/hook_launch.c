/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of everything that starts kernels. */
#include <stdlib.h>

#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

struct shape {
	unsigned int grid[3], block[3], shared_bytes;
	unsigned int cluster[3]; /* 0: not told by the launch */
	const CUlaunchConfig *config;
	bool cooperative;
};

static void describe(struct ts_op *op, CUfunction function,
        const struct shape *shape, void **params, void **extra)
{
	op->function = function;
	op->params = params;
	op->extra = extra;
	op->shared_bytes = shape->shared_bytes;
	op->config = shape->config;
	op->cooperative = shape->cooperative;
	for (int i = 0; i < 3; i++) {
		op->grid[i] = shape->grid[i];
		op->block[i] = shape->block[i];
		op->cluster[i] = shape->cluster[i];
	}
}

static CUresult launch_begin(struct ts_op *op, CUfunction function,
        const struct shape *shape, void **params, void **extra,
        ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_LAUNCH, NULL, stream))
		return CUDA_SUCCESS;
	describe(op, function, shape, params, extra);
	return ts_agent_op_begin(op);
}

static void read_cluster(const CUlaunchConfig *config, struct shape *shape)
{
	for (unsigned int i = 0; config->attrs && i < config->numAttrs; i++) {
		const CUlaunchAttribute *attribute = &config->attrs[i];

		if (attribute->id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		shape->cluster[0] = attribute->value.clusterDim.x;
		shape->cluster[1] = attribute->value.clusterDim.y;
		shape->cluster[2] = attribute->value.clusterDim.z;
	}
}

static CUresult launch_ex_begin(struct ts_op *op, const CUlaunchConfig *config,
        CUfunction function, void **params, void **extra, ts_stream_key zero)
{
	struct shape shape;

	if (!config) {
		op->active = false;
		return CUDA_SUCCESS;
	}
	shape = (struct shape){
	        {config->gridDimX, config->gridDimY, config->gridDimZ},
	        {config->blockDimX, config->blockDimY, config->blockDimZ},
	        config->sharedMemBytes, .config = config};
	read_cluster(config, &shape);
	return launch_begin(op, function, &shape, params, extra,
	        ts_key(config->hStream, zero));
}

/* The parameters came by cuParamSet: any block may be meant. */
static CUresult launch_old_begin(struct ts_op *op, CUfunction function,
        unsigned int width, unsigned int height, ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_LAUNCH, NULL, stream))
		return CUDA_SUCCESS;
	op->function = function;
	op->unknown_params = true;
	op->grid[0] = width;
	op->grid[1] = height;
	op->grid[2] = 1;
	return ts_agent_op_begin(op);
}

static CUresult graph_begin(struct ts_op *op, ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_GRAPH, "GraphLaunch", stream))
		return CUDA_SUCCESS;
	return ts_agent_op_begin(op);
}

CUresult ts_hook_cuLaunchKernel(CUfunction function, unsigned int grid_x,
        unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
        CUstream stream, void **params, void **extra)
{
	struct ts_op op;
	CUresult rc = launch_begin(&op, function,
	        &(struct shape){{grid_x, grid_y, grid_z},
	                {block_x, block_y, block_z}, shared_bytes},
	        params, extra, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchKernel(function, grid_x, grid_y,
		        grid_z, block_x, block_y, block_z, shared_bytes, stream,
		        params, extra);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuLaunchKernel_ptsz(CUfunction function, unsigned int grid_x,
        unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
        CUstream stream, void **params, void **extra)
{
	struct ts_op op;
	CUresult rc = launch_begin(&op, function,
	        &(struct shape){{grid_x, grid_y, grid_z},
	                {block_x, block_y, block_z}, shared_bytes},
	        params, extra, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchKernel_ptsz(function, grid_x, grid_y,
		        grid_z, block_x, block_y, block_z, shared_bytes, stream,
		        params, extra);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuLaunchCooperativeKernel(CUfunction function,
        unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
        unsigned int block_x, unsigned int block_y, unsigned int block_z,
        unsigned int shared_bytes, CUstream stream, void **params)
{
	struct ts_op op;
	CUresult rc = launch_begin(&op, function,
	        &(struct shape){{grid_x, grid_y, grid_z},
	                {block_x, block_y, block_z}, shared_bytes,
	                .cooperative = true},
	        params, NULL, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchCooperativeKernel(function, grid_x,
		        grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
		        stream, params);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuLaunchCooperativeKernel_ptsz(CUfunction function,
        unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
        unsigned int block_x, unsigned int block_y, unsigned int block_z,
        unsigned int shared_bytes, CUstream stream, void **params)
{
	struct ts_op op;
	CUresult rc = launch_begin(&op, function,
	        &(struct shape){{grid_x, grid_y, grid_z},
	                {block_x, block_y, block_z}, shared_bytes,
	                .cooperative = true},
	        params, NULL, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchCooperativeKernel_ptsz(function,
		        grid_x, grid_y, grid_z, block_x, block_y, block_z,
		        shared_bytes, stream, params);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuLaunchKernelEx(const CUlaunchConfig *config,
        CUfunction function, void **params, void **extra)
{
	struct ts_op op;
	CUresult rc = launch_ex_begin(
	        &op, config, function, params, extra, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchKernelEx(
		        config, function, params, extra);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuLaunchKernelEx_ptsz(const CUlaunchConfig *config,
        CUfunction function, void **params, void **extra)
{
	struct ts_op op;
	CUresult rc = launch_ex_begin(
	        &op, config, function, params, extra, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchKernelEx_ptsz(
		        config, function, params, extra);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuLaunch(CUfunction function)
{
	struct ts_op op;
	CUresult rc = launch_old_begin(&op, function, 1, 1, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunch(function);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuLaunchGrid(CUfunction function, int width, int height)
{
	struct ts_op op;
	CUresult rc = launch_old_begin(&op, function, (unsigned int)width,
	        (unsigned int)height, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchGrid(function, width, height);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuLaunchGridAsync(
        CUfunction function, int width, int height, CUstream stream)
{
	struct ts_op op;
	CUresult rc = launch_old_begin(&op, function, (unsigned int)width,
	        (unsigned int)height, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchGridAsync(
		        function, width, height, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
	struct ts_op op;
	CUresult rc = graph_begin(&op, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphLaunch(graph, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream stream)
{
	struct ts_op op;
	CUresult rc = graph_begin(&op, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuGraphLaunch_ptsz(hGraphExec, stream);
	return ts_op_end(&op, rc);
}

/* One op for each device's launch, all of them resident before the call. */
CUresult ts_hook_cuLaunchCooperativeKernelMultiDevice(
        CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags)
{
	struct ts_op *ops;
	CUresult rc = CUDA_SUCCESS;
	unsigned int begun = 0;

	if (!list || !ts_enter())
		return ts_driver.fn_cuLaunchCooperativeKernelMultiDevice(
		        list, count, flags);
	ops = calloc(count, sizeof(*ops));
	if (!ops)
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	for (; begun < count && rc == CUDA_SUCCESS; begun++) {
		const CUDA_LAUNCH_PARAMS *one = &list[begun];
		struct ts_op *op = &ops[begun];

		ts_op_init(op, TS_OP_LAUNCH, NULL);
		op->stream = ts_key(one->hStream, TS_STREAM_LEGACY);
		describe(op, one->function,
		        &(struct shape){
		                {one->gridDimX, one->gridDimY, one->gridDimZ},
		                {one->blockDimX, one->blockDimY,
		                        one->blockDimZ},
		                one->sharedMemBytes, .cooperative = true},
		        one->kernelParams, NULL);
		rc = ts_agent_op_begin(op);
	}
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuLaunchCooperativeKernelMultiDevice(
		        list, count, flags);
	while (begun)
		ts_agent_op_end(&ops[--begun], rc);
	free(ops);
	ts_leave();
	return rc;
}
