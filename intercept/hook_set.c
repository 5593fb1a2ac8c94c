/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Wrappers of the memory sets. */
#include "intercept/wrapper.h"

#define LINE(symbol, name, element, bytes, zero)                               \
	TS_OP_WRAPPER(symbol, (CUdeviceptr dst, element value, size_t count),  \
	        (dst, value, count),                                           \
	        ts_set_begin(&op, name, dst, count, bytes, zero))

#define LINE_ASYNC(symbol, name, element, bytes, zero)                         \
	TS_OP_WRAPPER(symbol,                                                  \
	        (CUdeviceptr dst, element value, size_t count,                 \
	                CUstream stream),                                      \
	        (dst, value, count, stream),                                   \
	        ts_set_begin(                                                  \
	                &op, name, dst, count, bytes, ts_key(stream, zero)))

#define ROWS(symbol, name, element, bytes, zero)                               \
	TS_OP_WRAPPER(symbol,                                                  \
	        (CUdeviceptr dst, size_t pitch, element value, size_t width,   \
	                size_t height),                                        \
	        (dst, pitch, value, width, height),                            \
	        ts_set_2d_begin(                                               \
	                &op, name, dst, pitch, width, height, bytes, zero))

#define ROWS_ASYNC(symbol, name, element, bytes, zero)                         \
	TS_OP_WRAPPER(symbol,                                                  \
	        (CUdeviceptr dst, size_t pitch, element value, size_t width,   \
	                size_t height, CUstream stream),                       \
	        (dst, pitch, value, width, height, stream),                    \
	        ts_set_2d_begin(&op, name, dst, pitch, width, height, bytes,   \
	                ts_key(stream, zero)))

/* All functions that set elements of one width, @d as in their names. */
#define WIDTH(d, element, bytes)                                               \
	LINE(cuMemset##d##_v2, "Memset" #d, element, bytes, TS_STREAM_LEGACY)  \
	LINE(cuMemset##d##_v2_ptds, "Memset" #d, element, bytes,               \
	        TS_STREAM_PER_THREAD)                                          \
	LINE_ASYNC(cuMemset##d##Async, "Memset" #d "Async", element, bytes,    \
	        TS_STREAM_LEGACY)                                              \
	LINE_ASYNC(cuMemset##d##Async_ptsz, "Memset" #d "Async", element,      \
	        bytes, TS_STREAM_PER_THREAD)                                   \
	ROWS(cuMemsetD2##d##_v2, "MemsetD2" #d, element, bytes,                \
	        TS_STREAM_LEGACY)                                              \
	ROWS(cuMemsetD2##d##_v2_ptds, "MemsetD2" #d, element, bytes,           \
	        TS_STREAM_PER_THREAD)                                          \
	ROWS_ASYNC(cuMemsetD2##d##Async, "MemsetD2" #d "Async", element,       \
	        bytes, TS_STREAM_LEGACY)                                       \
	ROWS_ASYNC(cuMemsetD2##d##Async_ptsz, "MemsetD2" #d "Async", element,  \
	        bytes, TS_STREAM_PER_THREAD)

WIDTH(D8, unsigned char, 1)
WIDTH(D16, unsigned short, 2)
WIDTH(D32, unsigned int, 4)
