/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies and sets, in all forms. Compiled twice, see rt.h. A direction the
 * caller names picks the driver's function of that direction, as a program
 * with the vendor's runtime would show it to an interposer.
 */
#include "rt.h"

static bool kind_ok(enum cudaMemcpyKind kind)
{
	return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

/* ------------------------------------------------------------------- linear */

cudaError_t CUDARTAPI cudaMemcpy(
        void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!bytes)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return rt_done(drv()->MemcpyHtoD(rt_dev(dst), src, bytes));
	case cudaMemcpyDeviceToHost:
		return rt_done(drv()->MemcpyDtoH(dst, rt_dev(src), bytes));
	case cudaMemcpyDeviceToDevice:
		return rt_done(
		        drv()->MemcpyDtoD(rt_dev(dst), rt_dev(src), bytes));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return rt_done(drv()->Memcpy(rt_dev(dst), rt_dev(src), bytes));
	default:
		return rt_fail(cudaErrorInvalidMemcpyDirection);
	}
}

cudaError_t CUDARTAPI cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
        enum cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!bytes)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return rt_done(drv()->MemcpyHtoDAsync(
		        rt_dev(dst), src, bytes, stream));
	case cudaMemcpyDeviceToHost:
		return rt_done(drv()->MemcpyDtoHAsync(
		        dst, rt_dev(src), bytes, stream));
	case cudaMemcpyDeviceToDevice:
		return rt_done(drv()->MemcpyDtoDAsync(
		        rt_dev(dst), rt_dev(src), bytes, stream));
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault:
		return rt_done(drv()->MemcpyAsync(
		        rt_dev(dst), rt_dev(src), bytes, stream));
	default:
		return rt_fail(cudaErrorInvalidMemcpyDirection);
	}
}

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
/* Peer copies have one form: the header renames neither. */
static cudaError_t peer_contexts(
        int dst_device, int src_device, CUcontext *ret_dst, CUcontext *ret_src)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_primary(dst_device, ret_dst);
	if (!err)
		err = rt_primary(src_device, ret_src);
	return rt_fail(err);
}

cudaError_t CUDARTAPI cudaMemcpyPeer(void *dst, int dst_device, const void *src,
        int src_device, size_t bytes)
{
	CUcontext dst_ctx, src_ctx;
	cudaError_t err =
	        peer_contexts(dst_device, src_device, &dst_ctx, &src_ctx);

	if (err)
		return err;
	return rt_done(drv()->MemcpyPeer(
	        rt_dev(dst), dst_ctx, rt_dev(src), src_ctx, bytes));
}

cudaError_t CUDARTAPI cudaMemcpyPeerAsync(void *dst, int dst_device,
        const void *src, int src_device, size_t bytes, cudaStream_t stream)
{
	CUcontext dst_ctx, src_ctx;
	cudaError_t err =
	        peer_contexts(dst_device, src_device, &dst_ctx, &src_ctx);

	if (err)
		return err;
	return rt_done(drv()->MemcpyPeerAsync(
	        rt_dev(dst), dst_ctx, rt_dev(src), src_ctx, bytes, stream));
}
#endif

cudaError_t CUDARTAPI cudaMemcpyBatchAsync(void *const *dsts,
        const void *const *srcs, const size_t *sizes, size_t count,
        struct cudaMemcpyAttributes *attrs, size_t *attr_indexes,
        size_t attr_count, cudaStream_t stream)
{
	_Static_assert(sizeof(struct cudaMemcpyAttributes) ==
	                       sizeof(CUmemcpyAttributes),
	        "copy attributes have one layout");
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemcpyBatchAsync((CUdeviceptr *)(uintptr_t)dsts,
	        (CUdeviceptr *)(uintptr_t)srcs, (size_t *)(uintptr_t)sizes,
	        count, (CUmemcpyAttributes *)attrs, attr_indexes, attr_count,
	        stream));
}

/* ------------------------------------------------------------------ symbols */

static cudaError_t symbol_range(
        const void *symbol, size_t offset, size_t bytes, void **ret_ptr)
{
	CUdeviceptr ptr;
	size_t size;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_symbol(symbol, &ptr, &size);
	if (err)
		return rt_fail(err);
	if (offset > size || bytes > size - offset)
		return rt_fail(cudaErrorInvalidValue);
	*ret_ptr = (void *)(uintptr_t)(ptr + offset);
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpyToSymbol(const void *symbol, const void *src,
        size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	void *dst;
	cudaError_t err = symbol_range(symbol, offset, bytes, &dst);

	return err ? err : cudaMemcpy(dst, src, bytes, kind);
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbol(void *dst, const void *symbol,
        size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	void *src;
	cudaError_t err = symbol_range(symbol, offset, bytes, &src);

	return err ? err : cudaMemcpy(dst, src, bytes, kind);
}

cudaError_t CUDARTAPI cudaMemcpyToSymbolAsync(const void *symbol,
        const void *src, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
        cudaStream_t stream)
{
	void *dst;
	cudaError_t err = symbol_range(symbol, offset, bytes, &dst);

	return err ? err : cudaMemcpyAsync(dst, src, bytes, kind, stream);
}

cudaError_t CUDARTAPI cudaMemcpyFromSymbolAsync(void *dst, const void *symbol,
        size_t bytes, size_t offset, enum cudaMemcpyKind kind,
        cudaStream_t stream)
{
	void *src;
	cudaError_t err = symbol_range(symbol, offset, bytes, &src);

	return err ? err : cudaMemcpyAsync(dst, src, bytes, kind, stream);
}

/* ---------------------------------------------------------------- 2D and 3D */

/* The two sides of a copy as the driver names them. */
static void sides(
        enum cudaMemcpyKind kind, CUmemorytype *ret_dst, CUmemorytype *ret_src)
{
	static const CUmemorytype src[] = {CU_MEMORYTYPE_HOST,
	        CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE,
	        CU_MEMORYTYPE_UNIFIED};
	static const CUmemorytype dst[] = {CU_MEMORYTYPE_HOST,
	        CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE,
	        CU_MEMORYTYPE_UNIFIED};

	*ret_dst = dst[kind];
	*ret_src = src[kind];
}

static cudaError_t copy2d(void *dst, size_t dst_pitch, const void *src,
        size_t src_pitch, size_t width, size_t height, enum cudaMemcpyKind kind,
        CUDA_MEMCPY2D *ret_copy)
{
	CUDA_MEMCPY2D copy = {
	        .srcHost = src,
	        .srcDevice = rt_dev(src),
	        .srcPitch = src_pitch,
	        .dstHost = dst,
	        .dstDevice = rt_dev(dst),
	        .dstPitch = dst_pitch,
	        .WidthInBytes = width,
	        .Height = height,
	};

	if (!kind_ok(kind))
		return cudaErrorInvalidMemcpyDirection;
	if (width > dst_pitch || width > src_pitch)
		return cudaErrorInvalidPitchValue;
	sides(kind, &copy.dstMemoryType, &copy.srcMemoryType);
	*ret_copy = copy;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src,
        size_t src_pitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D copy;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!width || !height)
		return cudaSuccess;
	err = copy2d(
	        dst, dst_pitch, src, src_pitch, width, height, kind, &copy);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->Memcpy2DUnaligned(&copy));
}

cudaError_t CUDARTAPI cudaMemcpy2DAsync(void *dst, size_t dst_pitch,
        const void *src, size_t src_pitch, size_t width, size_t height,
        enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D copy;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!width || !height)
		return cudaSuccess;
	err = copy2d(
	        dst, dst_pitch, src, src_pitch, width, height, kind, &copy);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->Memcpy2DAsync(&copy, stream));
}

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
cudaError_t rt_copy3d(
        const struct cudaMemcpy3DParms *parms, CUDA_MEMCPY3D *ret_copy)
{
	CUDA_MEMCPY3D copy;

	if (!parms)
		return cudaErrorInvalidValue;
	if (!kind_ok(parms->kind))
		return cudaErrorInvalidMemcpyDirection;
	copy = (CUDA_MEMCPY3D){
	        .srcXInBytes = parms->srcPos.x,
	        .srcY = parms->srcPos.y,
	        .srcZ = parms->srcPos.z,
	        .srcHost = parms->srcPtr.ptr,
	        .srcDevice = rt_dev(parms->srcPtr.ptr),
	        .srcArray = (CUarray)parms->srcArray,
	        .srcPitch = parms->srcPtr.pitch,
	        .srcHeight = parms->srcPtr.ysize,
	        .dstXInBytes = parms->dstPos.x,
	        .dstY = parms->dstPos.y,
	        .dstZ = parms->dstPos.z,
	        .dstHost = parms->dstPtr.ptr,
	        .dstDevice = rt_dev(parms->dstPtr.ptr),
	        .dstArray = (CUarray)parms->dstArray,
	        .dstPitch = parms->dstPtr.pitch,
	        .dstHeight = parms->dstPtr.ysize,
	        .WidthInBytes = parms->extent.width,
	        .Height = parms->extent.height,
	        .Depth = parms->extent.depth,
	};
	sides(parms->kind, &copy.dstMemoryType, &copy.srcMemoryType);
	/* An array's extent counts elements, whose size only the array knows;
	 * the driver's arrays are not simulated. */
	if (parms->srcArray || parms->dstArray)
		return cudaErrorNotSupported;
	*ret_copy = copy;
	return cudaSuccess;
}
#endif

cudaError_t CUDARTAPI cudaMemcpy3D(const struct cudaMemcpy3DParms *parms)
{
	CUDA_MEMCPY3D copy;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_copy3d(parms, &copy);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->Memcpy3D(&copy));
}

cudaError_t CUDARTAPI cudaMemcpy3DAsync(
        const struct cudaMemcpy3DParms *parms, cudaStream_t stream)
{
	CUDA_MEMCPY3D copy;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_copy3d(parms, &copy);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->Memcpy3DAsync(&copy, stream));
}

/* --------------------------------------------------------------------- sets */

cudaError_t CUDARTAPI cudaMemset(void *ptr, int value, size_t bytes)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!bytes)
		return cudaSuccess;
	return rt_done(
	        drv()->MemsetD8(rt_dev(ptr), (unsigned char)value, bytes));
}

cudaError_t CUDARTAPI cudaMemsetAsync(
        void *ptr, int value, size_t bytes, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!bytes)
		return cudaSuccess;
	return rt_done(drv()->MemsetD8Async(
	        rt_dev(ptr), (unsigned char)value, bytes, stream));
}

cudaError_t CUDARTAPI cudaMemset2D(
        void *ptr, size_t pitch, int value, size_t width, size_t height)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!width || !height)
		return cudaSuccess;
	return rt_done(drv()->MemsetD2D8(
	        rt_dev(ptr), pitch, (unsigned char)value, width, height));
}

cudaError_t CUDARTAPI cudaMemset2DAsync(void *ptr, size_t pitch, int value,
        size_t width, size_t height, cudaStream_t stream)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!width || !height)
		return cudaSuccess;
	return rt_done(drv()->MemsetD2D8Async(rt_dev(ptr), pitch,
	        (unsigned char)value, width, height, stream));
}

cudaError_t CUDARTAPI cudaMemset3D(
        struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
	cudaError_t err = cudaSuccess;

	for (size_t z = 0; !err && z < extent.depth; z++)
		err = cudaMemset2D((char *)to.ptr + z * to.pitch * to.ysize,
		        to.pitch, value, extent.width, extent.height);
	return err;
}

cudaError_t CUDARTAPI cudaMemset3DAsync(struct cudaPitchedPtr to, int value,
        struct cudaExtent extent, cudaStream_t stream)
{
	cudaError_t err = cudaSuccess;

	for (size_t z = 0; !err && z < extent.depth; z++)
		err = cudaMemset2DAsync(
		        (char *)to.ptr + z * to.pitch * to.ysize, to.pitch,
		        value, extent.width, extent.height, stream);
	return err;
}
