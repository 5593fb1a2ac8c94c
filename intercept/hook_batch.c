/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of calls that carry many copies at once. */
#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

static CUresult batch_begin(struct ts_op *op, const CUdeviceptr *dsts,
        const CUdeviceptr *srcs, const size_t *sizes, size_t count,
        ts_stream_key stream)
{
	if (!dsts || !srcs || !sizes)
		count = 0;
	if (!ts_op_enter(op, TS_OP_COPY, "MemcpyBatchAsync", stream))
		return CUDA_SUCCESS;
	for (size_t i = 0; i < count; i++) {
		op->bytes += sizes[i];
		ts_agent_touch(op, srcs[i], sizes[i], TS_ACCESS_READ);
		ts_agent_touch(op, dsts[i], sizes[i], TS_ACCESS_WRITE);
	}
	return ts_agent_op_begin(op);
}

/* Lengths of 0 mean: as long as what is copied. */
static void touch_operand(struct ts_op *op, const CUmemcpy3DOperand *operand,
        const CUextent3D *extent, enum ts_access access)
{
	size_t row = operand->op.ptr.rowLength;
	size_t height = operand->op.ptr.layerHeight;

	if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
		return;
	if (!row)
		row = extent->width;
	if (!height)
		height = extent->height;
	if (access == TS_ACCESS_WRITE &&
	        (row != extent->width || height != extent->height))
		access = TS_ACCESS_READWRITE;
	ts_agent_touch(
	        op, operand->op.ptr.ptr, row * height * extent->depth, access);
}

static CUresult batch_3d_begin(struct ts_op *op,
        const CUDA_MEMCPY3D_BATCH_OP *items, size_t count, ts_stream_key stream)
{
	if (!items)
		count = 0;
	if (!ts_op_enter(op, TS_OP_COPY, "Memcpy3DBatchAsync", stream))
		return CUDA_SUCCESS;
	for (size_t i = 0; i < count; i++) {
		const CUextent3D *extent = &items[i].extent;

		op->bytes += extent->width * extent->height * extent->depth;
		touch_operand(op, &items[i].src, extent, TS_ACCESS_READ);
		touch_operand(op, &items[i].dst, extent, TS_ACCESS_WRITE);
	}
	return ts_agent_op_begin(op);
}

static CUresult decompress_begin(struct ts_op *op,
        const CUmemDecompressParams *items, size_t count, ts_stream_key stream)
{
	if (!items)
		count = 0;
	if (!ts_op_enter(op, TS_OP_COPY, "MemBatchDecompressAsync", stream))
		return CUDA_SUCCESS;
	for (size_t i = 0; i < count; i++) {
		op->bytes += items[i].dstNumBytes;
		ts_agent_touch(op, (CUdeviceptr)items[i].src,
		        items[i].srcNumBytes, TS_ACCESS_READ);
		ts_agent_touch(op, (CUdeviceptr)items[i].dst,
		        items[i].dstNumBytes, TS_ACCESS_READWRITE);
		ts_agent_touch(op, (CUdeviceptr)items[i].dstActBytes,
		        sizeof(*items[i].dstActBytes), TS_ACCESS_READWRITE);
	}
	return ts_agent_op_begin(op);
}

CUresult ts_hook_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs,
        size_t *sizes, size_t count, CUmemcpyAttributes_v1 *attrs,
        size_t *attr_indices, size_t attr_count, size_t *fail_index,
        CUstream stream)
{
	struct ts_op op;
	CUresult rc = batch_begin(&op, dsts, srcs, sizes, count,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyBatchAsync(dsts, srcs, sizes, count,
		        attrs, attr_indices, attr_count, fail_index, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs,
        size_t *sizes, size_t count, CUmemcpyAttributes_v1 *attrs,
        size_t *attr_indices, size_t attr_count, size_t *fail_index,
        CUstream stream)
{
	struct ts_op op;
	CUresult rc = batch_begin(&op, dsts, srcs, sizes, count,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyBatchAsync_ptsz(dsts, srcs, sizes,
		        count, attrs, attr_indices, attr_count, fail_index,
		        stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs,
        size_t *sizes, size_t count, CUmemcpyAttributes_v1 *attrs,
        size_t *attr_indices, size_t attr_count, CUstream stream)
{
	struct ts_op op;
	CUresult rc = batch_begin(&op, dsts, srcs, sizes, count,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyBatchAsync_v2(dsts, srcs, sizes,
		        count, attrs, attr_indices, attr_count, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts,
        CUdeviceptr *srcs, size_t *sizes, size_t count,
        CUmemcpyAttributes_v1 *attrs, size_t *attr_indices, size_t attr_count,
        CUstream stream)
{
	struct ts_op op;
	CUresult rc = batch_begin(&op, dsts, srcs, sizes, count,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyBatchAsync_v2_ptsz(dsts, srcs, sizes,
		        count, attrs, attr_indices, attr_count, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DBatchAsync(size_t count,
        CUDA_MEMCPY3D_BATCH_OP_v1 *items, size_t *fail_index,
        unsigned long long flags, CUstream stream)
{
	struct ts_op op;
	CUresult rc = batch_3d_begin(
	        &op, items, count, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DBatchAsync(
		        count, items, fail_index, flags, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DBatchAsync_ptsz(size_t count,
        CUDA_MEMCPY3D_BATCH_OP_v1 *items, size_t *fail_index,
        unsigned long long flags, CUstream stream)
{
	struct ts_op op;
	CUresult rc = batch_3d_begin(
	        &op, items, count, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DBatchAsync_ptsz(
		        count, items, fail_index, flags, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DBatchAsync_v2(size_t count,
        CUDA_MEMCPY3D_BATCH_OP_v1 *items, unsigned long long flags,
        CUstream stream)
{
	struct ts_op op;
	CUresult rc = batch_3d_begin(
	        &op, items, count, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DBatchAsync_v2(
		        count, items, flags, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DBatchAsync_v2_ptsz(size_t count,
        CUDA_MEMCPY3D_BATCH_OP_v1 *items, unsigned long long flags,
        CUstream stream)
{
	struct ts_op op;
	CUresult rc = batch_3d_begin(
	        &op, items, count, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DBatchAsync_v2_ptsz(
		        count, items, flags, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemBatchDecompressAsync(CUmemDecompressParams *items,
        size_t count, unsigned int flags, size_t *error_index, CUstream stream)
{
	struct ts_op op;
	CUresult rc = decompress_begin(
	        &op, items, count, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemBatchDecompressAsync(
		        items, count, flags, error_index, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams *items,
        size_t count, unsigned int flags, size_t *error_index, CUstream stream)
{
	struct ts_op op;
	CUresult rc = decompress_begin(
	        &op, items, count, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemBatchDecompressAsync_ptsz(
		        items, count, flags, error_index, stream);
	return ts_op_end(&op, rc);
}
