/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a stream says of itself, and its attributes. Guarded by the lock.
 */
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"
#include "tests/simgpu/driver/stream.h"

static CUresult get_priority(CUstream handle, bool per_thread, int *priority)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (!r && !priority)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*priority = stream->priority;
	return r;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	SG_API(cuStreamGetPriority, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_priority(stream, false, priority);
}

CUresult cuStreamGetPriority_ptsz(CUstream stream, int *priority)
{
	SG_API(cuStreamGetPriority_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_priority(stream, true, priority);
}

static CUresult get_flags(CUstream handle, bool per_thread, unsigned *flags)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (!r && !flags)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*flags = stream->non_blocking ? CU_STREAM_NON_BLOCKING
		                              : CU_STREAM_DEFAULT;
	return r;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
	SG_API(cuStreamGetFlags, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_flags(stream, false, flags);
}

CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned *flags)
{
	SG_API(cuStreamGetFlags_ptsz, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_flags(stream, true, flags);
}

static CUresult get_id(CUstream handle, bool per_thread, unsigned long long *id)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (!r && !id)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*id = stream->h.id;
	return r;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	SG_API(cuStreamGetId, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_id(stream, false, id);
}

CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long *id)
{
	SG_API(cuStreamGetId_ptsz, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_id(stream, true, id);
}

static CUresult get_ctx(CUstream handle, bool per_thread, CUcontext *ctx)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (!r && !ctx)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ctx = (CUcontext)stream->ctx;
	return r;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	SG_API(cuStreamGetCtx, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_ctx(stream, false, ctx);
}

CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *ctx)
{
	SG_API(cuStreamGetCtx_ptsz, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_ctx(stream, true, ctx);
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *ctx, CUgreenCtx *green)
{
	SG_API(cuStreamGetCtx_v2, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	if (green)
		*green = NULL;
	return get_ctx(stream, false, ctx);
}

CUresult cuStreamGetCtx_v2_ptsz(
        CUstream stream, CUcontext *ctx, CUgreenCtx *green)
{
	SG_API(cuStreamGetCtx_v2_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (green)
		*green = NULL;
	return get_ctx(stream, true, ctx);
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *green)
{
	struct sg_stream *stream;
	CUresult r;
	SG_API(cuStreamGetGreenCtx, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	r = sg_stream_resolve(handle, false, &stream);
	if (!r && !green)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*green = NULL; /* there are none */
	return r;
}

static CUresult get_device(CUstream handle, bool per_thread, CUdevice *device)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (!r && !device)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*device = stream->ctx->dev->ordinal;
	return r;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	SG_API(cuStreamGetDevice, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_device(stream, false, device);
}

CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice *device)
{
	SG_API(cuStreamGetDevice_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_device(stream, true, device);
}

/* -------------------------------------------------------------- attributes */

static bool attribute_ok(CUstreamAttrID attribute)
{
	switch (attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return true;
	default:
		return false;
	}
}

static CUresult get_attribute(CUstream handle, bool per_thread,
        CUstreamAttrID attribute, CUstreamAttrValue *value)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (!value || !attribute_ok(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	*value = stream->attributes[attribute];
	if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		value->priority = stream->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(
        CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
	SG_API(cuStreamGetAttribute, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return get_attribute(stream, false, attribute, value);
}

CUresult cuStreamGetAttribute_ptsz(
        CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
	SG_API(cuStreamGetAttribute_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return get_attribute(stream, true, attribute, value);
}

static CUresult set_attribute(CUstream handle, bool per_thread,
        CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	struct sg_stream *stream;
	CUresult r = sg_stream_resolve(handle, per_thread, &stream);

	if (r)
		return r;
	if (!value || !attribute_ok(attribute) ||
	        attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		return CUDA_ERROR_INVALID_VALUE;
	stream->attributes[attribute] = *value;
	return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID attribute,
        const CUstreamAttrValue *value)
{
	SG_API(cuStreamSetAttribute, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return set_attribute(stream, false, attribute, value);
}

CUresult cuStreamSetAttribute_ptsz(CUstream stream, CUstreamAttrID attribute,
        const CUstreamAttrValue *value)
{
	SG_API(cuStreamSetAttribute_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return set_attribute(stream, true, attribute, value);
}

static CUresult copy_attributes(CUstream to, CUstream from, bool per_thread)
{
	struct sg_stream *target, *source;
	CUresult r = sg_stream_resolve(to, per_thread, &target);

	if (!r)
		r = sg_stream_resolve(from, per_thread, &source);
	if (r)
		return r;
	for (int i = 0; i < SG_STREAM_ATTRIBUTES; i++)
		target->attributes[i] = source->attributes[i];
	return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from)
{
	SG_API(cuStreamCopyAttributes, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_attributes(to, from, false);
}

CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from)
{
	SG_API(cuStreamCopyAttributes_ptsz, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_attributes(to, from, true);
}
