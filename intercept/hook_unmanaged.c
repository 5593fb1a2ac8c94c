/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of memory the agent does not place but counts: pools, arrays. Room
 * is made before, within the limit.
 */
#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hooks.h"

CUresult ts_hook_cuMemAllocAsync(
        CUdeviceptr *address, size_t bytes, CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAllocAsync(address, bytes, stream);
	rc = ts_agent_before_pool(NULL, bytes, "cuMemAllocAsync");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemAllocAsync(address, bytes, stream);
	if (rc == CUDA_SUCCESS)
		ts_agent_allocated(*address, bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemAllocAsync_ptsz(
        CUdeviceptr *address, size_t bytes, CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAllocAsync_ptsz(
		        address, bytes, stream);
	rc = ts_agent_before_pool(NULL, bytes, "cuMemAllocAsync");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemAllocAsync_ptsz(address, bytes, stream);
	if (rc == CUDA_SUCCESS)
		ts_agent_allocated(*address, bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemAllocFromPoolAsync(
        CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAllocFromPoolAsync(
		        address, bytes, pool, stream);
	rc = ts_agent_before_pool(pool, bytes, "cuMemAllocFromPoolAsync");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemAllocFromPoolAsync(
		        address, bytes, pool, stream);
	if (rc == CUDA_SUCCESS)
		ts_agent_allocated(*address, bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemAllocFromPoolAsync_ptsz(
        CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAllocFromPoolAsync_ptsz(
		        address, bytes, pool, stream);
	rc = ts_agent_before_pool(pool, bytes, "cuMemAllocFromPoolAsync");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemAllocFromPoolAsync_ptsz(
		        address, bytes, pool, stream);
	if (rc == CUDA_SUCCESS)
		ts_agent_allocated(*address, bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemFreeAsync(address, stream);
	/* Memory of cuMemAlloc may be freed this way too. */
	if (!ts_agent_free(address, &rc)) {
		rc = ts_driver.fn_cuMemFreeAsync(address, stream);
		ts_agent_room_changed();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemFreeAsync_ptsz(address, stream);
	/* Memory of cuMemAlloc may be freed this way too. */
	if (!ts_agent_free(address, &rc)) {
		rc = ts_driver.fn_cuMemFreeAsync_ptsz(address, stream);
		ts_agent_room_changed();
	}
	ts_leave();
	return rc;
}

static size_t format_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	default:
		return 4;
	}
}

static size_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	size_t bytes;

	if (!desc)
		return 0;
	bytes = desc->Width * format_bytes(desc->Format) * desc->NumChannels;
	if (desc->Height)
		bytes *= desc->Height;
	return desc->Depth ? bytes * desc->Depth : bytes;
}

static size_t flat_array_bytes(const CUDA_ARRAY_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR full = {0};

	if (!desc)
		return 0;
	full.Width = desc->Width;
	full.Height = desc->Height;
	full.Format = desc->Format;
	full.NumChannels = desc->NumChannels;
	return array_bytes(&full);
}

CUresult ts_hook_cuArrayCreate_v2(
        CUarray *ret_array, const CUDA_ARRAY_DESCRIPTOR_v2 *desc)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuArrayCreate_v2(ret_array, desc);
	rc = ts_agent_before_unmanaged(flat_array_bytes(desc), "cuArrayCreate");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuArrayCreate_v2(ret_array, desc);
	ts_agent_after_unmanaged();
	ts_leave();
	return rc;
}

CUresult ts_hook_cuArray3DCreate_v2(
        CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuArray3DCreate_v2(ret_array, desc);
	rc = ts_agent_before_unmanaged(array_bytes(desc), "cuArray3DCreate");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuArray3DCreate_v2(ret_array, desc);
	ts_agent_after_unmanaged();
	ts_leave();
	return rc;
}

/* All levels together take less than twice the first. */
CUresult ts_hook_cuMipmappedArrayCreate(CUmipmappedArray *ret_array,
        const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc, unsigned int levels)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMipmappedArrayCreate(
		        ret_array, desc, levels);
	rc = ts_agent_before_unmanaged(
	        2 * array_bytes(desc), "cuMipmappedArrayCreate");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMipmappedArrayCreate(
		        ret_array, desc, levels);
	ts_agent_after_unmanaged();
	ts_leave();
	return rc;
}
