/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of virtual memory: what PyTorch's allocator makes for its expandable
 * segments is placed by the agent, all else is the driver's and counted.
 */
#include "agent/agent.h"
#include "agent/virtual.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hooks.h"
#include "intercept/library.h"

CUresult ts_hook_cuMemAddressReserve(CUdeviceptr *ret_base, size_t bytes,
        size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAddressReserve(
		        ret_base, bytes, alignment, hint, flags);
	rc = ts_driver.fn_cuMemAddressReserve(
	        ret_base, bytes, alignment, hint, flags);
	if (rc == CUDA_SUCCESS &&
	        ts_library_is_allocator(__builtin_return_address(0)))
		ts_virtual_reserved(*ret_base, bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemAddressFree(CUdeviceptr base, size_t bytes)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemAddressFree(base, bytes);
	rc = ts_virtual_before_free(base);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemAddressFree(base, bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemCreate(CUmemGenericAllocationHandle_v1 *handle,
        size_t size, const CUmemAllocationProp_v1 *prop,
        unsigned long long flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemCreate(handle, size, prop, flags);
	if (!ts_library_is_allocator(__builtin_return_address(0)) ||
	        !ts_virtual_create(handle, size, prop, &rc)) {
		rc = ts_agent_before_unmanaged(size, "cuMemCreate");
		if (rc == CUDA_SUCCESS)
			rc = ts_driver.fn_cuMemCreate(
			        handle, size, prop, flags);
	}
	ts_leave();
	return rc;
}

/* Of a handle or an address: the agent's answer, or the driver's. */
#define ANSWERED(symbol, parameters, arguments, answered)                      \
	CUresult ts_hook_##symbol parameters                                   \
	{                                                                      \
		CUresult rc;                                                   \
                                                                               \
		if (!ts_enter())                                               \
			return ts_driver.fn_##symbol arguments;                \
		if (!(answered))                                               \
			rc = ts_driver.fn_##symbol arguments;                  \
		ts_leave();                                                    \
		return rc;                                                     \
	}

ANSWERED(cuMemMap,
        (CUdeviceptr address, size_t size, size_t offset,
                CUmemGenericAllocationHandle_v1 handle,
                unsigned long long flags),
        (address, size, offset, handle, flags),
        ts_virtual_map(address, size, offset, handle, &rc))

ANSWERED(cuMemUnmap, (CUdeviceptr address, size_t size), (address, size),
        ts_virtual_unmap(address, size, &rc))

ANSWERED(cuMemSetAccess,
        (CUdeviceptr address, size_t size, const CUmemAccessDesc_v1 *access,
                size_t count),
        (address, size, access, count),
        ts_virtual_set_access(address, size, access, count, &rc))

ANSWERED(cuMemGetAllocationPropertiesFromHandle,
        (CUmemAllocationProp_v1 * prop, CUmemGenericAllocationHandle_v1 handle),
        (prop, handle), ts_virtual_properties(prop, handle, &rc))

CUresult ts_hook_cuMemRelease(CUmemGenericAllocationHandle_v1 handle)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemRelease(handle);
	if (!ts_virtual_release(handle, &rc)) {
		rc = ts_driver.fn_cuMemRelease(handle);
		ts_agent_room_changed();
	}
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemExportToShareableHandle(void *shared,
        CUmemGenericAllocationHandle_v1 handle, CUmemAllocationHandleType type,
        unsigned long long flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemExportToShareableHandle(
		        shared, handle, type, flags);
	rc = ts_virtual_refuses_export(handle)
	             ? CUDA_ERROR_NOT_SUPPORTED
	             : ts_driver.fn_cuMemExportToShareableHandle(
	                       shared, handle, type, flags);
	ts_leave();
	return rc;
}
