/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of the copies between plain addresses. */
#include "intercept/driver.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

CUresult ts_hook_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	struct ts_op op;
	CUresult rc =
	        ts_copy_begin(&op, "Memcpy", dst, src, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy(dst, src, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAsync(
        CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyAsync", dst, src, bytes,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAsync(dst, src, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAsync_ptsz(
        CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyAsync", dst, src, bytes,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAsync_ptsz(dst, src, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAtoA_v2(CUarray dst_array, size_t dst_offset,
        CUarray src_array, size_t src_offset, size_t bytes)
{
	struct ts_op op;
	CUresult rc =
	        ts_copy_begin(&op, "MemcpyAtoA", 0, 0, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAtoA_v2(
		        dst_array, dst_offset, src_array, src_offset, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAtoA_v2_ptds(CUarray dst_array, size_t dst_offset,
        CUarray src_array, size_t src_offset, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyAtoA", 0, 0, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAtoA_v2_ptds(
		        dst_array, dst_offset, src_array, src_offset, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAtoD_v2(
        CUdeviceptr dst, CUarray src_array, size_t src_offset, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyAtoD", dst, 0, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAtoD_v2(
		        dst, src_array, src_offset, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAtoD_v2_ptds(
        CUdeviceptr dst, CUarray src_array, size_t src_offset, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyAtoD", dst, 0, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAtoD_v2_ptds(
		        dst, src_array, src_offset, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAtoHAsync_v2(void *host, CUarray src_array,
        size_t src_offset, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyAtoHAsync", 0, 0, bytes,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAtoHAsync_v2(
		        host, src_array, src_offset, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAtoHAsync_v2_ptsz(void *host, CUarray src_array,
        size_t src_offset, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyAtoHAsync", 0, 0, bytes,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAtoHAsync_v2_ptsz(
		        host, src_array, src_offset, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAtoH_v2(
        void *host, CUarray src_array, size_t src_offset, size_t bytes)
{
	struct ts_op op;
	CUresult rc =
	        ts_copy_begin(&op, "MemcpyAtoH", 0, 0, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAtoH_v2(
		        host, src_array, src_offset, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyAtoH_v2_ptds(
        void *host, CUarray src_array, size_t src_offset, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyAtoH", 0, 0, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyAtoH_v2_ptds(
		        host, src_array, src_offset, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoA_v2(
        CUarray dst_array, size_t dst_offset, CUdeviceptr src, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyDtoA", 0, src, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoA_v2(
		        dst_array, dst_offset, src, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoA_v2_ptds(
        CUarray dst_array, size_t dst_offset, CUdeviceptr src, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyDtoA", 0, src, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoA_v2_ptds(
		        dst_array, dst_offset, src, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoDAsync_v2(
        CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyDtoDAsync", dst, src, bytes,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoDAsync_v2(dst, src, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoDAsync_v2_ptsz(
        CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyDtoDAsync", dst, src, bytes,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoDAsync_v2_ptsz(
		        dst, src, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyDtoD", dst, src, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoD_v2(dst, src, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoD_v2_ptds(
        CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyDtoD", dst, src, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoD_v2_ptds(dst, src, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoHAsync_v2(
        void *host, CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyDtoHAsync", 0, src, bytes,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoHAsync_v2(
		        host, src, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoHAsync_v2_ptsz(
        void *host, CUdeviceptr src, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyDtoHAsync", 0, src, bytes,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoHAsync_v2_ptsz(
		        host, src, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoH_v2(void *host, CUdeviceptr src, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyDtoH", 0, src, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoH_v2(host, src, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyDtoH_v2_ptds(void *host, CUdeviceptr src, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyDtoH", 0, src, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyDtoH_v2_ptds(host, src, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyHtoAAsync_v2(CUarray dst_array, size_t dst_offset,
        const void *host, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyHtoAAsync", 0, 0, bytes,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyHtoAAsync_v2(
		        dst_array, dst_offset, host, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyHtoAAsync_v2_ptsz(CUarray dst_array, size_t dst_offset,
        const void *host, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyHtoAAsync", 0, 0, bytes,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyHtoAAsync_v2_ptsz(
		        dst_array, dst_offset, host, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyHtoA_v2(
        CUarray dst_array, size_t dst_offset, const void *host, size_t bytes)
{
	struct ts_op op;
	CUresult rc =
	        ts_copy_begin(&op, "MemcpyHtoA", 0, 0, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyHtoA_v2(
		        dst_array, dst_offset, host, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyHtoA_v2_ptds(
        CUarray dst_array, size_t dst_offset, const void *host, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyHtoA", 0, 0, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyHtoA_v2_ptds(
		        dst_array, dst_offset, host, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyHtoDAsync_v2(
        CUdeviceptr dst, const void *host, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_upload_begin(&op, "MemcpyHtoDAsync", dst, host, bytes,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyHtoDAsync_v2(
		        dst, host, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyHtoDAsync_v2_ptsz(
        CUdeviceptr dst, const void *host, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_upload_begin(&op, "MemcpyHtoDAsync", dst, host, bytes,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyHtoDAsync_v2_ptsz(
		        dst, host, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyHtoD_v2(
        CUdeviceptr dst, const void *host, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_upload_begin(
	        &op, "MemcpyHtoD", dst, host, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyHtoD_v2(dst, host, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyHtoD_v2_ptds(
        CUdeviceptr dst, const void *host, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_upload_begin(
	        &op, "MemcpyHtoD", dst, host, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyHtoD_v2_ptds(dst, host, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context,
        CUdeviceptr src, CUcontext src_context, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyPeer", dst, src, bytes, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyPeer(
		        dst, dst_context, src, src_context, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context,
        CUdeviceptr src, CUcontext src_context, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyPeerAsync", dst, src, bytes,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyPeerAsync(
		        dst, dst_context, src, src_context, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dst_context,
        CUdeviceptr src, CUcontext src_context, size_t bytes, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(&op, "MemcpyPeerAsync", dst, src, bytes,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyPeerAsync_ptsz(
		        dst, dst_context, src, src_context, bytes, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dst_context,
        CUdeviceptr src, CUcontext src_context, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "MemcpyPeer", dst, src, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpyPeer_ptds(
		        dst, dst_context, src, src_context, bytes);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	struct ts_op op;
	CUresult rc = ts_copy_begin(
	        &op, "Memcpy", dst, src, bytes, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy_ptds(dst, src, bytes);
	return ts_op_end(&op, rc);
}
