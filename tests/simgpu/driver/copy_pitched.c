/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exported copies of two and three dimensions, between devices too, both
 * default streams, all versions. Under sg_lock.
 */
#include "tests/simgpu/driver/memory.h"

/* CU_DEVICE_ATTRIBUTE_MAX_PITCH; the unaligned form has no such limit. */
#define MAX_PITCH_BYTES ((uint64_t)0x7fffffff)

/* Fields of one form that another has under the same names. */
static CUDA_MEMCPY3D from_2d(const CUDA_MEMCPY2D *copy)
{
	CUDA_MEMCPY3D form = {
	        .srcXInBytes = copy->srcXInBytes,
	        .srcY = copy->srcY,
	        .srcMemoryType = copy->srcMemoryType,
	        .srcHost = copy->srcHost,
	        .srcDevice = copy->srcDevice,
	        .srcArray = copy->srcArray,
	        .srcPitch = copy->srcPitch,
	        .dstXInBytes = copy->dstXInBytes,
	        .dstY = copy->dstY,
	        .dstMemoryType = copy->dstMemoryType,
	        .dstHost = copy->dstHost,
	        .dstDevice = copy->dstDevice,
	        .dstArray = copy->dstArray,
	        .dstPitch = copy->dstPitch,
	        .WidthInBytes = copy->WidthInBytes,
	        .Height = copy->Height,
	        .Depth = 1,
	};

	return form;
}

static CUDA_MEMCPY2D from_2d_v1(const CUDA_MEMCPY2D_v1 *copy)
{
	CUDA_MEMCPY2D form = {
	        .srcXInBytes = copy->srcXInBytes,
	        .srcY = copy->srcY,
	        .srcMemoryType = copy->srcMemoryType,
	        .srcHost = copy->srcHost,
	        .srcDevice = copy->srcDevice,
	        .srcArray = copy->srcArray,
	        .srcPitch = copy->srcPitch,
	        .dstXInBytes = copy->dstXInBytes,
	        .dstY = copy->dstY,
	        .dstMemoryType = copy->dstMemoryType,
	        .dstHost = copy->dstHost,
	        .dstDevice = copy->dstDevice,
	        .dstArray = copy->dstArray,
	        .dstPitch = copy->dstPitch,
	        .WidthInBytes = copy->WidthInBytes,
	        .Height = copy->Height,
	};

	return form;
}

static CUDA_MEMCPY3D from_3d_v1(const CUDA_MEMCPY3D_v1 *copy)
{
	CUDA_MEMCPY3D form = {
	        .srcXInBytes = copy->srcXInBytes,
	        .srcY = copy->srcY,
	        .srcZ = copy->srcZ,
	        .srcLOD = copy->srcLOD,
	        .srcMemoryType = copy->srcMemoryType,
	        .srcHost = copy->srcHost,
	        .srcDevice = copy->srcDevice,
	        .srcArray = copy->srcArray,
	        .srcPitch = copy->srcPitch,
	        .srcHeight = copy->srcHeight,
	        .dstXInBytes = copy->dstXInBytes,
	        .dstY = copy->dstY,
	        .dstZ = copy->dstZ,
	        .dstLOD = copy->dstLOD,
	        .dstMemoryType = copy->dstMemoryType,
	        .dstHost = copy->dstHost,
	        .dstDevice = copy->dstDevice,
	        .dstArray = copy->dstArray,
	        .dstPitch = copy->dstPitch,
	        .dstHeight = copy->dstHeight,
	        .WidthInBytes = copy->WidthInBytes,
	        .Height = copy->Height,
	        .Depth = copy->Depth,
	};

	return form;
}

static CUDA_MEMCPY3D from_peer(const CUDA_MEMCPY3D_PEER *copy)
{
	CUDA_MEMCPY3D form = {
	        .srcXInBytes = copy->srcXInBytes,
	        .srcY = copy->srcY,
	        .srcZ = copy->srcZ,
	        .srcLOD = copy->srcLOD,
	        .srcMemoryType = copy->srcMemoryType,
	        .srcHost = copy->srcHost,
	        .srcDevice = copy->srcDevice,
	        .srcArray = copy->srcArray,
	        .srcPitch = copy->srcPitch,
	        .srcHeight = copy->srcHeight,
	        .dstXInBytes = copy->dstXInBytes,
	        .dstY = copy->dstY,
	        .dstZ = copy->dstZ,
	        .dstLOD = copy->dstLOD,
	        .dstMemoryType = copy->dstMemoryType,
	        .dstHost = copy->dstHost,
	        .dstDevice = copy->dstDevice,
	        .dstArray = copy->dstArray,
	        .dstPitch = copy->dstPitch,
	        .dstHeight = copy->dstHeight,
	        .WidthInBytes = copy->WidthInBytes,
	        .Height = copy->Height,
	        .Depth = copy->Depth,
	};

	return form;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, bool limited,
        CUstream stream, bool per_thread, bool sync)
{
	CUDA_MEMCPY3D form;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	if (limited && (copy->srcPitch > MAX_PITCH_BYTES ||
	                       copy->dstPitch > MAX_PITCH_BYTES))
		return CUDA_ERROR_INVALID_VALUE;
	form = from_2d(copy);
	return sg_copy_call(&form, stream, per_thread, sync);
}

static CUresult copy_2d_v1(const CUDA_MEMCPY2D_v1 *copy, bool limited,
        CUstream stream, bool per_thread, bool sync)
{
	CUDA_MEMCPY2D form;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	form = from_2d_v1(copy);
	return copy_2d(&form, limited, stream, per_thread, sync);
}

static CUresult copy_3d(
        const CUDA_MEMCPY3D *copy, CUstream stream, bool per_thread, bool sync)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	return sg_copy_call(copy, stream, per_thread, sync);
}

static CUresult copy_3d_v1(const CUDA_MEMCPY3D_v1 *copy, CUstream stream,
        bool per_thread, bool sync)
{
	CUDA_MEMCPY3D form;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	form = from_3d_v1(copy);
	return sg_copy_call(&form, stream, per_thread, sync);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy, CUstream stream,
        bool per_thread, bool sync)
{
	CUDA_MEMCPY3D form;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(copy->srcContext, SG_MAGIC_CTX) ||
	        !sg_handle_ok(copy->dstContext, SG_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	form = from_peer(copy);
	return sg_copy_call(&form, stream, per_thread, sync);
}

SG_EXPORT CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy)
{
	SG_API(cuMemcpy2D, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d_v1(pCopy, true, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	SG_API(cuMemcpy2D_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d(pCopy, true, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
	SG_API(cuMemcpy2D_v2_ptds, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d(pCopy, true, NULL, true, true);
}

SG_EXPORT CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy)
{
	SG_API(cuMemcpy2DUnaligned, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d_v1(pCopy, false, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	SG_API(cuMemcpy2DUnaligned_v2, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d(pCopy, false, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
	SG_API(cuMemcpy2DUnaligned_v2_ptds, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d(pCopy, false, NULL, true, true);
}

SG_EXPORT CUresult cuMemcpy2DAsync(
        const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream)
{
	SG_API(cuMemcpy2DAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d_v1(pCopy, true, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpy2DAsync_v2(
        const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	SG_API(cuMemcpy2DAsync_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d(pCopy, true, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpy2DAsync_v2_ptsz(
        const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	SG_API(cuMemcpy2DAsync_v2_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_2d(pCopy, true, hStream, true, false);
}

SG_EXPORT CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy)
{
	SG_API(cuMemcpy3D, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d_v1(pCopy, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	SG_API(cuMemcpy3D_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d(pCopy, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *pCopy)
{
	SG_API(cuMemcpy3D_v2_ptds, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d(pCopy, NULL, true, true);
}

SG_EXPORT CUresult cuMemcpy3DAsync(
        const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream)
{
	SG_API(cuMemcpy3DAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d_v1(pCopy, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpy3DAsync_v2(
        const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	SG_API(cuMemcpy3DAsync_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d(pCopy, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpy3DAsync_v2_ptsz(
        const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	SG_API(cuMemcpy3DAsync_v2_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d(pCopy, hStream, true, false);
}

SG_EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	SG_API(cuMemcpy3DPeer, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d_peer(pCopy, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy)
{
	SG_API(cuMemcpy3DPeer_ptds, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d_peer(pCopy, NULL, true, true);
}

SG_EXPORT CUresult cuMemcpy3DPeerAsync(
        const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	SG_API(cuMemcpy3DPeerAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d_peer(pCopy, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpy3DPeerAsync_ptsz(
        const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	SG_API(cuMemcpy3DPeerAsync_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy_3d_peer(pCopy, hStream, true, false);
}
