/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exported copies of one run of bytes: by direction, unified and between
 * devices, both default streams, all versions. Under sg_lock.
 */
#include "tests/simgpu/driver/memory.h"

static CUresult copy(CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type,
        uint64_t src, uint64_t bytes, CUstream stream, bool per_thread,
        bool sync)
{
	CUDA_MEMCPY3D form = {.WidthInBytes = bytes, .Height = 1, .Depth = 1};

	form.dstMemoryType = dst_type;
	form.dstDevice = dst;
	if (dst_type == CU_MEMORYTYPE_HOST)
		form.dstHost = (void *)(uintptr_t)dst;
	form.srcMemoryType = src_type;
	form.srcDevice = src;
	if (src_type == CU_MEMORYTYPE_HOST)
		form.srcHost = (const void *)(uintptr_t)src;
	return sg_copy_call(&form, stream, per_thread, sync);
}

static CUresult peer(uint64_t dst, CUcontext dst_ctx, uint64_t src,
        CUcontext src_ctx, uint64_t bytes, CUstream stream, bool per_thread,
        bool sync)
{
	if (!sg_handle_ok(dst_ctx, SG_MAGIC_CTX) ||
	        !sg_handle_ok(src_ctx, SG_MAGIC_CTX))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy(CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, bytes,
	        stream, per_thread, sync);
}

SG_EXPORT CUresult cuMemcpyHtoD(
        CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount)
{
	SG_API(cuMemcpyHtoD, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
	        (uint64_t)(uintptr_t)srcHost, ByteCount, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpyHtoD_v2(
        CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	SG_API(cuMemcpyHtoD_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
	        (uint64_t)(uintptr_t)srcHost, ByteCount, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpyHtoD_v2_ptds(
        CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	SG_API(cuMemcpyHtoD_v2_ptds, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
	        (uint64_t)(uintptr_t)srcHost, ByteCount, NULL, true, true);
}

SG_EXPORT CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice,
        const void *srcHost, unsigned int ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyHtoDAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
	        (uint64_t)(uintptr_t)srcHost, ByteCount, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice,
        const void *srcHost, size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyHtoDAsync_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
	        (uint64_t)(uintptr_t)srcHost, ByteCount, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dstDevice,
        const void *srcHost, size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyHtoDAsync_v2_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
	        (uint64_t)(uintptr_t)srcHost, ByteCount, hStream, true, false);
}

SG_EXPORT CUresult cuMemcpyDtoH(
        void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
	SG_API(cuMemcpyDtoH, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)dstHost,
	        CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpyDtoH_v2(
        void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	SG_API(cuMemcpyDtoH_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)dstHost,
	        CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpyDtoH_v2_ptds(
        void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	SG_API(cuMemcpyDtoH_v2_ptds, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)dstHost,
	        CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount, NULL, true, true);
}

SG_EXPORT CUresult cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr_v1 srcDevice,
        unsigned int ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyDtoHAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)dstHost,
	        CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount, hStream, false,
	        false);
}

SG_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice,
        size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyDtoHAsync_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)dstHost,
	        CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount, hStream, false,
	        false);
}

SG_EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dstHost,
        CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyDtoHAsync_v2_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)dstHost,
	        CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount, hStream, true,
	        false);
}

SG_EXPORT CUresult cuMemcpyDtoD(CUdeviceptr_v1 dstDevice,
        CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
	SG_API(cuMemcpyDtoD, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
	        srcDevice, ByteCount, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpyDtoD_v2(
        CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	SG_API(cuMemcpyDtoD_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
	        srcDevice, ByteCount, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpyDtoD_v2_ptds(
        CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	SG_API(cuMemcpyDtoD_v2_ptds, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
	        srcDevice, ByteCount, NULL, true, true);
}

SG_EXPORT CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice,
        CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyDtoDAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
	        srcDevice, ByteCount, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice,
        CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyDtoDAsync_v2, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
	        srcDevice, ByteCount, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dstDevice,
        CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyDtoDAsync_v2_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
	        srcDevice, ByteCount, hStream, true, false);
}

SG_EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	SG_API(cuMemcpy, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src,
	        ByteCount, NULL, false, true);
}

SG_EXPORT CUresult cuMemcpy_ptds(
        CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	SG_API(cuMemcpy_ptds, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src,
	        ByteCount, NULL, true, true);
}

SG_EXPORT CUresult cuMemcpyAsync(
        CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src,
	        ByteCount, hStream, false, false);
}

SG_EXPORT CUresult cuMemcpyAsync_ptsz(
        CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyAsync_ptsz, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return copy(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src,
	        ByteCount, hStream, true, false);
}

SG_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext,
        CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount)
{
	SG_API(cuMemcpyPeer, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount,
	        NULL, false, true);
}

SG_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice,
        CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
        size_t ByteCount)
{
	SG_API(cuMemcpyPeer_ptds, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount,
	        NULL, true, true);
}

SG_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice,
        CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
        size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyPeerAsync, SG_COST_COPY, SG_NEED_INIT | SG_NEED_CTX);
	return peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount,
	        hStream, false, false);
}

SG_EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dstDevice,
        CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
        size_t ByteCount, CUstream hStream)
{
	SG_API(cuMemcpyPeerAsync_ptsz, SG_COST_COPY,
	        SG_NEED_INIT | SG_NEED_CTX);
	return peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount,
	        hStream, true, false);
}
