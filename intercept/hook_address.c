/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of calls that carry addresses to where later launches do not show
 * them: descriptors, other devices, waits. The block stays resident.
 */
#include "intercept/wrapper.h"

TS_PIN_WRAPPER(cuTensorMapEncodeTiled,
        (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank,
                void *address, const cuuint64_t *dim, const cuuint64_t *strides,
                const cuuint32_t *box, const cuuint32_t *element_strides,
                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
        (map, type, rank, address, dim, strides, box, element_strides,
                interleave, swizzle, promotion, fill),
        ts_agent_pin((CUdeviceptr)address))

TS_PIN_WRAPPER(cuTensorMapEncodeIm2col,
        (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank,
                void *address, const cuuint64_t *dim, const cuuint64_t *strides,
                const int *lower, const int *upper, cuuint32_t channels,
                cuuint32_t pixels, const cuuint32_t *element_strides,
                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
        (map, type, rank, address, dim, strides, lower, upper, channels, pixels,
                element_strides, interleave, swizzle, promotion, fill),
        ts_agent_pin((CUdeviceptr)address))

TS_PIN_WRAPPER(cuTensorMapEncodeIm2colWide,
        (CUtensorMap * map, CUtensorMapDataType type, cuuint32_t rank,
                void *address, const cuuint64_t *dim, const cuuint64_t *strides,
                int lower, int upper, cuuint32_t channels, cuuint32_t pixels,
                const cuuint32_t *element_strides,
                CUtensorMapInterleave interleave,
                CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill),
        (map, type, rank, address, dim, strides, lower, upper, channels, pixels,
                element_strides, interleave, mode, swizzle, promotion, fill),
        ts_agent_pin((CUdeviceptr)address))

TS_PIN_WRAPPER(cuTensorMapReplaceAddress, (CUtensorMap * map, void *address),
        (map, address), ts_agent_pin((CUdeviceptr)address))

static CUresult pin_resource(const CUDA_RESOURCE_DESC *desc)
{
	if (desc && desc->resType == CU_RESOURCE_TYPE_LINEAR)
		return ts_agent_pin(desc->res.linear.devPtr);
	if (desc && desc->resType == CU_RESOURCE_TYPE_PITCH2D)
		return ts_agent_pin(desc->res.pitch2D.devPtr);
	return CUDA_SUCCESS;
}

TS_PIN_WRAPPER(cuTexObjectCreate,
        (CUtexObject_v1 * ret_object, const CUDA_RESOURCE_DESC_v1 *resource,
                const CUDA_TEXTURE_DESC_v1 *texture,
                const CUDA_RESOURCE_VIEW_DESC_v1 *view),
        (ret_object, resource, texture, view), pin_resource(resource))

TS_PIN_WRAPPER(cuTexRefSetAddress_v2,
        (size_t * ret_offset, CUtexref texture, CUdeviceptr address,
                size_t bytes),
        (ret_offset, texture, address, bytes), ts_agent_pin(address))

TS_PIN_WRAPPER(cuTexRefSetAddress2D_v2,
        (CUtexref texture, const CUDA_ARRAY_DESCRIPTOR_v2 *desc,
                CUdeviceptr address, size_t pitch),
        (texture, desc, address, pitch), ts_agent_pin(address))

TS_PIN_WRAPPER(cuTexRefSetAddress2D_v3,
        (CUtexref texture, const CUDA_ARRAY_DESCRIPTOR_v2 *desc,
                CUdeviceptr address, size_t pitch),
        (texture, desc, address, pitch), ts_agent_pin(address))

TS_PIN_WRAPPER(cuMemGetHandleForAddressRange,
        (void *handle, CUdeviceptr address, size_t bytes,
                CUmemRangeHandleType type, unsigned long long flags),
        (handle, address, bytes, type, flags), ts_agent_pin(address))

TS_PIN_WRAPPER(cuMulticastBindAddr,
        (CUmemGenericAllocationHandle handle, size_t offset,
                CUdeviceptr address, size_t bytes, unsigned long long flags),
        (handle, offset, address, bytes, flags), ts_agent_pin(address))

/* A wait for a value, or a write of one, @call as in its name. */
#define VALUE(call, type)                                                      \
	TS_PIN_WRAPPER(cuStream##call,                                         \
	        (CUstream stream, CUdeviceptr address, type value,             \
	                unsigned int flags),                                   \
	        (stream, address, value, flags), ts_agent_pin(address))

#define VALUES(call, type)                                                     \
	VALUE(call, type)                                                      \
	VALUE(call##_ptsz, type)                                               \
	VALUE(call##_v2, type)                                                 \
	VALUE(call##_v2_ptsz, type)

VALUES(WriteValue32, cuuint32_t)
VALUES(WriteValue64, cuuint64_t)
VALUES(WaitValue32, cuuint32_t)
VALUES(WaitValue64, cuuint64_t)

CUresult ts_pin_mem_ops(
        const CUstreamBatchMemOpParams *items, unsigned int count)
{
	CUresult rc = CUDA_SUCCESS;

	for (unsigned int i = 0; items && i < count && rc == CUDA_SUCCESS; i++)
		switch (items[i].operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			rc = ts_agent_pin(items[i].waitValue.address);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			rc = ts_agent_pin(items[i].writeValue.address);
			break;
		default:
			break;
		}
	return rc;
}

#define VALUE_LIST(call)                                                       \
	TS_PIN_WRAPPER(cuStream##call,                                         \
	        (CUstream stream, unsigned int count,                          \
	                CUstreamBatchMemOpParams_v1 *items,                    \
	                unsigned int flags),                                   \
	        (stream, count, items, flags), ts_pin_mem_ops(items, count))

VALUE_LIST(BatchMemOp)
VALUE_LIST(BatchMemOp_ptsz)
VALUE_LIST(BatchMemOp_v2)
VALUE_LIST(BatchMemOp_v2_ptsz)
