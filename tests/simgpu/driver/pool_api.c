/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exported functions of stream-ordered allocation and memory pools. Allocation
 * while a stream captures is not supported. Under sg_lock.
 */
#include "tests/simgpu/driver/pool.h"
#include "tests/simgpu/driver/races.h"

/* -------------------------------------------------- allocation in a stream */

/* The stream, which must not be capturing. */
static CUresult stream_for(
        CUstream handle, bool per_thread, struct sg_stream **ret_stream)
{
	struct sg_stream *stream;
	CUresult error = sg_stream_resolve(handle, per_thread, &stream);

	if (error != CUDA_SUCCESS)
		return error;
	if (stream->capture)
		return sg_capture_break(stream,
		        sg_not_supported("stream-ordered allocation while "
		                         "capturing"));
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

static CUresult alloc_async(CUdeviceptr *dptr, uint64_t bytes,
        struct sg_pool *pool, CUstream handle, bool per_thread)
{
	struct sg_stream *stream;
	CUresult error;
	uint64_t va;

	if (!dptr || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	error = stream_for(handle, per_thread, &stream);
	if (error != CUDA_SUCCESS)
		return error;
	if (!pool)
		pool = sg_pool_current(stream->ctx->dev);
	error = sg_pool_alloc(pool, stream, bytes, &va);
	if (error == CUDA_SUCCESS)
		*dptr = va;
	return error;
}

SG_EXPORT CUresult cuMemAllocAsync(
        CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	SG_API(cuMemAllocAsync, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return alloc_async(dptr, bytesize, NULL, hStream, false);
}

SG_EXPORT CUresult cuMemAllocAsync_ptsz(
        CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	SG_API(cuMemAllocAsync_ptsz, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return alloc_async(dptr, bytesize, NULL, hStream, true);
}

static CUresult alloc_from_pool(CUdeviceptr *dptr, uint64_t bytes,
        CUmemoryPool handle, CUstream stream, bool per_thread)
{
	struct sg_pool *pool = sg_pool_get(handle);

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	return alloc_async(dptr, bytes, pool, stream, per_thread);
}

SG_EXPORT CUresult cuMemAllocFromPoolAsync(
        CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	SG_API(cuMemAllocFromPoolAsync, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return alloc_from_pool(dptr, bytesize, pool, hStream, false);
}

SG_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(
        CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	SG_API(cuMemAllocFromPoolAsync_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return alloc_from_pool(dptr, bytesize, pool, hStream, true);
}

/*
 * Memory of cuMemAlloc may be freed in stream order too; then the driver has
 * nothing to give out again and the free waits for the stream's work.
 */
static CUresult free_async(uint64_t va, CUstream handle, bool per_thread)
{
	struct sg_area *area = sg_area_at(va);
	struct sg_stream *stream;
	CUresult error;

	if (!area || area->range.start != va ||
	        (area->kind != SG_AREA_POOL && area->kind != SG_AREA_ALLOC))
		return CUDA_ERROR_INVALID_VALUE;
	error = stream_for(handle, per_thread, &stream);
	if (error != CUDA_SUCCESS)
		return error;
	if (area->kind == SG_AREA_POOL)
		return sg_pool_free(area, stream);
	sg_stream_wait(stream);
	if (sg_area_at(va) != area)
		return CUDA_ERROR_INVALID_VALUE;
	if (sg_races_on())
		sg_races_ending(area->dev, NULL, va, area->range.bytes,
		        "cuMemFreeAsync");
	sg_alloc_end(area);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	SG_API(cuMemFreeAsync, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return free_async(dptr, hStream, false);
}

SG_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	SG_API(cuMemFreeAsync_ptsz, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return free_async(dptr, hStream, true);
}

/* ------------------------------------------------------------------- pools */

SG_EXPORT CUresult cuMemPoolCreate(
        CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct sg_device *dev;

	SG_API(cuMemPoolCreate, SG_COST_API, SG_NEED_INIT);
	if (!pool || !poolProps)
		return CUDA_ERROR_INVALID_VALUE;
	if (poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	        poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return sg_not_supported("memory pools outside devices");
	if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return sg_not_supported("memory pools shared by processes");
	dev = sg_location_device(&poolProps->location);
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	*pool = (CUmemoryPool)sg_pool_create(dev, poolProps->maxSize);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
	struct sg_pool *pool;

	SG_API(cuMemPoolDestroy, SG_COST_API, SG_NEED_INIT);
	pool = sg_pool_get(handle);
	if (!pool || pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	sg_pool_close(pool);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t minBytesToKeep)
{
	struct sg_pool *pool;

	SG_API(cuMemPoolTrimTo, SG_COST_API, SG_NEED_INIT);
	pool = sg_pool_get(handle);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	sg_pool_trim(pool, minBytesToKeep);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolSetAttribute(
        CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct sg_pool *pool;

	SG_API(cuMemPoolSetAttribute, SG_COST_API, SG_NEED_INIT);
	pool = sg_pool_get(handle);
	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		pool->follow_events = *(int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		pool->opportunistic = *(int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->internal_dependencies = *(int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold_bytes = *(cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (*(cuuint64_t *)value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->reserved_high_bytes = pool->reserved_bytes;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(cuuint64_t *)value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->used_high_bytes = pool->used_bytes;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

SG_EXPORT CUresult cuMemPoolGetAttribute(
        CUmemoryPool handle, CUmemPool_attribute attr, void *value)
{
	struct sg_pool *pool;

	SG_API(cuMemPoolGetAttribute, SG_COST_API, SG_NEED_INIT);
	pool = sg_pool_get(handle);
	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	sg_pools_reclaim(pool->dev, false);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		*(int *)value = pool->follow_events;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		*(int *)value = pool->opportunistic;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->internal_dependencies;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = pool->threshold_bytes;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->reserved_bytes;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = pool->reserved_high_bytes;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->used_bytes;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = pool->used_high_bytes;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

SG_EXPORT CUresult cuMemPoolSetAccess(
        CUmemoryPool handle, const CUmemAccessDesc *map, size_t count)
{
	struct sg_pool *pool;

	SG_API(cuMemPoolSetAccess, SG_COST_API, SG_NEED_INIT);
	pool = sg_pool_get(handle);
	if (!pool || (!map && count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct sg_device *dev = sg_location_device(&map[i].location);

		if (!dev)
			return CUDA_ERROR_INVALID_DEVICE;
		if (dev != pool->dev && !sg_peer_capable(dev, pool->dev))
			return CUDA_ERROR_INVALID_DEVICE;
		/* A pool's own device always keeps access. */
		if (dev == pool->dev &&
		        map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t bit = (uint64_t)1 << map[i].location.id;

		pool->read &= ~bit;
		pool->write &= ~bit;
		if (map[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
			pool->read |= bit;
		if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			pool->write |= bit;
	}
	sg_pool_apply_access(pool);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolGetAccess(
        CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
	struct sg_pool *pool;
	struct sg_device *dev;

	SG_API(cuMemPoolGetAccess, SG_COST_API, SG_NEED_INIT);
	pool = sg_pool_get(handle);
	if (!pool || !flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	dev = sg_location_device(location);
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->write >> dev->ordinal & 1)
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	else if (pool->read >> dev->ordinal & 1)
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	else
		*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

/* -------------------------------------------------------- pools of devices */

static struct sg_device *device_of(CUdevice ordinal)
{
	if (ordinal < 0 || (unsigned)ordinal >= sg_device_count)
		return NULL;
	return &sg_devices[ordinal];
}

SG_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice d)
{
	struct sg_device *dev;

	SG_API(cuDeviceGetDefaultMemPool, SG_COST_API, SG_NEED_INIT);
	dev = device_of(d);
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool_out = (CUmemoryPool)sg_pool_default(dev);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice d)
{
	struct sg_device *dev;

	SG_API(cuDeviceGetMemPool, SG_COST_API, SG_NEED_INIT);
	dev = device_of(d);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = (CUmemoryPool)sg_pool_current(dev);
	return CUDA_SUCCESS;
}

static CUresult set_current(struct sg_device *dev, CUmemoryPool handle)
{
	struct sg_pool *pool = sg_pool_get(handle);

	/* A pool of another device cannot be a device's current one. */
	if (!pool || pool->dev != dev)
		return CUDA_ERROR_INVALID_VALUE;
	sg_pool_set_current(dev, pool);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceSetMemPool(CUdevice d, CUmemoryPool pool)
{
	struct sg_device *dev;

	SG_API(cuDeviceSetMemPool, SG_COST_API, SG_NEED_INIT);
	dev = device_of(d);
	return dev ? set_current(dev, pool) : CUDA_ERROR_INVALID_DEVICE;
}

/* The device whose pools a location and type mean. */
static CUresult pools_at(const CUmemLocation *location,
        CUmemAllocationType type, struct sg_device **ret_dev)
{
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	        location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return sg_not_supported("memory pools outside devices");
	*ret_dev = sg_location_device(location);
	return *ret_dev ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SG_EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out,
        CUmemLocation *location, CUmemAllocationType type)
{
	struct sg_device *dev = NULL;
	CUresult error;

	SG_API(cuMemGetDefaultMemPool, SG_COST_API, SG_NEED_INIT);
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	error = pools_at(location, type, &dev);
	if (error == CUDA_SUCCESS)
		*pool_out = (CUmemoryPool)sg_pool_default(dev);
	return error;
}

SG_EXPORT CUresult cuMemGetMemPool(
        CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	struct sg_device *dev = NULL;
	CUresult error;

	SG_API(cuMemGetMemPool, SG_COST_API, SG_NEED_INIT);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	error = pools_at(location, type, &dev);
	if (error == CUDA_SUCCESS)
		*pool = (CUmemoryPool)sg_pool_current(dev);
	return error;
}

SG_EXPORT CUresult cuMemSetMemPool(
        CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	struct sg_device *dev = NULL;
	CUresult error;

	SG_API(cuMemSetMemPool, SG_COST_API, SG_NEED_INIT);
	error = pools_at(location, type, &dev);
	return error == CUDA_SUCCESS ? set_current(dev, pool) : error;
}
