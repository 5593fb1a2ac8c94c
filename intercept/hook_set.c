/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of the memory sets. */
#include "intercept/driver.h"
#include "intercept/hook_op.h"
#include "intercept/hooks.h"

CUresult ts_hook_cuMemsetD16Async(
        CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(&op, "MemsetD16Async", dst, count, 2,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD16Async(dst, value, count, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD16Async_ptsz(
        CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(&op, "MemsetD16Async", dst, count, 2,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD16Async_ptsz(
		        dst, value, count, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD16_v2(
        CUdeviceptr dst, unsigned short value, size_t count)
{
	struct ts_op op;
	CUresult rc =
	        ts_set_begin(&op, "MemsetD16", dst, count, 2, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD16_v2(dst, value, count);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD16_v2_ptds(
        CUdeviceptr dst, unsigned short value, size_t count)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(
	        &op, "MemsetD16", dst, count, 2, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD16_v2_ptds(dst, value, count);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch,
        unsigned short value, size_t width, size_t height, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D16Async", dst, pitch,
	        width, height, 2, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D16Async(
		        dst, pitch, value, width, height, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D16Async_ptsz(CUdeviceptr dst, size_t pitch,
        unsigned short value, size_t width, size_t height, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D16Async", dst, pitch,
	        width, height, 2, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D16Async_ptsz(
		        dst, pitch, value, width, height, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch,
        unsigned short value, size_t width, size_t height)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D16", dst, pitch, width,
	        height, 2, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D16_v2(
		        dst, pitch, value, width, height);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D16_v2_ptds(CUdeviceptr dst, size_t pitch,
        unsigned short value, size_t width, size_t height)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D16", dst, pitch, width,
	        height, 2, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D16_v2_ptds(
		        dst, pitch, value, width, height);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch,
        unsigned int value, size_t width, size_t height, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D32Async", dst, pitch,
	        width, height, 4, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D32Async(
		        dst, pitch, value, width, height, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D32Async_ptsz(CUdeviceptr dst, size_t pitch,
        unsigned int value, size_t width, size_t height, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D32Async", dst, pitch,
	        width, height, 4, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D32Async_ptsz(
		        dst, pitch, value, width, height, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch,
        unsigned int value, size_t width, size_t height)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D32", dst, pitch, width,
	        height, 4, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D32_v2(
		        dst, pitch, value, width, height);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D32_v2_ptds(CUdeviceptr dst, size_t pitch,
        unsigned int value, size_t width, size_t height)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D32", dst, pitch, width,
	        height, 4, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D32_v2_ptds(
		        dst, pitch, value, width, height);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch,
        unsigned char value, size_t width, size_t height, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D8Async", dst, pitch, width,
	        height, 1, ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D8Async(
		        dst, pitch, value, width, height, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D8Async_ptsz(CUdeviceptr dst, size_t pitch,
        unsigned char value, size_t width, size_t height, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D8Async", dst, pitch, width,
	        height, 1, ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D8Async_ptsz(
		        dst, pitch, value, width, height, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch,
        unsigned char value, size_t width, size_t height)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D8", dst, pitch, width,
	        height, 1, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D8_v2(
		        dst, pitch, value, width, height);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD2D8_v2_ptds(CUdeviceptr dst, size_t pitch,
        unsigned char value, size_t width, size_t height)
{
	struct ts_op op;
	CUresult rc = ts_set_2d_begin(&op, "MemsetD2D8", dst, pitch, width,
	        height, 1, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD2D8_v2_ptds(
		        dst, pitch, value, width, height);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD32Async(
        CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(&op, "MemsetD32Async", dst, count, 4,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD32Async(dst, value, count, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD32Async_ptsz(
        CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(&op, "MemsetD32Async", dst, count, 4,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD32Async_ptsz(
		        dst, value, count, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD32_v2(
        CUdeviceptr dst, unsigned int value, size_t count)
{
	struct ts_op op;
	CUresult rc =
	        ts_set_begin(&op, "MemsetD32", dst, count, 4, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD32_v2(dst, value, count);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD32_v2_ptds(
        CUdeviceptr dst, unsigned int value, size_t count)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(
	        &op, "MemsetD32", dst, count, 4, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD32_v2_ptds(dst, value, count);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD8Async(
        CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(&op, "MemsetD8Async", dst, count, 1,
	        ts_key(stream, TS_STREAM_LEGACY));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD8Async(dst, value, count, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD8Async_ptsz(
        CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(&op, "MemsetD8Async", dst, count, 1,
	        ts_key(stream, TS_STREAM_PER_THREAD));

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD8Async_ptsz(
		        dst, value, count, stream);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD8_v2(
        CUdeviceptr dst, unsigned char value, size_t count)
{
	struct ts_op op;
	CUresult rc =
	        ts_set_begin(&op, "MemsetD8", dst, count, 1, TS_STREAM_LEGACY);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD8_v2(dst, value, count);
	return ts_op_end(&op, rc);
}

CUresult ts_hook_cuMemsetD8_v2_ptds(
        CUdeviceptr dst, unsigned char value, size_t count)
{
	struct ts_op op;
	CUresult rc = ts_set_begin(
	        &op, "MemsetD8", dst, count, 1, TS_STREAM_PER_THREAD);

	if (rc == CUDA_SUCCESS)
		rc = ts_driver.fn_cuMemsetD8_v2_ptds(dst, value, count);
	return ts_op_end(&op, rc);
}
