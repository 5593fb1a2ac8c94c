/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/funcs.h"
#include "agent/layout.h"

enum fate { KEPT, DROPPED, UNKNOWN };

static enum fate fate_of(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return KEPT;
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
	/* Of caches and order among streams: no result depends on them. */
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		return DROPPED;
	default:
		return UNKNOWN;
	}
}

static int keep_attributes(
        const struct ts_op *op, struct ts_replay_launch *launch)
{
	const CUlaunchConfig *config = op->config;

	for (unsigned int i = 0; config && i < config->numAttrs; i++) {
		enum fate fate = fate_of(config->attrs[i].id);

		if (fate == UNKNOWN ||
		        launch->attribute_count == TS_REPLAY_ATTRIBUTES)
			return -ENOTSUP;
		if (fate == KEPT)
			launch->attributes[launch->attribute_count++] =
			        config->attrs[i];
	}
	if (!op->cooperative)
		return 0;
	if (launch->attribute_count == TS_REPLAY_ATTRIBUTES)
		return -ENOTSUP;
	launch->attributes[launch->attribute_count++] = (CUlaunchAttribute){
	        .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	return 0;
}

static size_t params_end(const struct ts_func *func)
{
	size_t end = 0;

	for (size_t i = 0; i < func->param_count; i++)
		if (func->params[i].offset + func->params[i].bytes > end)
			end = func->params[i].offset + func->params[i].bytes;
	return end;
}

int ts_replay_keep(const struct ts_op *op, struct ts_replay_launch *ret_launch)
{
	const struct ts_func *func = op->func;
	struct ts_replay_launch launch = {.function = op->function,
	        .func = func,
	        .shared_bytes = op->shared_bytes,
	        .layout_used = op->layout_used};
	int rc;

	if (op->kind != TS_OP_LAUNCH || !func || !func->has_layout ||
	        op->unknown_params || op->extra ||
	        (func->param_count && !op->params))
		return -ENOTSUP;
	memcpy(launch.grid, op->grid, sizeof(launch.grid));
	memcpy(launch.block, op->block, sizeof(launch.block));
	rc = keep_attributes(op, &launch);
	if (rc)
		return rc;
	launch.param_bytes = params_end(func);
	launch.params = calloc(1, launch.param_bytes + 1);
	if (!launch.params)
		return -ENOMEM;
	for (size_t i = 0; i < func->param_count; i++)
		memcpy(launch.params + func->params[i].offset, op->params[i],
		        func->params[i].bytes);
	*ret_launch = launch;
	return 0;
}

void ts_replay_finish(struct ts_replay_launch *launch)
{
	free(launch->params);
	memset(launch, 0, sizeof(*launch));
}

size_t ts_replay_bytes(const struct ts_replay_launch *launch)
{
	return sizeof(*launch) + launch->param_bytes;
}

unsigned int ts_replay_redirect(struct ts_replay_launch *launch, uint64_t from,
        uint64_t bytes, uint64_t to)
{
	const struct ts_func *func = launch->func;
	unsigned int found = 0;

	for (size_t i = 0; i < func->param_count; i++) {
		const struct ts_param *param = &func->params[i];
		uint32_t at = (8 - param->offset % 8) % 8;

		for (; at + 8 <= param->bytes; at += 8) {
			unsigned char *place =
			        launch->params + param->offset + at;
			uint64_t word;

			memcpy(&word, place, sizeof(word));
			if (word - from >= bytes ||
			        !ts_layout_keeps(func->layout,
			                launch->layout_used, (uint16_t)i, at))
				continue;
			word = to + (word - from);
			memcpy(place, &word, sizeof(word));
			found++;
		}
	}
	return found;
}

int ts_replay_issue(const struct ts_replay_launch *launch,
        const struct ts_gpu_ops *ops, ts_stream_key stream)
{
	const struct ts_func *func = launch->func;
	CUlaunchAttribute attributes[TS_REPLAY_ATTRIBUTES];
	void **params = calloc(func->param_count + 1, sizeof(*params));
	CUstream handle = (CUstream)(uintptr_t)stream;
	CUlaunchConfig config = {.gridDimX = launch->grid[0],
	        .gridDimY = launch->grid[1],
	        .gridDimZ = launch->grid[2],
	        .blockDimX = launch->block[0],
	        .blockDimY = launch->block[1],
	        .blockDimZ = launch->block[2],
	        .sharedMemBytes = launch->shared_bytes,
	        .hStream = handle,
	        .attrs = attributes,
	        .numAttrs = launch->attribute_count};
	CUresult rc;

	if (!params)
		return -ENOMEM;
	for (size_t i = 0; i < func->param_count; i++)
		params[i] = launch->params + func->params[i].offset;
	memcpy(attributes, launch->attributes, sizeof(attributes));
	/* The older function is in every driver. */
	if (launch->attribute_count)
		rc = ops->launch_ex(&config, launch->function, params, NULL);
	else
		rc = ops->launch(launch->function, launch->grid[0],
		        launch->grid[1], launch->grid[2], launch->block[0],
		        launch->block[1], launch->block[2],
		        launch->shared_bytes, handle, params, NULL);
	free(params);
	return ts_gpu_errno(rc);
}
