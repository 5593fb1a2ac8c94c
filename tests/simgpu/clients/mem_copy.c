/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies and memsets: forms, directions, bounds, and whether the host waits. */
#include "mem_client.h"

#include "tests/simgpu/driver/simgpu_private.h"

#include <stdio.h>

#define LINK_NS_PER_MIB ((uint64_t)41943) /* tiny-1g: 25 GB/s one way */

static uint64_t now(void)
{
	struct simgpu_device_info info;

	ck_assert_int_eq(simgpu_device_get_info(0, &info), 0);
	return info.virtual_ns;
}

static bool all_bytes(const unsigned char *p, unsigned char value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != value)
			return false;
	}
	return true;
}

/* Resident bytes of a range of whole pages, by /proc/self/smaps. */
static size_t resident_bytes(const void *p)
{
	char line[256];
	unsigned long start, end, want = (unsigned long)(uintptr_t)p;
	size_t kib = 0;
	bool inside = false;
	FILE *f = fopen("/proc/self/smaps", "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start <= want && want < end;
		else if (inside && sscanf(line, "Rss: %zu kB", &kib) == 1)
			break;
	}
	fclose(f);
	return kib * 1024;
}

START_TEST(every_direction_copies)
{
	unsigned char from[4096], to[4096];
	CUdeviceptr a, b;

	client_start();
	OK(cuMemAlloc(&a, MIB));
	OK(cuMemAlloc(&b, MIB));
	memset(from, 7, sizeof(from));
	memset(to, 9, sizeof(to));
	OK(cuMemcpyHtoD(a, from, 4096));
	OK(cuMemcpyDtoD(b, a, 4096));
	/* Device memory has no content: it reads as zeros. */
	OK(cuMemcpyDtoH(to, b, 4096));
	ck_assert(all_bytes(to, 0, 4096));
	/* Host to host, found out by the addresses. */
	OK(cuMemcpy(
	        (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, 100));
	ck_assert(all_bytes(to, 7, 100));
	ck_assert(all_bytes(to + 100, 0, 3996));
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)to, b, 10));
	ck_assert(all_bytes(to, 0, 10));
	ck_assert(all_bytes(to + 10, 7, 90));
	OK(cuMemcpy(b, (CUdeviceptr)(uintptr_t)from, 4096));
	OK(cuMemcpyAsync(b, a, 4096, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemFree(a));
	OK(cuMemFree(b));
}
END_TEST

START_TEST(nothing_is_copied_of_size_zero)
{
	unsigned char byte = 5;
	CUdeviceptr p;

	client_start();
	OK(cuMemAlloc(&p, 512));
	OK(cuMemcpyHtoD(p, &byte, 0));
	OK(cuMemcpyDtoH(&byte, p, 0));
	OK(cuMemcpyDtoH(NULL, 0, 0));
	OK(cuMemsetD8(p, 0, 0));
	ck_assert_int_eq(byte, 5);
	OK(cuMemFree(p));
}
END_TEST

START_TEST(copies_out_of_bounds_are_refused)
{
	static unsigned char host[8 * MIB];
	CUdeviceptr p, q;

	client_start();
	OK(cuMemAlloc(&p, 3 * MIB));
	OK(cuMemAlloc(&q, 3 * MIB));
	INVALID(cuMemcpyHtoD(p, host, 3 * MIB + 1));
	INVALID(cuMemcpyDtoH(host, p + MIB, 2 * MIB + 1));
	INVALID(cuMemcpyDtoD(p, q + MIB, 3 * MIB));
	INVALID(cuMemcpyHtoD(0, host, 1));
	INVALID(cuMemcpyHtoD(p, NULL, 1));
	INVALID(cuMemcpyDtoD(p, (CUdeviceptr)(uintptr_t)host, 1));
	INVALID(cuMemcpyHtoD(p, (void *)(uintptr_t)q, 1));
	INVALID(cuMemsetD8(p + MIB, 0, 3 * MIB));
	INVALID(cuMemsetD32(p + 2, 0, 1));
	INVALID(cuMemsetD16(p + 1, 0, 1));
	INVALID(cuMemsetD2D32(p, 1022, 0, 10, 10));
	INVALID(cuMemsetD2D8(p, MIB, 0, MIB, 4));
	OK(cuMemsetD2D8(p, MIB, 0, MIB, 3));
	OK(cuMemFree(q));
	INVALID(cuMemcpyDtoD(p, q, 1));
	OK(cuMemcpyHtoD(p, host, 3 * MIB));
	OK(cuCtxSynchronize());
	OK(cuMemFree(p));
}
END_TEST

START_TEST(memsets_reach_host_memory_the_device_sees)
{
	unsigned char *bytes;
	unsigned short *shorts;
	CUdeviceptr d;
	void *p;

	client_start();
	OK(cuMemHostAlloc(&p, 4096, 0));
	bytes = p;
	shorts = p;
	OK(cuMemHostGetDevicePointer(&d, p, 0));
	OK(cuMemsetD8(d, 3, 4096));
	ck_assert(all_bytes(bytes, 3, 4096));
	OK(cuMemsetD16(d + 16, 0x1234, 4));
	ck_assert_int_eq(shorts[7], 0x0303);
	ck_assert_int_eq(shorts[8], 0x1234);
	ck_assert_int_eq(shorts[11], 0x1234);
	ck_assert_int_eq(shorts[12], 0x0303);
	OK(cuMemsetD2D8(d, 64, 9, 2, 3));
	ck_assert_int_eq(bytes[65], 9);
	ck_assert_int_eq(bytes[66], 3);
	ck_assert_int_eq(bytes[129], 9);
	ck_assert_int_eq(bytes[192], 3);
	INVALID(cuMemsetD8(d, 0, 4097));
	OK(cuMemFreeHost(p));
}
END_TEST

START_TEST(rows_are_copied_with_their_pitches)
{
	unsigned char from[8 * 16], to[8 * 32];
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	        .srcHost = from,
	        .srcPitch = 16,
	        .srcXInBytes = 2,
	        .srcY = 1,
	        .dstMemoryType = CU_MEMORYTYPE_HOST,
	        .dstHost = to,
	        .dstPitch = 32,
	        .WidthInBytes = 4,
	        .Height = 3};
	CUdeviceptr p;
	size_t pitch;

	client_start();
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)i;
	memset(to, 0xee, sizeof(to));
	OK(cuMemcpy2D(&copy));
	ck_assert(all_bytes(to + 4, 0xee, 28));
	for (int y = 0; y < 3; y++) {
		for (int x = 0; x < 4; x++)
			ck_assert_int_eq(to[y * 32 + x], (y + 1) * 16 + x + 2);
	}
	copy.srcPitch = 5; /* shorter than offset and width */
	INVALID(cuMemcpy2DUnaligned(&copy));
	copy.srcPitch = 16;

	OK(cuMemAllocPitch(&p, &pitch, 100, 4, 4));
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = p;
	copy.dstPitch = pitch;
	OK(cuMemcpy2D(&copy));
	OK(cuMemcpy2DAsync(&copy, NULL));
	copy.Height = 5; /* one row too many */
	INVALID(cuMemcpy2D(&copy));
	copy.Height = 3;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	FAILS(cuMemcpy2D(&copy), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemFree(p));
}
END_TEST

START_TEST(boxes_are_copied_with_their_slices)
{
	unsigned char from[4][3][8], to[4][3][8];
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
	        .srcDevice = (CUdeviceptr)(uintptr_t)from,
	        .srcPitch = 8,
	        .srcHeight = 3,
	        .srcZ = 1,
	        .dstMemoryType = CU_MEMORYTYPE_HOST,
	        .dstHost = to,
	        .dstPitch = 8,
	        .dstHeight = 3,
	        .dstXInBytes = 1,
	        .dstY = 1,
	        .WidthInBytes = 5,
	        .Height = 2,
	        .Depth = 3};
	CUDA_MEMCPY3D_PEER peer = {0};
	CUcontext ctx = client_start();
	CUdeviceptr p;

	for (int i = 0; i < 4 * 3 * 8; i++)
		((unsigned char *)from)[i] = (unsigned char)i;
	memset(to, 0xee, sizeof(to));
	OK(cuMemcpy3D(&copy));
	for (int z = 0; z < 3; z++) {
		ck_assert_int_eq(to[z][0][1], 0xee);
		ck_assert_int_eq(to[z][1][0], 0xee);
		ck_assert_int_eq(to[z][1][1], from[z + 1][0][0]);
		ck_assert_int_eq(to[z][2][5], from[z + 1][1][4]);
		ck_assert_int_eq(to[z][2][6], 0xee);
	}
	ck_assert(all_bytes(&to[3][0][0], 0xee, 24));
	copy.srcHeight = 1;
	INVALID(cuMemcpy3D(&copy));

	OK(cuMemAlloc(&p, 4 * 3 * 8));
	peer.srcContext = ctx;
	peer.dstContext = ctx;
	peer.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	peer.srcDevice = p;
	peer.dstMemoryType = CU_MEMORYTYPE_HOST;
	peer.dstHost = to;
	peer.WidthInBytes = 8;
	peer.Height = 3;
	peer.Depth = 4;
	OK(cuMemcpy3DPeer(&peer));
	ck_assert(all_bytes(&to[0][0][0], 0, sizeof(to)));
	peer.Depth = 5;
	INVALID(cuMemcpy3DPeer(&peer));
	peer.dstContext = NULL;
	FAILS(cuMemcpy3DPeer(&peer), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuMemFree(p));
}
END_TEST

START_TEST(a_batch_copies_all_or_names_the_one_that_fails)
{
	unsigned char a[64], b[64];
	CUdeviceptr dsts[3], srcs[3], p;
	size_t sizes[3] = {64, 32, 64}, first = 0, late = 3;
	CUmemcpyAttributes attr = {
	        .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUstream stream;

	client_start();
	OK(cuMemAlloc(&p, 64));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	memset(a, 1, sizeof(a));
	memset(b, 2, sizeof(b));
	dsts[0] = p;
	srcs[0] = (CUdeviceptr)(uintptr_t)a;
	dsts[1] = (CUdeviceptr)(uintptr_t)b;
	srcs[1] = (CUdeviceptr)(uintptr_t)a;
	dsts[2] = (CUdeviceptr)(uintptr_t)a;
	srcs[2] = p;
	OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 3, &attr, &first, 1, stream));
	OK(cuStreamSynchronize(stream));
	ck_assert(all_bytes(b, 1, 32));
	ck_assert(all_bytes(b + 32, 2, 32));
	ck_assert(all_bytes(a, 0, 64));
	INVALID(cuMemcpyBatchAsync(
	        dsts, srcs, sizes, 3, &attr, &late, 1, stream));
	INVALID(cuMemcpyBatchAsync(
	        dsts, srcs, sizes, 3, &attr, &first, 1, NULL));
	attr.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	INVALID(cuMemcpyBatchAsync(
	        dsts, srcs, sizes, 3, &attr, &first, 1, stream));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(p));
}
END_TEST

START_TEST(pinned_copies_run_beside_the_host)
{
	uint64_t begin, enqueued, done, link_ns = 64 * LINK_NS_PER_MIB;
	CUstream stream;
	CUdeviceptr d;
	void *p;

	client_start();
	OK(cuMemAlloc(&d, 64 * MIB));
	OK(cuMemHostAlloc(&p, 64 * MIB, 0));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int up = 0; up < 2; up++) {
		begin = now();
		if (up)
			OK(cuMemcpyHtoDAsync(d, p, 64 * MIB, stream));
		else
			OK(cuMemcpyDtoHAsync(p, d, 64 * MIB, stream));
		enqueued = now();
		ck_assert_uint_lt(enqueued - begin, 100000);
		FAILS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
		OK(cuStreamSynchronize(stream));
		done = now();
		ck_assert_uint_ge(done - begin, link_ns);
		ck_assert_uint_lt(done - begin, link_ns + 100000);
	}
	OK(cuStreamDestroy(stream));
	OK(cuMemFreeHost(p));
	OK(cuMemFree(d));
}
END_TEST

START_TEST(pageable_copies_hold_the_host)
{
	static unsigned char host[16 * MIB];
	uint64_t begin;
	CUdeviceptr d;

	client_start();
	OK(cuMemAlloc(&d, 16 * MIB));
	begin = now();
	OK(cuMemcpyDtoHAsync(host, d, 16 * MIB, NULL));
	ck_assert_uint_ge(now() - begin, 16 * LINK_NS_PER_MIB);
	begin = now();
	OK(cuMemcpyHtoDAsync(d, host, 16 * MIB, NULL));
	ck_assert_uint_ge(now() - begin, 16 * LINK_NS_PER_MIB);
	/* Small uploads are staged: the call returns at once. */
	begin = now();
	OK(cuMemcpyHtoDAsync(d, host, 4096, NULL));
	ck_assert_uint_lt(now() - begin, 10000);
	FAILS(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	OK(cuCtxSynchronize());
	OK(cuMemFree(d));
}
END_TEST

START_TEST(copies_on_the_device_do_not_hold_the_host)
{
	uint64_t begin;
	CUdeviceptr d;

	client_start();
	OK(cuMemAlloc(&d, 512 * MIB));
	begin = now();
	OK(cuMemcpyDtoD(d, d + 256 * MIB, 256 * MIB));
	ck_assert_uint_lt(now() - begin, 50000);
	OK(cuMemsetD8(d, 0, 512 * MIB));
	ck_assert_uint_lt(now() - begin, 100000);
	OK(cuCtxSynchronize());
	ck_assert_uint_gt(now() - begin, 200000);
	OK(cuMemFree(d));
}
END_TEST

START_TEST(large_downloads_cost_no_host_memory)
{
	size_t bytes = 512 * MIB;
	unsigned char *p;
	CUdeviceptr d;

	client_start();
	OK(cuMemAlloc(&d, bytes));
	OK(cuMemHostAlloc((void **)&p, bytes, 0));
	memset(p + 5 * MIB, 1, MIB);
	OK(cuMemcpyDtoH(p + 100, d, bytes - 200));
	ck_assert(all_bytes(p + 5 * MIB, 0, MIB));
	ck_assert_uint_lt(resident_bytes(p), 16 * MIB);
	OK(cuMemcpyHtoD(d, p, bytes));
	ck_assert_uint_lt(resident_bytes(p), 16 * MIB);
	OK(cuMemFreeHost(p));
	OK(cuMemFree(d));
}
END_TEST

START_TEST(freeing_waits_for_work_that_uses_the_memory)
{
	CUstream stream;
	CUdeviceptr d;
	uint64_t begin;
	void *p;

	client_start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&d, 64 * MIB));
	OK(cuMemHostAlloc(&p, 64 * MIB, 0));
	begin = now();
	OK(cuMemcpyDtoHAsync(p, d, 64 * MIB, stream));
	OK(cuMemFree(d));
	ck_assert_uint_ge(now() - begin, 64 * LINK_NS_PER_MIB);
	OK(cuStreamQuery(stream));
	OK(cuMemFreeHost(p));
	OK(cuStreamDestroy(stream));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("copy");

	tcase_add_test(tests, every_direction_copies);
	tcase_add_test(tests, nothing_is_copied_of_size_zero);
	tcase_add_test(tests, copies_out_of_bounds_are_refused);
	tcase_add_test(tests, memsets_reach_host_memory_the_device_sees);
	tcase_add_test(tests, rows_are_copied_with_their_pitches);
	tcase_add_test(tests, boxes_are_copied_with_their_slices);
	tcase_add_test(tests, a_batch_copies_all_or_names_the_one_that_fails);
	tcase_add_test(tests, pinned_copies_run_beside_the_host);
	tcase_add_test(tests, pageable_copies_hold_the_host);
	tcase_add_test(tests, copies_on_the_device_do_not_hold_the_host);
	tcase_add_test(tests, large_downloads_cost_no_host_memory);
	tcase_add_test(tests, freeing_waits_for_work_that_uses_the_memory);
	return client_run(tests, "mem_copy");
}
