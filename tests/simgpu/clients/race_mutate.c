/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutations (SIMGPU_MUTATE): what is left out, and when the device can tell
 * that nobody could have noticed.
 */
#include "race_client.h"

#include "tests/simgpu/driver/simgpu_private.h"

#define BYTES        MIB /* uploads of that size keep their bytes */
#define NON_BLOCKING CU_STREAM_NON_BLOCKING

/* The report's one mutation, done; its verdict. */
static bool harmless(
        void (*scenario)(void), const char *mutation, const char *why)
{
	json_t *report, *list, *first;
	bool verdict;

	setenv("SIMGPU_CONTENT", "tags", 1);
	report = race_report(scenario, "SIMGPU_MUTATE", mutation);
	list = json_object_get(report, "mutations");
	ck_assert_uint_eq(json_array_size(list), 1);
	first = json_array_get(list, 0);
	ck_assert(json_is_true(json_object_get(first, "done")));
	ck_assert_msg(
	        strstr(json_string_value(json_object_get(first, "why")), why),
	        "%s", json_string_value(json_object_get(first, "why")));
	verdict = json_is_true(json_object_get(first, "harmless"));
	json_decref(report);
	return verdict;
}

/* ------------------------------------------------------------------ copies */

static bool overwritten, uploads_twice;
static unsigned char seen[BYTES];

static void up_and_down(void)
{
	static unsigned char data[BYTES];
	CUdeviceptr p;

	client_start();
	memset(data, 3, sizeof(data));
	p = race_device(BYTES);
	OK(cuMemcpyHtoD(p, data, BYTES)); /* copy 1 */
	if (uploads_twice)
		OK(cuMemcpyHtoD(p, data, BYTES)); /* copy 2 */
	if (overwritten)
		OK(cuMemsetD8(p, 9, BYTES));
	OK(cuMemcpyDtoH(seen, p, BYTES));
}

static void down_to_locked_dropped(void)
{
	static unsigned char data[BYTES];
	unsigned char *locked;
	CUdeviceptr p;

	client_start();
	memset(data, 3, sizeof(data));
	p = race_device(BYTES);
	OK(cuMemHostAlloc((void **)&locked, BYTES, 0));
	OK(cuMemcpyHtoD(p, data, BYTES));
	OK(cuMemcpyDtoH(locked, p, BYTES)); /* move 1 */
	OK(cuMemcpyDtoH(seen, p, BYTES));
	ck_assert_int_eq(locked[0], 0);
	ck_assert_int_eq(seen[0], 3);
	ck_assert_int_eq(seen[BYTES - 1], 3);
}

static void down_to_locked_shortened(void)
{
	unsigned char *locked;
	CUdeviceptr p;

	client_start();
	p = race_device(8 * BYTES);
	OK(cuMemHostAlloc((void **)&locked, 8 * BYTES, 0));
	OK(cuMemsetD8(p, 3, 8 * BYTES));
	OK(cuMemcpyDtoH(locked, p, 8 * BYTES)); /* shorten 1 */
	ck_assert_int_eq(locked[0], 3);
	ck_assert_int_eq(locked[6 * BYTES - 1], 3);
	ck_assert_int_eq(locked[6 * BYTES], 0);
}

static void up_and_down_dropped(void)
{
	up_and_down();
	ck_assert_int_eq(seen[0], 0);
	ck_assert_int_eq(seen[BYTES - 1], 0);
}

static void up_and_down_truncated(void)
{
	up_and_down();
	ck_assert_int_eq(seen[0], 3);
	ck_assert_int_eq(seen[BYTES / 2 - 1], 3);
	ck_assert_int_eq(seen[BYTES - 1], 0);
}

START_TEST(dropped_copy_is_missing)
{
	ck_assert(!harmless(up_and_down_dropped, "copy:1", "host"));
}
END_TEST

START_TEST(truncated_copy_lacks_its_end)
{
	ck_assert(!harmless(up_and_down_truncated, "truncate:1", "host"));
}
END_TEST

START_TEST(overwritten_copy_was_dead)
{
	overwritten = true;
	ck_assert(harmless(up_and_down, "copy:1", "dead"));
	ck_assert(harmless(up_and_down, "truncate:1", "dead"));
}
END_TEST

START_TEST(same_bytes_again_change_nothing)
{
	uploads_twice = true;
	ck_assert(harmless(up_and_down, "copy:2", "unchanged"));
}
END_TEST

/* ---------------------------------------------------------------- launches */

static bool looks_at_output, frees_output;

static void chain(void)
{
	CUfunction kernel;
	CUdeviceptr a, b, c;

	client_start();
	kernel = client_kernel("unheard_of", 2);
	a = race_device(BYTES);
	b = race_device(BYTES);
	c = race_device(BYTES);
	OK(cuMemsetD8(a, 1, BYTES));
	race_launch(kernel, a, b, NULL);
	race_launch(kernel, b, c, NULL);
	if (frees_output) {
		/* As a framework says that a block ends. */
		for (CUdeviceptr p = a; p; p = p == a ? b : p == b ? c : 0) {
			simgpu_block(0, p, BYTES);
			simgpu_block(0, p, -(int64_t)BYTES);
		}
	}
	if (looks_at_output)
		OK(cuMemcpyDtoH(seen, c, BYTES));
}

START_TEST(skipped_launch_reaches_the_host_through_others)
{
	looks_at_output = true;
	ck_assert(!harmless(chain, "launch:1", "host"));
}
END_TEST

START_TEST(skipped_launch_that_nobody_looks_at_is_dead)
{
	ck_assert(harmless(chain, "launch:1", "dead"));
	looks_at_output = frees_output = true;
	ck_assert(harmless(chain, "launch:2", "dead"));
}
END_TEST

static bool block_at_other_address;

/* A chunk at two addresses, as an agent maps one for two blocks in turn. */
static void aliased(void)
{
	CUmemGenericAllocationHandle chunk;
	CUdeviceptr va;

	client_start();
	chunk = client_chunk(PAGE);
	va = client_reserve(2 * PAGE);
	OK(cuMemMap(va, PAGE, 0, chunk, 0));
	OK(cuMemMap(va + PAGE, PAGE, 0, chunk, 0));
	OK(client_access(va, 2 * PAGE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	simgpu_block(0, va, BYTES);
	OK(cuMemcpyHtoD(va, seen, BYTES)); /* copy 1 */
	if (block_at_other_address) {
		simgpu_block(0, va + PAGE, BYTES);
		simgpu_block(0, va + PAGE, -(int64_t)BYTES);
	} else {
		simgpu_block(0, va, -(int64_t)BYTES);
		simgpu_block(0, va, BYTES);
		OK(cuMemUnmap(va + PAGE, PAGE));
		simgpu_block(0, va, -(int64_t)BYTES);
		simgpu_block(0, va, BYTES);
	}
	OK(cuMemcpyDtoH(seen, va, BYTES));
}

START_TEST(blocks_at_another_address_hide_nothing)
{
	block_at_other_address = true;
	ck_assert(!harmless(aliased, "copy:1", "host"));
	block_at_other_address = false;
	ck_assert(harmless(aliased, "copy:1", "dead"));
}
END_TEST

/* ------------------------------------------------------------------- waits */

static bool has_other_order, same_memory;

static void two_streams(void)
{
	CUstream a, b;
	CUdeviceptr p, q;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	q = race_device(BYTES);
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	race_order(b, a);
	if (has_other_order)
		OK(cuStreamSynchronize(a));
	OK(cuMemsetD8Async(q, 1, BYTES, b));
	OK(cuMemsetD8Async(same_memory ? p : q, 1, BYTES, b));
}

START_TEST(wait_that_was_needed)
{
	json_t *report;

	same_memory = true;
	ck_assert(!harmless(two_streams, "wait:1", "had to come after"));
	report = race_report(two_streams, "SIMGPU_MUTATE", "wait:1");
	ck_assert_int_eq(race_number(report, "races"), 1);
	json_decref(report);
}
END_TEST

START_TEST(wait_that_another_order_covers)
{
	same_memory = has_other_order = true;
	ck_assert(harmless(two_streams, "wait:1", "redundant"));
}
END_TEST

START_TEST(wait_between_what_has_nothing_in_common)
{
	ck_assert(harmless(two_streams, "wait:1", "same memory"));
}
END_TEST

static void bad_setting(void)
{
	FAILS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}

START_TEST(settings_that_make_no_sense_stop_the_driver)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		setenv("SIMGPU_CONTENT", _i == 2 ? "none" : "tags", 1);
		setenv("SIMGPU_MUTATE",
		        _i == 0   ? "copy"
		        : _i == 1 ? "copy:0"
		        : _i == 2 ? "copy:1"
		                  : "jump:1",
		        1);
		bad_setting();
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* Others, as up_and_down's, are not counted. */
START_TEST(copies_of_locked_memory_alone)
{
	ck_assert(!harmless(down_to_locked_dropped, "move:1", "bytes of it"));
	ck_assert(!harmless(
	        down_to_locked_shortened, "shorten:1", "bytes of it"));
}
END_TEST

/* --------------------------------------------------- page-locked memory */

static enum {
	NOBODY,
	AFTERWARDS,   /* the host reads the last byte */
	NEIGHBOUR,    /* it reads the byte behind */
	MANY_OTHERS,  /* pages elsewhere, then the last byte */
	THE_DEVICE,   /* a copy takes it up, and another to the host */
	OVER_WRITTEN, /* another copy down, then the host reads */
} looks;
static bool used_before, unaligned;

static void evicted(void)
{
	enum { PAGES = 5120, PAGE_STEP = 8192 };
	volatile unsigned char *locked, *others;
	unsigned char byte;
	CUdeviceptr p;

	client_start();
	p = race_device(4 * BYTES);
	OK(cuMemHostAlloc((void **)&locked, 8 * BYTES, 0));
	OK(cuMemHostAlloc((void **)&others, PAGES * PAGE_STEP, 0));
	OK(cuMemsetD8(p, 1, 4 * BYTES));
	/* Have touches of the others noticed too. */
	OK(cuMemcpyDtoH((void *)others, p, BYTES));
	for (unsigned i = 1; i < PAGES * PAGE_STEP / BYTES; i++)
		OK(cuMemcpyDtoH((void *)(others + i * BYTES), p, BYTES));
	if (used_before)
		memset((void *)locked, 2, 8 * BYTES);
	locked += BYTES + (unaligned ? 100 : 0);
	OK(cuMemsetD8(p, 3, 4 * BYTES));
	/* move K, shorten K */
	OK(cuMemcpyDtoH((void *)locked, p, 4 * BYTES));
	switch (looks) {
	case AFTERWARDS:
		byte = locked[4 * BYTES - 1];
		ck_assert_int_eq(byte, used_before ? 2 : 0);
		break;
	case NEIGHBOUR:
		ck_assert_int_eq(locked[4 * BYTES], used_before ? 2 : 0);
		ck_assert_int_eq(locked[-1], used_before ? 2 : 0);
		break;
	case MANY_OTHERS:
		for (unsigned i = 0; i < PAGES; i++)
			ck_assert_int_eq(others[i * PAGE_STEP], 1);
		byte = locked[4 * BYTES - 1];
		break;
	case THE_DEVICE:
		OK(cuMemcpyHtoD(p, (void *)locked, 4 * BYTES));
		OK(cuMemcpyDtoH(&byte, p + 4 * BYTES - 1, 1));
		ck_assert_int_eq(byte, used_before ? 2 : 0);
		break;
	case OVER_WRITTEN:
		OK(cuMemcpyDtoH((void *)locked, p, 4 * BYTES));
		ck_assert_int_eq(locked[0], 3);
		ck_assert_int_eq(locked[4 * BYTES - 1], 3);
		break;
	default:
		break;
	}
}

/* Each for fresh memory and for such as the host has used. */
static bool eviction_harmless(const char *why)
{
	bool fresh, used;

	used_before = false;
	fresh = harmless(evicted, "move:41", why);
	ck_assert(harmless(evicted, "shorten:41", why) == fresh);
	used_before = true;
	used = harmless(evicted, "move:41", why);
	ck_assert(harmless(evicted, "shorten:41", why) == used);
	ck_assert(fresh == used);
	return fresh;
}

START_TEST(eviction_that_nothing_reads_again_is_dead)
{
	looks = NOBODY;
	ck_assert(eviction_harmless("dead"));
	looks = NEIGHBOUR;
	ck_assert(eviction_harmless("dead"));
	looks = OVER_WRITTEN;
	ck_assert(eviction_harmless("dead"));
}
END_TEST

START_TEST(eviction_that_is_read_again_is_noticed)
{
	looks = AFTERWARDS;
	ck_assert(!eviction_harmless("4096 bytes of it touched"));
	looks = MANY_OTHERS;
	ck_assert(!eviction_harmless("touched by the host"));
	looks = THE_DEVICE;
	ck_assert(!eviction_harmless("written to host memory"));
}
END_TEST

/* A page with other things in it cannot be hidden. */
START_TEST(part_of_a_page_counts_as_looked_at)
{
	looks = NOBODY;
	unaligned = true;
	ck_assert(!harmless(evicted, "move:41", "written to host memory"));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("race_mutate");

	tcase_add_test(tests, dropped_copy_is_missing);
	tcase_add_test(tests, truncated_copy_lacks_its_end);
	tcase_add_test(tests, copies_of_locked_memory_alone);
	tcase_add_test(tests, eviction_that_nothing_reads_again_is_dead);
	tcase_add_test(tests, eviction_that_is_read_again_is_noticed);
	tcase_add_test(tests, part_of_a_page_counts_as_looked_at);
	tcase_add_test(tests, overwritten_copy_was_dead);
	tcase_add_test(tests, same_bytes_again_change_nothing);
	tcase_add_test(tests, skipped_launch_reaches_the_host_through_others);
	tcase_add_test(tests, skipped_launch_that_nobody_looks_at_is_dead);
	tcase_add_test(tests, blocks_at_another_address_hide_nothing);
	tcase_add_test(tests, wait_that_was_needed);
	tcase_add_test(tests, wait_that_another_order_covers);
	tcase_add_test(tests, wait_between_what_has_nothing_in_common);
	tcase_add_loop_test(
	        tests, settings_that_make_no_sense_stop_the_driver, 0, 4);
	return client_run(tests, "race_mutate");
}
