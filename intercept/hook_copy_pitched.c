/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of the copies of two and three dimensions. */
#include "intercept/wrapper.h"

/* Both default streams: @begin takes the description of the copy. */
#define BLOCKING(symbol, name, description, begin)                             \
	TS_OP_WRAPPER(symbol, (const description *copy), (copy),               \
	        begin(&op, name, copy, TS_STREAM_LEGACY))                      \
	TS_OP_WRAPPER(symbol##_ptds, (const description *copy), (copy),        \
	        begin(&op, name, copy, TS_STREAM_PER_THREAD))

#define ASYNC(symbol, name, description, begin)                                \
	TS_OP_WRAPPER(symbol, (const description *copy, CUstream stream),      \
	        (copy, stream),                                                \
	        begin(&op, name, copy, ts_key(stream, TS_STREAM_LEGACY)))      \
	TS_OP_WRAPPER(symbol##_ptsz,                                           \
	        (const description *copy, CUstream stream), (copy, stream),    \
	        begin(&op, name, copy, ts_key(stream, TS_STREAM_PER_THREAD)))

BLOCKING(cuMemcpy2D_v2, "Memcpy2D", CUDA_MEMCPY2D_v2, ts_copy_2d_begin)
BLOCKING(cuMemcpy2DUnaligned_v2, "Memcpy2DUnaligned", CUDA_MEMCPY2D_v2,
        ts_copy_2d_begin)
ASYNC(cuMemcpy2DAsync_v2, "Memcpy2DAsync", CUDA_MEMCPY2D_v2, ts_copy_2d_begin)
BLOCKING(cuMemcpy3D_v2, "Memcpy3D", CUDA_MEMCPY3D_v2, ts_copy_3d_begin)
ASYNC(cuMemcpy3DAsync_v2, "Memcpy3DAsync", CUDA_MEMCPY3D_v2, ts_copy_3d_begin)
BLOCKING(cuMemcpy3DPeer, "Memcpy3DPeer", CUDA_MEMCPY3D_PEER_v1,
        ts_copy_3d_peer_begin)
ASYNC(cuMemcpy3DPeerAsync, "Memcpy3DPeerAsync", CUDA_MEMCPY3D_PEER_v1,
        ts_copy_3d_peer_begin)
