/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the driver tells about a pointer: attributes and address ranges. Under
 * sg_lock.
 */
#include "tests/simgpu/driver/memory.h"

#include <string.h>

/* What stands at a pointer: an area of the window or known host memory. */
struct target {
	uint64_t va;
	struct sg_area *area;
	struct sg_mapping *mapping;
	struct sg_host *host;
};

static bool find(uint64_t va, struct target *ret_target)
{
	struct target target = {.va = va};

	if (sg_is_device_va(va)) {
		target.area = sg_area_at(va);
		target.mapping = target.area ? sg_mapping_at(va) : NULL;
	} else {
		target.host = sg_host_at(va);
	}
	*ret_target = target;
	return target.area || target.host;
}

static const struct sg_range *range_of(const struct target *target)
{
	return target->area ? &target->area->range : &target->host->range;
}

static const struct sg_device *device_of(const struct target *target)
{
	if (target->mapping)
		return target->mapping->chunk->dev;
	if (target->area)
		return target->area->dev;
	return target->host->ctx ? target->host->ctx->dev : NULL;
}

static CUmemAccess_flags access_of(const struct target *target)
{
	const struct sg_ctx *ctx = sg_ctx_current();

	if (target->host)
		return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	if (!target->mapping)
		return CU_MEM_ACCESS_FLAGS_PROT_NONE;
	if (sg_mapping_accessible(target->mapping, ctx->dev, true))
		return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	if (sg_mapping_accessible(target->mapping, ctx->dev, false))
		return CU_MEM_ACCESS_FLAGS_PROT_READ;
	return CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/* The integer attributes, all of which a program may also ask of memory the
 * driver does not know (then: 0). */
static bool flag_attribute(const struct target *target,
        CUpointer_attribute attribute, unsigned *ret_value)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*ret_value = target->host && target->host->managed;
		return true;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*ret_value = target->area ? target->area->sync_memops
		                          : target->host->sync_memops;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*ret_value = target->host || target->mapping;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*ret_value = 0;
		return true;
	default:
		return false;
	}
}

static CUresult extent_attribute(
        const struct target *target, CUpointer_attribute attribute, void *data)
{
	const struct sg_range *range = range_of(target);
	const struct sg_mapping *mapping = target->mapping;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = range->start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = range->bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		if (!mapping && !target->host)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUdeviceptr *)data = mapping ? mapping->va : range->start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		if (!mapping && !target->host)
			return CUDA_ERROR_INVALID_VALUE;
		*(size_t *)data = mapping ? mapping->bytes : range->bytes;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult id_attribute(
        const struct target *target, CUpointer_attribute attribute, void *data)
{
	/* Areas, host ranges and chunks count apart: keep the ids so. */
	const unsigned long long host_bit = (unsigned long long)1 << 63;

	if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID &&
	        !target->host) {
		if (!target->mapping)
			return CUDA_ERROR_INVALID_VALUE;
		*(unsigned long long *)data = target->mapping->chunk->id;
		return CUDA_SUCCESS;
	}
	*(unsigned long long *)data =
	        target->host ? target->host->id | host_bit : target->area->id;
	return CUDA_SUCCESS;
}

static CUresult get_attribute(
        const struct target *target, CUpointer_attribute attribute, void *data)
{
	const struct sg_device *dev = device_of(target);
	unsigned value;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data =
		        (CUcontext)(target->area ? target->area->ctx
		                                 : target->host->ctx);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(CUmemorytype *)data = target->area || target->host->managed
		                                ? CU_MEMORYTYPE_DEVICE
		                                : CU_MEMORYTYPE_HOST;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = target->va;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!target->host)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)target->va;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return id_attribute(target, attribute, data);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = dev ? dev->ordinal : CU_DEVICE_INVALID;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data =
		        target->mapping ? target->mapping->chunk->prop
		                                  .requestedHandleTypes
		                        : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(CUmemAccess_flags *)data = access_of(target);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data =
		        target->area && target->area->kind == SG_AREA_POOL
		                ? (CUmemoryPool)sg_pool_of(target->area)
		                : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		return sg_not_supported("tokens for nv-p2p.h");
	default:
		if (!flag_attribute(target, attribute, &value))
			return extent_attribute(target, attribute, data);
		if (attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
			*(unsigned *)data = value;
		else
			*(unsigned char *)data = (unsigned char)value;
		return CUDA_SUCCESS;
	}
}

/* What cuPointerGetAttributes answers for memory the driver does not know. */
static CUresult default_attribute(CUpointer_attribute attribute, void *data)
{
	size_t size;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = CU_DEVICE_INVALID;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		size = 1;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		size = 4;
		break;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		size = 8;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	memset(data, 0, size);
	return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------- exports */

SG_EXPORT CUresult cuPointerGetAttribute(
        void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct target target;

	SG_API(cuPointerGetAttribute, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!data || !find(ptr, &target))
		return CUDA_ERROR_INVALID_VALUE;
	return get_attribute(&target, attribute, data);
}

SG_EXPORT CUresult cuPointerGetAttributes(unsigned int numAttributes,
        CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	CUresult error = CUDA_SUCCESS;
	struct target target;
	bool known;

	SG_API(cuPointerGetAttributes, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	known = find(ptr, &target);
	for (unsigned i = 0; error == CUDA_SUCCESS && i < numAttributes; i++) {
		if (!data[i])
			return CUDA_ERROR_INVALID_VALUE;
		error = default_attribute(attributes[i], data[i]);
		/* What memory of this kind does not have keeps its default. */
		if (error == CUDA_SUCCESS && known)
			get_attribute(&target, attributes[i], data[i]);
	}
	return error;
}

SG_EXPORT CUresult cuPointerSetAttribute(
        const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct target target;
	bool on;

	SG_API(cuPointerSetAttribute, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
	        !find(ptr, &target))
		return CUDA_ERROR_INVALID_VALUE;
	on = *(const unsigned *)value != 0;
	if (target.area)
		target.area->sync_memops = on;
	else
		target.host->sync_memops = on;
	return CUDA_SUCCESS;
}

/* The allocation, or of managed addresses the one mapping, that holds va. */
static CUresult address_range(
        uint64_t va, uint64_t *ret_base, uint64_t *ret_bytes)
{
	struct target target;

	if (!find(va, &target))
		return CUDA_ERROR_NOT_FOUND;
	if (target.area && target.area->kind == SG_AREA_RESERVATION) {
		if (!target.mapping)
			return CUDA_ERROR_NOT_FOUND;
		*ret_base = target.mapping->va;
		*ret_bytes = target.mapping->bytes;
		return CUDA_SUCCESS;
	}
	*ret_base = range_of(&target)->start;
	*ret_bytes = range_of(&target)->bytes;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemGetAddressRange_v2(
        CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	uint64_t base, bytes;
	CUresult error;

	SG_API(cuMemGetAddressRange_v2, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	error = address_range(dptr, &base, &bytes);
	if (error != CUDA_SUCCESS)
		return error;
	if (pbase)
		*pbase = base;
	if (psize)
		*psize = bytes;
	return CUDA_SUCCESS;
}

/* No device address fits into 32 bits, so none is ever found. */
SG_EXPORT CUresult cuMemGetAddressRange(
        CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr)
{
	SG_API(cuMemGetAddressRange, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return CUDA_ERROR_NOT_FOUND;
}
