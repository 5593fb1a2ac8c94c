/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "intercept/hook_op.h"

#include "agent/agent.h"
#include "intercept/guard.h"

/* Pitched copies of more are data, not tables of addresses. */
#define SCAN_ROWS_BYTES_MAX (1u << 20)

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

/* Takes the op up to its begin, unless @scanned has refused it. */
static CUresult begin_scanned(struct ts_op *op, CUresult scanned)
{
	return scanned == CUDA_SUCCESS ? ts_agent_op_begin(op) : scanned;
}

CUresult ts_copy_touch(
        struct ts_op *op, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	size_t before = op->count, between;

	op->bytes += bytes;
	ts_agent_touch(op, src, bytes, TS_ACCESS_READ);
	between = op->count;
	ts_agent_touch(op, dst, bytes, TS_ACCESS_WRITE);
	/* No block of ours: the address may be the host's. */
	if (between != before && op->count == between && op->bytes == bytes)
		op->host = dst;
	if (between != before || !src || !dst)
		return CUDA_SUCCESS;
	return ts_agent_scan_host(dst, (const void *)(uintptr_t)src, bytes);
}

CUresult ts_copy_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        CUdeviceptr src, size_t bytes, ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_COPY, name, stream))
		return CUDA_SUCCESS;
	return begin_scanned(op, ts_copy_touch(op, dst, src, bytes));
}

CUresult ts_download_begin(struct ts_op *op, const char *name, void *host,
        CUdeviceptr src, size_t bytes, ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_COPY, name, stream))
		return CUDA_SUCCESS;
	op->bytes = bytes;
	ts_agent_touch(op, src, bytes, TS_ACCESS_READ);
	op->host = (uint64_t)(uintptr_t)host;
	return begin_scanned(op, CUDA_SUCCESS);
}

CUresult ts_upload_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        const void *host, size_t bytes, ts_stream_key stream)
{
	if (!ts_op_enter(op, TS_OP_COPY, name, stream))
		return CUDA_SUCCESS;
	op->bytes = bytes;
	ts_agent_touch(op, dst, bytes, TS_ACCESS_WRITE);
	return begin_scanned(op, ts_agent_scan_host(dst, host, bytes));
}

/* One end of a copy of up to three dimensions. */
struct box {
	CUmemorytype type;
	CUdeviceptr address;
	const void *host;
	size_t x, y, z;
	size_t pitch, height; /* of a plane; 0: as copied */
};

struct extent {
	size_t width, height, depth;
};

static bool is_linear_device(const struct box *box)
{
	return box->type == CU_MEMORYTYPE_DEVICE ||
	       box->type == CU_MEMORYTYPE_UNIFIED;
}

static size_t pitch_of(const struct box *box, const struct extent *extent)
{
	return box->pitch ? box->pitch : extent->width;
}

/* Where row @y of plane @z of the copy begins. */
static size_t row_offset(
        const struct box *box, const struct extent *extent, size_t y, size_t z)
{
	size_t height = box->height ? box->height : extent->height;

	return ((box->z + z) * height + box->y + y) * pitch_of(box, extent) +
	       box->x;
}

/* The bytes from the first to the last that is copied, gaps included. */
static void touch_box(struct ts_op *op, const struct box *box,
        const struct extent *extent, enum ts_access access)
{
	size_t first, span;

	if (!is_linear_device(box) || !extent->width || !extent->height ||
	        !extent->depth)
		return;
	first = row_offset(box, extent, 0, 0);
	span = row_offset(box, extent, extent->height - 1, extent->depth - 1) -
	       first + extent->width;
	if (access == TS_ACCESS_WRITE &&
	        span != extent->width * extent->height * extent->depth)
		access = TS_ACCESS_READWRITE;
	ts_agent_touch(op, box->address + first, span, access);
}

/* Row by row, or at once where both ends have no gaps. */
static CUresult scan_box(const struct box *dst, const struct box *src,
        const struct extent *extent)
{
	const char *host = src->type == CU_MEMORYTYPE_UNIFIED
	                           ? (const char *)(uintptr_t)src->address
	                           : src->host;
	size_t rows = extent->height * extent->depth;
	CUresult rc = CUDA_SUCCESS;

	if (!host || !rows || !is_linear_device(dst) ||
	        (src->type != CU_MEMORYTYPE_HOST &&
	                src->type != CU_MEMORYTYPE_UNIFIED))
		return CUDA_SUCCESS;
	if (extent->depth == 1 && pitch_of(dst, extent) == extent->width &&
	        pitch_of(src, extent) == extent->width)
		return ts_agent_scan_host(
		        dst->address + row_offset(dst, extent, 0, 0),
		        host + row_offset(src, extent, 0, 0),
		        extent->width * rows);
	if (extent->width > SCAN_ROWS_BYTES_MAX / rows)
		return CUDA_SUCCESS;
	for (size_t i = 0; i < rows && rc == CUDA_SUCCESS; i++) {
		size_t y = i % extent->height, z = i / extent->height;

		rc = ts_agent_scan_host(
		        dst->address + row_offset(dst, extent, y, z),
		        host + row_offset(src, extent, y, z), extent->width);
	}
	return rc;
}

static CUresult touch_boxes(struct ts_op *op, const struct box *dst,
        const struct box *src, const struct extent *extent)
{
	size_t before = op->count;

	op->bytes += extent->width * extent->height * extent->depth;
	touch_box(op, src, extent, TS_ACCESS_READ);
	before = op->count - before;
	touch_box(op, dst, extent, TS_ACCESS_WRITE);
	return before ? CUDA_SUCCESS : scan_box(dst, src, extent);
}

static CUresult copy_2d_touch(struct ts_op *op, const CUDA_MEMCPY2D *copy)
{
	return touch_boxes(op,
	        &(struct box){.type = copy->dstMemoryType,
	                .address = copy->dstDevice,
	                .x = copy->dstXInBytes,
	                .y = copy->dstY,
	                .pitch = copy->dstPitch},
	        &(struct box){.type = copy->srcMemoryType,
	                .address = copy->srcDevice,
	                .host = copy->srcHost,
	                .x = copy->srcXInBytes,
	                .y = copy->srcY,
	                .pitch = copy->srcPitch},
	        &(struct extent){copy->WidthInBytes, copy->Height, 1});
}

CUresult ts_copy_2d_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY2D *copy, ts_stream_key stream)
{
	if (!copy || !ts_op_enter(op, TS_OP_COPY, name, stream)) {
		op->active = false;
		return CUDA_SUCCESS;
	}
	return begin_scanned(op, copy_2d_touch(op, copy));
}

CUresult ts_copy_3d_touch(struct ts_op *op, const CUDA_MEMCPY3D *copy)
{
	return touch_boxes(op,
	        &(struct box){copy->dstMemoryType, copy->dstDevice, NULL,
	                copy->dstXInBytes, copy->dstY, copy->dstZ,
	                copy->dstPitch, copy->dstHeight},
	        &(struct box){copy->srcMemoryType, copy->srcDevice,
	                copy->srcHost, copy->srcXInBytes, copy->srcY,
	                copy->srcZ, copy->srcPitch, copy->srcHeight},
	        &(struct extent){
	                copy->WidthInBytes, copy->Height, copy->Depth});
}

CUresult ts_copy_3d_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY3D *copy, ts_stream_key stream)
{
	if (!copy || !ts_op_enter(op, TS_OP_COPY, name, stream)) {
		op->active = false;
		return CUDA_SUCCESS;
	}
	return begin_scanned(op, ts_copy_3d_touch(op, copy));
}

CUresult ts_copy_3d_peer_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY3D_PEER *copy, ts_stream_key stream)
{
	if (!copy || !ts_op_enter(op, TS_OP_COPY, name, stream)) {
		op->active = false;
		return CUDA_SUCCESS;
	}
	return begin_scanned(op,
	        touch_boxes(op,
	                &(struct box){copy->dstMemoryType, copy->dstDevice,
	                        NULL, copy->dstXInBytes, copy->dstY, copy->dstZ,
	                        copy->dstPitch, copy->dstHeight},
	                &(struct box){copy->srcMemoryType, copy->srcDevice,
	                        copy->srcHost, copy->srcXInBytes, copy->srcY,
	                        copy->srcZ, copy->srcPitch, copy->srcHeight},
	                &(struct extent){copy->WidthInBytes, copy->Height,
	                        copy->Depth}));
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
	        &(struct extent){width * element_bytes, height, 1},
	        TS_ACCESS_WRITE);
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
