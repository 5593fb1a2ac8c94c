/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies and sets between plain addresses. */
#include <string.h>

#include "rows.h"

static CUdeviceptr of_host(void)
{
	return (CUdeviceptr)(uintptr_t)host;
}

static void host_has(const unsigned char *content, size_t at)
{
	DRIVER(cuCtxSynchronize)();
	if (memcmp(host, content + at, LENGTH))
		disagree();
}

static CUresult up(void *function)
{
	memcpy(in_a + AT, host, LENGTH);
	return AS(cuMemcpyHtoD)(a + AT, host, LENGTH);
}

static CUresult up_async(void *function)
{
	memcpy(in_a + AT, host, LENGTH);
	return AS(cuMemcpyHtoDAsync)(a + AT, host, LENGTH, NULL);
}

static CUresult down(void *function)
{
	CUresult rc = AS(cuMemcpyDtoH)(host, b + AT, LENGTH);

	host_has(in_b, AT);
	return rc;
}

static CUresult down_async(void *function)
{
	CUresult rc = AS(cuMemcpyDtoHAsync)(host, b + AT, LENGTH, NULL);

	host_has(in_b, AT);
	return rc;
}

static CUresult across(void *function)
{
	memcpy(in_a + 8, in_b + AT, LENGTH);
	return AS(cuMemcpyDtoD)(a + 8, b + AT, LENGTH);
}

static CUresult across_async(void *function)
{
	memcpy(in_a + AT, in_b + 16, LENGTH);
	return AS(cuMemcpyDtoDAsync)(a + AT, b + 16, LENGTH, NULL);
}

/* All three directions by one function. */
static CUresult any(void *function)
{
	CUresult rc = AS(cuMemcpy)(of_host(), b + AT, LENGTH);

	host_has(in_b, AT);
	if (rc == CUDA_SUCCESS)
		rc = AS(cuMemcpy)(a, b + AT, LENGTH);
	memcpy(in_a, in_b + AT, LENGTH);
	memcpy(in_a + AT, host + 1, LENGTH);
	if (rc == CUDA_SUCCESS)
		rc = AS(cuMemcpy)(a + AT, of_host() + 1, LENGTH);
	return rc;
}

static CUresult any_async(void *function)
{
	CUresult rc = AS(cuMemcpyAsync)(of_host(), b + AT, LENGTH, NULL);

	host_has(in_b, AT);
	if (rc == CUDA_SUCCESS)
		rc = AS(cuMemcpyAsync)(a, b + AT, LENGTH, NULL);
	memcpy(in_a, in_b + AT, LENGTH);
	memcpy(in_a + AT, host + 1, LENGTH);
	if (rc == CUDA_SUCCESS)
		rc = AS(cuMemcpyAsync)(a + AT, of_host() + 1, LENGTH, NULL);
	return rc;
}

static CUresult peer(void *function)
{
	memcpy(in_a + AT, in_b, LENGTH);
	return AS(cuMemcpyPeer)(a + AT, context, b, context, LENGTH);
}

static CUresult peer_async(void *function)
{
	memcpy(in_b + AT, in_a + 24, LENGTH);
	return AS(cuMemcpyPeerAsync)(
	        b + AT, context, a + 24, context, LENGTH, NULL);
}

/* Up, down and across in one call. */
struct batch {
	CUdeviceptr dsts[3], srcs[3];
	size_t sizes[3], first;
	CUmemcpyAttributes attributes;
};

static struct batch batch(void)
{
	struct batch all = {.dsts = {a + AT, of_host() + MIB, b},
	        .srcs = {of_host(), b + AT, a},
	        .sizes = {LENGTH, LENGTH, LENGTH},
	        .attributes = {
	                .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};

	memcpy(in_b, in_a, LENGTH);
	memcpy(in_a + AT, host, LENGTH);
	return all;
}

static CUresult batch_done(CUresult rc)
{
	DRIVER(cuCtxSynchronize)();
	if (memcmp(host + MIB, in_b + AT, LENGTH))
		disagree();
	return rc;
}

typedef CUresult batch_v1(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
        size_t count, CUmemcpyAttributes *attributes, size_t *firsts,
        size_t attribute_count, size_t *failed, CUstream stream);

static CUresult batch_old(void *function)
{
	struct batch all = batch();
	size_t failed;

	return batch_done(((batch_v1 *)function)(all.dsts, all.srcs, all.sizes,
	        3, &all.attributes, &all.first, 1, &failed,
	        CU_STREAM_PER_THREAD));
}

static CUresult batch_new(void *function)
{
	struct batch all = batch();

	return batch_done(AS(cuMemcpyBatchAsync)(all.dsts, all.srcs, all.sizes,
	        3, &all.attributes, &all.first, 1, CU_STREAM_PER_THREAD));
}

const struct row linear_rows[] = {
        {"cuMemcpyHtoD_v2", up},
        {"cuMemcpyHtoD_v2_ptds", up},
        {"cuMemcpyHtoDAsync_v2", up_async},
        {"cuMemcpyHtoDAsync_v2_ptsz", up_async},
        {"cuMemcpyDtoH_v2", down},
        {"cuMemcpyDtoH_v2_ptds", down},
        {"cuMemcpyDtoHAsync_v2", down_async},
        {"cuMemcpyDtoHAsync_v2_ptsz", down_async},
        {"cuMemcpyDtoD_v2", across},
        {"cuMemcpyDtoD_v2_ptds", across},
        {"cuMemcpyDtoDAsync_v2", across_async},
        {"cuMemcpyDtoDAsync_v2_ptsz", across_async},
        {"cuMemcpy", any},
        {"cuMemcpy_ptds", any},
        {"cuMemcpyAsync", any_async},
        {"cuMemcpyAsync_ptsz", any_async},
        {"cuMemcpyPeer", peer},
        {"cuMemcpyPeer_ptds", peer},
        {"cuMemcpyPeerAsync", peer_async},
        {"cuMemcpyPeerAsync_ptsz", peer_async},
        {"cuMemcpyBatchAsync", batch_old},
        {"cuMemcpyBatchAsync_ptsz", batch_old},
        {"cuMemcpyBatchAsync_v2", batch_new},
        {"cuMemcpyBatchAsync_v2_ptsz", batch_new},
        {NULL, NULL},
};

/* @count elements of @bytes, and the same in what must be there. */
static void expect_set(
        unsigned char *content, uint32_t value, size_t bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memcpy(content + i * bytes, &value, bytes);
}

#define PITCH ((size_t)4096)
#define ROWS  ((size_t)600)

static void expect_set_2d(uint32_t value, size_t bytes, size_t width)
{
	for (size_t y = 0; y < ROWS; y++)
		expect_set(in_a + y * PITCH, value, bytes, width);
}

static CUresult set_8(void *function)
{
	expect_set(in_a + AT, 0x5a, 1, LENGTH);
	return AS(cuMemsetD8)(a + AT, 0x5a, LENGTH);
}

static CUresult set_16(void *function)
{
	expect_set(in_a + AT, 0x1234, 2, 5000);
	return AS(cuMemsetD16)(a + AT, 0x1234, 5000);
}

static CUresult set_32(void *function)
{
	expect_set(in_a + AT, 0x12345678, 4, 5000);
	return AS(cuMemsetD32)(a + AT, 0x12345678, 5000);
}

static CUresult set_8_async(void *function)
{
	expect_set(in_a + AT, 0x5b, 1, LENGTH);
	return AS(cuMemsetD8Async)(a + AT, 0x5b, LENGTH, NULL);
}

static CUresult set_16_async(void *function)
{
	expect_set(in_a + AT, 0x1235, 2, 5000);
	return AS(cuMemsetD16Async)(a + AT, 0x1235, 5000, NULL);
}

static CUresult set_32_async(void *function)
{
	expect_set(in_a + AT, 0x12345679, 4, 5000);
	return AS(cuMemsetD32Async)(a + AT, 0x12345679, 5000, NULL);
}

static CUresult set_2d_8(void *function)
{
	expect_set_2d(0x11, 1, 100);
	return AS(cuMemsetD2D8)(a, PITCH, 0x11, 100, ROWS);
}

static CUresult set_2d_16(void *function)
{
	expect_set_2d(0x2211, 2, 100);
	return AS(cuMemsetD2D16)(a, PITCH, 0x2211, 100, ROWS);
}

static CUresult set_2d_32(void *function)
{
	expect_set_2d(0x44332211, 4, 100);
	return AS(cuMemsetD2D32)(a, PITCH, 0x44332211, 100, ROWS);
}

static CUresult set_2d_8_async(void *function)
{
	expect_set_2d(0x11, 1, 101);
	return AS(cuMemsetD2D8Async)(a, PITCH, 0x11, 101, ROWS, NULL);
}

static CUresult set_2d_16_async(void *function)
{
	expect_set_2d(0x2211, 2, 101);
	return AS(cuMemsetD2D16Async)(a, PITCH, 0x2211, 101, ROWS, NULL);
}

static CUresult set_2d_32_async(void *function)
{
	expect_set_2d(0x44332211, 4, 101);
	return AS(cuMemsetD2D32Async)(a, PITCH, 0x44332211, 101, ROWS, NULL);
}

const struct row set_rows[] = {
        {"cuMemsetD8_v2", set_8},
        {"cuMemsetD8_v2_ptds", set_8},
        {"cuMemsetD8Async", set_8_async},
        {"cuMemsetD8Async_ptsz", set_8_async},
        {"cuMemsetD16_v2", set_16},
        {"cuMemsetD16_v2_ptds", set_16},
        {"cuMemsetD16Async", set_16_async},
        {"cuMemsetD16Async_ptsz", set_16_async},
        {"cuMemsetD32_v2", set_32},
        {"cuMemsetD32_v2_ptds", set_32},
        {"cuMemsetD32Async", set_32_async},
        {"cuMemsetD32Async_ptsz", set_32_async},
        {"cuMemsetD2D8_v2", set_2d_8},
        {"cuMemsetD2D8_v2_ptds", set_2d_8},
        {"cuMemsetD2D8Async", set_2d_8_async},
        {"cuMemsetD2D8Async_ptsz", set_2d_8_async},
        {"cuMemsetD2D16_v2", set_2d_16},
        {"cuMemsetD2D16_v2_ptds", set_2d_16},
        {"cuMemsetD2D16Async", set_2d_16_async},
        {"cuMemsetD2D16Async_ptsz", set_2d_16_async},
        {"cuMemsetD2D32_v2", set_2d_32},
        {"cuMemsetD2D32_v2_ptds", set_2d_32},
        {"cuMemsetD2D32Async", set_2d_32_async},
        {"cuMemsetD2D32Async_ptsz", set_2d_32_async},
        {NULL, NULL},
};
