/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stands in for cuDNN's back end: a variant pack that can be set and asked, and
 * a plan whose kernel is told of the work space alone. Executing fails where an
 * operand is not there as the kernel starts.
 */
#include <stdlib.h>

#include "fake_api.h"
#include "fake_kernel.h"

#define OPERANDS_MAX 16
/* What a program of the test has: buffers of 4 MiB. */
#define OPERAND_BYTES (4u << 20)
#define SHOWN         __attribute__((visibility("default")))

struct pack {
	void *operands[OPERANDS_MAX];
	int64_t count;
	void *workspace;
};

SHOWN int cudnnBackendCreateDescriptor(int type, void **ret)
{
	if (type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*ret = calloc(1, sizeof(struct pack));
	return *ret ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR;
}

SHOWN int cudnnBackendSetAttribute(
        void *pack_made, int name, int type, int64_t count, const void *items)
{
	void *const *addresses = items;
	struct pack *pack = pack_made;

	if (type != CUDNN_TYPE_VOID_PTR || count > OPERANDS_MAX)
		return CUDNN_STATUS_BAD_PARAM;
	if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
		pack->workspace = addresses[0];
		return CUDNN_STATUS_SUCCESS;
	}
	if (name != CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
		return CUDNN_STATUS_NOT_SUPPORTED;
	for (int64_t i = 0; i < count; i++)
		pack->operands[i] = addresses[i];
	pack->count = count;
	return CUDNN_STATUS_SUCCESS;
}

SHOWN int cudnnBackendGetAttribute(const void *pack_made, int name, int type,
        int64_t wanted, int64_t *ret_count, void *items)
{
	const struct pack *pack = pack_made;
	void *const *from = pack->operands;
	int64_t count = pack->count;
	void **to = items;

	if (type != CUDNN_TYPE_VOID_PTR)
		return CUDNN_STATUS_BAD_PARAM;
	if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
		from = &pack->workspace;
		count = pack->workspace ? 1 : 0;
	} else if (name != CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
		return CUDNN_STATUS_NOT_SUPPORTED;
	}
	*ret_count = count;
	for (int64_t i = 0; i < count && i < wanted; i++)
		to[i] = from[i];
	return CUDNN_STATUS_SUCCESS;
}

SHOWN int cudnnBackendExecute(void *handle, void *plan, void *pack_made)
{
	const struct pack *pack = pack_made;

	(void)handle;
	(void)plan;
	if (fake_launch("sm80_xmma_fprop_implicit_gemm",
	            (CUdeviceptr)pack->workspace, NULL) != CUDA_SUCCESS)
		return CUDNN_STATUS_EXECUTION_FAILED;
	for (int64_t i = 0; i < pack->count; i++)
		if (!fake_is_there(
		            (CUdeviceptr)pack->operands[i], OPERAND_BYTES))
			return CUDNN_STATUS_INTERNAL_ERROR;
	return CUDNN_STATUS_SUCCESS;
}
