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
	CUresult rc = CUDA_SUCCESS;

	if (!dsts || !srcs || !sizes)
		count = 0;
	if (!ts_op_enter(op, TS_OP_COPY, "MemcpyBatchAsync", stream))
		return CUDA_SUCCESS;
	for (size_t i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = ts_copy_touch(op, dsts[i], srcs[i], sizes[i]);
	return rc == CUDA_SUCCESS ? ts_agent_op_begin(op) : rc;
}

/* As a copy of three dimensions; lengths of 0 mean: as long as copied. */
static void put_operand(const CUmemcpy3DOperand *operand, CUdeviceptr *address,
        size_t *pitch, size_t *height, CUmemorytype *type)
{
	*type = CU_MEMORYTYPE_ARRAY;
	if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
		return;
	*type = CU_MEMORYTYPE_UNIFIED;
	*address = operand->op.ptr.ptr;
	*pitch = operand->op.ptr.rowLength;
	*height = operand->op.ptr.layerHeight;
}

static CUresult touch_item(struct ts_op *op, const CUDA_MEMCPY3D_BATCH_OP *item)
{
	CUDA_MEMCPY3D copy = {.WidthInBytes = item->extent.width,
	        .Height = item->extent.height,
	        .Depth = item->extent.depth};

	put_operand(&item->src, &copy.srcDevice, &copy.srcPitch,
	        &copy.srcHeight, &copy.srcMemoryType);
	put_operand(&item->dst, &copy.dstDevice, &copy.dstPitch,
	        &copy.dstHeight, &copy.dstMemoryType);
	return ts_copy_3d_touch(op, &copy);
}

static CUresult batch_3d_begin(struct ts_op *op,
        const CUDA_MEMCPY3D_BATCH_OP *items, size_t count, ts_stream_key stream)
{
	CUresult rc = CUDA_SUCCESS;

	if (!items)
		count = 0;
	if (!ts_op_enter(op, TS_OP_COPY, "Memcpy3DBatchAsync", stream))
		return CUDA_SUCCESS;
	for (size_t i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = touch_item(op, &items[i]);
	return rc == CUDA_SUCCESS ? ts_agent_op_begin(op) : rc;
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
