/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of cuPointerGetAttribute(s): placed memory answers as memory of
 * cuMemAlloc does, resident or not.
 */
#include <string.h>

#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hooks.h"

static void put_int(void *data, int value)
{
	memcpy(data, &value, sizeof(value));
}

static void put_flag(void *data, bool value)
{
	memcpy(data, &value, sizeof(value));
}

static void put_word(void *data, uint64_t value)
{
	memcpy(data, &value, sizeof(value));
}

/* The types are those cuda.h gives for each attribute. */
static CUresult answer(const struct ts_allocation *allocation, void *data,
        CUpointer_attribute attribute, CUdeviceptr address)
{
	const struct ts_block *whole = &allocation->whole;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		put_word(data, (uint64_t)(uintptr_t)allocation->context);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		put_int(data, CU_MEMORYTYPE_DEVICE);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		put_word(data, address);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		put_int(data, 0);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		put_flag(data, false);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		put_word(data, whole->serial);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		put_int(data, whole->device);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		put_word(data, whole->address);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		put_word(data, whole->bytes);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		put_flag(data, true);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		put_word(data, 0);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		put_int(data, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
		return CUDA_SUCCESS;
	default:
		/* Host pointer, tokens for other drivers: there is none. */
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ts_hook_cuPointerGetAttribute(
        void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct ts_allocation allocation;
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuPointerGetAttribute(
		        data, attribute, address);
	if (data && ts_agent_find(address, &allocation))
		rc = answer(&allocation, data, attribute, address);
	else if (data && ts_agent_placed(address))
		rc = CUDA_ERROR_INVALID_VALUE;
	else
		rc = ts_driver.fn_cuPointerGetAttribute(
		        data, attribute, address);
	ts_leave();
	return rc;
}

/* Of those answer() does not know, by the type cuda.h gives. */
static void put_nothing(void *data, CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		memset(data, 0, sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS));
		return;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		put_word(data, 0);
		return;
	default:
		/* Newer than the headers: no more than an int is safe. */
		put_int(data, 0);
		return;
	}
}

/* Here an attribute that cannot be answered is 0, and no error. */
CUresult ts_hook_cuPointerGetAttributes(unsigned int count,
        CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
	struct ts_allocation allocation;
	CUresult rc = CUDA_SUCCESS;

	if (!ts_enter())
		return ts_driver.fn_cuPointerGetAttributes(
		        count, attributes, data, address);
	if (!attributes || !data || !ts_agent_find(address, &allocation))
		rc = ts_driver.fn_cuPointerGetAttributes(
		        count, attributes, data, address);
	else
		for (unsigned int i = 0; i < count; i++)
			if (answer(&allocation, data[i], attributes[i],
			            address) != CUDA_SUCCESS)
				put_nothing(data[i], attributes[i]);
	ts_leave();
	return rc;
}
