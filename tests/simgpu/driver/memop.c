/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory operations of streams: a value is written when the op arrives, as all
 * effects are; a wait is only possible for a value that is there already, and
 * only in host memory, since device memory has no content. Guarded by the lock.
 */
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/sg.h"

#include <string.h>

/* The program's own view of a device address, or NULL for device memory. Host
 * memory the device can reach has the same address on both sides. */
static void *host_view(CUdeviceptr address, size_t bytes)
{
	void *p = (void *)(uintptr_t)address;

	return !sg_is_device_va(address) && sg_host_is_pinned(p, bytes) ? p
	                                                                : NULL;
}

static CUresult write_value(struct sg_stream *stream, CUdeviceptr address,
        const void *value, unsigned bytes)
{
	struct sg_op *op;
	uint64_t word = 0;
	void *host = host_view(address, bytes);
	CUresult r;

	if (address % bytes || (!host && !sg_is_device_va(address)))
		return CUDA_ERROR_INVALID_VALUE;
	op = sg_op_new(SG_OP_MARKER, stream);
	if (!host)
		sg_op_add_access(op, address, bytes, false, true, true);
	r = sg_op_enqueue(op);
	if (r)
		return r;
	memcpy(&word, value, bytes);
	if (host) {
		/* Whoever polls the word knows how far the stream is. */
		if (sg_races_on())
			sg_clock_host_knows(stream->last);
		memcpy(host, value, bytes);
	} else {
		sg_content_fill(address, (unsigned)word, 4, 1);
		if (bytes == 8)
			sg_content_fill(
			        address + 4, (unsigned)(word >> 32), 4, 1);
	}
	return CUDA_SUCCESS;
}

static bool satisfied(
        const void *host, uint64_t value, unsigned bytes, unsigned flags)
{
	uint64_t now = 0, mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;
	int64_t ahead;

	memcpy(&now, host, bytes);
	ahead = bytes == 8 ? (int64_t)(now - value)
	                   : (int32_t)((uint32_t)now - (uint32_t)value);
	switch (flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return ahead >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == (value & mask);
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & value & mask) != 0;
	default:
		return (~(now | value) & mask) != 0;
	}
}

static CUresult wait_value(
        CUdeviceptr address, uint64_t value, unsigned bytes, unsigned flags)
{
	const void *host = host_view(address, bytes);

	if (address % bytes || (!host && !sg_is_device_va(address)))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!host)
		return sg_not_supported("a stream's wait on device memory");
	if (!satisfied(host, value, bytes, flags))
		return sg_not_supported("a stream's wait on a later value");
	return CUDA_SUCCESS;
}

static CUresult one(
        struct sg_stream *stream, const CUstreamBatchMemOpParams *op)
{
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return write_value(stream, op->writeValue.address,
		        &op->writeValue.value, 4);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return write_value(stream, op->writeValue.address,
		        &op->writeValue.value64, 8);
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return wait_value(op->waitValue.address, op->waitValue.value, 4,
		        op->waitValue.flags);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return wait_value(op->waitValue.address, op->waitValue.value64,
		        8, op->waitValue.flags);
	case CU_STREAM_MEM_OP_BARRIER:
		return CUDA_SUCCESS; /* effects are in order already */
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CUDA_ERROR_NOT_SUPPORTED; /* as the attribute says */
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult batch(CUstream handle, bool per_thread, unsigned count,
        const CUstreamBatchMemOpParams *ops)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (!ops || count > 256)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture)
		return sg_capture_break(
		        stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	for (unsigned i = 0; !r && i < count; i++)
		r = one(stream, &ops[i]);
	return r;
}

static CUresult write_one(CUstream stream, bool per_thread, CUdeviceptr address,
        cuuint64_t value, unsigned bytes)
{
	CUstreamBatchMemOpParams op = {0};

	op.writeValue.operation = bytes == 8 ? CU_STREAM_MEM_OP_WRITE_VALUE_64
	                                     : CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = address;
	op.writeValue.value64 = value;
	return batch(stream, per_thread, 1, &op);
}

static CUresult wait_one(CUstream stream, bool per_thread, CUdeviceptr address,
        cuuint64_t value, unsigned flags, unsigned bytes)
{
	CUstreamBatchMemOpParams op = {0};

	op.waitValue.operation = bytes == 8 ? CU_STREAM_MEM_OP_WAIT_VALUE_64
	                                    : CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.address = address;
	op.waitValue.value64 = value;
	op.waitValue.flags = flags;
	return batch(stream, per_thread, 1, &op);
}

CUresult cuStreamWriteValue32(
        CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	SG_API(cuStreamWriteValue32, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return write_one(stream, false, address, value, 4);
}

CUresult cuStreamWriteValue64(
        CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	SG_API(cuStreamWriteValue64, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return write_one(stream, false, address, value, 8);
}

CUresult cuStreamWaitValue32(
        CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	SG_API(cuStreamWaitValue32, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return wait_one(stream, false, address, value, flags, 4);
}

CUresult cuStreamWaitValue64(
        CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	SG_API(cuStreamWaitValue64, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return wait_one(stream, false, address, value, flags, 8);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count,
        CUstreamBatchMemOpParams *ops, unsigned flags)
{
	SG_API(cuStreamBatchMemOp, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return batch(stream, false, count, ops);
}

CUresult cuStreamWriteValue32_ptsz(
        CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	SG_API(cuStreamWriteValue32_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return write_one(stream, true, address, value, 4);
}

CUresult cuStreamWriteValue64_ptsz(
        CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	SG_API(cuStreamWriteValue64_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return write_one(stream, true, address, value, 8);
}

CUresult cuStreamWaitValue32_ptsz(
        CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	SG_API(cuStreamWaitValue32_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return wait_one(stream, true, address, value, flags, 4);
}

CUresult cuStreamWaitValue64_ptsz(
        CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	SG_API(cuStreamWaitValue64_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return wait_one(stream, true, address, value, flags, 8);
}

CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned count,
        CUstreamBatchMemOpParams *ops, unsigned flags)
{
	SG_API(cuStreamBatchMemOp_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return batch(stream, true, count, ops);
}

CUresult cuStreamWriteValue32_v2(
        CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	SG_API(cuStreamWriteValue32_v2, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return write_one(stream, false, address, value, 4);
}

CUresult cuStreamWriteValue64_v2(
        CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	SG_API(cuStreamWriteValue64_v2, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return write_one(stream, false, address, value, 8);
}

CUresult cuStreamWaitValue32_v2(
        CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	SG_API(cuStreamWaitValue32_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return wait_one(stream, false, address, value, flags, 4);
}

CUresult cuStreamWaitValue64_v2(
        CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	SG_API(cuStreamWaitValue64_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return wait_one(stream, false, address, value, flags, 8);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count,
        CUstreamBatchMemOpParams *ops, unsigned flags)
{
	SG_API(cuStreamBatchMemOp_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return batch(stream, false, count, ops);
}

CUresult cuStreamWriteValue32_v2_ptsz(
        CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	SG_API(cuStreamWriteValue32_v2_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return write_one(stream, true, address, value, 4);
}

CUresult cuStreamWriteValue64_v2_ptsz(
        CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	SG_API(cuStreamWriteValue64_v2_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return write_one(stream, true, address, value, 8);
}

CUresult cuStreamWaitValue32_v2_ptsz(
        CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	SG_API(cuStreamWaitValue32_v2_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return wait_one(stream, true, address, value, flags, 4);
}

CUresult cuStreamWaitValue64_v2_ptsz(
        CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	SG_API(cuStreamWaitValue64_v2_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return wait_one(stream, true, address, value, flags, 8);
}

CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned count,
        CUstreamBatchMemOpParams *ops, unsigned flags)
{
	SG_API(cuStreamBatchMemOp_v2_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return batch(stream, true, count, ops);
}
