/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exported batches of copies, with the interfaces of 12.8 (which name the copy
 * that failed) and 13.0. The copies of a batch follow each other in the
 * stream, one of the orders that are allowed. Under sg_lock.
 */
#include "tests/simgpu/driver/memory.h"

/* A batch may not go to the legacy default stream. */
static CUresult check_stream(CUstream handle, bool per_thread)
{
	struct sg_stream *stream;
	CUresult error = sg_stream_resolve(handle, per_thread, &stream);

	if (error != CUDA_SUCCESS)
		return error;
	return stream->legacy ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static bool order_valid(CUmemcpySrcAccessOrder order)
{
	return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
	       order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
	       order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* One copy; the host waits if its source may not outlive the call. */
static CUresult copy_one(const CUDA_MEMCPY3D *copy,
        CUmemcpySrcAccessOrder order, CUstream handle, bool per_thread)
{
	struct sg_stream *stream;
	CUresult error = sg_copy_call(copy, handle, per_thread, false);

	if (error != CUDA_SUCCESS ||
	        order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)
		return error;
	error = sg_stream_resolve(handle, per_thread, &stream);
	if (error == CUDA_SUCCESS && !stream->capture)
		sg_stream_wait(stream);
	return error;
}

/* ----------------------------------------------------------- runs of bytes */

struct batch {
	CUdeviceptr *dsts, *srcs;
	size_t *sizes, count;
	CUmemcpyAttributes *attrs;
	size_t *first; /* of the copies each of attrs is for */
	size_t n_attrs;
};

static CUresult check_batch(const struct batch *batch)
{
	if (!batch->dsts || !batch->srcs || !batch->sizes || !batch->count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!batch->attrs || !batch->first || !batch->n_attrs ||
	        batch->n_attrs > batch->count || batch->first[0] != 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < batch->n_attrs; i++) {
		if (batch->first[i] >= batch->count ||
		        (i && batch->first[i] <= batch->first[i - 1]))
			return CUDA_ERROR_INVALID_VALUE;
		if (!order_valid(batch->attrs[i].srcAccessOrder))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult copy_batch(const struct batch *batch, size_t *ret_failed,
        CUstream stream, bool per_thread)
{
	size_t attr = 0;
	CUresult error = check_batch(batch);

	if (ret_failed)
		*ret_failed = SIZE_MAX;
	if (error == CUDA_SUCCESS)
		error = check_stream(stream, per_thread);
	for (size_t i = 0; error == CUDA_SUCCESS && i < batch->count; i++) {
		CUDA_MEMCPY3D copy = {
		        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		        .srcDevice = batch->srcs[i],
		        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		        .dstDevice = batch->dsts[i],
		        .WidthInBytes = batch->sizes[i],
		        .Height = 1,
		        .Depth = 1,
		};

		if (attr + 1 < batch->n_attrs && batch->first[attr + 1] == i)
			attr++;
		error = copy_one(&copy, batch->attrs[attr].srcAccessOrder,
		        stream, per_thread);
		if (error != CUDA_SUCCESS && ret_failed)
			*ret_failed = i;
	}
	return error;
}

SG_EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs,
        size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
        size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
	struct batch batch = {
	        dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs};

	SG_API(cuMemcpyBatchAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_batch(&batch, failIdx, hStream, false);
}

SG_EXPORT CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs,
        size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
        size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
	struct batch batch = {
	        dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs};

	SG_API(cuMemcpyBatchAsync_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_batch(&batch, failIdx, hStream, true);
}

SG_EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs,
        size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
        size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
	struct batch batch = {
	        dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs};

	SG_API(cuMemcpyBatchAsync_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_batch(&batch, NULL, hStream, false);
}

SG_EXPORT CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts,
        CUdeviceptr *srcs, size_t *sizes, size_t count,
        CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
        CUstream hStream)
{
	struct batch batch = {
	        dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs};

	SG_API(cuMemcpyBatchAsync_v2_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_batch(&batch, NULL, hStream, true);
}

/* ---------------------------------------------------------- three dimensions
 */

static CUresult from_op(
        const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *ret_copy)
{
	CUDA_MEMCPY3D copy = {
	        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
	        .WidthInBytes = op->extent.width,
	        .Height = op->extent.height,
	        .Depth = op->extent.depth,
	};

	if (op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ||
	        op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return sg_not_supported("CUDA arrays");
	if (op->src.type != CU_MEMCPY_OPERAND_TYPE_POINTER ||
	        op->dst.type != CU_MEMCPY_OPERAND_TYPE_POINTER)
		return CUDA_ERROR_INVALID_VALUE;
	if (!op->extent.width || !op->extent.height || !op->extent.depth ||
	        !order_valid(op->srcAccessOrder))
		return CUDA_ERROR_INVALID_VALUE;
	copy.srcDevice = op->src.op.ptr.ptr;
	copy.srcPitch = op->src.op.ptr.rowLength;
	copy.srcHeight = op->src.op.ptr.layerHeight;
	copy.dstDevice = op->dst.op.ptr.ptr;
	copy.dstPitch = op->dst.op.ptr.rowLength;
	copy.dstHeight = op->dst.op.ptr.layerHeight;
	*ret_copy = copy;
	return CUDA_SUCCESS;
}

static CUresult copy_batch_3d(size_t n, const CUDA_MEMCPY3D_BATCH_OP *ops,
        size_t *ret_failed, unsigned long long flags, CUstream stream,
        bool per_thread)
{
	CUresult error = CUDA_SUCCESS;

	if (ret_failed)
		*ret_failed = SIZE_MAX;
	if (!n || !ops || flags)
		return CUDA_ERROR_INVALID_VALUE;
	error = check_stream(stream, per_thread);
	for (size_t i = 0; error == CUDA_SUCCESS && i < n; i++) {
		CUDA_MEMCPY3D copy;

		error = from_op(&ops[i], &copy);
		if (error == CUDA_SUCCESS)
			error = copy_one(&copy, ops[i].srcAccessOrder, stream,
			        per_thread);
		if (error != CUDA_SUCCESS && ret_failed)
			*ret_failed = i;
	}
	return error;
}

SG_EXPORT CUresult cuMemcpy3DBatchAsync(size_t numOps,
        CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
        unsigned long long flags, CUstream hStream)
{
	SG_API(cuMemcpy3DBatchAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_batch_3d(numOps, opList, failIdx, flags, hStream, false);
}

SG_EXPORT CUresult cuMemcpy3DBatchAsync_ptsz(size_t numOps,
        CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
        unsigned long long flags, CUstream hStream)
{
	SG_API(cuMemcpy3DBatchAsync_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_batch_3d(numOps, opList, failIdx, flags, hStream, true);
}

SG_EXPORT CUresult cuMemcpy3DBatchAsync_v2(size_t numOps,
        CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
        CUstream hStream)
{
	SG_API(cuMemcpy3DBatchAsync_v2, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_batch_3d(numOps, opList, NULL, flags, hStream, false);
}

SG_EXPORT CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t numOps,
        CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
        CUstream hStream)
{
	SG_API(cuMemcpy3DBatchAsync_v2_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_batch_3d(numOps, opList, NULL, flags, hStream, true);
}
