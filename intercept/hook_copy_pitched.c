/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of the copies of two and three dimensions. */
#include "intercept/driver.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

CUresult ts_hook_cuMemcpy2DAsync_v2(
        const CUDA_MEMCPY2D_v2 *copy, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_2d_begin(
	        &op, "Memcpy2DAsync", copy, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy2DAsync_v2(copy, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy2DAsync_v2_ptsz(
        const CUDA_MEMCPY2D_v2 *copy, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_2d_begin(&op, "Memcpy2DAsync", copy,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy2DAsync_v2_ptsz(copy, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D_v2 *copy)
{
	struct ts_op op;
	CUresult rc = ts_copy_2d_begin(
	        &op, "Memcpy2DUnaligned", copy, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy2DUnaligned_v2(copy);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D_v2 *copy)
{
	struct ts_op op;
	CUresult rc = ts_copy_2d_begin(
	        &op, "Memcpy2DUnaligned", copy, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy2DUnaligned_v2_ptds(copy);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy2D_v2(const CUDA_MEMCPY2D_v2 *copy)
{
	struct ts_op op;
	CUresult rc = ts_copy_2d_begin(&op, "Memcpy2D", copy, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy2D_v2(copy);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D_v2 *copy)
{
	struct ts_op op;
	CUresult rc =
	        ts_copy_2d_begin(&op, "Memcpy2D", copy, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy2D_v2_ptds(copy);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DAsync_v2(
        const CUDA_MEMCPY3D_v2 *copy, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_3d_begin(
	        &op, "Memcpy3DAsync", copy, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DAsync_v2(copy, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DAsync_v2_ptsz(
        const CUDA_MEMCPY3D_v2 *copy, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_3d_begin(&op, "Memcpy3DAsync", copy,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DAsync_v2_ptsz(copy, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER_v1 *copy)
{
	struct ts_op op;
	CUresult rc = ts_copy_3d_peer_begin(
	        &op, "Memcpy3DPeer", copy, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DPeer(copy);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DPeerAsync(
        const CUDA_MEMCPY3D_PEER_v1 *copy, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_3d_peer_begin(&op, "Memcpy3DPeerAsync", copy,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DPeerAsync(copy, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DPeerAsync_ptsz(
        const CUDA_MEMCPY3D_PEER_v1 *copy, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_copy_3d_peer_begin(&op, "Memcpy3DPeerAsync", copy,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DPeerAsync_ptsz(copy, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER_v1 *copy)
{
	struct ts_op op;
	CUresult rc = ts_copy_3d_peer_begin(
	        &op, "Memcpy3DPeer", copy, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3DPeer_ptds(copy);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3D_v2(const CUDA_MEMCPY3D_v2 *copy)
{
	struct ts_op op;
	CUresult rc = ts_copy_3d_begin(&op, "Memcpy3D", copy, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3D_v2(copy);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D_v2 *copy)
{
	struct ts_op op;
	CUresult rc =
	        ts_copy_3d_begin(&op, "Memcpy3D", copy, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemcpy3D_v2_ptds(copy);
	return ts_op_end(&op, rc);
}
