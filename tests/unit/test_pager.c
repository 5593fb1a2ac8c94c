/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pager on a fake device with real content. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/unit/pager_fixture.h"

START_TEST(nothing_moves_while_everything_fits)
{
	uint64_t a, b;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	expect_bytes(a, 4 * PAGE, 1);
	ck_assert_uint_eq(fake_gpu.copies, 0);
	ck_assert_uint_eq(fake_gpu.waits, 0);
	ck_assert_uint_eq(fake_gpu.used_bytes, CONTEXT + 8 * PAGE);
	teardown();
}
END_TEST

START_TEST(least_recently_used_block_goes_and_comes_back_whole)
{
	uint64_t a, b, c;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	c = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_B), 0);
	ck_assert_int_eq(write_op(c, 4 * PAGE, 3, STREAM_A), 0);
	ck_assert_uint_eq(stats().out_bytes, 4 * PAGE);
	ck_assert_uint_eq(stats().evicted_pages, 4);
	expect_bytes(b, 4 * PAGE, 2);
	ck_assert_uint_eq(stats().in_bytes, 0);
	expect_bytes(a, 4 * PAGE, 1);
	ck_assert_uint_eq(stats().in_bytes, 4 * PAGE);
	expect_bytes(c, 4 * PAGE, 3);
	ck_assert_uint_le(fake_gpu.peak_bytes, CONTEXT + 8 * PAGE);
	teardown();
}
END_TEST

START_TEST(large_block_moves_with_one_copy_and_one_call)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_eq(stats().copies_out, 1);
	ck_assert_uint_eq(fake_gpu.maps, 2);
	ck_assert_uint_eq(fake_gpu.unmaps, 0);
	teardown();
}
END_TEST

/* Three blocks in turn with room for two: the longest unused is the worst. */
START_TEST(what_is_used_last_goes_where_the_step_is_known)
{
	uint64_t blocks[3], before = 0, now = 1;

	setup_with(8, 64);
	for (int i = 0; i < 3; i++)
		blocks[i] = alloc(4 * PAGE);
	for (int step = 0; step < 8; step++) {
		if (step == 4)
			before = stats().in_bytes;
		for (int i = 0; i < 3; i++, now += 10) {
			ts_pager_tell_time(pager, now, step < 2 ? 0 : 30);
			if (step)
				expect_bytes(blocks[i], 4 * PAGE, 1 + i);
			else
				write_op(blocks[i], 4 * PAGE, 1 + i, STREAM_A);
		}
	}
	/* Of twelve uses every second finds its block. */
	ck_assert_uint_eq(stats().in_bytes - before, 6 * 4 * PAGE);
	teardown();
}
END_TEST

#define FILLERS 16 /* small ops between those on blocks */

/* Three blocks in turn with room for two, and time between their ops. */
START_TEST(what_is_used_next_comes_back_before_its_op)
{
	uint64_t blocks[3], small, now = 1, before;
	unsigned int late = 0;

	setup_with(9, 64);
	for (int i = 0; i < 3; i++)
		blocks[i] = alloc(4 * PAGE);
	small = alloc(100);
	for (int i = 0; i < 3; i++)
		write_op(blocks[i], 4 * PAGE, 1 + i, STREAM_A);
	for (int turn = 0; turn < 18; turn++) {
		uint64_t period = turn < 6 ? 0 : 3 * (1 + FILLERS);

		ts_pager_tell_time(pager, now++, period);
		before = stats().in_bytes;
		expect_bytes(blocks[turn % 3], 4 * PAGE, 1 + turn % 3);
		late += turn >= 9 && stats().in_bytes != before;
		for (int i = 0; i < FILLERS; i++) {
			ts_pager_tell_time(pager, now++, period);
			read_op(small, 100);
			fake_gpu_ops.ctx_synchronize();
		}
	}
	ck_assert_uint_eq(late, 0);
	ck_assert_uint_le(fake_gpu.peak_bytes, CONTEXT + 9 * PAGE);
	teardown();
}
END_TEST

/* What goes next is saved while it stays, so that it goes without a copy. */
START_TEST(what_goes_next_is_saved_ahead)
{
	uint64_t blocks[3], small, now = 1, copied;

	setup_with(13, 64);
	for (int i = 0; i < 3; i++)
		blocks[i] = alloc(4 * PAGE);
	small = alloc(100);
	for (int turn = 0; turn < 6 * 16; turn++) {
		ts_pager_tell_time(pager, now++, turn < 48 ? 0 : 16);
		if (turn % 16 < 3)
			write_op(blocks[turn % 16], 4 * PAGE, 5 + turn % 16,
			        STREAM_A);
		else
			read_op(small, 100);
		/* Nothing is done ahead before something had to go. */
		if (turn == 40)
			read_op(alloc(4 * PAGE), 4 * PAGE);
		fake_gpu_ops.ctx_synchronize();
	}
	copied = stats().out_bytes;
	read_op(alloc(2 * PAGE), 2 * PAGE);
	ck_assert_uint_eq(stats().out_bytes, copied);
	for (int i = 0; i < 3; i++)
		expect_bytes(blocks[i], 4 * PAGE, 5 + i);
	teardown();
}
END_TEST

#define SLAB_PAGES ((64ull << 20) / PAGE) /* of the host pool */

/* Of the run that leaves last, half fills a slab up, half begins the next. */
START_TEST(copies_stay_within_one_pinned_allocation)
{
	uint64_t first, second, last, small, all = SLAB_PAGES * PAGE;
	struct ts_pager_options options = {.limit_bytes = CONTEXT + all,
	        .host_limit_bytes = 2 * all,
	        .unit_bytes = PAGE};

	setup_with(SLAB_PAGES, 2 * SLAB_PAGES);
	fake_gpu.total_bytes = 4096 * PAGE;
	ts_pager_destroy(pager, true);
	ck_assert(!ts_pager_create(&fake_gpu_ops, &options, &pager));
	first = alloc(all / 8 * 3);
	second = alloc(all);
	last = alloc(all);
	small = alloc(all / 4);
	ck_assert_int_eq(write_op(first, all / 8 * 3, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(second, all, 2, STREAM_A), 0);
	ck_assert_int_eq(write_op(last, all, 3, STREAM_A), 0);
	/* The second slab is full now; a quarter of @last leaves. */
	ck_assert_int_eq(write_op(small, all / 4, 4, STREAM_A), 0);
	ck_assert_uint_eq(stats().host_pinned_bytes, 2 * all);
	ts_pager_dead(pager, second, all / 2);
	ts_pager_dead(pager, small, all / 4);
	ck_assert_int_eq(write_op(second, all, 5, STREAM_A), 0);
	ck_assert_uint_eq(stats().host_pinned_bytes, 2 * all);
	expect_bytes(last, all, 3);
	ck_assert_uint_eq(fake_gpu.violations, 0);
	teardown();
}
END_TEST

START_TEST(free_pages_are_taken_first_and_without_a_copy)
{
	uint64_t a, b, c;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	c = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	/* Used last, but free. */
	ts_pager_dead(pager, b, 4 * PAGE);
	ck_assert_int_eq(write_op(c, 4 * PAGE, 3, STREAM_A), 0);
	ck_assert_uint_eq(fake_gpu.copies, 0);
	ck_assert_uint_eq(stats().reclaimed_pages, 4);
	expect_bytes(a, 4 * PAGE, 1);
	teardown();
}
END_TEST

START_TEST(page_never_written_is_dropped_without_a_copy)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_eq(fake_gpu.copies, 0);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	expect_bytes(b, 4 * PAGE, 2);
	teardown();
}
END_TEST

START_TEST(page_only_read_since_it_came_in_keeps_its_host_copy)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	expect_bytes(a, 4 * PAGE, 1);
	ck_assert_uint_eq(stats().out_bytes, 8 * PAGE);
	expect_bytes(b, 4 * PAGE, 2);
	expect_bytes(a, 4 * PAGE, 1);
	expect_bytes(b, 4 * PAGE, 2);
	ck_assert_uint_eq(stats().out_bytes, 8 * PAGE);
	/* A write makes the copy stale. */
	ck_assert_int_eq(write_op(b, 4 * PAGE, 5, STREAM_A), 0);
	expect_bytes(a, 4 * PAGE, 1);
	expect_bytes(b, 4 * PAGE, 5);
	teardown();
}
END_TEST

START_TEST(op_larger_than_the_limit_is_refused_and_told)
{
	struct ts_shortage shortage;
	struct ts_range both[2];
	uint64_t in = 0, out = 0, a, b;

	setup_with(6, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	both[0] = range(a, 4 * PAGE);
	both[1] = range(b, 4 * PAGE);
	ck_assert_int_eq(ts_pager_begin(pager, both, 2, 0, STREAM_A, &in, &out,
	                         &shortage),
	        -ENOMEM);
	ck_assert_int_eq(shortage.short_of, TS_SHORT_OF_DEVICE);
	ck_assert_uint_eq(shortage.need_bytes, 8 * PAGE);
	ck_assert_uint_eq(shortage.least_limit_bytes, CONTEXT + 8 * PAGE);
	ck_assert_uint_eq(pager->busy_count, 0);
	expect_bytes(a, 4 * PAGE, 1);
	teardown();
}
END_TEST

START_TEST(named_least_limit_does)
{
	struct ts_range both[2];
	uint64_t a, b;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	both[0] = range(a, 4 * PAGE);
	both[1] = range(b, 4 * PAGE);
	ck_assert_int_eq(begin(both, 2, STREAM_A), 0);
	ts_pager_end(pager, both, 2, STREAM_A, true);
	teardown();
}
END_TEST

START_TEST(allocation_that_can_never_fit_is_refused)
{
	struct ts_shortage shortage;
	uint64_t address;

	setup_with(400, 64);
	ck_assert_int_eq(
	        ts_pager_alloc(pager, 401 * PAGE, 0, &address, &shortage),
	        -ENOMEM);
	ck_assert_uint_eq(shortage.least_limit_bytes, CONTEXT + 401 * PAGE);
	/* More than can be counted in pages. */
	ck_assert_int_eq(
	        ts_pager_alloc(pager, UINT64_MAX, 0, &address, &shortage),
	        -ENOMEM);
	ck_assert_int_eq(shortage.short_of, TS_SHORT_OF_DEVICE);
	ck_assert_uint_gt(shortage.least_limit_bytes, CONTEXT + 401 * PAGE);
	/* All of it may be used by one op, but more can be allocated. */
	alloc(400 * PAGE);
	alloc(400 * PAGE);
	teardown();
}
END_TEST

START_TEST(allocation_that_may_be_cut_into_blocks_is_placed)
{
	uint64_t address;

	setup_with(8, 64);
	address = alloc(9 * PAGE);
	ck_assert_int_eq(write_op(address, 9 * PAGE, 1, STREAM_A), -ENOMEM);
	ck_assert_int_eq(write_op(address, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(
	        write_op(address + 4 * PAGE, 5 * PAGE, 2, STREAM_A), 0);
	expect_bytes(address, 4 * PAGE, 1);
	teardown();
}
END_TEST

START_TEST(small_allocations_share_a_page)
{
	uint64_t a, b;

	setup_with(8, 64);
	a = alloc(100);
	b = alloc(5000);
	ck_assert_uint_eq(a / PAGE, b / PAGE);
	ck_assert_uint_eq(fake_gpu.handles, 1);
	ck_assert_int_eq(write_op(a, 100, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 5000, 2, STREAM_A), 0);
	expect_bytes(a, 100, 1);
	ts_pager_dead(pager, a, 100);
	ck_assert_int_eq(ts_pager_free(pager, a, 100, 0), CUDA_SUCCESS);
	ck_assert_uint_eq(alloc(200), a);
	expect_bytes(b, 5000, 2);
	teardown();
}
END_TEST

START_TEST(freed_allocation_goes_back_to_the_driver)
{
	uint64_t a;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ts_pager_dead(pager, a, 4 * PAGE);
	ck_assert_int_eq(ts_pager_free(pager, a, 4 * PAGE, 0), CUDA_SUCCESS);
	ck_assert_uint_eq(fake_gpu.used_bytes, CONTEXT);
	ck_assert(!ts_pager_owns(pager, a));
	teardown();
}
END_TEST

START_TEST(full_host_pool_is_told)
{
	struct ts_shortage shortage;
	struct ts_range one;
	uint64_t in = 0, out = 0, a, b;

	setup_with(4, 2);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	one = range(b, 4 * PAGE);
	ck_assert_int_eq(ts_pager_begin(pager, &one, 1, 0, STREAM_A, &in, &out,
	                         &shortage),
	        -ENOSPC);
	ck_assert_int_eq(shortage.short_of, TS_SHORT_OF_HOST);
	ck_assert_uint_eq(shortage.host_limit_bytes, 2 * PAGE);
	expect_bytes(a, 4 * PAGE, 1);
	teardown();
}
END_TEST

/* a: dirty and used longest ago. b: clean, with a copy in the full pool. */
START_TEST(clean_pages_go_where_the_host_pool_is_full)
{
	uint64_t a, b, c;

	setup_with(4, 2);
	a = alloc(2 * PAGE);
	b = alloc(2 * PAGE);
	c = alloc(2 * PAGE);
	ck_assert_int_eq(write_op(b, 2 * PAGE, 2, STREAM_A), 0);
	ck_assert_int_eq(write_op(a, 2 * PAGE, 1, STREAM_A), 0);
	read_op(c, 2 * PAGE);
	expect_bytes(b, 2 * PAGE, 2);
	expect_bytes(a, 2 * PAGE, 1);
	expect_bytes(b, 2 * PAGE, 2);
	ck_assert_uint_eq(stats().host_pinned_bytes, 2 * PAGE);
	read_op(c, 2 * PAGE);
	expect_bytes(a, 2 * PAGE, 1);
	expect_bytes(b, 2 * PAGE, 2);
	teardown();
}
END_TEST

START_TEST(copy_of_a_page_in_use_gives_its_slot)
{
	struct ts_range both[2];
	uint64_t a, b, c;

	setup_with(4, 2);
	a = alloc(2 * PAGE);
	b = alloc(2 * PAGE);
	c = alloc(2 * PAGE);
	ck_assert_int_eq(write_op(a, 2 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 2 * PAGE, 2, STREAM_A), 0);
	read_op(c, 2 * PAGE);
	/* c goes: it has no content. a is clean now, its copy fills the pool.
	 */
	expect_bytes(a, 2 * PAGE, 1);
	both[0] = range(a, 2 * PAGE);
	both[0].access = TS_ACCESS_READ;
	both[1] = range(c, 2 * PAGE);
	/* For c only b can go, to the slots of a. */
	ck_assert_int_eq(begin(both, 2, STREAM_A), 0);
	ts_pager_end(pager, both, 2, STREAM_A, true);
	ck_assert_uint_eq(stats().host_pinned_bytes, 2 * PAGE);
	expect_bytes(a, 2 * PAGE, 1);
	teardown();
}
END_TEST

START_TEST(pinned_page_is_no_victim)
{
	struct ts_range one;
	uint64_t a, b, c;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	c = alloc(4 * PAGE);
	one = range(a, 4 * PAGE);
	ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
	ts_pager_pin(pager, &one, TS_PIN_ESCAPED);
	ts_pager_end(pager, &one, 1, 0, false);
	ck_assert_uint_eq(stats().pinned_bytes, 4 * PAGE);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	ck_assert_int_eq(write_op(c, 4 * PAGE, 3, STREAM_A), 0);
	/* Resident: touched without an op. */
	memset((void *)(uintptr_t)a, 9, 4 * PAGE);
	/* Until its block is free. */
	ts_pager_dead(pager, a, 4 * PAGE);
	ck_assert_uint_eq(stats().pinned_bytes, 0);
	teardown();
}
END_TEST

START_TEST(nothing_is_moved_out_while_capturing)
{
	struct ts_shortage shortage;
	struct ts_range one;
	uint64_t in = 0, out = 0, a, b;

	setup_with(4, 64);
	fake_gpu.fail_with = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	one = range(b, 4 * PAGE);
	ck_assert_int_eq(ts_pager_begin(pager, &one, 1, TS_BEGIN_CAPTURING,
	                         STREAM_A, &in, &out, &shortage),
	        -EBUSY);
	ck_assert_int_eq(shortage.short_of, TS_SHORT_CAPTURING);
	ck_assert_uint_eq(shortage.least_limit_bytes, CONTEXT + 8 * PAGE);
	/* What is captured stays for good, even when its block is freed. */
	one = range(a, 4 * PAGE);
	ck_assert_int_eq(ts_pager_begin(pager, &one, 1, TS_BEGIN_CAPTURING,
	                         STREAM_A, &in, &out, &shortage),
	        0);
	ts_pager_end(pager, &one, 1, STREAM_A, true);
	ts_pager_dead(pager, a, 4 * PAGE);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), -ENOMEM);
	/* Once there is no graph it may go. */
	ck_assert_uint_eq(ts_pager_unpin_captured(pager), 4 * PAGE);
	ck_assert_uint_eq(ts_pager_unpin_captured(pager), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	teardown();
}
END_TEST

START_TEST(what_a_graph_wrote_is_kept_when_it_is_gone)
{
	struct ts_shortage shortage;
	struct ts_range one;
	uint64_t in = 0, out = 0, a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	one = range(a, 4 * PAGE);
	one.access = TS_ACCESS_READ;
	ck_assert_int_eq(ts_pager_begin(pager, &one, 1, TS_BEGIN_CAPTURING,
	                         STREAM_A, &in, &out, &shortage),
	        0);
	ts_pager_end(pager, &one, 1, STREAM_A, false);
	ck_assert_uint_eq(stats().pinned_bytes, 4 * PAGE);
	/* The launch names nothing. */
	ck_assert_int_eq(ts_pager_begin(pager, NULL, 0, 0, STREAM_B, &in, &out,
	                         &shortage),
	        0);
	memset((void *)(uintptr_t)a, 7, 4 * PAGE);
	fake_gpu_launch(STREAM_B, a, 4 * PAGE);
	ts_pager_end(pager, NULL, 0, STREAM_B, true);
	ts_pager_unpin_captured(pager);
	ck_assert_uint_eq(stats().pinned_bytes, 0);
	/* Taking it while the graph runs would be a violation. */
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_eq(fake_gpu.violations, 0);
	read_op(a, 4 * PAGE);
	expect_bytes(a, 4 * PAGE, 7);
	teardown();
}
END_TEST

START_TEST(free_while_capturing_waits_for_nothing)
{
	uint64_t a, b;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	b = alloc(2 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ts_pager_dead(pager, a, 4 * PAGE);
	ck_assert_int_eq(ts_pager_free(pager, a, 4 * PAGE, TS_BEGIN_CAPTURING),
	        CUDA_SUCCESS);
	ck_assert_uint_eq(fake_gpu.waits, 0);
	ck_assert_uint_eq(fake_gpu.reservations, 2);
	ts_pager_dead(pager, b, 2 * PAGE);
	ck_assert_int_eq(ts_pager_free(pager, b, 2 * PAGE, 0), CUDA_SUCCESS);
	ck_assert_uint_eq(fake_gpu.reservations, 0);
	ck_assert_uint_eq(fake_gpu.used_bytes, CONTEXT);
	teardown();
}
END_TEST

START_TEST(failed_free_is_made_good_by_the_next)
{
	uint64_t a, b;

	for (unsigned int at = 1; at < 8; at++) {
		setup_with(8, 64);
		a = alloc(4 * PAGE);
		b = alloc(2 * PAGE);
		ts_pager_dead(pager, a, 4 * PAGE);
		ts_pager_dead(pager, b, 2 * PAGE);
		fake_gpu.calls = 0;
		fake_gpu.fail_at = at;
		ck_assert_int_eq(ts_pager_free(pager, a, 4 * PAGE, 0),
		        at <= 2 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
		fake_gpu.fail_at = 0;
		ck_assert_int_eq(
		        ts_pager_free(pager, b, 2 * PAGE, 0), CUDA_SUCCESS);
		ck_assert_uint_eq(fake_gpu.reservations, 0);
		ck_assert_uint_eq(fake_gpu.used_bytes, CONTEXT);
		teardown();
	}
}
END_TEST

static atomic_bool freed;

static void *free_four_pages(void *argument)
{
	uint64_t address = *(uint64_t *)argument;

	ts_pager_dead(pager, address, 4 * PAGE);
	ts_pager_free(pager, address, 4 * PAGE, 0);
	atomic_store(&freed, true);
	return NULL;
}

START_TEST(free_waits_for_an_op_that_is_being_issued)
{
	struct ts_range one;
	pthread_t thread;
	uint64_t a;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	one = range(a, 4 * PAGE);
	ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
	atomic_store(&freed, false);
	pthread_create(&thread, NULL, free_four_pages, &a);
	usleep(100000);
	ck_assert(!atomic_load(&freed));
	memset((void *)(uintptr_t)a, 1, 4 * PAGE);
	fake_gpu_launch(STREAM_A, a, 4 * PAGE);
	ts_pager_end(pager, &one, 1, STREAM_A, true);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(pager->busy_count, 0);
	ck_assert_uint_eq(fake_gpu.reservations, 0);
	teardown();
}
END_TEST

START_TEST(refused_reservation_keeps_the_drivers_answer)
{
	struct ts_shortage shortage;
	uint64_t address;

	setup_with(8, 64);
	fake_gpu.fail_with = CUDA_ERROR_ILLEGAL_ADDRESS;
	fake_gpu.fail_at = fake_gpu.calls + 1;
	ck_assert_int_lt(
	        ts_pager_alloc(pager, 2 * PAGE, 0, &address, &shortage), 0);
	ck_assert_int_eq(shortage.short_of, TS_SHORT_DRIVER);
	ck_assert_int_eq(shortage.result, CUDA_ERROR_ILLEGAL_ADDRESS);
	teardown();
}
END_TEST

START_TEST(room_is_made_for_others)
{
	struct ts_shortage shortage;
	uint64_t a;

	setup_with(8, 64);
	a = alloc(8 * PAGE);
	ck_assert_int_eq(write_op(a, 8 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(ts_pager_make_room(pager, 3 * PAGE, 0, &shortage), 0);
	ck_assert_uint_le(fake_gpu.used_bytes, CONTEXT + 5 * PAGE);
	fake_gpu.used_bytes += 3 * PAGE;
	/* Now an op with all of it cannot run. */
	ck_assert_int_eq(write_op(a, 8 * PAGE, 2, STREAM_A), -ENOMEM);
	expect_bytes(a, 5 * PAGE, 1);
	fake_gpu.used_bytes -= 3 * PAGE;
	ts_pager_room_changed(pager);
	expect_bytes(a, 8 * PAGE, 1);
	ck_assert_int_eq(
	        ts_pager_make_room(pager, 9 * PAGE, 0, &shortage), -ENOMEM);
	teardown();
}
END_TEST

START_TEST(memory_info_tells_the_limit)
{
	uint64_t left, total;

	setup_with(8, 64);
	alloc(3 * PAGE);
	ck_assert_int_eq(ts_pager_mem_info(pager, &left, &total), 0);
	ck_assert_uint_eq(total, CONTEXT + 8 * PAGE);
	ck_assert_uint_eq(left, 5 * PAGE);
	teardown();
}
END_TEST

START_TEST(per_thread_and_destroyed_streams_are_waited_for)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, TS_STREAM_PER_THREAD), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_B), 0);
	ts_pager_stream_destroyed(pager, STREAM_B, FAKE_CONTEXT);
	expect_bytes(a, 4 * PAGE, 1);
	teardown();
}
END_TEST

START_TEST(legacy_stream_of_another_context_is_waited_for_there)
{
	uint64_t a, b, number;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	fake_gpu.context = FAKE_OTHER;
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1,
	                         ts_stream_in(TS_STREAM_LEGACY, FAKE_OTHER)),
	        0);
	fake_gpu.context = FAKE_CONTEXT;
	/* That the pager's context is idle says nothing of the other. */
	number = ts_pager_last_op(pager);
	fake_gpu_ops.ctx_synchronize();
	ts_pager_synchronized(pager, ts_stream_whole(FAKE_CONTEXT), number);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_eq(fake_gpu.violations, 0);
	expect_bytes(a, 4 * PAGE, 1);
	ck_assert_ptr_eq(fake_gpu_context(), FAKE_CONTEXT);
	teardown();
}
END_TEST

START_TEST(what_was_moved_out_outlives_the_context)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, TS_STREAM_LEGACY), 0);
	ck_assert_int_eq(ts_pager_rebind(pager, FAKE_OTHER), CUDA_SUCCESS);
	ck_assert_ptr_eq(ts_pager_context(pager), FAKE_OTHER);
	ck_assert_ptr_eq(fake_gpu_context(), FAKE_CONTEXT);
	expect_bytes(a, 4 * PAGE, 1);
	expect_bytes(b, 4 * PAGE, 2);
	fake_gpu.context = FAKE_OTHER;
	fake_gpu_context_gone(FAKE_CONTEXT);
	ts_pager_context_gone(pager, FAKE_CONTEXT);
	expect_bytes(a, 4 * PAGE, 1);
	teardown();
}
END_TEST

START_TEST(peers_reach_what_is_placed_and_what_comes_in)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_uint_eq(fake_gpu.opened, 1);
	ck_assert_int_eq(ts_pager_set_peers(pager, 1u << 1), CUDA_SUCCESS);
	ck_assert_uint_eq(fake_gpu.opened, 2);
	fake_gpu.opened = 0;
	read_op(a, 4 * PAGE);
	read_op(b, 4 * PAGE);
	ck_assert_uint_eq(fake_gpu.opened, 2);
	ck_assert_int_eq(ts_pager_set_peers(pager, 0), CUDA_SUCCESS);
	read_op(alloc(4 * PAGE), 4 * PAGE);
	ck_assert_uint_eq(fake_gpu.opened, 1);
	teardown();
}
END_TEST

START_TEST(what_the_program_waited_for_is_not_waited_for_again)
{
	uint64_t a, b, number;
	unsigned int waits;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	number = ts_pager_last_op(pager);
	fake_gpu_ops.stream_synchronize((CUstream)(uintptr_t)STREAM_A);
	ts_pager_synchronized(pager, STREAM_A, number);
	waits = fake_gpu.waits;
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	/* Nor is its copy. */
	ck_assert_uint_eq(fake_gpu.waits, waits);
	teardown();
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, nothing_moves_while_everything_fits);
	tcase_add_test(
	        tests, least_recently_used_block_goes_and_comes_back_whole);
	tcase_add_test(tests, large_block_moves_with_one_copy_and_one_call);
	tcase_add_test(tests, what_is_used_last_goes_where_the_step_is_known);
	tcase_add_test(tests, what_is_used_next_comes_back_before_its_op);
	tcase_add_test(tests, what_goes_next_is_saved_ahead);
	tcase_add_test(tests, copies_stay_within_one_pinned_allocation);
	tcase_add_test(tests, free_pages_are_taken_first_and_without_a_copy);
	tcase_add_test(tests, page_never_written_is_dropped_without_a_copy);
	tcase_add_test(
	        tests, page_only_read_since_it_came_in_keeps_its_host_copy);
	tcase_add_test(tests, op_larger_than_the_limit_is_refused_and_told);
	tcase_add_test(tests, named_least_limit_does);
	tcase_add_test(tests, allocation_that_can_never_fit_is_refused);
	tcase_add_test(tests, allocation_that_may_be_cut_into_blocks_is_placed);
	tcase_add_test(tests, small_allocations_share_a_page);
	tcase_add_test(tests, freed_allocation_goes_back_to_the_driver);
	tcase_add_test(tests, full_host_pool_is_told);
	tcase_add_test(tests, clean_pages_go_where_the_host_pool_is_full);
	tcase_add_test(tests, copy_of_a_page_in_use_gives_its_slot);
	tcase_add_test(tests, pinned_page_is_no_victim);
	tcase_add_test(tests, nothing_is_moved_out_while_capturing);
	tcase_add_test(tests, what_a_graph_wrote_is_kept_when_it_is_gone);
	tcase_add_test(tests, free_while_capturing_waits_for_nothing);
	tcase_add_test(tests, failed_free_is_made_good_by_the_next);
	tcase_add_test(tests, free_waits_for_an_op_that_is_being_issued);
	tcase_add_test(tests, refused_reservation_keeps_the_drivers_answer);
	tcase_add_test(tests, room_is_made_for_others);
	tcase_add_test(tests, memory_info_tells_the_limit);
	tcase_add_test(tests, per_thread_and_destroyed_streams_are_waited_for);
	tcase_add_test(
	        tests, legacy_stream_of_another_context_is_waited_for_there);
	tcase_add_test(tests, what_was_moved_out_outlives_the_context);
	tcase_add_test(tests, peers_reach_what_is_placed_and_what_comes_in);
	tcase_add_test(
	        tests, what_the_program_waited_for_is_not_waited_for_again);
}

int main(void)
{
	return run_suite("pager", add_tests);
}
