/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual memory management: reservations, physical handles, mappings and
 * access, as cuda.h documents them. Every call is counted and costs the host
 * what the model says, mappings and their access by the chunk. Called under
 * sg_lock.
 */
#include "tests/simgpu/driver/ctx.h"
#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/races.h"

#include <stdlib.h>
#include <string.h>

/* Calls that need no context are counted at the first device. */
static void count_call(struct sg_device *dev)
{
	dev->count.vmm_calls++;
}

static bool page_aligned(uint64_t n)
{
	return n % SG_PAGE_BYTES == 0;
}

struct sg_device *sg_location_device(const CUmemLocation *location)
{
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return NULL;
	if (location->id < 0 || (unsigned)location->id >= sg_device_count)
		return NULL;
	return &sg_devices[location->id];
}

bool sg_peer_capable(const struct sg_device *dev, const struct sg_device *peer)
{
	return dev != peer && dev->model.peer_access && peer->model.peer_access;
}

bool sg_peer_enabled(const struct sg_device *dev, const struct sg_device *peer)
{
	for (const struct sg_ctx *ctx = sg_ctx_first(); ctx; ctx = ctx->next) {
		if (ctx->dev == dev && ctx->peers >> peer->ordinal & 1)
			return true;
	}
	return false;
}

/* The device whose costs a call without a handle has. */
static struct sg_device *calling_device(void)
{
	struct sg_ctx *ctx = sg_ctx_current();

	return ctx ? ctx->dev : &sg_devices[0];
}

/* ------------------------------------------------------------ reservations */

SG_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size,
        size_t alignment, CUdeviceptr addr, unsigned long long flags)
{
	struct sg_device *dev;
	struct sg_area *area;
	CUresult error;
	uint64_t va;

	SG_API(cuMemAddressReserve, SG_COST_NONE, SG_NEED_INIT);
	dev = calling_device();
	count_call(dev);
	sg_host_advance(dev->model.vmm_reserve_ns);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	if (!ptr || size == 0 || !page_aligned(size) || flags != 0 ||
	        (alignment & (alignment - 1)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	va = sg_va_take(size, alignment, addr);
	if (!va)
		return CUDA_ERROR_OUT_OF_MEMORY;
	area = sg_xcalloc(1, sizeof(*area));
	area->range.start = va;
	area->range.bytes = size;
	area->kind = SG_AREA_RESERVATION;
	sg_area_add(area);
	*ptr = va;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct sg_device *dev;
	struct sg_area *area;
	CUresult error;

	SG_API(cuMemAddressFree, SG_COST_NONE, SG_NEED_INIT);
	dev = calling_device();
	count_call(dev);
	sg_host_advance(dev->model.vmm_reserve_ns);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	area = sg_area_at(ptr);
	if (!area || area->kind != SG_AREA_RESERVATION ||
	        area->range.start != ptr || area->range.bytes != size)
		return CUDA_ERROR_INVALID_VALUE;
	if (area->maps) {
		sg_memory_error(dev,
		        "cuMemAddressFree of 0x%llx with %u mappings in it",
		        ptr, area->maps);
		return CUDA_ERROR_INVALID_VALUE;
	}
	sg_area_remove(area);
	free(area);
	sg_va_give(ptr, size);
	return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------- handles */

/* What a device of this kind can make chunks of. */
static CUresult check_prop(
        const CUmemAllocationProp *prop, struct sg_device **ret_dev)
{
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST ||
	        prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
	        prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		return sg_not_supported("memory handles on the host");
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_dev = sg_location_device(&prop->location);
	if (!*ret_dev)
		return CUDA_ERROR_INVALID_DEVICE;
	/* File descriptors are promised at creation but never exported. */
	if (prop->requestedHandleTypes &
	        ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return sg_not_supported(
		        "memory handles of types other than file descriptors");
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle,
        size_t size, const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct sg_device *dev;
	struct sg_chunk *chunk;
	CUresult error;

	SG_API(cuMemCreate, SG_COST_NONE, SG_NEED_INIT);
	count_call(calling_device());
	sg_host_advance(calling_device()->model.vmm_create_ns);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	if (!handle || size == 0 || !page_aligned(size) || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	error = check_prop(prop, &dev);
	if (error != CUDA_SUCCESS)
		return error;
	if (sg_chunk_create(dev, size, &chunk) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	chunk->vmm = true;
	chunk->prop = *prop;
	sg_allocated_add(dev, size);
	sg_chunk_add_handle(chunk);
	*handle = chunk->handle;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct sg_chunk *chunk;
	CUresult error;

	SG_API(cuMemRelease, SG_COST_NONE, SG_NEED_INIT);
	count_call(calling_device());
	sg_host_advance(calling_device()->model.vmm_release_ns);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	chunk = sg_chunk_find(handle, "cuMemRelease");
	if (!chunk)
		return CUDA_ERROR_INVALID_VALUE;
	sg_chunk_drop_handle(chunk);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemRetainAllocationHandle(
        CUmemGenericAllocationHandle *handle, void *addr)
{
	struct sg_mapping *mapping;

	SG_API(cuMemRetainAllocationHandle, SG_COST_API, SG_NEED_INIT);
	count_call(calling_device());
	mapping = sg_mapping_at((uint64_t)(uintptr_t)addr);
	if (!handle || !mapping || !mapping->reservation)
		return CUDA_ERROR_INVALID_VALUE;
	sg_chunk_add_handle(mapping->chunk);
	*handle = mapping->chunk->handle;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity,
        const CUmemAllocationProp *prop,
        CUmemAllocationGranularity_flags option)
{
	struct sg_device *dev;
	CUresult error;

	SG_API(cuMemGetAllocationGranularity, SG_COST_API, SG_NEED_INIT);
	if (!granularity)
		return CUDA_ERROR_INVALID_VALUE;
	if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
	        option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	error = check_prop(prop, &dev);
	if (error == CUDA_SUCCESS)
		*granularity = SG_PAGE_BYTES;
	return error;
}

SG_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(
        CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct sg_chunk *chunk;

	SG_API(cuMemGetAllocationPropertiesFromHandle, SG_COST_API,
	        SG_NEED_INIT);
	chunk = sg_chunk_find(handle, "cuMemGetAllocationPropertiesFromHandle");
	if (!prop || !chunk)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = chunk->prop;
	return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- mappings */

SG_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
        CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct sg_mapping *mapping;
	struct sg_chunk *chunk;
	struct sg_area *area;
	CUresult error;

	SG_API(cuMemMap, SG_COST_NONE, SG_NEED_INIT);
	count_call(calling_device());
	sg_host_advance(calling_device()->model.vmm_map_ns);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	if (size == 0 || !page_aligned(ptr) || !page_aligned(size) ||
	        offset != 0 || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	chunk = sg_chunk_find(handle, "cuMemMap");
	if (!chunk || size > chunk->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	area = sg_area_at(ptr);
	if (!area || area->kind != SG_AREA_RESERVATION ||
	        size > area->range.bytes - (ptr - area->range.start))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t va = ptr; va < ptr + size; va += SG_PAGE_BYTES) {
		if (sg_mapping_at(va))
			return CUDA_ERROR_INVALID_VALUE;
	}
	mapping = sg_mapping_create(chunk, ptr, size);
	mapping->reservation = area;
	area->maps++;
	return CUDA_SUCCESS;
}

/* Number of VMM mappings that together are exactly [va, va+bytes), else 0. */
static unsigned whole_mappings(uint64_t va, uint64_t bytes)
{
	uint64_t end = va + bytes;
	unsigned n = 0;

	if (bytes == 0 || end < va)
		return 0;
	while (va < end) {
		const struct sg_mapping *mapping = sg_mapping_at(va);

		if (!mapping || !mapping->reservation || mapping->va != va ||
		        mapping->bytes > end - va)
			return 0;
		va += mapping->bytes;
		n++;
	}
	return n;
}

/* Does unmapping wait until the device is idle? */
static bool unmap_waits(const struct sg_device *dev)
{
	const char *set = sg_settings.unmap_sync;

	if (set && strcmp(set, "device") == 0)
		return true;
	if (set && strcmp(set, "none") == 0)
		return false;
	return dev->model.unmap_sync;
}

/* Access to a range is about to end: waits for the device, or finds out who
 * will miss it. */
static void quiesce(uint64_t va, uint64_t bytes, const char *what)
{
	if (sg_races_on())
		sg_races_ending(calling_device(), NULL, va, bytes, what);
	for (unsigned i = 0; i < sg_device_count; i++) {
		struct sg_device *dev = &sg_devices[i];
		const struct sg_op *op;

		if (!dev->contexts)
			continue;
		/* That it may wait is no order to rely on. */
		if (unmap_waits(dev)) {
			sg_device_drain(dev);
			continue;
		}
		op = sg_range_busy(dev, va, bytes);
		if (op)
			sg_sticky_error(dev, CUDA_ERROR_ILLEGAL_ADDRESS,
			        "%s of 0x%llx+0x%llx under unfinished %s "
			        "(operation %llu)",
			        what, (unsigned long long)va,
			        (unsigned long long)bytes,
			        op->name ? op->name : "copy or memset",
			        (unsigned long long)op->seq);
	}
}

SG_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct sg_device *dev;
	CUresult error;
	unsigned n;

	SG_API(cuMemUnmap, SG_COST_NONE, SG_NEED_INIT);
	dev = calling_device();
	count_call(dev);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	n = whole_mappings(ptr, size);
	sg_host_advance(dev->model.vmm_unmap_ns * (n ? n : 1));
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	quiesce(ptr, size, "cuMemUnmap");
	/* Host functions may have run meanwhile. */
	if (whole_mappings(ptr, size) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t va = ptr; va < ptr + size;) {
		struct sg_mapping *mapping = sg_mapping_at(va);

		va += mapping->bytes;
		mapping->reservation->maps--;
		sg_mapping_destroy(mapping);
	}
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------ access */

static CUresult check_access(
        const CUmemAccessDesc *desc, uint64_t va, uint64_t bytes)
{
	struct sg_device *dev;

	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	        desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
	        desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->location.type == CU_MEM_LOCATION_TYPE_HOST ||
	        desc->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return sg_not_supported("access of the host to device memory");
	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	dev = sg_location_device(&desc->location);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	for (uint64_t at = va; at < va + bytes;) {
		const struct sg_mapping *mapping = sg_mapping_at(at);
		const struct sg_device *owner = mapping->chunk->dev;

		if (owner != dev && !sg_peer_capable(dev, owner))
			return CUDA_ERROR_INVALID_DEVICE;
		at += mapping->bytes;
	}
	return CUDA_SUCCESS;
}

/* Does setting desc take away access that a device has to the range? */
static bool narrows(const CUmemAccessDesc *desc, uint64_t va, uint64_t bytes)
{
	if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return false;
	for (uint64_t at = va; at < va + bytes;) {
		const struct sg_mapping *mapping = sg_mapping_at(at);

		if ((mapping->read | mapping->write) >> desc->location.id & 1)
			return true;
		at += mapping->bytes;
	}
	return false;
}

static void set_access(const CUmemAccessDesc *desc, uint64_t va, uint64_t bytes)
{
	uint64_t bit = (uint64_t)1 << desc->location.id;

	for (uint64_t at = va; at < va + bytes;) {
		struct sg_mapping *mapping = sg_mapping_at(at);

		mapping->read &= ~bit;
		mapping->write &= ~bit;
		if (desc->flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
			mapping->read |= bit;
		if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			mapping->write |= bit;
		at += mapping->bytes;
	}
}

SG_EXPORT CUresult cuMemSetAccess(
        CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	struct sg_device *dev;
	CUresult error;
	unsigned n;

	SG_API(cuMemSetAccess, SG_COST_NONE, SG_NEED_INIT);
	dev = calling_device();
	count_call(dev);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	n = whole_mappings(ptr, size);
	sg_host_advance(dev->model.vmm_access_ns * (n ? n : 1));
	if (!n || !desc || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		error = check_access(&desc[i], ptr, size);
		if (error != CUDA_SUCCESS)
			return error;
	}
	for (size_t i = 0; i < count; i++) {
		if (narrows(&desc[i], ptr, size)) {
			quiesce(ptr, size, "cuMemSetAccess");
			if (whole_mappings(ptr, size) == 0)
				return CUDA_ERROR_INVALID_VALUE;
		}
		set_access(&desc[i], ptr, size);
	}
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemGetAccess(unsigned long long *flags,
        const CUmemLocation *location, CUdeviceptr ptr)
{
	struct sg_mapping *mapping;
	struct sg_device *dev;

	SG_API(cuMemGetAccess, SG_COST_API, SG_NEED_INIT);
	mapping = sg_mapping_at(ptr);
	if (!flags || !location || !mapping || !mapping->reservation)
		return CUDA_ERROR_INVALID_VALUE;
	dev = sg_location_device(location);
	if (!dev)
		return location->type == CU_MEM_LOCATION_TYPE_DEVICE
		               ? CUDA_ERROR_INVALID_DEVICE
		               : sg_not_supported(
		                         "cuMemGetAccess for the host");
	if (sg_mapping_accessible(mapping, dev, true))
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	else if (sg_mapping_accessible(mapping, dev, false))
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	else
		*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}
