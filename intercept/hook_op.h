/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the wrappers of ops have in common. A begin tells the agent of the op;
 * where it answers anything but CUDA_SUCCESS the driver is not called.
 * ts_op_end() follows in any case with the op's result, and returns it. Where
 * the agent takes no part both do nothing.
 */
#ifndef TS_HOOK_OP_H
#define TS_HOOK_OP_H

#include <cuda.h>

#include "agent/op.h"

/* @stream, or what 0 means to the function that was called. */
static inline ts_stream_key ts_key(CUstream stream, ts_stream_key zero)
{
	return stream ? (ts_stream_key)(uintptr_t)stream : zero;
}

/*
 * 0 for @dst or @src: no plain memory at that end. @src may be host memory,
 * which may hold addresses.
 */
CUresult ts_copy_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        CUdeviceptr src, size_t bytes, ts_stream_key stream);

/* To host memory; what is no block of ours is not looked into. */
CUresult ts_download_begin(struct ts_op *op, const char *name, void *host,
        CUdeviceptr src, size_t bytes, ts_stream_key stream);

/* From host memory, which may hold addresses. */
CUresult ts_upload_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        const void *host, size_t bytes, ts_stream_key stream);

CUresult ts_copy_2d_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY2D *copy, ts_stream_key stream);
CUresult ts_copy_3d_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY3D *copy, ts_stream_key stream);
CUresult ts_copy_3d_peer_begin(struct ts_op *op, const char *name,
        const CUDA_MEMCPY3D_PEER *copy, ts_stream_key stream);

/*
 * What a copy or set touches, without issuing it; see ts_op_init(). Addresses
 * in host memory that is copied are pinned; a result other than CUDA_SUCCESS
 * says that they cannot be.
 */
CUresult ts_copy_touch(
        struct ts_op *op, CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult ts_copy_3d_touch(struct ts_op *op, const CUDA_MEMCPY3D *copy);
void ts_set_2d_touch(struct ts_op *op, CUdeviceptr dst, size_t pitch,
        size_t width, size_t height, size_t element_bytes);

/* @count elements of @element_bytes. */
CUresult ts_set_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        size_t count, size_t element_bytes, ts_stream_key stream);

/* @height rows of @width elements, @pitch bytes apart. */
CUresult ts_set_2d_begin(struct ts_op *op, const char *name, CUdeviceptr dst,
        size_t pitch, size_t width, size_t height, size_t element_bytes,
        ts_stream_key stream);

/* Pins what the waits and writes of a list name. */
CUresult ts_pin_mem_ops(
        const CUstreamBatchMemOpParams *items, unsigned int count);

CUresult ts_op_end(struct ts_op *op, CUresult result);

/* For other begins: true where the agent takes part; then ts_op_end(). */
bool ts_op_enter(struct ts_op *op, enum ts_op_kind kind, const char *name,
        ts_stream_key stream);

#endif
