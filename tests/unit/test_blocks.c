/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/blocks.h"
#include "tests/unit/suite.h"

#define MIB (1ull << 20)

static struct ts_blocks blocks;
static struct ts_stretch died[16];
static int died_count;

static void note_death(const struct ts_stretch *stretch, void *data)
{
	ck_assert_int_lt(died_count, 16);
	died[died_count++] = *stretch;
}

static void start(bool managed)
{
	died_count = 0;
	ts_blocks_init(&blocks);
	ck_assert_int_eq(ts_blocks_add_allocation(
	                         &blocks, 16 * MIB, 8 * MIB, 0, NULL, managed),
	        0);
}

static uint64_t block_at(uint64_t address)
{
	struct ts_block *block;
	uint64_t found;

	ts_mutex_lock(&blocks.lock);
	block = ts_blocks_find_locked(&blocks, address);
	found = block ? block->address : 0;
	ts_mutex_unlock(&blocks.lock);
	return found;
}

START_TEST(allocation_is_a_block_until_one_is_reported_inside)
{
	struct ts_stretch dead, live;

	start(true);
	ck_assert_uint_eq(block_at(16 * MIB), 16 * MIB);
	ck_assert_uint_eq(block_at(24 * MIB - 1), 16 * MIB);
	ck_assert_uint_eq(block_at(24 * MIB), 0);
	ck_assert_uint_eq(block_at(16 * MIB - 1), 0);
	ts_blocks_report(&blocks, 18 * MIB, 512, 0, &dead, &live);
	ck_assert_uint_eq(dead.address, 16 * MIB);
	ck_assert_uint_eq(dead.bytes, 8 * MIB);
	ck_assert_uint_eq(live.address, 18 * MIB);
	ck_assert_uint_eq(live.bytes, 512);
	ck_assert_uint_eq(block_at(16 * MIB), 0);
	ck_assert_uint_eq(block_at(18 * MIB + 511), 18 * MIB);
	ck_assert_uint_eq(block_at(18 * MIB + 512), 0);
	/* The second one changes nothing but itself. */
	ts_blocks_report(&blocks, 20 * MIB, MIB, 0, &dead, &live);
	ck_assert_int_eq(dead.device, -1);
	ck_assert_uint_eq(blocks.live_bytes, 512 + MIB);
	ts_blocks_report(&blocks, 18 * MIB, -512, 0, &dead, &live);
	ck_assert_uint_eq(dead.address, 18 * MIB);
	ck_assert_int_eq(live.device, -1);
	ck_assert_uint_eq(block_at(18 * MIB), 0);
	ck_assert_uint_eq(blocks.peak_bytes, 8 * MIB);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(block_outside_any_allocation_is_known_but_not_managed)
{
	struct ts_stretch dead, live;

	start(true);
	ts_blocks_report(&blocks, 64 * MIB, MIB, 0, &dead, &live);
	ck_assert_int_eq(live.device, -1);
	ck_assert_uint_eq(block_at(64 * MIB + 1), 64 * MIB);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(freed_allocation_takes_its_blocks_along)
{
	struct ts_allocation allocation;
	struct ts_stretch dead, live;

	start(true);
	ts_blocks_report(&blocks, 17 * MIB, MIB, 0, &dead, &live);
	ts_blocks_report(&blocks, 20 * MIB, MIB, 0, &dead, &live);
	ts_blocks_report(&blocks, 24 * MIB, MIB, 0, &dead, &live);
	ck_assert(!ts_blocks_remove_allocation(
	        &blocks, 17 * MIB, &allocation, note_death, NULL));
	ck_assert(ts_blocks_remove_allocation(
	        &blocks, 16 * MIB, &allocation, note_death, NULL));
	ck_assert_int_eq(died_count, 2);
	ck_assert_uint_eq(died[0].address, 17 * MIB);
	ck_assert_uint_eq(died[1].address, 20 * MIB);
	ck_assert_uint_eq(block_at(17 * MIB), 0);
	ck_assert_uint_eq(block_at(24 * MIB), 24 * MIB);
	ck_assert_uint_eq(blocks.live_bytes, MIB);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(whole_allocation_dies_as_one)
{
	struct ts_allocation allocation;

	start(true);
	ck_assert(ts_blocks_remove_allocation(
	        &blocks, 16 * MIB, &allocation, note_death, NULL));
	ck_assert_int_eq(died_count, 1);
	ck_assert_uint_eq(died[0].bytes, 8 * MIB);
	ck_assert_uint_eq(allocation.whole.bytes, 8 * MIB);
	ck_assert_uint_eq(blocks.live_bytes, 0);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(memory_the_pager_does_not_place_tells_it_nothing)
{
	struct ts_stretch dead, live;
	struct ts_allocation allocation;

	start(false);
	ts_blocks_report(&blocks, 17 * MIB, MIB, 0, &dead, &live);
	ck_assert_int_eq(dead.device, -1);
	ck_assert_int_eq(live.device, -1);
	ck_assert(ts_blocks_remove_allocation(
	        &blocks, 16 * MIB, &allocation, note_death, NULL));
	ck_assert_int_eq(died_count, 0);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(live_blocks_come_in_order_of_address)
{
	static const uint64_t wanted[] = {17 * MIB, 20 * MIB, 40 * MIB};
	struct ts_stretch dead, live;
	struct ts_block *block;
	size_t count = 0;

	start(true);
	ts_blocks_report(&blocks, 20 * MIB, MIB, 0, &dead, &live);
	ts_blocks_report(&blocks, 17 * MIB, MIB, 0, &dead, &live);
	ck_assert_int_eq(
	        ts_blocks_add_allocation(&blocks, 40 * MIB, MIB, 0, NULL, true),
	        0);
	ts_mutex_lock(&blocks.lock);
	block = ts_blocks_next_locked(&blocks, 0);
	while (block) {
		ck_assert_uint_lt(count, 3);
		ck_assert_uint_eq(block->address, wanted[count++]);
		block = ts_blocks_next_locked(&blocks, block->address);
	}
	ts_mutex_unlock(&blocks.lock);
	ck_assert_uint_eq(count, 3);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(mapped_memory_is_no_block_and_one_block_spans_several)
{
	struct ts_allocation allocation;
	struct ts_stretch dead, live;

	start(true);
	ck_assert_int_eq(
	        ts_blocks_add_mapped(&blocks, 32 * MIB, 4 * MIB, 0), 0);
	ck_assert_int_eq(
	        ts_blocks_add_mapped(&blocks, 36 * MIB, 4 * MIB, 0), 0);
	ck_assert_uint_eq(block_at(33 * MIB), 0);
	ck_assert_uint_eq(blocks.live_bytes, 8 * MIB);
	ts_blocks_report(&blocks, 35 * MIB, 2 * MIB, 0, &dead, &live);
	ck_assert_int_eq(dead.device, -1);
	ck_assert_uint_eq(live.address, 35 * MIB);
	ck_assert_int_eq(live.device, 0);
	ck_assert_uint_eq(block_at(37 * MIB - 1), 35 * MIB);
	ts_blocks_report(&blocks, 35 * MIB, -2 * (int64_t)MIB, 0, &dead, &live);
	ck_assert_uint_eq(dead.bytes, 2 * MIB);
	ck_assert(ts_blocks_remove_allocation(
	        &blocks, 32 * MIB, &allocation, note_death, NULL));
	ck_assert(allocation.mapped);
	ck_assert_int_eq(died_count, 0);
	ts_blocks_finish(&blocks);
}
END_TEST

/* As the same reports one by one, whatever asks for blocks first. */
static size_t late_count(void)
{
	ts_late_sort(&blocks.late);
	return blocks.late.count;
}

START_TEST(late_reports_are_there_when_somebody_asks)
{
	struct ts_allocation allocation;
	struct ts_stretch dead, live;
	struct ts_block *block;

	start(true);
	/* The first block of an allocation is never late. */
	ts_blocks_report_late(&blocks, 17 * MIB, MIB, 0);
	ck_assert_uint_eq(late_count(), 0);
	ck_assert_uint_eq(blocks.live_bytes, MIB);
	/* Two places: one block that stays, two that give way to a third. */
	ts_blocks_report_late(&blocks, 20 * MIB, MIB, 0);
	ts_blocks_report_late(&blocks, 17 * MIB, -(int64_t)MIB, 0);
	ts_blocks_report_late(&blocks, 17 * MIB, 2 * MIB, 0);
	ts_blocks_report_late(&blocks, 17 * MIB, -(int64_t)(2 * MIB), 0);
	ts_blocks_report_late(&blocks, 17 * MIB, 512, 0);
	ck_assert_uint_eq(late_count(), 2);
	ck_assert_uint_eq(blocks.live_bytes, MIB + 512);
	/* Before the first there was the allocation as a whole. */
	ck_assert_uint_eq(blocks.peak_bytes, 8 * MIB);
	ck_assert_uint_eq(block_at(17 * MIB + 511), 17 * MIB);
	ck_assert_uint_eq(block_at(17 * MIB + 512), 0);
	ck_assert_uint_eq(block_at(20 * MIB), 20 * MIB);
	ck_assert_uint_eq(late_count(), 0);
	ck_assert_uint_eq(blocks.live_bytes, MIB + 512);
	ck_assert_uint_eq(blocks.peak_bytes, 8 * MIB);
	/* Whoever asks for the next block, or frees them all. */
	ts_blocks_report_late(&blocks, 17 * MIB, -512, 0);
	ts_mutex_lock(&blocks.lock);
	block = ts_blocks_next_locked(&blocks, 0);
	ck_assert_uint_eq(block->address, 20 * MIB);
	ck_assert(block->managed);
	ts_mutex_unlock(&blocks.lock);
	ts_blocks_report_late(&blocks, 20 * MIB, -(int64_t)MIB, 0);
	ts_blocks_report(&blocks, 18 * MIB, MIB, 0, &dead, &live);
	ck_assert_int_eq(dead.device, -1);
	ts_blocks_report_late(&blocks, 22 * MIB, MIB, 0);
	ck_assert(ts_blocks_remove_allocation(
	        &blocks, 16 * MIB, &allocation, note_death, NULL));
	ck_assert_int_eq(died_count, 2);
	ck_assert_uint_eq(blocks.live_bytes, 0);
	ts_blocks_finish(&blocks);
}
END_TEST

/* More than the table begins with, and none twice. */
START_TEST(late_reports_tell_neighbours_that_are_no_blocks_any_more)
{
	start(true);
	/* Both in one stretch of 2 MiB, in which the first one's is known. */
	ck_assert_int_eq(
	        ts_blocks_add_allocation(&blocks, 32 * MIB, MIB, 0, NULL, true),
	        0);
	ck_assert_int_eq(
	        ts_blocks_add_allocation(&blocks, 33 * MIB, MIB, 0, NULL, true),
	        0);
	for (int i = 0; i < 2; i++)
		ts_blocks_report_late(
		        &blocks, 32 * MIB + (uint64_t)i * 512, 512, 0);
	ck_assert_uint_eq(late_count(), 1);
	ck_assert_uint_eq(blocks.live_bytes, 9 * MIB + 1024);
	/* The first block of the second one is not late: it is one no more. */
	ts_blocks_report_late(&blocks, 33 * MIB, 512, 0);
	ck_assert_uint_eq(late_count(), 0);
	ck_assert_uint_eq(blocks.live_bytes, 8 * MIB + 3 * 512);
	ck_assert_uint_eq(block_at(33 * MIB + 512), 0);
	/* What comes to the same place later is looked at anew. */
	ck_assert(ts_blocks_remove_allocation(&blocks, 32 * MIB,
	        &(struct ts_allocation){.split = false}, note_death, NULL));
	ck_assert_int_eq(
	        ts_blocks_add_allocation(&blocks, 32 * MIB, MIB, 0, NULL, true),
	        0);
	ts_blocks_report_late(&blocks, 32 * MIB, 512, 0);
	ck_assert_uint_eq(late_count(), 0);
	ck_assert_uint_eq(blocks.live_bytes, 8 * MIB + 2 * 512);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(late_reports_of_an_odd_kind_are_not_lost)
{
	const uint64_t large = 1ull << 56;

	ts_blocks_init(&blocks);
	/* More than the table can say, and a device that it cannot. */
	ts_blocks_report_late(&blocks, 1ull << 57, (int64_t)large, 0);
	ts_blocks_report_late(&blocks, 16 * MIB, 512, 200);
	ck_assert_uint_eq(late_count(), 0);
	ck_assert_uint_eq(blocks.live_bytes, large + 512);
	ck_assert_uint_eq(block_at(16 * MIB), 16 * MIB);
	ts_blocks_report_late(&blocks, 1ull << 57, -(int64_t)large, 0);
	ck_assert_uint_eq(blocks.live_bytes, 512);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(many_late_reports_are_all_kept)
{
	start(true);
	for (uint64_t i = 0; i < 5000; i++)
		ts_blocks_report_late(&blocks, 64 * MIB + i * 512, 512, 0);
	for (uint64_t i = 0; i < 5000; i += 2)
		ts_blocks_report_late(&blocks, 64 * MIB + i * 512, -512, 0);
	ck_assert_uint_eq(late_count(), 5000);
	for (uint64_t i = 0; i < 5000; i++)
		ck_assert_uint_eq(block_at(64 * MIB + i * 512),
		        i % 2 ? 64 * MIB + i * 512 : 0);
	ck_assert_uint_eq(blocks.blocks.count, 2500);
	ts_blocks_finish(&blocks);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(
	        tests, mapped_memory_is_no_block_and_one_block_spans_several);
	tcase_add_test(
	        tests, allocation_is_a_block_until_one_is_reported_inside);
	tcase_add_test(
	        tests, block_outside_any_allocation_is_known_but_not_managed);
	tcase_add_test(tests, freed_allocation_takes_its_blocks_along);
	tcase_add_test(tests, whole_allocation_dies_as_one);
	tcase_add_test(tests, memory_the_pager_does_not_place_tells_it_nothing);
	tcase_add_test(tests, live_blocks_come_in_order_of_address);
	tcase_add_test(tests, late_reports_are_there_when_somebody_asks);
	tcase_add_test(tests,
	        late_reports_tell_neighbours_that_are_no_blocks_any_more);
	tcase_add_test(tests, late_reports_of_an_odd_kind_are_not_lost);
	tcase_add_test(tests, many_late_reports_are_all_kept);
}

int main(void)
{
	return run_suite("blocks", add_tests);
}
