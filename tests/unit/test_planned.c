/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Following a step, whether its times hold, and chunks for its pages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/planned_cache.h"
#include "planner/page_plan.h"
#include "tests/unit/suite.h"

static bool push(struct ts_follow *follow, uint64_t signature)
{
	return ts_follow_push(follow, &(struct ts_follow_op){signature, 1});
}

/* Pushes ops named by the letters of @text; how many ended a step. */
static unsigned int push_all(struct ts_follow *follow, const char *text)
{
	unsigned int steps = 0;

	while (*text)
		steps += push(follow, (uint64_t)*text++);
	return steps;
}

static void follow_text(struct ts_follow *follow, const char *text)
{
	struct ts_follow_op ops[64];
	uint32_t n = (uint32_t)strlen(text);

	for (uint32_t i = 0; i < n; i++)
		ops[i] = (struct ts_follow_op){(uint64_t)text[i], 1};
	ck_assert_int_eq(ts_follow_init(follow, ops, n), 0);
}

START_TEST(whole_steps_are_found)
{
	struct ts_follow follow;

	follow_text(&follow, "abcde");
	ck_assert_uint_eq(push_all(&follow, "abcd"), 0);
	ck_assert_uint_eq(push_all(&follow, "e"), 1);
	ck_assert_uint_eq(push_all(&follow, "abcdeabcde"), 2);
	ts_follow_finish(&follow);
}
END_TEST

START_TEST(other_work_between_is_no_step)
{
	struct ts_follow follow;

	follow_text(&follow, "abcde");
	/* An evaluation, a step cut short, one with an op too many. */
	ck_assert_uint_eq(push_all(&follow, "abxabcabcdabcxde"), 0);
	/* The first whole one after it counts. */
	ck_assert_uint_eq(push_all(&follow, "abcde"), 1);
	ts_follow_finish(&follow);
}
END_TEST

START_TEST(steps_that_begin_as_they_go_on_are_found)
{
	struct ts_follow follow;

	follow_text(&follow, "aabaac");
	/* The step begins with the third op: the start overlaps itself. */
	ck_assert_uint_eq(push_all(&follow, "aabaabaac"), 1);
	ck_assert_uint_eq(push_all(&follow, "aaabaac"), 1);
	ts_follow_finish(&follow);
}
END_TEST

START_TEST(another_stream_is_another_op)
{
	struct ts_follow follow;

	follow_text(&follow, "abc");
	push_all(&follow, "ab");
	ck_assert(!ts_follow_push(&follow, &(struct ts_follow_op){'c', 2}));
	ck_assert_uint_eq(follow.matched, 0);
	ts_follow_finish(&follow);
}
END_TEST

START_TEST(reset_forgets)
{
	struct ts_follow follow;

	follow_text(&follow, "abc");
	push_all(&follow, "ab");
	ts_follow_reset(&follow);
	ck_assert_uint_eq(push_all(&follow, "c"), 0);
	ck_assert_uint_eq(push_all(&follow, "abc"), 1);
	ts_follow_finish(&follow);
}
END_TEST

/* --------------------------------------------------------- several plans */

static struct ts_planned_cache cache;

static struct ts_planned_entry *add_entry(const char *text)
{
	struct ts_planned_entry *entry = ts_planned_cache_oldest(&cache, NULL);

	ts_planned_cache_drop(&cache, entry);
	follow_text(&entry->follow, text);
	entry->phases.steps = 1;
	ts_planned_cache_add(&cache, entry);
	return entry;
}

static struct ts_planned_entry *push_cache(const char *text)
{
	struct ts_planned_entry *found = NULL;

	while (*text)
		found = ts_planned_cache_push(&cache,
		        &(struct ts_follow_op){(uint64_t)*text++, 1}, NULL);
	return found;
}

static void empty_cache(void)
{
	for (int i = 0; i < TS_PLANS_MAX; i++)
		ts_planned_cache_drop(&cache, &cache.entries[i]);
	ck_assert_uint_eq(cache.count, 0);
}

START_TEST(each_step_is_told_by_its_own_plan)
{
	struct ts_planned_entry *one = add_entry("abcd");
	struct ts_planned_entry *two = add_entry("abxyd");

	ck_assert_ptr_eq(push_cache("abcd"), one);
	ck_assert_ptr_eq(push_cache("abxyd"), two);
	ck_assert_ptr_null(push_cache("abcx"));
	ck_assert_uint_eq(cache.count, 2);
	empty_cache();
}
END_TEST

START_TEST(of_two_plans_the_one_used_last_counts)
{
	struct ts_planned_entry *one = add_entry("cd");
	struct ts_planned_entry *two = add_entry("abcd");

	ck_assert_ptr_eq(push_cache("abcd"), two);
	ts_planned_cache_touch(&cache, one);
	ck_assert_ptr_eq(push_cache("abcd"), one);
	empty_cache();
}
END_TEST

START_TEST(what_went_by_of_one_step_may_be_another)
{
	struct ts_planned_entry *one = add_entry("abcdef");
	struct ts_planned_entry *two = add_entry("abcx");

	push_cache("ab");
	/* Three ops of the first went by, unseen by the second. */
	ts_planned_cache_rewind(&cache, one, 3);
	ck_assert_ptr_eq(push_cache("x"), two);
	push_cache("abc");
	ts_planned_cache_rewind(&cache, one, 0);
	ck_assert_ptr_null(push_cache("x"));
	empty_cache();
}
END_TEST

START_TEST(plans_used_longest_ago_go_first)
{
	struct ts_planned_entry *first = add_entry("a");

	for (int i = 1; i < TS_PLANS_MAX; i++)
		add_entry("b");
	ck_assert_uint_eq(cache.count, TS_PLANS_MAX);
	ck_assert_ptr_eq(ts_planned_cache_oldest(&cache, NULL), first);
	/* What is in force stays. */
	ck_assert_ptr_ne(ts_planned_cache_oldest(&cache, first), first);
	ts_planned_cache_touch(&cache, first);
	ck_assert_ptr_ne(ts_planned_cache_oldest(&cache, NULL), first);
	empty_cache();
}
END_TEST

#define PAGE 0x1000u
#define BASE 0x100000u

static const struct ts_plan_segment segment = {BASE, 64};

static struct ts_plan_hold hold(uint32_t first, uint32_t pages, uint32_t from,
        uint32_t until, uint32_t free_tick)
{
	return (struct ts_plan_hold){BASE + first * (uint64_t)PAGE,
	        pages * (uint64_t)PAGE, from, until, from * 10, free_tick};
}

static void plan_for(
        const struct ts_plan_hold *holds, uint32_t n, struct ts_page_plan *plan)
{
	ck_assert_int_eq(
	        ts_page_plan_make(&segment, 1, holds, n, PAGE, 100, 1000, plan),
	        0);
}

/* The chunk of page @page of the segment, or UINT32_MAX. */
static uint32_t chunk_of(const struct ts_page_plan *plan, uint32_t page)
{
	uint64_t address = BASE + page * (uint64_t)PAGE;

	for (uint32_t s = 0; s < plan->n_strips; s++) {
		const struct ts_plan_strip *strip = &plan->strips[s];

		if (address >= strip->address &&
		        address < strip->address + strip->pages * PAGE)
			return plan
			        ->chunk_of[strip->first_page +
			                   (address - strip->address) / PAGE];
	}
	return UINT32_MAX;
}

START_TEST(pages_apart_in_time_share_a_chunk)
{
	const struct ts_plan_hold holds[] = {
	        hold(0, 4, 0, 40, 400), hold(10, 4, 40, 100, 1000)};
	struct ts_page_plan plan;

	plan_for(holds, 2, &plan);
	ck_assert_uint_eq(plan.n_chunks, 4);
	ck_assert_uint_eq(plan.peak_pages, 4);
	ck_assert_uint_ne(chunk_of(&plan, 0), chunk_of(&plan, 1));
	ts_page_plan_finish(&plan);
}
END_TEST

START_TEST(pages_together_do_not)
{
	/* The copy out of the first ends after the second is there. */
	const struct ts_plan_hold holds[] = {
	        hold(0, 4, 0, 40, 450), hold(10, 4, 40, 100, 1000)};
	struct ts_page_plan plan;

	plan_for(holds, 2, &plan);
	ck_assert_uint_eq(plan.n_chunks, 8);
	ts_page_plan_finish(&plan);
}
END_TEST

static void plan_with(const struct ts_plan_hold *holds, uint32_t n,
        uint32_t most_chunks, struct ts_page_plan *plan)
{
	const struct ts_page_plan_input input = {.segments = &segment,
	        .n_segments = 1,
	        .holds = holds,
	        .n_holds = n,
	        .page_bytes = PAGE,
	        .n_ops = 100,
	        .n_ticks = 1000,
	        .most_chunks = most_chunks};

	ck_assert_int_eq(ts_page_plan_find(&input, plan), 0);
}

START_TEST(where_chunks_are_short_copies_wait_for_one_another)
{
	const struct ts_plan_hold holds[] = {
	        hold(0, 4, 0, 40, 450), hold(10, 4, 40, 100, 1000)};
	struct ts_page_plan plan;

	plan_with(holds, 2, 8, &plan);
	ck_assert_uint_eq(plan.n_chunks, 8);
	ts_page_plan_finish(&plan);
	/* As far as there are some nobody waits. */
	plan_with(holds, 2, 6, &plan);
	ck_assert_uint_eq(plan.n_chunks, 6);
	ts_page_plan_finish(&plan);
	plan_with(holds, 2, 4, &plan);
	ck_assert_uint_eq(plan.n_chunks, 4);
	ck_assert_uint_eq(plan.peak_pages, 4);
	/* When the copies begin and end is told as it was. */
	ck_assert_uint_eq(plan.stays[0].free_tick, 450);
	ck_assert_uint_eq(plan.stays[1].from_tick, 400);
	ts_page_plan_finish(&plan);
	/* What one op uses has chunks apart, however few there are. */
	plan_with((const struct ts_plan_hold[]){holds[0],
	                  hold(10, 4, 39, 100, 1000)},
	        2, 4, &plan);
	ck_assert_uint_eq(plan.n_chunks, 8);
	ck_assert_uint_eq(plan.peak_pages, 8);
	ts_page_plan_finish(&plan);
}
END_TEST

/* All in chunks from the first one on, as @places say. */
static int find_placed(const struct ts_plan_hold *holds, uint32_t n,
        const struct ts_plan_place *places, uint32_t n_places,
        struct ts_page_plan *plan)
{
	const struct ts_page_plan_input input = {.segments = &segment,
	        .n_segments = 1,
	        .holds = holds,
	        .n_holds = n,
	        .page_bytes = PAGE,
	        .n_ops = 100,
	        .n_ticks = 1000,
	        .places = places,
	        .n_places = n_places,
	        .n_chunks = 6};

	return ts_page_plan_find(&input, plan);
}

START_TEST(places_that_are_decided_are_taken)
{
	const struct ts_plan_hold holds[] = {
	        hold(0, 4, 0, 40, 450), hold(10, 4, 40, 100, 1000)};
	const struct ts_plan_place places[] = {{BASE, 4, 2},
	        {BASE + 10 * PAGE, 2, 4}, {BASE + 12 * PAGE, 2, 0}};
	struct ts_page_plan plan;

	ck_assert_int_eq(find_placed(holds, 2, places, 3, &plan), 0);
	ck_assert_uint_eq(plan.n_chunks, 6);
	ck_assert_uint_eq(chunk_of(&plan, 1), 3);
	ck_assert_uint_eq(chunk_of(&plan, 11), 5);
	ck_assert_uint_eq(chunk_of(&plan, 12), 0);
	ts_page_plan_finish(&plan);
	/* Pages without one. */
	ck_assert_int_eq(find_placed(holds, 2, places, 2, &plan), -EINVAL);
}
END_TEST

START_TEST(no_place_is_for_two_at_once)
{
	const struct ts_plan_hold holds[] = {
	        hold(0, 4, 0, 41, 450), hold(10, 4, 40, 100, 1000)};
	const struct ts_plan_place places[] = {
	        {BASE, 4, 0}, {BASE + 10 * PAGE, 4, 2}};
	struct ts_page_plan plan;

	ck_assert_int_eq(find_placed(holds, 2, places, 2, &plan), -EBUSY);
	/* Nor for pages of one range. */
	ck_assert_int_eq(find_placed(holds, 1,
	                         (const struct ts_plan_place[]){
	                                 {BASE, 2, 0}, {BASE + 2 * PAGE, 2, 1}},
	                         2, &plan),
	        -EBUSY);
}
END_TEST

/* There are two chunks: those of pages 20 and 10 share one. */
static void check_third_shares_with_second(const struct ts_plan_hold holds[3])
{
	struct ts_page_plan plan;

	plan_with(holds, 3, 2, &plan);
	ck_assert_uint_eq(plan.n_chunks, 2);
	ck_assert_uint_eq(chunk_of(&plan, 20), chunk_of(&plan, 10));
	ts_page_plan_finish(&plan);
}

START_TEST(who_waits_least_shares)
{
	/* The third comes while both others are being copied out. */
	const struct ts_plan_hold holds[] = {hold(0, 1, 0, 40, 480),
	        hold(10, 1, 0, 39, 420), hold(20, 1, 41, 90, 1000)};

	check_third_shares_with_second(holds);
}
END_TEST

START_TEST(what_waits_for_the_step_before_waits_too)
{
	/* The copy out of the first ends in the next step. */
	const struct ts_plan_hold holds[] = {hold(0, 1, 50, 100, 1100),
	        hold(10, 1, 50, 80, 820), hold(20, 1, 5, 40, 400)};

	check_third_shares_with_second(holds);
}
END_TEST

START_TEST(what_ends_in_the_next_step_keeps_its_chunk_there)
{
	/* Its copy out ends at tick 100 of the step after. */
	const struct ts_plan_hold holds[] = {hold(0, 1, 50, 100, 1100),
	        hold(10, 1, 0, 20, 200), hold(20, 1, 15, 40, 400)};
	struct ts_page_plan plan;

	plan_for(holds, 3, &plan);
	ck_assert_uint_ne(chunk_of(&plan, 0), chunk_of(&plan, 10));
	ck_assert_uint_eq(plan.n_chunks, 2);
	ts_page_plan_finish(&plan);
}
END_TEST

START_TEST(a_page_comes_back_to_its_chunk)
{
	const struct ts_plan_hold holds[] = {hold(0, 2, 0, 20, 200),
	        hold(0, 2, 60, 100, 1000), hold(10, 2, 30, 50, 500)};
	struct ts_page_plan plan;

	plan_for(holds, 3, &plan);
	ck_assert_uint_eq(plan.n_strips, 2);
	ck_assert_uint_eq(plan.strips[0].n_stays, 2);
	ck_assert_uint_eq(plan.n_chunks, 2);
	ts_page_plan_finish(&plan);
}
END_TEST

START_TEST(a_shared_page_stays_for_both)
{
	/* Two blocks meet in page 2. */
	struct ts_plan_hold holds[] = {
	        hold(0, 2, 0, 30, 300), hold(2, 2, 20, 60, 600)};
	struct ts_page_plan plan;

	holds[0].bytes += PAGE / 2;
	plan_for(holds, 2, &plan);
	for (uint32_t s = 0; s < plan.n_strips; s++) {
		const struct ts_plan_strip *strip = &plan.strips[s];
		const struct ts_plan_stay *stay =
		        &plan.stays[strip->first_stay];

		if (strip->address != BASE + 2 * PAGE)
			continue;
		ck_assert_uint_eq(strip->pages, 1);
		ck_assert_uint_eq(strip->n_stays, 1);
		ck_assert_uint_eq(stay->take_op, 0);
		ck_assert_uint_eq(stay->release_op, 60);
		ck_assert_uint_eq(stay->free_tick, 600);
	}
	ts_page_plan_finish(&plan);
}
END_TEST

START_TEST(what_lies_outside_is_left_out)
{
	struct ts_plan_hold holds[] = {hold(0, 1, 0, 100, 1000)};
	struct ts_page_plan plan;

	holds[0].address = BASE - PAGE;
	plan_for(holds, 1, &plan);
	ck_assert_uint_eq(plan.n_chunks, 0);
	ts_page_plan_finish(&plan);
}
END_TEST

START_TEST(nonsense_is_refused)
{
	struct ts_plan_hold holds[] = {hold(0, 1, 50, 50, 600)};
	struct ts_page_plan plan;

	ck_assert_int_eq(ts_page_plan_make(
	                         &segment, 1, holds, 1, PAGE, 100, 1000, &plan),
	        -EINVAL);
	holds[0] = hold(0, 1, 50, 101, 1010);
	ck_assert_int_eq(ts_page_plan_make(
	                         &segment, 1, holds, 1, PAGE, 100, 1000, &plan),
	        -EINVAL);
}
END_TEST

/* No chunk has two pages at a time, or at least not for one op. */
static void check_apart(const struct ts_page_plan *plan, bool by_ops)
{
	uint32_t *owner = calloc(plan->n_chunks * 1000ull, sizeof(*owner));

	for (uint32_t s = 0; s < plan->n_strips; s++) {
		const struct ts_plan_strip *strip = &plan->strips[s];

		for (uint32_t p = 0; p < strip->pages; p++) {
			uint32_t page = strip->first_page + p;
			uint32_t chunk = plan->chunk_of[page];

			for (uint32_t i = 0; i < strip->n_stays; i++) {
				const struct ts_plan_stay *stay =
				        &plan->stays[strip->first_stay + i];

				uint32_t t = by_ops ? stay->take_op
				                    : stay->from_tick;
				uint32_t end = by_ops ? stay->release_op
				                      : stay->free_tick;

				for (; t < end; t++) {
					uint32_t *at = &owner[chunk * 1000ull +
					                      t % 1000];

					ck_assert(!*at || *at == page + 1);
					*at = page + 1;
				}
			}
		}
	}
	free(owner);
}

START_TEST(random_holds_never_meet)
{
	struct ts_plan_hold holds[60];
	struct ts_page_plan plan;
	uint32_t any;

	srand(7 + _i);
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t from = (uint32_t)rand() % 99;
		uint32_t until = from + 1 + (uint32_t)rand() % (100 - from);

		holds[i] = hold((uint32_t)rand() % 60, 1 + (uint32_t)rand() % 4,
		        from, until, 0);
		holds[i].free_tick = until * 10 + (uint32_t)rand() % 50;
		if (holds[i].free_tick > holds[i].from_tick + 1000)
			holds[i].free_tick = holds[i].from_tick + 1000;
	}
	plan_for(holds, 60, &plan);
	ck_assert_uint_ge(plan.n_chunks, plan.peak_pages);
	check_apart(&plan, false);
	any = plan.n_chunks;
	ts_page_plan_finish(&plan);
	plan_with(holds, 60, any - any / 8, &plan);
	ck_assert_uint_ge(plan.n_chunks, plan.peak_pages);
	ck_assert_uint_le(plan.n_chunks, any);
	check_apart(&plan, true);
	ts_page_plan_finish(&plan);
}
END_TEST

/* ------------------------------------------------------------------- drift */

/* Steps take so many ns each; after how many of them the plan is old, or 0. */
static unsigned int steps_till_old(
        struct ts_planned_drift *drift, const uint64_t *ns, unsigned int steps)
{
	struct ts_planned_clock clock = {.steps = drift->seen};

	for (unsigned int i = 0; i < steps; i++) {
		clock.steps++;
		clock.last_ns = ns[i];
		if (ts_planned_drift_note(drift, &clock))
			return i + 1;
		/* Nothing new: no step more. */
		ck_assert(!ts_planned_drift_note(drift, &clock));
	}
	return 0;
}

START_TEST(steps_that_stay_off_make_a_plan_old)
{
	static const uint64_t slower[] = {1000, 1040, 1060, 1060, 1060, 1060};
	static const uint64_t faster[] = {940, 940, 940};
	struct ts_planned_drift drift = {.expected_ns = 1000};

	ck_assert_uint_eq(steps_till_old(&drift, slower, 6), 5);
	ck_assert_uint_eq(drift.expected_ns, 1060);
	ck_assert_uint_eq(drift.slower_ns, 60);
	/* It is told once. */
	ck_assert_uint_eq(steps_till_old(&drift, slower + 2, 3), 0);
	drift = (struct ts_planned_drift){.expected_ns = 1000};
	ck_assert_uint_eq(steps_till_old(&drift, faster, 3), 3);
	ck_assert_uint_eq(drift.slower_ns, 0);
}
END_TEST

START_TEST(single_steps_that_are_off_do_not)
{
	static const uint64_t ns[] = {
	        1500, 1500, 1000, 1500, 1500, 500, 500, 1500, 1500, 1050};
	struct ts_planned_drift drift = {.expected_ns = 1000};

	ck_assert_uint_eq(steps_till_old(&drift, ns, 10), 0);
	drift.expected_ns = 0;
	ck_assert_uint_eq(steps_till_old(&drift, ns, 2), 0);
}
END_TEST

/* A device that is never the same for long is not measured for ever. */
START_TEST(each_time_more_steps_have_to_be_off)
{
	static const uint64_t ns[] = {1200, 1200, 1200, 1000, 1000, 1000, 1000,
	        1000, 1000, 1200, 1200, 1200, 1200, 1200, 1200, 1200, 1200,
	        1200, 1200, 1200, 1200};
	struct ts_planned_drift drift = {.expected_ns = 1000};

	ck_assert_uint_eq(steps_till_old(&drift, ns, 3), 3);
	ck_assert_uint_eq(steps_till_old(&drift, ns + 3, 6), 6);
	ck_assert_uint_eq(drift.slower_ns, 0);
	ck_assert_uint_eq(steps_till_old(&drift, ns + 9, 11), 0);
	ck_assert_uint_eq(steps_till_old(&drift, ns + 20, 1), 1);
	ck_assert_uint_eq(drift.times, 3);
}
END_TEST

/* To time all once more would tell the same. */
START_TEST(a_plan_made_anew_that_was_never_right_stays)
{
	static const uint64_t ns[] = {
	        1200, 1200, 1200, 1200, 1200, 1200, 1200, 1400, 1400, 1400};
	struct ts_planned_drift drift = {.expected_ns = 1000, .again = true};

	ck_assert_uint_eq(steps_till_old(&drift, ns, 7), 0);
	ck_assert_uint_eq(drift.expected_ns, 1200);
	/* But not whatever comes. */
	ck_assert_uint_eq(steps_till_old(&drift, ns + 7, 3), 3);
}
END_TEST

/* ----------------------------------------------------------------- buckets */

/* Of as many ops as @family has letters. */
static struct ts_planned_bucket *bucket(struct ts_planned_buckets *buckets,
        const char *family, uint64_t peak_bytes)
{
	struct ts_rec_op ops[8] = {0};
	struct ts_recording step = {.ops = ops, .op_count = strlen(family)};

	for (size_t i = 0; i < step.op_count; i++)
		ops[i].family = (uint64_t)family[i];
	return ts_planned_bucket_of(buckets, &step, peak_bytes);
}

START_TEST(eight_buckets_reach_to_twice_the_size)
{
	struct ts_planned_buckets *buckets = calloc(1, sizeof(*buckets));

	for (uint64_t bytes = 1000000; bytes < 2000000; bytes += 1000)
		ck_assert_ptr_nonnull(bucket(buckets, "abc", bytes));
	ck_assert_uint_le(buckets->count, 9);
	ck_assert_uint_ge(buckets->count, 7);
	ck_assert_ptr_eq(bucket(buckets, "abc", 1000000),
	        bucket(buckets, "abc", 1001000));
	ck_assert_ptr_ne(bucket(buckets, "abc", 1000000),
	        bucket(buckets, "abd", 1000000));
	/* There is an end to them. */
	for (int i = 0; i < 60; i++)
		for (char letter = 'p'; letter < 'v'; letter++)
			bucket(buckets, (char[]){letter, '\0'}, 1ull << i);
	ck_assert_uint_eq(buckets->count, TS_BUCKETS_MAX);
	ck_assert_ptr_null(bucket(buckets, "x", 1));
	free(buckets);
}
END_TEST

START_TEST(a_plan_earns_the_next_one_of_its_bucket)
{
	struct ts_planned_bucket of = {0};

	ck_assert(ts_planned_bucket_may_plan(&of));
	of.plans = 1;
	ck_assert(!ts_planned_bucket_may_plan(&of));
	of.steps = 15;
	ck_assert(!ts_planned_bucket_may_plan(&of));
	of.steps = 16;
	ck_assert(ts_planned_bucket_may_plan(&of));
	of.plans = 2;
	ck_assert(!ts_planned_bucket_may_plan(&of));
	ck_assert(!ts_planned_bucket_may_plan(NULL));
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, eight_buckets_reach_to_twice_the_size);
	tcase_add_test(tcase, a_plan_earns_the_next_one_of_its_bucket);
	tcase_add_test(tcase, steps_that_stay_off_make_a_plan_old);
	tcase_add_test(tcase, single_steps_that_are_off_do_not);
	tcase_add_test(tcase, each_time_more_steps_have_to_be_off);
	tcase_add_test(tcase, a_plan_made_anew_that_was_never_right_stays);
	tcase_add_test(tcase, whole_steps_are_found);
	tcase_add_test(tcase, other_work_between_is_no_step);
	tcase_add_test(tcase, steps_that_begin_as_they_go_on_are_found);
	tcase_add_test(tcase, another_stream_is_another_op);
	tcase_add_test(tcase, reset_forgets);
	tcase_add_test(tcase, each_step_is_told_by_its_own_plan);
	tcase_add_test(tcase, of_two_plans_the_one_used_last_counts);
	tcase_add_test(tcase, what_went_by_of_one_step_may_be_another);
	tcase_add_test(tcase, plans_used_longest_ago_go_first);
	tcase_add_test(tcase, pages_apart_in_time_share_a_chunk);
	tcase_add_test(tcase, pages_together_do_not);
	tcase_add_test(
	        tcase, where_chunks_are_short_copies_wait_for_one_another);
	tcase_add_test(tcase, places_that_are_decided_are_taken);
	tcase_add_test(tcase, no_place_is_for_two_at_once);
	tcase_add_test(tcase, who_waits_least_shares);
	tcase_add_test(tcase, what_waits_for_the_step_before_waits_too);
	tcase_add_test(tcase, what_ends_in_the_next_step_keeps_its_chunk_there);
	tcase_add_test(tcase, a_page_comes_back_to_its_chunk);
	tcase_add_test(tcase, a_shared_page_stays_for_both);
	tcase_add_test(tcase, what_lies_outside_is_left_out);
	tcase_add_test(tcase, nonsense_is_refused);
	tcase_add_loop_test(tcase, random_holds_never_meet, 0, 40);
}

int main(void)
{
	return run_suite("planned", add_tests);
}
