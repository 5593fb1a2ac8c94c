/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Managed memory: anonymous host memory that every device reaches at the same
 * address. It stays on the host: prefetches and advice are remembered and
 * answered, and take no device memory. Under sg_lock.
 */
#include "tests/simgpu/driver/memory.h"
#include "tests/simgpu/driver/races.h"

#define LOCATION_NONE                                                          \
	((CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID,                 \
	        .id = CU_DEVICE_INVALID})

/* The managed allocation that holds all of a range, or NULL. */
static struct sg_host *managed_at(uint64_t va, uint64_t bytes)
{
	struct sg_host *host = sg_host_at(va);

	if (!host || !host->managed || bytes == 0)
		return NULL;
	return bytes <= host->range.bytes - (va - host->range.start) ? host
	                                                             : NULL;
}

SG_EXPORT CUresult cuMemAllocManaged(
        CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct sg_host *host;
	CUresult error;

	SG_API(cuMemAllocManaged, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	if (!dptr || bytesize == 0 ||
	        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	error = sg_host_create(sg_ctx_current(), bytesize, &host);
	if (error != CUDA_SUCCESS)
		return error;
	sg_host_advance(sg_ctx_current()->dev->model.malloc_ns);
	host->managed = true;
	host->flags = flags;
	host->preferred = LOCATION_NONE;
	host->prefetched = LOCATION_NONE;
	*dptr = host->range.start;
	return CUDA_SUCCESS;
}

bool sg_managed_free(uint64_t p)
{
	struct sg_host *host = sg_host_at(p);

	if (!host || !host->managed || host->range.start != p)
		return false;
	sg_host_destroy(host);
	return true;
}

void sg_managed_ending(struct sg_device *dev, uint64_t p)
{
	const struct sg_host *host = sg_host_at(p);

	if (host && host->managed && host->range.start == p && sg_races_on())
		sg_races_ending(dev, NULL, p, host->range.bytes,
		        "cuMemFree of managed memory");
}

/* Length 0 means the whole allocation, and nothing else but that is allowed. */
static CUresult attach(CUstream handle, uint64_t va, uint64_t bytes,
        unsigned flags, bool per_thread)
{
	struct sg_host *host = sg_host_at(va);
	struct sg_stream *stream;
	CUresult error = sg_stream_resolve(handle, per_thread, &stream);

	if (error != CUDA_SUCCESS)
		return error;
	if (!host || !host->managed || host->range.start != va ||
	        (bytes && bytes != host->range.bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	        flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_MEM_ATTACH_SINGLE && stream->legacy)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture)
		return sg_capture_break(
		        stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	host->flags = flags;
	return sg_op_enqueue(sg_op_new(SG_OP_MARKER, stream));
}

SG_EXPORT CUresult cuStreamAttachMemAsync(
        CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	SG_API(cuStreamAttachMemAsync, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return attach(hStream, dptr, length, flags, false);
}

SG_EXPORT CUresult cuStreamAttachMemAsync_ptsz(
        CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	SG_API(cuStreamAttachMemAsync_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return attach(hStream, dptr, length, flags, true);
}

/* --------------------------------------------------------------- locations */

/* As the first ABI gives them: an ordinal, or CU_DEVICE_CPU. */
static CUmemLocation from_ordinal(CUdevice ordinal)
{
	CUmemLocation location = {
	        .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};

	if (ordinal == CU_DEVICE_CPU) {
		location.type = CU_MEM_LOCATION_TYPE_HOST;
		location.id = 0;
	}
	return location;
}

static CUresult check_location(const CUmemLocation *location)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return sg_location_device(location) ? CUDA_SUCCESS
		                                    : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* ---------------------------------------------------------------- prefetch */

static CUresult prefetch(uint64_t va, uint64_t bytes, CUmemLocation location,
        CUstream handle, bool per_thread)
{
	struct sg_host *host = managed_at(va, bytes);
	struct sg_stream *stream;
	CUresult error = sg_stream_resolve(handle, per_thread, &stream);

	if (error != CUDA_SUCCESS)
		return error;
	if (!host)
		return CUDA_ERROR_INVALID_VALUE;
	error = check_location(&location);
	if (error != CUDA_SUCCESS)
		return error;
	if (stream->capture)
		return sg_capture_break(
		        stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	host->prefetched = location;
	return sg_op_enqueue(sg_op_new(SG_OP_MARKER, stream));
}

SG_EXPORT CUresult cuMemPrefetchAsync(
        CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	SG_API(cuMemPrefetchAsync, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return prefetch(devPtr, count, from_ordinal(dstDevice), hStream, false);
}

SG_EXPORT CUresult cuMemPrefetchAsync_ptsz(
        CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	SG_API(cuMemPrefetchAsync_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return prefetch(devPtr, count, from_ordinal(dstDevice), hStream, true);
}

SG_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count,
        CUmemLocation location, unsigned int flags, CUstream hStream)
{
	SG_API(cuMemPrefetchAsync_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return prefetch(devPtr, count, location, hStream, false);
}

SG_EXPORT CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr devPtr, size_t count,
        CUmemLocation location, unsigned int flags, CUstream hStream)
{
	SG_API(cuMemPrefetchAsync_v2_ptsz, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return prefetch(devPtr, count, location, hStream, true);
}

/* ------------------------------------------------------------------ advice */

static CUresult advise(uint64_t va, uint64_t bytes, CUmem_advise advice,
        CUmemLocation location)
{
	struct sg_host *host = managed_at(va, bytes);
	CUresult error;
	uint64_t bit;

	if (!host)
		return CUDA_ERROR_INVALID_VALUE;
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		host->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		return CUDA_SUCCESS;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		host->preferred = LOCATION_NONE;
		return CUDA_SUCCESS;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		error = check_location(&location);
		if (error == CUDA_SUCCESS)
			host->preferred = location;
		return error;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		error = check_location(&location);
		if (error != CUDA_SUCCESS ||
		        location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return error;
		bit = (uint64_t)1 << location.id;
		if (advice == CU_MEM_ADVISE_SET_ACCESSED_BY)
			host->accessed_by |= bit;
		else
			host->accessed_by &= ~bit;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

SG_EXPORT CUresult cuMemAdvise(
        CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	SG_API(cuMemAdvise, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return advise(devPtr, count, advice, from_ordinal(device));
}

SG_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count,
        CUmem_advise advice, CUmemLocation location)
{
	SG_API(cuMemAdvise_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return advise(devPtr, count, advice, location);
}

/* -------------------------------------------------------------- attributes */

static int ordinal_of(const CUmemLocation *location)
{
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return location->id;
	return location->type == CU_MEM_LOCATION_TYPE_HOST ? CU_DEVICE_CPU
	                                                   : CU_DEVICE_INVALID;
}

static void list_accessed_by(
        const struct sg_host *host, int *ret_list, size_t n)
{
	size_t used = 0;

	for (unsigned i = 0; i < sg_device_count && used < n; i++) {
		if (host->accessed_by >> i & 1)
			ret_list[used++] = (int)i;
	}
	while (used < n)
		ret_list[used++] = CU_DEVICE_INVALID;
}

static CUresult range_attribute(void *data, size_t size,
        CUmem_range_attribute attribute, uint64_t va, uint64_t bytes)
{
	const struct sg_host *host = managed_at(va, bytes);
	int *value = data;

	if (!host || !data || size < sizeof(int) || size % sizeof(int))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
		list_accessed_by(host, value, size / sizeof(int));
		return CUDA_SUCCESS;
	}
	if (size != sizeof(int))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*value = host->read_mostly;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*value = ordinal_of(&host->preferred);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*value = ordinal_of(&host->prefetched);
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*value = (int)host->preferred.type;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*value = host->preferred.id;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*value = (int)host->prefetched.type;
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*value = host->prefetched.id;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

SG_EXPORT CUresult cuMemRangeGetAttribute(void *data, size_t dataSize,
        CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)
{
	SG_API(cuMemRangeGetAttribute, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return range_attribute(data, dataSize, attribute, devPtr, count);
}

SG_EXPORT CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes,
        CUmem_range_attribute *attributes, size_t numAttributes,
        CUdeviceptr devPtr, size_t count)
{
	CUresult error = CUDA_SUCCESS;

	SG_API(cuMemRangeGetAttributes, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (!data || !dataSizes || !attributes || !numAttributes)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; error == CUDA_SUCCESS && i < numAttributes; i++)
		error = range_attribute(
		        data[i], dataSizes[i], attributes[i], devPtr, count);
	return error;
}
