/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of calls that carry addresses to where later launches do not show
 * them: descriptors, other devices, waits. The block stays resident.
 */
#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

CUresult ts_hook_cuTensorMapEncodeTiled(CUtensorMap *tensorMap,
        CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
        void *globalAddress, const cuuint64_t *globalDim,
        const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
        const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
        CUtensorMapFloatOOBfill oobFill)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuTensorMapEncodeTiled(tensorMap,
		        tensorDataType, tensorRank, globalAddress, globalDim,
		        globalStrides, boxDim, elementStrides, interleave,
		        swizzle, l2Promotion, oobFill);
	rc = ts_agent_pin((CUdeviceptr)globalAddress);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuTensorMapEncodeTiled(tensorMap,
		        tensorDataType, tensorRank, globalAddress, globalDim,
		        globalStrides, boxDim, elementStrides, interleave,
		        swizzle, l2Promotion, oobFill);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuTensorMapEncodeIm2col(CUtensorMap *tensorMap,
        CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
        void *globalAddress, const cuuint64_t *globalDim,
        const cuuint64_t *globalStrides, const int *pixelBoxLowerCorner,
        const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
        cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuTensorMapEncodeIm2col(tensorMap,
		        tensorDataType, tensorRank, globalAddress, globalDim,
		        globalStrides, pixelBoxLowerCorner, pixelBoxUpperCorner,
		        channelsPerPixel, pixelsPerColumn, elementStrides,
		        interleave, swizzle, l2Promotion, oobFill);
	rc = ts_agent_pin((CUdeviceptr)globalAddress);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuTensorMapEncodeIm2col(tensorMap,
		        tensorDataType, tensorRank, globalAddress, globalDim,
		        globalStrides, pixelBoxLowerCorner, pixelBoxUpperCorner,
		        channelsPerPixel, pixelsPerColumn, elementStrides,
		        interleave, swizzle, l2Promotion, oobFill);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap,
        CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
        void *globalAddress, const cuuint64_t *globalDim,
        const cuuint64_t *globalStrides, int pixelBoxLowerCornerWidth,
        int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel,
        cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
        CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
        CUtensorMapFloatOOBfill oobFill)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuTensorMapEncodeIm2colWide(tensorMap,
		        tensorDataType, tensorRank, globalAddress, globalDim,
		        globalStrides, pixelBoxLowerCornerWidth,
		        pixelBoxUpperCornerWidth, channelsPerPixel,
		        pixelsPerColumn, elementStrides, interleave, mode,
		        swizzle, l2Promotion, oobFill);
	rc = ts_agent_pin((CUdeviceptr)globalAddress);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuTensorMapEncodeIm2colWide(tensorMap,
		        tensorDataType, tensorRank, globalAddress, globalDim,
		        globalStrides, pixelBoxLowerCornerWidth,
		        pixelBoxUpperCornerWidth, channelsPerPixel,
		        pixelsPerColumn, elementStrides, interleave, mode,
		        swizzle, l2Promotion, oobFill);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuTensorMapReplaceAddress(
        CUtensorMap *tensorMap, void *globalAddress)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuTensorMapReplaceAddress(
		        tensorMap, globalAddress);
	rc = ts_agent_pin((CUdeviceptr)globalAddress);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuTensorMapReplaceAddress(
		        tensorMap, globalAddress);
	ts_leave();
	return rc;
}

static CUresult pin_resource(const CUDA_RESOURCE_DESC *desc)
{
	if (desc && desc->resType == CU_RESOURCE_TYPE_LINEAR)
		return ts_agent_pin(desc->res.linear.devPtr);
	if (desc && desc->resType == CU_RESOURCE_TYPE_PITCH2D)
		return ts_agent_pin(desc->res.pitch2D.devPtr);
	return CUDA_SUCCESS;
}

CUresult ts_hook_cuTexObjectCreate(CUtexObject_v1 *ret_object,
        const CUDA_RESOURCE_DESC_v1 *resource,
        const CUDA_TEXTURE_DESC_v1 *texture,
        const CUDA_RESOURCE_VIEW_DESC_v1 *view)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuTexObjectCreate(
		        ret_object, resource, texture, view);
	rc = pin_resource(resource);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuTexObjectCreate(
		        ret_object, resource, texture, view);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuTexRefSetAddress_v2(
        size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr address, size_t bytes)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuTexRefSetAddress_v2(
		        ByteOffset, hTexRef, address, bytes);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuTexRefSetAddress_v2(
		        ByteOffset, hTexRef, address, bytes);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuTexRefSetAddress2D_v2(CUtexref hTexRef,
        const CUDA_ARRAY_DESCRIPTOR_v2 *desc, CUdeviceptr address, size_t Pitch)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuTexRefSetAddress2D_v2(
		        hTexRef, desc, address, Pitch);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuTexRefSetAddress2D_v2(
		        hTexRef, desc, address, Pitch);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuTexRefSetAddress2D_v3(CUtexref hTexRef,
        const CUDA_ARRAY_DESCRIPTOR_v2 *desc, CUdeviceptr address, size_t Pitch)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuTexRefSetAddress2D_v3(
		        hTexRef, desc, address, Pitch);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuTexRefSetAddress2D_v3(
		        hTexRef, desc, address, Pitch);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMemGetHandleForAddressRange(void *handle,
        CUdeviceptr address, size_t size, CUmemRangeHandleType type,
        unsigned long long flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMemGetHandleForAddressRange(
		        handle, address, size, type, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemGetHandleForAddressRange(
		        handle, address, size, type, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuMulticastBindAddr(CUmemGenericAllocationHandle handle,
        size_t offset, CUdeviceptr address, size_t size,
        unsigned long long flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuMulticastBindAddr(
		        handle, offset, address, size, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMulticastBindAddr(
		        handle, offset, address, size, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWriteValue32(CUstream stream, CUdeviceptr address,
        cuuint32_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWriteValue32(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWriteValue32(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWriteValue32_ptsz(CUstream stream, CUdeviceptr address,
        cuuint32_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWriteValue32_ptsz(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWriteValue32_ptsz(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address,
        cuuint32_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWriteValue32_v2(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWriteValue32_v2(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWriteValue32_v2_ptsz(CUstream stream,
        CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWriteValue32_v2_ptsz(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWriteValue32_v2_ptsz(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWaitValue32(CUstream stream, CUdeviceptr address,
        cuuint32_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWaitValue32(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWaitValue32(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr address,
        cuuint32_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWaitValue32_ptsz(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWaitValue32_ptsz(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address,
        cuuint32_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWaitValue32_v2(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWaitValue32_v2(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWaitValue32_v2_ptsz(CUstream stream,
        CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWaitValue32_v2_ptsz(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWaitValue32_v2_ptsz(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWriteValue64(CUstream stream, CUdeviceptr address,
        cuuint64_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWriteValue64(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWriteValue64(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWriteValue64_ptsz(CUstream stream, CUdeviceptr address,
        cuuint64_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWriteValue64_ptsz(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWriteValue64_ptsz(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address,
        cuuint64_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWriteValue64_v2(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWriteValue64_v2(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWriteValue64_v2_ptsz(CUstream stream,
        CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWriteValue64_v2_ptsz(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWriteValue64_v2_ptsz(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWaitValue64(CUstream stream, CUdeviceptr address,
        cuuint64_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWaitValue64(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWaitValue64(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr address,
        cuuint64_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWaitValue64_ptsz(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWaitValue64_ptsz(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address,
        cuuint64_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWaitValue64_v2(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWaitValue64_v2(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamWaitValue64_v2_ptsz(CUstream stream,
        CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamWaitValue64_v2_ptsz(
		        stream, address, value, flags);
	rc = ts_agent_pin(address);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamWaitValue64_v2_ptsz(
		        stream, address, value, flags);
	ts_leave();
	return rc;
}

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

CUresult ts_hook_cuStreamBatchMemOp(CUstream stream, unsigned int count,
        CUstreamBatchMemOpParams *items, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBatchMemOp(
		        stream, count, items, flags);
	rc = ts_pin_mem_ops(items, count);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamBatchMemOp(
		        stream, count, items, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count,
        CUstreamBatchMemOpParams_v1 *items, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBatchMemOp_ptsz(
		        stream, count, items, flags);
	rc = ts_pin_mem_ops(items, count);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamBatchMemOp_ptsz(
		        stream, count, items, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
        CUstreamBatchMemOpParams *items, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBatchMemOp_v2(
		        stream, count, items, flags);
	rc = ts_pin_mem_ops(items, count);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamBatchMemOp_v2(
		        stream, count, items, flags);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count,
        CUstreamBatchMemOpParams *items, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuStreamBatchMemOp_v2_ptsz(
		        stream, count, items, flags);
	rc = ts_pin_mem_ops(items, count);
	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuStreamBatchMemOp_v2_ptsz(
		        stream, count, items, flags);
	ts_leave();
	return rc;
}
