/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tagged content (SIMGPU_CONTENT=tags): what comes back is what went in. */
#include "mem_client.h"

#include "kernel_client.h"

#include "tests/simgpu/driver/simgpu_private.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READWRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define BIG       (24 * MIB)

static CUfunction kernel;

static void start(void)
{
	client_start();
	kernel = client_kernel("unheard_of", 2);
}

static void launch(CUdeviceptr a, CUdeviceptr b)
{
	void *params[] = {&a, &b};

	OK(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
}

static CUdeviceptr alloc(size_t bytes)
{
	CUdeviceptr p;

	OK(cuMemAlloc(&p, bytes));
	return p;
}

static unsigned char *pinned(size_t bytes)
{
	void *p;

	OK(cuMemHostAlloc(&p, bytes, 0));
	return p;
}

/* Random-looking, and different for every seed. */
static void scribble(unsigned char *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		p[i] = (unsigned char)(seed >> 24);
	}
}

/* What the host reads of device memory, in memory of its own. */
static unsigned char *read_back(CUdeviceptr p, size_t bytes)
{
	unsigned char *copy = malloc(bytes);

	ck_assert_ptr_nonnull(copy);
	OK(cuMemcpyDtoH(copy, p, bytes));
	return copy;
}

static bool same_content(CUdeviceptr a, CUdeviceptr b, size_t bytes)
{
	unsigned char *x = read_back(a, bytes), *y = read_back(b, bytes);
	bool same = memcmp(x, y, bytes) == 0;

	free(x);
	free(y);
	return same;
}

static size_t resident_bytes(const void *p)
{
	unsigned long first, last, want = (unsigned long)(uintptr_t)p;
	bool inside = false;
	size_t kib = 0;
	char line[256];
	FILE *f = fopen("/proc/self/smaps", "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
			inside = first <= want && want < last;
		else if (inside && sscanf(line, "Rss: %zu kB", &kib) == 1)
			break;
	}
	fclose(f);
	return kib * 1024;
}

/* Copies to the host cost memory only where missing pages go unnoticed. */
static void check_resident(const void *p, size_t limit)
{
	int fd = (int)syscall(SYS_userfaultfd, 0);

	if (fd < 0)
		return;
	close(fd);
	ck_assert_uint_lt(resident_bytes(p), limit);
}

START_TEST(small_uploads_keep_their_bytes)
{
	unsigned char from[10000], to[10000];
	CUdeviceptr a, b;

	start();
	a = alloc(4 * MIB);
	b = alloc(4 * MIB);
	scribble(from, sizeof(from), 1);
	/* Across a page of 2 MiB. */
	OK(cuMemcpyHtoD(a + PAGE - 5000, from, 10000));
	OK(cuMemcpyDtoD(b + 7, a + PAGE - 6000, 11000));
	OK(cuMemcpyDtoH(to, b + 7 + 1000, 10000));
	ck_assert_mem_eq(from, to, 10000);
	OK(cuMemcpyDtoH(to, a + PAGE - 1, 100));
	ck_assert_mem_eq(from + 4999, to, 100);
	/* A part written over, the rest as it was. */
	OK(cuMemcpyHtoD(a + PAGE - 100, from, 50));
	OK(cuMemcpyDtoH(to, a + PAGE - 5000, 10000));
	ck_assert_mem_eq(from, to, 4900);
	ck_assert_mem_eq(from, to + 4900, 50);
	ck_assert_mem_eq(from + 4950, to + 4950, 5050);
}
END_TEST

START_TEST(memsets_are_read_as_their_pattern)
{
	CUdeviceptr a;
	uint32_t words[64];
	unsigned char *bytes = (unsigned char *)words;

	start();
	a = alloc(BIG);
	OK(cuMemsetD32(a, 0x04030201, BIG / 4));
	OK(cuMemcpyDtoH(words, a + BIG / 2, 256));
	ck_assert_uint_eq(words[0], 0x04030201);
	ck_assert_uint_eq(words[63], 0x04030201);
	OK(cuMemcpyDtoH(words, a + 3, 8));
	ck_assert_uint_eq(bytes[0], 4);
	ck_assert_uint_eq(bytes[1], 1);
	OK(cuMemsetD16(a + 2, 0xbeef, 1));
	OK(cuMemsetD8(a + 5, 9, 1));
	OK(cuMemcpyDtoH(bytes, a, 8));
	ck_assert_mem_eq(bytes, "\x01\x02\xef\xbe\x01\x09\x03\x04", 8);
}
END_TEST

START_TEST(fresh_memory_reads_as_zeros)
{
	unsigned char *copy, nonzero = 0;
	CUdeviceptr a;

	start();
	a = alloc(MIB);
	copy = read_back(a, MIB);
	for (size_t i = 0; i < MIB; i++)
		nonzero |= copy[i];
	ck_assert_uint_eq(nonzero, 0);
	free(copy);
}
END_TEST

START_TEST(swapped_content_comes_back)
{
	unsigned char *host = malloc(BIG), *before, *out;
	CUdeviceptr a, b;

	start();
	a = alloc(BIG);
	b = alloc(BIG);
	out = pinned(BIG);
	scribble(host, BIG, 2);
	OK(cuMemcpyHtoD(a, host, BIG));
	before = read_back(a, BIG);
	/* Tagged values read as numbers between 0 and 1. */
	for (size_t i = 0; i < BIG / 4; i += 1000) {
		float x;

		memcpy(&x, before + 4 * i, 4);
		ck_assert(x > 0 && x < 1);
	}
	OK(cuMemcpyDtoH(out, a, BIG));
	OK(cuMemsetD8(a, 0, BIG));
	check_resident(out, MIB);
	/* In two halves, elsewhere. */
	OK(cuMemcpyHtoD(b + BIG / 2, out + BIG / 2, BIG / 2));
	OK(cuMemcpyHtoD(b, out, BIG / 2));
	check_resident(out, MIB);
	OK(cuMemcpyDtoH(host, b, BIG));
	ck_assert_mem_eq(host, before, BIG);
	free(host);
	free(before);
}
END_TEST

START_TEST(touched_host_memory_shows_its_bytes)
{
	unsigned char *host = malloc(BIG), *want, *out;
	CUdeviceptr a, b;

	start();
	a = alloc(BIG);
	b = alloc(BIG);
	out = pinned(BIG + MIB);
	scribble(host, BIG, 3);
	OK(cuMemcpyHtoD(a, host, BIG));
	want = read_back(a, BIG);
	out[50] = 1;
	OK(cuMemcpyDtoH(out + 100, a, BIG));
	ck_assert_uint_eq(out[50], 1);
	ck_assert_mem_eq(out + 100 + 3 * MIB, want + 3 * MIB, MIB);
	check_resident(out, 2 * MIB);
	/* Read, but not changed: the same content. */
	OK(cuMemcpyHtoD(b, out + 100, BIG));
	ck_assert(same_content(a, b, BIG));
	launch(a, 0);
	launch(b, 0);
	ck_assert(same_content(a, b, BIG));
	ck_assert_mem_eq(out + 100, want, BIG);
	free(host);
	free(want);
}
END_TEST

START_TEST(changed_host_memory_is_new_content)
{
	unsigned char *host = malloc(BIG), *out, byte;
	CUdeviceptr a, b;

	start();
	a = alloc(BIG);
	b = alloc(BIG);
	out = pinned(BIG);
	scribble(host, BIG, 4);
	OK(cuMemcpyHtoD(a, host, BIG));
	OK(cuMemcpyDtoH(out, a, BIG));
	byte = out[5 * MIB] ^= 0xff;
	OK(cuMemcpyHtoD(b, out, BIG));
	OK(cuMemcpyDtoH(host, b + 5 * MIB, 1));
	ck_assert_uint_eq(host[0], byte);
	ck_assert(!same_content(a, b, BIG));
	ck_assert(same_content(a, b, 4 * MIB));
	ck_assert(same_content(a + 6 * MIB, b + 6 * MIB, 4 * MIB));
	launch(a, 0);
	launch(b, 0);
	ck_assert(!same_content(a, b, 4 * MIB));
	free(host);
}
END_TEST

/* A tagged value of BIG bytes, and pageable memory with room for it. */
static CUdeviceptr tagged_value(uint32_t seed)
{
	CUdeviceptr a = alloc(BIG);
	unsigned char *host = malloc(BIG);

	ck_assert_ptr_nonnull(host);
	scribble(host, BIG, seed);
	OK(cuMemcpyHtoD(a, host, BIG));
	launch(a, 0);
	free(host);
	return a;
}

START_TEST(pageable_memory_brings_content_back)
{
	unsigned char *down, *elsewhere = malloc(BIG + 13);
	CUdeviceptr a, b, c;

	start();
	a = tagged_value(9);
	b = alloc(BIG);
	c = alloc(BIG);
	ck_assert_ptr_nonnull(elsewhere);
	down = read_back(a, BIG);
	/* The program moves it, as a file would. */
	memcpy(elsewhere + 13, down, BIG);
	memset(down, 0, BIG);
	OK(cuMemcpyHtoD(b, elsewhere + 13, BIG));
	ck_assert(same_content(a, b, BIG));
	/* In halves, with a part of a stretch at the end of one. */
	OK(cuMemcpyHtoD(c, elsewhere + 13, BIG / 2 + MIB / 2));
	OK(cuMemcpyHtoD(c + BIG / 2, elsewhere + 13 + BIG / 2, BIG / 2));
	ck_assert(same_content(a, c, BIG));
	/* Kernels compute the same of it. */
	launch(a, 0);
	launch(b, 0);
	launch(c, 0);
	ck_assert(same_content(a, b, BIG));
	ck_assert(same_content(a, c, BIG));
	free(down);
	free(elsewhere);
}
END_TEST

START_TEST(small_values_come_back_through_pageable_memory)
{
	unsigned char *down;
	CUdeviceptr a, b, c;

	start();
	a = tagged_value(10);
	b = alloc(5000);
	c = alloc(5000);
	down = read_back(a + MIB, 5000);
	OK(cuMemcpyHtoD(b, down, 5000));
	OK(cuMemcpyDtoD(c, a + MIB, 5000));
	launch(b, 0);
	launch(c, 0);
	ck_assert(same_content(b, c, 5000));
	free(down);
}
END_TEST

START_TEST(pageable_memory_that_is_changed_is_new_content)
{
	unsigned char *down;
	CUdeviceptr a, b;

	start();
	a = tagged_value(11);
	b = alloc(BIG);
	down = read_back(a, BIG);
	down[5 * MIB + 7] ^= 0xff;
	OK(cuMemcpyHtoD(b, down, BIG));
	ck_assert(same_content(a, b, 5 * MIB));
	ck_assert(!same_content(a + 5 * MIB, b + 5 * MIB, MIB));
	ck_assert(same_content(a + 6 * MIB, b + 6 * MIB, BIG - 6 * MIB));
	launch(a, 0);
	launch(b, 0);
	ck_assert(!same_content(a, b, 4 * MIB));
	free(down);
}
END_TEST

START_TEST(known_bytes_come_back_through_pageable_memory)
{
	unsigned char *host = malloc(BIG), *down;
	CUdeviceptr a, b;

	start();
	a = alloc(BIG);
	b = alloc(BIG);
	ck_assert_ptr_nonnull(host);
	/* Small uploads, in one large copy. */
	scribble(host, BIG, 12);
	for (size_t at = 0; at < BIG; at += MIB)
		OK(cuMemcpyHtoD(a + at, host + at, MIB));
	down = read_back(a, BIG);
	ck_assert_mem_eq(down, host, BIG);
	OK(cuMemcpyHtoD(b, down, BIG));
	free(down);
	down = read_back(b, BIG);
	ck_assert_mem_eq(down, host, BIG);
	free(down);
	/* Patterns, whoever made them. */
	OK(cuMemsetD32(a, 0x04030201, BIG / 4));
	down = read_back(a, BIG);
	OK(cuMemcpyHtoD(b, down, BIG));
	ck_assert(same_content(a, b, BIG));
	memset(host, 0, BIG);
	OK(cuMemcpyHtoD(b, host, BIG));
	free(down);
	down = read_back(b, BIG);
	ck_assert_mem_eq(down, host, BIG);
	free(down);
	free(host);
}
END_TEST

/* New bytes in every step, as a program's own counters and indices are. */
START_TEST(bytes_that_came_down_are_not_held_for_ever)
{
	unsigned char *host = malloc(MIB), *down;
	struct rusage before, after;
	CUdeviceptr a;

	start();
	a = alloc(MIB);
	ck_assert_ptr_nonnull(host);
	for (uint32_t step = 0; step < 40; step++) {
		if (step == 8)
			ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
		scribble(host, MIB, 100 + step);
		OK(cuMemcpyHtoD(a, host, MIB));
		down = read_back(a, MIB);
		ck_assert_mem_eq(down, host, MIB);
		free(down);
	}
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* Of 32 MiB that went by; sanitizers keep what is freed. */
	ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 8 * 1024);
#endif
	free(host);
}
END_TEST

/* Zeros of the program's are no undefined memory. */
START_TEST(undefined_memory_is_not_known_again)
{
	unsigned char *down, zeros[4096] = {0}, byte = 1;
	CUdeviceptr a, b;

	start();
	a = alloc(BIG);
	b = alloc(BIG);
	down = read_back(a, 4 * MIB);
	OK(cuMemcpyHtoD(a, down, 4096));
	OK(cuMemcpyHtoD(b, zeros, sizeof(zeros)));
	launch(a, 0);
	launch(b, 0);
	ck_assert(same_content(a, b, 4096));
	OK(cuMemcpyHtoD(a, down, 4 * MIB));
	OK(cuMemcpyDtoH(&byte, a + 2 * MIB, 1));
	ck_assert_uint_eq(byte, 0);
	free(down);
}
END_TEST

/* Runs the kernel on two uploads at given addresses. */
static void compute(CUdeviceptr in, CUdeviceptr out, uint32_t seed)
{
	unsigned char host[4096];

	scribble(host, sizeof(host), seed);
	OK(cuMemcpyHtoD(in, host, sizeof(host)));
	launch(in, out);
}

START_TEST(results_follow_from_inputs_and_not_from_addresses)
{
	CUdeviceptr a[3], b[3];

	start();
	alloc(100);
	for (int i = 0; i < 3; i++) {
		a[i] = alloc(4096);
		b[2 - i] = alloc(3 * MIB + 4096 * (size_t)i);
		b[2 - i] += 4096 * (size_t)i;
	}
	compute(a[0], b[0], 5);
	compute(a[1], b[1], 5);
	compute(a[2], b[2], 6);
	ck_assert(same_content(b[0], b[1], 3 * MIB));
	ck_assert(!same_content(b[0], b[2], 3 * MIB));
	launch(a[0], b[0]);
	ck_assert(!same_content(b[0], b[1], 4096));
	launch(a[1], b[1]);
	ck_assert(same_content(b[0], b[1], 3 * MIB));
}
END_TEST

START_TEST(aliases_show_one_content)
{
	CUmemGenericAllocationHandle chunk;
	unsigned char byte = 0;
	CUdeviceptr va;

	start();
	chunk = client_chunk(PAGE);
	va = client_reserve(3 * PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(cuMemMap(va + 2 * PAGE, PAGE, 0, chunk, 0));
	OK(client_access(va, PAGE, READWRITE));
	OK(client_access(va + 2 * PAGE, PAGE, READWRITE));
	OK(cuMemsetD8(va + 100, 7, 1));
	OK(cuMemcpyDtoH(&byte, va + 2 * PAGE + 100, 1));
	ck_assert_uint_eq(byte, 7);
	/* It stays with the chunk when that moves. */
	OK(cuMemUnmap(va, PAGE));
	OK(cuMemUnmap(va + 2 * PAGE, PAGE));
	OK(cuMemMap(va + PAGE, PAGE, 0, chunk, 0));
	OK(client_access(va + PAGE, PAGE, READWRITE));
	byte = 0;
	OK(cuMemcpyDtoH(&byte, va + PAGE + 100, 1));
	ck_assert_uint_eq(byte, 7);
}
END_TEST

START_TEST(new_blocks_do_not_see_what_lay_there_before)
{
	CUdeviceptr a, b, used, clean;

	start();
	used = alloc(8 * MIB);
	clean = alloc(8 * MIB);
	a = alloc(4096);
	b = alloc(4096);
	OK(cuMemsetD8(used, 1, 8 * MIB));
	simgpu_block(0, used, 8 * MIB);
	simgpu_block(0, clean, 8 * MIB);
	compute(a, used, 7);
	compute(b, clean, 7);
	ck_assert(same_content(used, clean, 8 * MIB));
	/* Freed and allocated anew. */
	simgpu_block(0, used, -(int64_t)(8 * MIB));
	simgpu_block(0, used, 4 * MIB);
	simgpu_block(0, clean, -(int64_t)(8 * MIB));
	simgpu_block(0, clean, 4 * MIB);
	OK(cuMemsetD8(clean + 4 * MIB, 5, MIB));
	OK(cuMemsetD8(used, 2, 100));
	OK(cuMemsetD8(clean, 2, 100));
	launch(used, 0);
	launch(clean, 0);
	ck_assert(same_content(used, clean, 4 * MIB));
}
END_TEST

START_TEST(a_block_moved_page_by_page_is_the_same)
{
	enum { PAGES = 4 };
	CUmemGenericAllocationHandle chunk;
	unsigned char *out, *before;
	CUdeviceptr va, in;

	start();
	in = alloc(4096);
	out = pinned(PAGES * PAGE);
	va = client_reserve(PAGES * PAGE);
	for (int i = 0; i < PAGES; i++) {
		chunk = client_chunk(PAGE);
		OK(cuMemMap(va + i * PAGE, PAGE, 0, chunk, 0));
		OK(cuMemRelease(chunk));
	}
	OK(client_access(va, PAGES * PAGE, READWRITE));
	simgpu_block(0, va + 512, PAGES * PAGE - 1024);
	compute(in, va + 512, 8);
	before = read_back(va + 512, PAGES * PAGE - 1024);
	for (int i = PAGES - 1; i >= 0; i--) {
		OK(cuMemcpyDtoH(out + i * PAGE, va + i * PAGE, PAGE));
		OK(cuMemUnmap(va + i * PAGE, PAGE));
		chunk = client_chunk(PAGE);
		OK(cuMemMap(va + i * PAGE, PAGE, 0, chunk, 0));
		OK(cuMemRelease(chunk));
		OK(client_access(va + i * PAGE, PAGE, READWRITE));
		OK(cuMemcpyHtoD(va + i * PAGE, out + i * PAGE, PAGE));
	}
	OK(cuMemcpyDtoH(out, va + 512, PAGES * PAGE - 1024));
	ck_assert_mem_eq(out, before, PAGES * PAGE - 1024);
	free(before);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("tags");

	tcase_add_test(tests, small_uploads_keep_their_bytes);
	tcase_add_test(tests, memsets_are_read_as_their_pattern);
	tcase_add_test(tests, fresh_memory_reads_as_zeros);
	tcase_add_test(tests, swapped_content_comes_back);
	tcase_add_test(tests, touched_host_memory_shows_its_bytes);
	tcase_add_test(tests, changed_host_memory_is_new_content);
	tcase_add_test(tests, pageable_memory_brings_content_back);
	tcase_add_test(tests, small_values_come_back_through_pageable_memory);
	tcase_add_test(tests, pageable_memory_that_is_changed_is_new_content);
	tcase_add_test(tests, known_bytes_come_back_through_pageable_memory);
	tcase_add_test(tests, bytes_that_came_down_are_not_held_for_ever);
	tcase_add_test(tests, undefined_memory_is_not_known_again);
	tcase_add_test(
	        tests, results_follow_from_inputs_and_not_from_addresses);
	tcase_add_test(tests, aliases_show_one_content);
	tcase_add_test(tests, new_blocks_do_not_see_what_lay_there_before);
	tcase_add_test(tests, a_block_moved_page_by_page_is_the_same);
	return client_run(tests, "mem_tags");
}
