/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of the copies between plain addresses. */
#include "intercept/wrapper.h"

/* Both default streams: @begin takes what is copied to and from where. */
#define BLOCKING(symbol, name, parameters, arguments, begin, dst, src)         \
	TS_OP_WRAPPER(symbol, parameters, arguments,                           \
	        begin(&op, name, dst, src, bytes, TS_STREAM_LEGACY))           \
	TS_OP_WRAPPER(symbol##_ptds, parameters, arguments,                    \
	        begin(&op, name, dst, src, bytes, TS_STREAM_PER_THREAD))

#define ASYNC(symbol, name, parameters, arguments, begin, dst, src)            \
	TS_OP_WRAPPER(symbol, parameters, arguments,                           \
	        begin(&op, name, dst, src, bytes,                              \
	                ts_key(stream, TS_STREAM_LEGACY)))                     \
	TS_OP_WRAPPER(symbol##_ptsz, parameters, arguments,                    \
	        begin(&op, name, dst, src, bytes,                              \
	                ts_key(stream, TS_STREAM_PER_THREAD)))

BLOCKING(cuMemcpy, "Memcpy", (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
        (dst, src, bytes), ts_copy_begin, dst, src)

ASYNC(cuMemcpyAsync, "MemcpyAsync",
        (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
        (dst, src, bytes, stream), ts_copy_begin, dst, src)

BLOCKING(cuMemcpyDtoD_v2, "MemcpyDtoD",
        (CUdeviceptr dst, CUdeviceptr src, size_t bytes), (dst, src, bytes),
        ts_copy_begin, dst, src)

ASYNC(cuMemcpyDtoDAsync_v2, "MemcpyDtoDAsync",
        (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
        (dst, src, bytes, stream), ts_copy_begin, dst, src)

BLOCKING(cuMemcpyDtoH_v2, "MemcpyDtoH",
        (void *host, CUdeviceptr src, size_t bytes), (host, src, bytes),
        ts_download_begin, host, src)

ASYNC(cuMemcpyDtoHAsync_v2, "MemcpyDtoHAsync",
        (void *host, CUdeviceptr src, size_t bytes, CUstream stream),
        (host, src, bytes, stream), ts_download_begin, host, src)

BLOCKING(cuMemcpyHtoD_v2, "MemcpyHtoD",
        (CUdeviceptr dst, const void *host, size_t bytes), (dst, host, bytes),
        ts_upload_begin, dst, host)

ASYNC(cuMemcpyHtoDAsync_v2, "MemcpyHtoDAsync",
        (CUdeviceptr dst, const void *host, size_t bytes, CUstream stream),
        (dst, host, bytes, stream), ts_upload_begin, dst, host)

BLOCKING(cuMemcpyPeer, "MemcpyPeer",
        (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                CUcontext src_context, size_t bytes),
        (dst, dst_context, src, src_context, bytes), ts_copy_begin, dst, src)

ASYNC(cuMemcpyPeerAsync, "MemcpyPeerAsync",
        (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                CUcontext src_context, size_t bytes, CUstream stream),
        (dst, dst_context, src, src_context, bytes, stream), ts_copy_begin, dst,
        src)

/* Arrays are the driver's: at their end there is no plain memory. */

BLOCKING(cuMemcpyAtoA_v2, "MemcpyAtoA",
        (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset,
                size_t bytes),
        (dst, dst_offset, src, src_offset, bytes), ts_copy_begin, 0, 0)

BLOCKING(cuMemcpyAtoD_v2, "MemcpyAtoD",
        (CUdeviceptr dst, CUarray src, size_t src_offset, size_t bytes),
        (dst, src, src_offset, bytes), ts_copy_begin, dst, 0)

BLOCKING(cuMemcpyDtoA_v2, "MemcpyDtoA",
        (CUarray dst, size_t dst_offset, CUdeviceptr src, size_t bytes),
        (dst, dst_offset, src, bytes), ts_copy_begin, 0, src)

BLOCKING(cuMemcpyAtoH_v2, "MemcpyAtoH",
        (void *host, CUarray src, size_t src_offset, size_t bytes),
        (host, src, src_offset, bytes), ts_copy_begin, 0, 0)

ASYNC(cuMemcpyAtoHAsync_v2, "MemcpyAtoHAsync",
        (void *host, CUarray src, size_t src_offset, size_t bytes,
                CUstream stream),
        (host, src, src_offset, bytes, stream), ts_copy_begin, 0, 0)

BLOCKING(cuMemcpyHtoA_v2, "MemcpyHtoA",
        (CUarray dst, size_t dst_offset, const void *host, size_t bytes),
        (dst, dst_offset, host, bytes), ts_copy_begin, 0, 0)

ASYNC(cuMemcpyHtoAAsync_v2, "MemcpyHtoAAsync",
        (CUarray dst, size_t dst_offset, const void *host, size_t bytes,
                CUstream stream),
        (dst, dst_offset, host, bytes, stream), ts_copy_begin, 0, 0)
