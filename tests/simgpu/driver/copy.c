/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies in their one general form: checks, direction, operations and how long
 * the host waits. The exported functions (copy_linear.c, copy_pitched.c,
 * copy_batch.c) and graphs bring their work here. Under sg_lock.
 */
#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/mutate.h"

/* Up to this much pageable memory is staged while the call runs, so that the
 * host need not wait for the copy itself. */
#define STAGED_BYTES ((uint64_t)64 << 10)
/* A pitched copy touches its rows; of many rows, everything between. */
#define ROWS_MAX 64

struct end {
	bool device;
	bool known; /* device memory, or host memory the driver knows */
	uint64_t va, pitch, slice;
};
/* A copy with its addresses resolved; rows as long as they can be. */
struct plan {
	struct end src, dst;
	uint64_t width, height, depth;
};

enum wait_rule {
	WAIT_NEVER, /* graphs */
	WAIT_ASYNC,
	WAIT_SYNC,
};

/* ------------------------------------------------------------------ checks */

static uint64_t extent(const struct end *end, const struct plan *plan)
{
	return (plan->depth - 1) * end->slice +
	       (plan->height - 1) * end->pitch + plan->width;
}

/* Is all that this end touches inside one allocation? Parts of reservations
 * without memory are found out when the operation is enqueued. */
static CUresult check_bounds(const struct end *end, const struct plan *plan)
{
	uint64_t bytes = extent(end, plan);
	const struct sg_area *area;

	if (end->va + bytes < end->va)
		return CUDA_ERROR_INVALID_VALUE;
	if (!end->device)
		return CUDA_SUCCESS;
	area = sg_area_at(end->va);
	if (area && (area->kind == SG_AREA_RESERVATION ||
	                    bytes <= area->range.bytes -
	                                     (end->va - area->range.start)))
		return CUDA_SUCCESS;
	sg_memory_error(
	        sg_ctx_current() ? sg_ctx_current()->dev : &sg_devices[0],
	        "copy of 0x%llx+0x%llx, which %s", (unsigned long long)end->va,
	        (unsigned long long)bytes,
	        area ? "leaves its allocation" : "is in no allocation");
	return CUDA_ERROR_INVALID_VALUE;
}

struct operand {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	uint64_t x, y, z, pitch, height;
};

static CUresult resolve_end(const struct operand *operand,
        const struct plan *plan, struct end *ret_end)
{
	struct end end = {.pitch = operand->pitch};
	uint64_t height = operand->height;

	switch (operand->type) {
	case CU_MEMORYTYPE_HOST:
		end.va = (uint64_t)(uintptr_t)operand->host;
		if (sg_is_device_va(end.va))
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		end.va = operand->device;
		break;
	case CU_MEMORYTYPE_ARRAY:
		return sg_not_supported("CUDA arrays");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!end.va)
		return CUDA_ERROR_INVALID_VALUE;
	if (!end.pitch)
		end.pitch = operand->x + plan->width;
	if (!height)
		height = operand->y + plan->height;
	if ((plan->height > 1 || plan->depth > 1) &&
	        end.pitch < operand->x + plan->width)
		return CUDA_ERROR_INVALID_VALUE;
	if (plan->depth > 1 && height < operand->y + plan->height)
		return CUDA_ERROR_INVALID_VALUE;
	end.slice = end.pitch * height;
	end.va += operand->x + operand->y * end.pitch + operand->z * end.slice;
	end.device = sg_is_device_va(end.va);
	end.known = end.device || sg_host_at(end.va);
	if (operand->type == CU_MEMORYTYPE_DEVICE && !end.known) {
		sg_memory_error(sg_ctx_current() ? sg_ctx_current()->dev
		                                 : &sg_devices[0],
		        "copy of 0x%llx, which is no device address",
		        (unsigned long long)end.va);
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret_end = end;
	return check_bounds(ret_end, plan);
}

/* Joins rows, then slices, that follow each other without a gap. */
static void join_rows(struct plan *plan)
{
	if (plan->src.pitch == plan->width && plan->dst.pitch == plan->width) {
		plan->width *= plan->height;
		plan->height = 1;
	}
	if (plan->height == 1 && plan->src.slice == plan->width &&
	        plan->dst.slice == plan->width) {
		plan->width *= plan->depth;
		plan->depth = 1;
	}
}

static CUresult make_plan(const CUDA_MEMCPY3D *copy, struct plan *ret_plan)
{
	struct operand src = {copy->srcMemoryType, copy->srcHost,
	        copy->srcDevice, copy->srcXInBytes, copy->srcY, copy->srcZ,
	        copy->srcPitch, copy->srcHeight};
	struct operand dst = {copy->dstMemoryType, copy->dstHost,
	        copy->dstDevice, copy->dstXInBytes, copy->dstY, copy->dstZ,
	        copy->dstPitch, copy->dstHeight};
	struct plan plan = {.width = copy->WidthInBytes,
	        .height = copy->Height,
	        .depth = copy->Depth};
	CUresult error;

	if (copy->srcLOD || copy->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	if (plan.width && plan.height && plan.depth) {
		error = resolve_end(&src, &plan, &plan.src);
		if (error != CUDA_SUCCESS)
			return error;
		error = resolve_end(&dst, &plan, &plan.dst);
		if (error != CUDA_SUCCESS)
			return error;
		join_rows(&plan);
	}
	*ret_plan = plan;
	return CUDA_SUCCESS;
}

/* -------------------------------------------------------------- operations */

static void add_accesses(struct sg_op *op, const struct end *end,
        const struct plan *plan, bool write)
{
	if (!end->known)
		return;
	if (plan->height * plan->depth > ROWS_MAX) {
		sg_op_add_access(
		        op, end->va, extent(end, plan), !write, write, true);
		return;
	}
	for (uint64_t z = 0; z < plan->depth; z++) {
		for (uint64_t y = 0; y < plan->height; y++)
			sg_op_add_access(op,
			        end->va + z * end->slice + y * end->pitch,
			        plan->width, !write, write, true);
	}
}

static void each_row(const struct plan *plan,
        void (*fn)(uint64_t dst, uint64_t src, uint64_t bytes))
{
	const struct end *src = &plan->src, *dst = &plan->dst;

	if (!plan->width)
		return;
	for (uint64_t z = 0; z < plan->depth; z++) {
		for (uint64_t y = 0; y < plan->height; y++)
			fn(dst->va + z * dst->slice + y * dst->pitch,
			        src->va + z * src->slice + y * src->pitch,
			        plan->width);
	}
}

/* Between a device and page-locked memory. */
static bool is_locked(const struct plan *plan)
{
	return plan->src.known && plan->dst.known &&
	       plan->src.device != plan->dst.device;
}

/* Splits off what a mutation, if there is one, leaves out. Of slices, as of
 * rows, it is the last. */
static void mutate(
        const struct plan *plan, struct plan *ret_kept, struct plan *ret_lost)
{
	bool slices = plan->depth > 1, rows = slices || plan->height > 1;
	uint64_t n = slices ? plan->depth : rows ? plan->height : plan->width;
	uint64_t kept = sg_mutate_copy(plan->width * plan->height * plan->depth,
	        rows ? n : 1, is_locked(plan));
	struct plan *lost = ret_lost;

	*ret_kept = *lost = *plan;
	if (slices) {
		ret_kept->depth = kept;
		lost->depth = n - kept;
		lost->src.va += kept * plan->src.slice;
		lost->dst.va += kept * plan->dst.slice;
	} else if (rows) {
		ret_kept->height = kept;
		lost->height = n - kept;
		lost->src.va += kept * plan->src.pitch;
		lost->dst.va += kept * plan->dst.pitch;
	} else {
		ret_kept->width = kept;
		lost->width = n - kept;
		lost->src.va += kept;
		lost->dst.va += kept;
	}
}

static enum sg_op_kind kind_of(const struct plan *plan)
{
	if (plan->src.device)
		return plan->dst.device ? SG_OP_COPY_D2D : SG_OP_COPY_D2H;
	return plan->dst.device ? SG_OP_COPY_H2D : SG_OP_COPY_H2H;
}

/* Such a copy crosses the link instead of the memory. */
static bool between_devices(const struct plan *plan)
{
	const struct sg_mapping *src = sg_mapping_at(plan->src.va);
	const struct sg_mapping *dst = sg_mapping_at(plan->dst.va);

	return src && dst && src->chunk->dev != dst->chunk->dev;
}

/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: synchronous forms always wait. */
static bool sync_memops(const struct end *end)
{
	const struct sg_area *area = sg_area_at(end->va);
	const struct sg_host *host = sg_host_at(end->va);

	return (area && area->sync_memops) || (host && host->sync_memops);
}

static bool is_managed(const struct end *end)
{
	const struct sg_host *host = sg_host_at(end->va);

	return host && host->managed;
}

static struct simgpu_details details_of(const struct plan *plan, bool waits)
{
	return (struct simgpu_details){
	        .async = !waits,
	        .src_pageable = !plan->src.known,
	        .dst_pageable = !plan->dst.known,
	        .src_managed = is_managed(&plan->src),
	        .dst_managed = is_managed(&plan->dst),
	};
}

/* Does the host wait for the copy, as "API synchronization behavior" says? */
static bool waits(const struct plan *plan, enum wait_rule rule)
{
	uint64_t bytes = plan->width * plan->height * plan->depth;
	bool pageable = !plan->src.known || !plan->dst.known;

	if (rule == WAIT_NEVER)
		return false;
	if (rule == WAIT_SYNC &&
	        (sync_memops(&plan->src) || sync_memops(&plan->dst)))
		return true;
	if (plan->src.device && plan->dst.device)
		return false;
	/* Small uploads are staged; what comes down has to arrive. */
	if (plan->dst.device && pageable)
		return bytes > STAGED_BYTES;
	return pageable || rule == WAIT_SYNC;
}

static CUresult issue(
        const struct plan *plan, struct sg_stream *stream, enum wait_rule rule)
{
	struct plan kept, lost;
	struct sg_op *op;
	CUresult error;

	if (!plan->width || !plan->height || !plan->depth)
		return CUDA_SUCCESS;
	/* Staging begins when the stream has come to the copy. */
	if (rule == WAIT_SYNC && !plan->src.known && plan->dst.device)
		sg_stream_wait(stream);
	op = sg_op_new(kind_of(plan), stream);
	op->bytes = plan->width * plan->height * plan->depth;
	if (between_devices(plan)) {
		op->engine = SG_ENGINE_D2H;
		op->fixed_ns = op->dev->model.copy_latency_ns;
	}
	op->dev->count.locked_copies += is_locked(plan);
	op->details = details_of(plan, waits(plan, rule));
	mutate(plan, &kept, &lost);
	if (kept.width && kept.height && kept.depth) {
		add_accesses(op, &plan->src, &kept, false);
		add_accesses(op, &plan->dst, &kept, true);
	}
	sg_op_ref(op);
	error = sg_op_enqueue(op);
	if (error == CUDA_SUCCESS) {
		each_row(&kept, sg_content_copy);
		each_row(&lost, sg_mutate_lose);
		if (waits(plan, rule))
			sg_op_wait(op);
	}
	sg_op_unref(op);
	return error;
}

CUresult sg_copy_issue(
        const CUDA_MEMCPY3D *copy, struct sg_stream *stream, bool sync)
{
	struct plan plan;
	CUresult error = make_plan(copy, &plan);

	if (error != CUDA_SUCCESS)
		return error;
	return issue(&plan, stream, sync ? WAIT_SYNC : WAIT_NEVER);
}

CUresult sg_copy_call(
        const CUDA_MEMCPY3D *copy, CUstream handle, bool per_thread, bool sync)
{
	struct sg_node_work work = {.kind = SG_NODE_MEMCPY};
	struct sg_stream *stream;
	struct plan plan;
	CUresult error;

	if (sync) {
		error = sg_capture_unsafe();
		if (error != CUDA_SUCCESS)
			return error;
	}
	error = sg_stream_resolve(handle, per_thread, &stream);
	if (error != CUDA_SUCCESS)
		return error;
	error = make_plan(copy, &plan);
	if (error != CUDA_SUCCESS)
		return error;
	if (!stream->capture)
		return issue(&plan, stream, sync ? WAIT_SYNC : WAIT_ASYNC);
	if (sync)
		return sg_capture_break(
		        stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	work.copy = *copy;
	return sg_capture_add(stream, &work);
}
