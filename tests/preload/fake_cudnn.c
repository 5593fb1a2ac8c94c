/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stands in for cuDNN: a variant pack that can be set and asked, a plan, and
 * two functions for single layers. Their kernel is told of the work space
 * alone. A call fails where an operand is not there as the kernel starts.
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

static int run_on(
        const char *kernel, void *workspace, const void *const *operands)
{
	if (fake_launch(kernel, (CUdeviceptr)workspace, NULL) != CUDA_SUCCESS)
		return CUDNN_STATUS_EXECUTION_FAILED;
	for (int i = 0; operands[i]; i++)
		if (!fake_is_there((CUdeviceptr)operands[i], OPERAND_BYTES))
			return CUDNN_STATUS_INTERNAL_ERROR;
	return CUDNN_STATUS_SUCCESS;
}

SHOWN int cudnnConvolutionForward(void *handle, const void *alpha,
        const void *x_desc, const void *x, const void *w_desc, const void *w,
        const void *conv_desc, int algorithm, void *workspace,
        size_t workspace_bytes, const void *beta, const void *y_desc, void *y)
{
	const void *operands[] = {x, w, y, NULL};

	(void)handle;
	(void)alpha;
	(void)x_desc;
	(void)w_desc;
	(void)conv_desc;
	(void)beta;
	(void)y_desc;
	if (algorithm != 1 || workspace_bytes != OPERAND_BYTES)
		return CUDNN_STATUS_BAD_PARAM;
	return run_on("cudnn_convolve", workspace, operands);
}

SHOWN int cudnnBatchNormalizationForwardTrainingEx(void *handle, int mode,
        int ops, const void *alpha, const void *beta, const void *x_desc,
        const void *x, const void *z_desc, const void *z, const void *y_desc,
        void *y, const void *bn_desc, const void *scale, const void *bias,
        double factor, void *running_mean, void *running_variance,
        double epsilon, void *saved_mean, void *saved_variance,
        const void *activation_desc, void *workspace, size_t workspace_bytes,
        void *reserved, size_t reserved_bytes)
{
	const void *operands[] = {x, y, scale, running_mean, saved_mean, NULL};

	(void)handle;
	(void)mode;
	(void)ops;
	(void)alpha;
	(void)beta;
	(void)x_desc;
	(void)z_desc;
	(void)z;
	(void)y_desc;
	(void)bn_desc;
	(void)bias;
	(void)running_variance;
	(void)saved_variance;
	(void)activation_desc;
	(void)workspace_bytes;
	(void)reserved;
	/* What travels beside the other arguments, and the last of them. */
	if (factor != 0.25 || epsilon != 1e-5 || reserved_bytes != 77)
		return CUDNN_STATUS_BAD_PARAM;
	return run_on("cudnn_batch_norm", workspace, operands);
}
