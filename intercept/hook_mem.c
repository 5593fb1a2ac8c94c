/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of plain allocations, and of questions about memory. */
#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hook_nccl.h"
#include "intercept/hooks.h"

/* What cuMemAllocPitch rounds a row to; every device takes it. */
#define PITCH_BYTES 512

CUresult ts_hook_cuInit(unsigned int flags)
{
	ts_start();
	if (ts_phase == TS_PHASE_REFUSED)
		return CUDA_ERROR_INVALID_VALUE;
	return ts_driver.fn_cuInit(flags);
}

CUresult ts_hook_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAlloc_v2(address, bytes);
	/* NCCL's peers get at its buffers whenever they like. */
	if (ts_nccl_allocates(__builtin_return_address(0)) ||
	        !ts_agent_alloc(bytes, address, &rc)) {
		rc = ts_agent_before_unmanaged(bytes, "cuMemAlloc");
		if (rc == CUDA_SUCCESS)
			rc = ts_driver.fn_cuMemAlloc_v2(address, bytes);
		if (rc == CUDA_SUCCESS)
			ts_agent_allocated(*address, bytes);
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch,
        size_t width, size_t height, unsigned int element_bytes)
{
	size_t row = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
	size_t bytes;
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAllocPitch_v2(
		        address, pitch, width, height, element_bytes);
	/* Whatever the driver has, it is not as much as that. */
	if (row < width || __builtin_mul_overflow(row, height, &bytes))
		bytes = SIZE_MAX / 2;
	/* What the driver refuses it is left to refuse. */
	if (!pitch || !width || !height ||
	        (element_bytes != 4 && element_bytes != 8 &&
	                element_bytes != 16) ||
	        !ts_agent_alloc(bytes, address, &rc)) {
		rc = ts_agent_before_unmanaged(bytes, "cuMemAllocPitch");
		if (rc == CUDA_SUCCESS)
			rc = ts_driver.fn_cuMemAllocPitch_v2(
			        address, pitch, width, height, element_bytes);
		if (rc == CUDA_SUCCESS)
			ts_agent_allocated(*address, *pitch * height);
	} else if (rc == CUDA_SUCCESS) {
		*pitch = row;
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemFree_v2(CUdeviceptr address)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemFree_v2(address);
	if (!ts_agent_free(address, &rc)) {
		rc = ts_driver.fn_cuMemFree_v2(address);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

/* The ABI of CUDA 2: 32-bit addresses, which only the driver can give. */
CUresult ts_hook_cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAlloc(address, bytes);
	rc = ts_agent_before_unmanaged(bytes, "cuMemAlloc");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemAlloc(address, bytes);
	if (rc == CUDA_SUCCESS)
		ts_agent_allocated(*address, bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch,
        unsigned int width, unsigned int height, unsigned int element_bytes)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAllocPitch(
		        address, pitch, width, height, element_bytes);
	rc = ts_agent_before_unmanaged(
	        (size_t)(width + PITCH_BYTES) * height, "cuMemAllocPitch");
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemAllocPitch(
		        address, pitch, width, height, element_bytes);
	if (rc == CUDA_SUCCESS)
		ts_agent_allocated(*address, (size_t)*pitch * height);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemFree(CUdeviceptr_v1 address)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemFree(address);
	if (!ts_agent_free(address, &rc)) {
		rc = ts_driver.fn_cuMemFree(address);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

/* Migrates as it is used, and counts on the device only while there. */
CUresult ts_hook_cuMemAllocManaged(
        CUdeviceptr *address, size_t bytes, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAllocManaged(address, bytes, flags);
	rc = ts_driver.fn_cuMemAllocManaged(address, bytes, flags);
	if (rc == CUDA_SUCCESS) {
		ts_agent_allocated(*address, bytes);
		ts_agent_after_unmanaged();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	CUresult rc = CUDA_SUCCESS;

	if (!ts_enter())
		return ts_driver.fn_cuMemGetInfo_v2(free_bytes, total_bytes);
	if (!free_bytes || !total_bytes ||
	        !ts_agent_mem_info(free_bytes, total_bytes))
		rc = ts_driver.fn_cuMemGetInfo_v2(free_bytes, total_bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuDeviceTotalMem_v2(bytes, device);
	rc = ts_driver.fn_cuDeviceTotalMem_v2(bytes, device);
	if (rc == CUDA_SUCCESS)
		*bytes = ts_agent_total_mem(*bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemGetAddressRange_v2(
        CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	struct ts_allocation allocation;
	CUresult rc = CUDA_SUCCESS;

	if (!ts_enter())
		return ts_driver.fn_cuMemGetAddressRange_v2(
		        base, bytes, address);
	if (ts_agent_find(address, &allocation)) {
		if (base)
			*base = allocation.whole.address;
		if (bytes)
			*bytes = allocation.whole.bytes;
	} else if (ts_agent_placed(address)) {
		rc = CUDA_ERROR_NOT_FOUND;
	} else {
		rc = ts_driver.fn_cuMemGetAddressRange_v2(base, bytes, address);
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuIpcGetMemHandle(handle, address);
	rc = ts_agent_refuses_ipc(address)
	             ? CUDA_ERROR_NOT_SUPPORTED
	             : ts_driver.fn_cuIpcGetMemHandle(handle, address);
	ts_leave();
	return rc;
}

/* Memory of cuMemAlloc has no handle; the chunks under it come and go. */
CUresult ts_hook_cuMemRetainAllocationHandle(
        CUmemGenericAllocationHandle_v1 *handle, void *address)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemRetainAllocationHandle(
		        handle, address);
	rc = ts_agent_placed((CUdeviceptr)(uintptr_t)address)
	             ? CUDA_ERROR_INVALID_VALUE
	             : ts_driver.fn_cuMemRetainAllocationHandle(
	                       handle, address);
	ts_leave();
	return rc;
}
