/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memsets in their one general form, and their exported functions: 8, 16 and
 * 32 bit, one and two dimensions, both default streams, all versions. Under
 * sg_lock.
 */
#include "tests/simgpu/driver/memory.h"

/* Touches rows; of many, everything between. */
#define ROWS_MAX 64
#define NEEDS    (SG_NEED_INIT | SG_NEED_CTX)

static CUresult check(const CUDA_MEMSET_NODE_PARAMS *set)
{
	uint64_t size = set->elementSize, row, bytes;
	const struct sg_area *area;
	const struct sg_host *host;
	struct sg_range range;

	if (size != 1 && size != 2 && size != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (set->dst % size || (set->height > 1 && set->pitch % size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!set->width || !set->height)
		return CUDA_SUCCESS;
	row = set->width * size;
	if (row / size != set->width || (set->height > 1 && set->pitch < row))
		return CUDA_ERROR_INVALID_VALUE;
	bytes = (set->height - 1) * set->pitch + row;
	area = sg_area_at(set->dst);
	host = sg_host_at(set->dst);
	/* Parts without memory are found out when the work is enqueued. */
	if (area && area->kind == SG_AREA_RESERVATION)
		return CUDA_SUCCESS;
	if (area || host) {
		range = area ? area->range : host->range;
		if (bytes <= range.bytes - (set->dst - range.start))
			return CUDA_SUCCESS;
	}
	sg_memory_error(
	        sg_ctx_current() ? sg_ctx_current()->dev : &sg_devices[0],
	        "memset of 0x%llx+0x%llx, which %s",
	        (unsigned long long)set->dst, (unsigned long long)bytes,
	        area || host ? "leaves its allocation" : "is in no allocation");
	return CUDA_ERROR_INVALID_VALUE;
}

static void add_accesses(struct sg_op *op, const CUDA_MEMSET_NODE_PARAMS *set)
{
	uint64_t row = set->width * set->elementSize;

	if (set->height > ROWS_MAX) {
		sg_op_add_access(op, set->dst,
		        (set->height - 1) * set->pitch + row, false, true,
		        true);
		return;
	}
	for (uint64_t y = 0; y < set->height; y++)
		sg_op_add_access(
		        op, set->dst + y * set->pitch, row, false, true, true);
}

static CUresult issue(
        const CUDA_MEMSET_NODE_PARAMS *set, struct sg_stream *stream, bool sync)
{
	const struct sg_area *area = sg_area_at(set->dst);
	/* Asynchronous unless the target is host memory. */
	bool waits = sync && (!sg_is_device_va(set->dst) ||
	                             (area && area->sync_memops));
	struct sg_op *op;
	CUresult error;

	if (!set->width || !set->height)
		return CUDA_SUCCESS;
	op = sg_op_new(SG_OP_MEMSET, stream);
	op->details.value = set->value;
	op->details.async = !waits;
	op->bytes = set->width * set->height * set->elementSize;
	add_accesses(op, set);
	sg_op_ref(op);
	error = sg_op_enqueue(op);
	if (error == CUDA_SUCCESS) {
		for (uint64_t y = 0; y < set->height; y++)
			sg_content_fill(set->dst + y * set->pitch, set->value,
			        set->elementSize, set->width);
		if (waits)
			sg_op_wait(op);
	}
	sg_op_unref(op);
	return error;
}

CUresult sg_memset_issue(
        const CUDA_MEMSET_NODE_PARAMS *set, struct sg_stream *stream, bool sync)
{
	CUresult error = check(set);

	return error == CUDA_SUCCESS ? issue(set, stream, sync) : error;
}

CUresult sg_memset_call(const CUDA_MEMSET_NODE_PARAMS *set, CUstream handle,
        bool per_thread, bool sync)
{
	struct sg_node_work work = {.kind = SG_NODE_MEMSET};
	struct sg_stream *stream;
	CUresult error;

	if (sync) {
		error = sg_capture_unsafe();
		if (error != CUDA_SUCCESS)
			return error;
	}
	error = sg_stream_resolve(handle, per_thread, &stream);
	if (error != CUDA_SUCCESS)
		return error;
	error = check(set);
	if (error != CUDA_SUCCESS)
		return error;
	if (!stream->capture)
		return issue(set, stream, sync);
	if (sync)
		return sg_capture_break(
		        stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	work.set = *set;
	return sg_capture_add(stream, &work);
}

/* ----------------------------------------------------------------- exports */

static CUresult set_1d(uint64_t dst, unsigned value, unsigned element_bytes,
        uint64_t count, CUstream stream, bool per_thread, bool sync)
{
	CUDA_MEMSET_NODE_PARAMS set = {.dst = dst,
	        .value = value,
	        .elementSize = element_bytes,
	        .width = count,
	        .height = 1};

	return sg_memset_call(&set, stream, per_thread, sync);
}

static CUresult set_2d(uint64_t dst, uint64_t pitch, unsigned value,
        unsigned element_bytes, uint64_t width, uint64_t height,
        CUstream stream, bool per_thread, bool sync)
{
	CUDA_MEMSET_NODE_PARAMS set = {.dst = dst,
	        .pitch = pitch,
	        .value = value,
	        .elementSize = element_bytes,
	        .width = width,
	        .height = height};

	return sg_memset_call(&set, stream, per_thread, sync);
}

/*
 * The functions of one element size, in one dimension: of the null stream, of
 * the first ABI, the second and the thread's own stream, and asynchronous ones.
 */
#define SET_1D(bits, type)                                                     \
	SG_EXPORT CUresult cuMemsetD##bits(                                    \
	        CUdeviceptr_v1 dst, type value, unsigned n)                    \
	{                                                                      \
		SG_API(cuMemsetD##bits, SG_COST_COPY, NEEDS);                  \
		return set_1d(dst, value, bits / 8, n, NULL, false, true);     \
	}                                                                      \
	SG_EXPORT CUresult cuMemsetD##bits##_v2(                               \
	        CUdeviceptr dst, type value, size_t n)                         \
	{                                                                      \
		SG_API(cuMemsetD##bits##_v2, SG_COST_COPY, NEEDS);             \
		return set_1d(dst, value, bits / 8, n, NULL, false, true);     \
	}                                                                      \
	SG_EXPORT CUresult cuMemsetD##bits##_v2_ptds(                          \
	        CUdeviceptr dst, type value, size_t n)                         \
	{                                                                      \
		SG_API(cuMemsetD##bits##_v2_ptds, SG_COST_COPY, NEEDS);        \
		return set_1d(dst, value, bits / 8, n, NULL, true, true);      \
	}                                                                      \
	SG_EXPORT CUresult cuMemsetD##bits##Async(                             \
	        CUdeviceptr dst, type value, size_t n, CUstream stream)        \
	{                                                                      \
		SG_API(cuMemsetD##bits##Async, SG_COST_COPY, NEEDS);           \
		return set_1d(dst, value, bits / 8, n, stream, false, false);  \
	}                                                                      \
	SG_EXPORT CUresult cuMemsetD##bits##Async_ptsz(                        \
	        CUdeviceptr dst, type value, size_t n, CUstream stream)        \
	{                                                                      \
		SG_API(cuMemsetD##bits##Async_ptsz, SG_COST_COPY, NEEDS);      \
		return set_1d(dst, value, bits / 8, n, stream, true, false);   \
	}

/* The same in two dimensions. */
#define SET_2D(bits, type)                                                     \
	SG_EXPORT CUresult cuMemsetD2D##bits(CUdeviceptr_v1 dst,               \
	        unsigned pitch, type value, unsigned width, unsigned height)   \
	{                                                                      \
		SG_API(cuMemsetD2D##bits, SG_COST_COPY, NEEDS);                \
		return set_2d(dst, pitch, value, bits / 8, width, height,      \
		        NULL, false, true);                                    \
	}                                                                      \
	SG_EXPORT CUresult cuMemsetD2D##bits##_v2(CUdeviceptr dst,             \
	        size_t pitch, type value, size_t width, size_t height)         \
	{                                                                      \
		SG_API(cuMemsetD2D##bits##_v2, SG_COST_COPY, NEEDS);           \
		return set_2d(dst, pitch, value, bits / 8, width, height,      \
		        NULL, false, true);                                    \
	}                                                                      \
	SG_EXPORT CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr dst,        \
	        size_t pitch, type value, size_t width, size_t height)         \
	{                                                                      \
		SG_API(cuMemsetD2D##bits##_v2_ptds, SG_COST_COPY, NEEDS);      \
		return set_2d(dst, pitch, value, bits / 8, width, height,      \
		        NULL, true, true);                                     \
	}                                                                      \
	SG_EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst,           \
	        size_t pitch, type value, size_t width, size_t height,         \
	        CUstream stream)                                               \
	{                                                                      \
		SG_API(cuMemsetD2D##bits##Async, SG_COST_COPY, NEEDS);         \
		return set_2d(dst, pitch, value, bits / 8, width, height,      \
		        stream, false, false);                                 \
	}                                                                      \
	SG_EXPORT CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr dst,      \
	        size_t pitch, type value, size_t width, size_t height,         \
	        CUstream stream)                                               \
	{                                                                      \
		SG_API(cuMemsetD2D##bits##Async_ptsz, SG_COST_COPY, NEEDS);    \
		return set_2d(dst, pitch, value, bits / 8, width, height,      \
		        stream, true, false);                                  \
	}

SET_1D(8, unsigned char)
SET_1D(16, unsigned short)
SET_1D(32, unsigned)
SET_2D(8, unsigned char)
SET_2D(16, unsigned short)
SET_2D(32, unsigned)
