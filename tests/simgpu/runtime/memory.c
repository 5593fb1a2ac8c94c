/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory: device, pinned host and managed allocations, pointer attributes,
 * pools, sharing between processes.
 */
#include "rt.h"

#include <string.h>

/* ------------------------------------------------------------ device memory */

cudaError_t CUDARTAPI cudaMalloc(void **ptr, size_t bytes)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!ptr)
		return rt_fail(cudaErrorInvalidValue);
	if (!bytes) {
		*ptr = NULL;
		return cudaSuccess;
	}
	return rt_done(drv()->MemAlloc((CUdeviceptr *)ptr, bytes));
}

cudaError_t CUDARTAPI cudaMallocManaged(
        void **ptr, size_t bytes, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->MemAllocManaged((CUdeviceptr *)ptr, bytes, flags));
}

cudaError_t CUDARTAPI cudaMallocPitch(
        void **ptr, size_t *pitch, size_t width, size_t height)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemAllocPitch(
	        (CUdeviceptr *)ptr, pitch, width, height, 4));
}

cudaError_t CUDARTAPI cudaMalloc3D(
        struct cudaPitchedPtr *ptr, struct cudaExtent extent)
{
	struct cudaPitchedPtr out = {
	        .xsize = extent.width, .ysize = extent.height};
	cudaError_t err;

	if (!ptr)
		return rt_fail(cudaErrorInvalidValue);
	err = cudaMallocPitch(&out.ptr, &out.pitch, extent.width,
	        extent.height * extent.depth);
	if (!err)
		*ptr = out;
	return err;
}

cudaError_t CUDARTAPI cudaFree(void *ptr)
{
	cudaError_t err = rt_enter();

	/* cudaFree(NULL) is the idiom that makes the context. */
	if (err || !ptr)
		return err;
	return rt_done(drv()->MemFree(rt_dev(ptr)));
}

cudaError_t CUDARTAPI cudaMemGetInfo(size_t *free, size_t *total)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemGetInfo(free, total));
}

/* -------------------------------------------------------------- host memory */

cudaError_t CUDARTAPI cudaHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!ptr)
		return rt_fail(cudaErrorInvalidValue);
	if (!bytes) {
		*ptr = NULL;
		return cudaSuccess;
	}
	return rt_done(drv()->MemHostAlloc(ptr, bytes, flags));
}

cudaError_t CUDARTAPI cudaMallocHost(void **ptr, size_t bytes)
{
	return cudaHostAlloc(ptr, bytes, cudaHostAllocDefault);
}

cudaError_t CUDARTAPI cudaFreeHost(void *ptr)
{
	cudaError_t err = rt_enter();

	if (err || !ptr)
		return err;
	return rt_done(drv()->MemFreeHost(ptr));
}

cudaError_t CUDARTAPI cudaHostRegister(void *ptr, size_t bytes, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemHostRegister(ptr, bytes, flags));
}

cudaError_t CUDARTAPI cudaHostUnregister(void *ptr)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemHostUnregister(ptr));
}

cudaError_t CUDARTAPI cudaHostGetDevicePointer(
        void **device, void *host, unsigned flags)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemHostGetDevicePointer(
	        (CUdeviceptr *)device, host, flags));
}

cudaError_t CUDARTAPI cudaHostGetFlags(unsigned *flags, void *host)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemHostGetFlags(flags, host));
}

/* ----------------------------------------------------------------- pointers */

cudaError_t CUDARTAPI cudaPointerGetAttributes(
        struct cudaPointerAttributes *attr, const void *ptr)
{
	unsigned type = 0, managed = 0;
	CUdeviceptr device_ptr = 0;
	void *host_ptr = NULL;
	int ordinal = cudaInvalidDeviceId;
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	        CU_POINTER_ATTRIBUTE_IS_MANAGED,
	        CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
	        CU_POINTER_ATTRIBUTE_HOST_POINTER,
	        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	void *values[] = {&type, &managed, &device_ptr, &host_ptr, &ordinal};
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!attr)
		return rt_fail(cudaErrorInvalidValue);
	err = rt_done(drv()->PointerGetAttributes(
	        sizeof(names) / sizeof(names[0]), names, values, rt_dev(ptr)));
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	if (!type) {
		/* Not CUDA's: a plain host pointer, which is no error. */
		attr->type = cudaMemoryTypeUnregistered;
		attr->device = cudaInvalidDeviceId;
		attr->hostPointer = (void *)(uintptr_t)ptr;
		return cudaSuccess;
	}
	attr->type = managed                      ? cudaMemoryTypeManaged
	             : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
	                                          : cudaMemoryTypeDevice;
	attr->device = ordinal;
	attr->devicePointer = (void *)(uintptr_t)device_ptr;
	attr->hostPointer = host_ptr;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetSymbolAddress(void **ptr, const void *symbol)
{
	CUdeviceptr device_ptr;
	size_t bytes;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!ptr)
		return rt_fail(cudaErrorInvalidValue);
	err = rt_symbol(symbol, &device_ptr, &bytes);
	if (err)
		return rt_fail(err);
	*ptr = (void *)(uintptr_t)device_ptr;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
	CUdeviceptr device_ptr;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	if (!bytes)
		return rt_fail(cudaErrorInvalidValue);
	return rt_fail(rt_symbol(symbol, &device_ptr, bytes));
}

cudaError_t CUDARTAPI cudaMemAdvise(const void *ptr, size_t bytes,
        enum cudaMemoryAdvise advice, struct cudaMemLocation location)
{
	CUmemLocation driver_location = {
	        .type = (CUmemLocationType)location.type, .id = location.id};
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemAdvise(
	        rt_dev(ptr), bytes, (CUmem_advise)advice, driver_location));
}

cudaError_t CUDARTAPI cudaMemRangeGetAttribute(void *data, size_t data_bytes,
        enum cudaMemRangeAttribute attr, const void *ptr, size_t bytes)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemRangeGetAttribute(data, data_bytes,
	        (CUmem_range_attribute)attr, rt_dev(ptr), bytes));
}

cudaError_t CUDARTAPI cudaMemRangeGetAttributes(void **data, size_t *data_bytes,
        enum cudaMemRangeAttribute *attrs, size_t count, const void *ptr,
        size_t bytes)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemRangeGetAttributes(data, data_bytes,
	        (CUmem_range_attribute *)attrs, count, rt_dev(ptr), bytes));
}

/* -------------------------------------------------------------------- pools */

cudaError_t CUDARTAPI cudaMemPoolCreate(
        cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	_Static_assert(sizeof(*props) == sizeof(CUmemPoolProps),
	        "pool properties have one layout");
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->MemPoolCreate(pool, (const CUmemPoolProps *)props));
}

cudaError_t CUDARTAPI cudaMemPoolDestroy(cudaMemPool_t pool)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemPoolDestroy(pool));
}

cudaError_t CUDARTAPI cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemPoolTrimTo(pool, keep_bytes));
}

cudaError_t CUDARTAPI cudaMemPoolSetAttribute(
        cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemPoolSetAttribute(
	        pool, (CUmemPool_attribute)attr, value));
}

cudaError_t CUDARTAPI cudaMemPoolGetAttribute(
        cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemPoolGetAttribute(
	        pool, (CUmemPool_attribute)attr, value));
}

cudaError_t CUDARTAPI cudaMemPoolSetAccess(
        cudaMemPool_t pool, const struct cudaMemAccessDesc *descs, size_t count)
{
	_Static_assert(sizeof(*descs) == sizeof(CUmemAccessDesc),
	        "access descriptions have one layout");
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemPoolSetAccess(
	        pool, (const CUmemAccessDesc *)descs, count));
}

cudaError_t CUDARTAPI cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags,
        cudaMemPool_t pool, struct cudaMemLocation *location)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->MemPoolGetAccess(
	        (CUmemAccess_flags *)flags, pool, (CUmemLocation *)location));
}

/* ---------------------------------------------------------- other processes */

cudaError_t CUDARTAPI cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->IpcGetMemHandle((CUipcMemHandle *)handle, rt_dev(ptr)));
}

cudaError_t CUDARTAPI cudaIpcOpenMemHandle(
        void **ptr, cudaIpcMemHandle_t handle, unsigned flags)
{
	CUipcMemHandle driver_handle;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	memcpy(&driver_handle, &handle, sizeof(driver_handle));
	return rt_done(drv()->IpcOpenMemHandle(
	        (CUdeviceptr *)ptr, driver_handle, flags));
}

cudaError_t CUDARTAPI cudaIpcCloseMemHandle(void *ptr)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->IpcCloseMemHandle(rt_dev(ptr)));
}

cudaError_t CUDARTAPI cudaIpcGetEventHandle(
        cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(
	        drv()->IpcGetEventHandle((CUipcEventHandle *)handle, event));
}

cudaError_t CUDARTAPI cudaIpcOpenEventHandle(
        cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle driver_handle;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	memcpy(&driver_handle, &handle, sizeof(driver_handle));
	return rt_done(drv()->IpcOpenEventHandle(event, driver_handle));
}
