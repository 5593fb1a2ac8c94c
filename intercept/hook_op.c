/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "intercept/hook_op.h"

#include "agent/agent.h"
#include "intercept/guard.h"

bool ts_op_enter(struct ts_op *op, enum ts_op_kind kind, const char *name,
        ts_stream_key stream)
{
	op->active = ts_enter();
	if (!op->active)
		return false;
	ts_op_init(op, kind, name);
	op->active = true;
	op->stream = stream;
	return true;
}

CUresult ts_op_end(struct ts_op *op, CUresult result)
{
	if (!op->active)
		return result;
	ts_agent_op_end(op, result);
	ts_leave();
	return result;
}

CUresult ts_copy_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        CUdeviceptr src, size_t bytes, ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_COPY, name, stream))
		return CUDA_SUCCESS;
	op->bytes = bytes;
	ts_agent_touch(op, src, bytes, TS_ACCESS_READ);
	ts_agent_touch(op, dst, bytes, TS_ACCESS_WRITE);
	return ts_agent_op_begin(op);
}

CUresult ts_upload_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        const void *host, size_t bytes, ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_COPY, name, stream))
		return CUDA_SUCCESS;
	op->bytes = bytes;
	ts_agent_scan_host(host, bytes);
	ts_agent_touch(op, dst, bytes, TS_ACCESS_WRITE);
	return ts_agent_op_begin(op);
}

/* One end of a copy of up to three dimensions. */
struct box {
	CUmemorytype type;
	CUdeviceptr address;
	size_t x, y, z;
	size_t pitch, height; /* of a plane */
};

/* The bytes from the first to the last that is copied, gaps included. */
static void touch_box(struct ts_op *op, const struct box *box, size_t width,
        size_t height, size_t depth, enum ts_access access)
{
	size_t plane = box->pitch * box->height;
	size_t offset = box->z * plane + box->y * box->pitch + box->x;
	size_t span;

	if (box->type != CU_MEMORYTYPE_DEVICE &&
	        box->type != CU_MEMORYTYPE_UNIFIED)
		return;
	if (!width || !height || !depth)
		return;
	span = (depth - 1) * plane + (height - 1) * box->pitch + width;
	if (access == TS_ACCESS_WRITE && span != width * height * depth)
		access = TS_ACCESS_READWRITE;
	ts_agent_touch(op, box->address + offset, span, access);
}

CUresult ts_copy_2d_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY2D *copy, ts_stream_key stream)
{
	if (!copy || !ts_op_enter(op, TS_OP_COPY, name, stream)) {
		op->active = false;
		return CUDA_SUCCESS;
	}
	op->bytes = copy->WidthInBytes * copy->Height;
	touch_box(op,
	        &(struct box){.type = copy->srcMemoryType,
	                .address = copy->srcDevice,
	                .x = copy->srcXInBytes,
	                .y = copy->srcY,
	                .pitch = copy->srcPitch},
	        copy->WidthInBytes, copy->Height, 1, TS_ACCESS_READ);
	touch_box(op,
	        &(struct box){.type = copy->dstMemoryType,
	                .address = copy->dstDevice,
	                .x = copy->dstXInBytes,
	                .y = copy->dstY,
	                .pitch = copy->dstPitch},
	        copy->WidthInBytes, copy->Height, 1, TS_ACCESS_WRITE);
	return ts_agent_op_begin(op);
}

void ts_copy_3d_touch(struct ts_op *op, const CUDA_MEMCPY3D *copy)
{
	op->bytes = copy->WidthInBytes * copy->Height * copy->Depth;
	touch_box(op,
	        &(struct box){copy->srcMemoryType, copy->srcDevice,
	                copy->srcXInBytes, copy->srcY, copy->srcZ,
	                copy->srcPitch, copy->srcHeight},
	        copy->WidthInBytes, copy->Height, copy->Depth, TS_ACCESS_READ);
	touch_box(op,
	        &(struct box){copy->dstMemoryType, copy->dstDevice,
	                copy->dstXInBytes, copy->dstY, copy->dstZ,
	                copy->dstPitch, copy->dstHeight},
	        copy->WidthInBytes, copy->Height, copy->Depth, TS_ACCESS_WRITE);
}

CUresult ts_copy_3d_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY3D *copy, ts_stream_key stream)
{
	if (!copy || !ts_op_enter(op, TS_OP_COPY, name, stream)) {
		op->active = false;
		return CUDA_SUCCESS;
	}
	ts_copy_3d_touch(op, copy);
	return ts_agent_op_begin(op);
}

CUresult ts_copy_3d_peer_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY3D_PEER *copy, ts_stream_key stream)
{
	if (!copy || !ts_op_enter(op, TS_OP_COPY, name, stream)) {
		op->active = false;
		return CUDA_SUCCESS;
	}
	op->bytes = copy->WidthInBytes * copy->Height * copy->Depth;
	touch_box(op,
	        &(struct box){copy->srcMemoryType, copy->srcDevice,
	                copy->srcXInBytes, copy->srcY, copy->srcZ,
	                copy->srcPitch, copy->srcHeight},
	        copy->WidthInBytes, copy->Height, copy->Depth, TS_ACCESS_READ);
	touch_box(op,
	        &(struct box){copy->dstMemoryType, copy->dstDevice,
	                copy->dstXInBytes, copy->dstY, copy->dstZ,
	                copy->dstPitch, copy->dstHeight},
	        copy->WidthInBytes, copy->Height, copy->Depth, TS_ACCESS_WRITE);
	return ts_agent_op_begin(op);
}

CUresult ts_set_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        size_t count, size_t element_bytes, ts_stream_key stream)
{
	return ts_set_2d_begin(op, name, dst, count * element_bytes, count, 1,
	        element_bytes, stream);
}

void ts_set_2d_touch(struct ts_op *op, CUdeviceptr dst, size_t pitch,
        size_t width, size_t height, size_t element_bytes)
{
	op->bytes = width * element_bytes * height;
	touch_box(op,
	        &(struct box){.type = CU_MEMORYTYPE_DEVICE,
	                .address = dst,
	                .pitch = pitch},
	        width * element_bytes, height, 1, TS_ACCESS_WRITE);
}

CUresult ts_set_2d_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        size_t pitch, size_t width, size_t height, size_t element_bytes,
        ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_SET, name, stream))
		return CUDA_SUCCESS;
	ts_set_2d_touch(op, dst, pitch, width, height, element_bytes);
	return ts_agent_op_begin(op);
}
