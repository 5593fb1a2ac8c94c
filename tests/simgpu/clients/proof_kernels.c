/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The agent's checks of memory (agent/checksum.h) on the simulated GPU, with
 * tags and with exact content: equal content has equal sums wherever it lies,
 * different content has not, and a comparison tells what was written and what
 * does not agree. With exact content sums are those that the text of the PTX
 * comes to (tests/unit/ptx_run.py prints them).
 */
#include "mem_client.h"

#include <errno.h>

#include "agent/checksum.h"

#define BYTES 100003u
#define ROOM  (128u << 10)
#define MOST  64u

static const struct ts_gpu_ops ops = {
#define TS_GPU_OP(member, symbol, type) .member = symbol,
#include "runtime/gpu_ops.def"
};

static struct ts_checks *checks;

static bool is_exact(void)
{
	return !strcmp(getenv("SIMGPU_CONTENT"), "exact");
}

static void start(void)
{
	client_start();
	ck_assert_int_eq(ts_checks_create(&ops, MOST, &checks), 0);
}

static CUdeviceptr alloc(size_t bytes)
{
	CUdeviceptr va;

	OK(cuMemAlloc(&va, bytes));
	return va;
}

static unsigned char *pattern(size_t bytes)
{
	unsigned char *data = malloc(bytes);

	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)(i * 7 + i / 256);
	return data;
}

static uint32_t sum(CUdeviceptr va, size_t bytes, CUstream stream)
{
	uint32_t slot = MOST;

	ck_assert_int_eq(ts_checks_sum(checks, va, bytes,
	                         stream ? (ts_stream_key)(uintptr_t)stream
	                                : TS_STREAM_LEGACY,
	                         &slot),
	        0);
	ck_assert_uint_lt(slot, MOST);
	return slot;
}

static void collect(void)
{
	ck_assert_int_eq(ts_checks_collect(checks), 0);
	ck_assert_int_eq(ts_checks_wait(checks), 0);
	ck_assert(ts_checks_ready(checks));
}

static struct ts_check_result result(uint32_t slot)
{
	return ts_checks_result(checks, slot);
}

static bool same(uint32_t a, uint32_t b)
{
	return ts_check_same(result(a), result(b));
}

/* Launches of those that try the kernels, which did nothing. */
static const char *const lost[] = {
        "launch:1", "launch:3", "launch:4", "launch:5", "launch:6"};

START_TEST(kernels_that_see_nothing_are_not_believed)
{
	/* What is lost is told of tags alone. */
	setenv("SIMGPU_CONTENT", "tags", 1);
	setenv("SIMGPU_MUTATE", lost[_i], 1);
	client_start();
	ck_assert_int_eq(ts_checks_create(&ops, MOST, &checks), -ENOTSUP);
}
END_TEST

START_TEST(sums_are_those_of_the_text)
{
	unsigned char *data = pattern(BYTES);
	CUdeviceptr a;
	uint32_t slot;

	start();
	a = alloc(ROOM);
	OK(cuMemcpyHtoD(a, data, BYTES));
	slot = sum(a, BYTES, NULL);
	collect();
	if (is_exact()) {
		ck_assert_uint_eq(result(slot).word[0], 0xbdc8ccb8d6c82c64u);
		ck_assert_uint_eq(result(slot).word[1], 0x42d302c0de060bdeu);
	}
	ck_assert(result(slot).word[0] && result(slot).word[1]);
	free(data);
}
END_TEST

START_TEST(equal_content_has_equal_sums)
{
	unsigned char *data = pattern(BYTES), *other = pattern(BYTES);
	CUdeviceptr a, b;
	uint32_t slots[6];
	CUstream stream;
	void *host;

	start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemHostAlloc(&host, ROOM, 0));
	a = alloc(ROOM);
	b = alloc(ROOM);
	OK(cuMemcpyHtoD(a, data, BYTES));
	slots[0] = sum(a, BYTES, NULL);
	/* Out, and in at another address. */
	OK(cuMemcpyDtoH(host, a, BYTES));
	OK(cuMemcpyHtoDAsync(b, host, BYTES, stream));
	slots[1] = sum(b, BYTES, stream);
	OK(cuStreamSynchronize(stream));
	/* One byte, the last; then two words that change places. */
	OK(cuMemsetD8(b + BYTES - 1, 1, 1));
	slots[2] = sum(b, BYTES, NULL);
	slots[3] = sum(b, BYTES - 1, NULL);
	memcpy(other, data + 8, 8);
	memcpy(other + 8, data, 8);
	OK(cuMemcpyHtoD(b, other, BYTES));
	slots[4] = sum(b, BYTES, NULL);
	slots[5] = sum(a, BYTES, NULL);
	collect();
	ck_assert(same(slots[0], slots[1]));
	ck_assert(!same(slots[0], slots[2]));
	ck_assert(!same(slots[0], slots[3]));
	ck_assert(!same(slots[0], slots[4]));
	ck_assert(same(slots[0], slots[5]));
	free(data);
	free(other);
}
END_TEST

START_TEST(results_end_and_begin_again)
{
	CUdeviceptr a;
	uint32_t slot, first;

	start();
	a = alloc(ROOM);
	OK(cuMemsetD8(a, 3, ROOM));
	first = sum(a, ROOM, NULL);
	for (unsigned i = 1; i < MOST; i++)
		sum(a, ROOM / 2, NULL);
	ck_assert_int_eq(
	        ts_checks_sum(checks, a, 8, TS_STREAM_LEGACY, &slot), -ENOSPC);
	collect();
	ck_assert_uint_eq(ts_checks_used(checks), MOST);
	ck_assert(!same(first, 1));
	ck_assert(same(1, MOST - 1));
	ck_assert_int_eq(ts_checks_clear(checks), 0);
	ck_assert_uint_eq(ts_checks_used(checks), 0);
	/* Nothing of the results before is left to add to. */
	slot = sum(a, ROOM / 2, NULL);
	first = sum(a, ROOM / 2, NULL);
	collect();
	ck_assert(same(slot, first));
	ck_assert_int_eq(
	        ts_checks_sum(checks, a + 4, 8, TS_STREAM_LEGACY, &slot),
	        -EINVAL);
	ts_checks_destroy(checks, true);
}
END_TEST

/* A block, what it was, and two others that a kernel writes again. */
struct blocks {
	CUdeviceptr before, after, first, second;
};

static struct blocks make_blocks(void)
{
	struct blocks b = {alloc(ROOM), alloc(ROOM), alloc(ROOM), alloc(ROOM)};

	OK(cuMemsetD8(b.first, TS_FILL_FIRST, ROOM));
	OK(cuMemsetD8(b.second, TS_FILL_SECOND, ROOM));
	return b;
}

static uint32_t compare(const struct blocks *b, size_t bytes)
{
	struct ts_comparison comparison = {
	        b->before, b->after, b->first, b->second, bytes};
	uint32_t slot = MOST;

	ck_assert_int_eq(
	        ts_checks_compare(checks, &comparison, TS_STREAM_LEGACY, &slot),
	        0);
	return slot;
}

START_TEST(comparison_tells_written_and_wrong)
{
	unsigned char *data = pattern(BYTES);
	struct blocks b;
	uint32_t slots[7];

	start();
	b = make_blocks();
	/* Nothing was written at all. */
	OK(cuMemcpyHtoD(b.before, data, BYTES));
	OK(cuMemcpyHtoD(b.after, data, BYTES));
	slots[0] = compare(&b, BYTES);
	/* The first half was, in all three alike. */
	OK(cuMemsetD8(b.after, 9, BYTES / 2));
	OK(cuMemsetD8(b.first, 9, BYTES / 2));
	OK(cuMemsetD8(b.second, 9, BYTES / 2));
	slots[1] = compare(&b, BYTES);
	/* What was written again is not what was written first. */
	OK(cuMemsetD8(b.after + 100, 8, 1));
	slots[2] = compare(&b, BYTES);
	OK(cuMemsetD8(b.after + 100, 9, 1));
	/* It depends on what was there. */
	OK(cuMemsetD8(b.second + 100, 8, 1));
	slots[3] = compare(&b, BYTES);
	OK(cuMemsetD8(b.second + 100, 9, 1));
	/* A byte in the other half was written once, and not again. */
	OK(cuMemsetD8(b.after + BYTES - 2, 1, 1));
	slots[4] = compare(&b, BYTES);
	slots[5] = compare(&b, BYTES - 2);
	/* And what holds a pattern in one of them only was written. */
	OK(cuMemsetD8(b.after + BYTES - 2, TS_FILL_FIRST, 1));
	OK(cuMemsetD8(b.second + BYTES - 2, TS_FILL_FIRST, 1));
	slots[6] = compare(&b, BYTES);
	collect();
	ck_assert_uint_eq(result(slots[0]).word[0], 0);
	ck_assert_uint_eq(result(slots[0]).word[1], 0);
	ck_assert_uint_eq(result(slots[1]).word[0], 0);
	ck_assert_uint_eq(result(slots[1]).word[1], BYTES / 2);
	ck_assert_uint_eq(result(slots[2]).word[0], 1);
	ck_assert_uint_eq(result(slots[3]).word[0], 1);
	ck_assert_uint_eq(result(slots[4]).word[0], 1);
	ck_assert_uint_eq(result(slots[4]).word[1], BYTES / 2);
	ck_assert_uint_eq(result(slots[5]).word[0], 0);
	ck_assert_uint_eq(result(slots[6]).word[0], 0);
	ck_assert_uint_eq(result(slots[6]).word[1], BYTES / 2 + 1);
	free(data);
}
END_TEST

/* Only with tags does the device know what nobody wrote. */
START_TEST(undefined_memory_counts_for_nothing)
{
	struct blocks b;
	uint32_t slots[4];

	start();
	b = make_blocks();
	slots[0] = sum(b.before, ROOM, NULL);
	slots[1] = sum(b.after, ROOM, NULL);
	OK(cuMemsetD8(b.after, 1, 8));
	slots[2] = sum(b.after, ROOM, NULL);
	OK(cuMemsetD8(b.first, 1, 8));
	OK(cuMemsetD8(b.second, 1, 8));
	slots[3] = compare(&b, ROOM);
	collect();
	ck_assert(same(slots[0], slots[1]));
	ck_assert(!same(slots[0], slots[2]));
	ck_assert_uint_eq(result(slots[3]).word[0], 0);
	ck_assert_uint_eq(result(slots[3]).word[1], 8);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("proof_kernels");

	tcase_add_loop_test(tests, kernels_that_see_nothing_are_not_believed, 0,
	        sizeof(lost) / sizeof(lost[0]));
	tcase_add_test(tests, sums_are_those_of_the_text);
	tcase_add_test(tests, equal_content_has_equal_sums);
	tcase_add_test(tests, results_end_and_begin_again);
	tcase_add_test(tests, comparison_tells_written_and_wrong);
	tcase_add_test(tests, undefined_memory_counts_for_nothing);
	return client_run(tests, "proof_kernels");
}
