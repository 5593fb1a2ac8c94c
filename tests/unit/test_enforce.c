/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Steps by a page plan: no byte is lost, nothing is mapped, the limit holds. */
#include "runtime/enforce.h"

#include "tests/unit/enforce_fixture.h"

START_TEST(steps_by_plan_map_nothing_and_lose_nothing)
{
	unsigned int maps, unmaps;

	start(40);
	ck_assert_uint_lt(model.plan.n_chunks, 40);
	step_by_pager();
	adopt();
	step_by_plan();
	maps = fake_gpu.maps;
	unmaps = fake_gpu.unmaps;
	for (int i = 0; i < 6; i++) {
		struct ts_pager_stats before = stats();

		step_by_plan();
		/* Parameter and all layers but those that stay. */
		ck_assert_uint_eq(stats().out_bytes - before.out_bytes,
		        (LAYERS - KEPT + 1) * BLOCK);
		ck_assert_uint_eq(stats().in_bytes - before.in_bytes,
		        (LAYERS - KEPT + 1) * BLOCK);
	}
	ck_assert_uint_eq(fake_gpu.maps, maps);
	ck_assert_uint_eq(fake_gpu.unmaps, unmaps);
	ck_assert_uint_eq(ts_enforce_astray(pager), 0);
	ck_assert_uint_eq(ts_enforce_disturbed(pager), 0);
	end();
}
END_TEST

/* A block is one page in one chunk, however the pager had it, and one copy. */
START_TEST(what_moves_together_moves_as_one)
{
	struct ts_enforce_work before, after;
	uint32_t kept = 0;

	start(40);
	step_by_pager();
	adopt();
	for (int i = 0; i < 4; i++)
		step_by_plan();
	for (uint32_t i = 0; i < model.plan.n_stays; i++)
		kept += pager->enforce->gaps[i].kept;
	for (int i = 0; i < 3; i++) {
		ts_enforce_work(pager, &before);
		step_by_plan();
		ts_enforce_work(pager, &after);
		ck_assert_uint_eq(
		        after.copies - before.copies, 2 * (LAYERS - KEPT + 1));
		ck_assert_uint_eq(after.copied_bytes - before.copied_bytes,
		        2 * (LAYERS - KEPT + 1) * BLOCK);
		/* Those that are born or die, and the temporary one, too,
		 * where another comes in between. */
		ck_assert_uint_eq(after.pages - before.pages,
		        4 * LAYERS - 2 * KEPT + 4 - 2 * kept);
	}
	end();
}
END_TEST

/* The plan is as it was, but where some of it was there is nothing. */
START_TEST(what_is_gone_moves_no_more)
{
	struct ts_plan_hold holds[4];
	uint64_t other;

	start(40);
	other = alloc(BLOCK);
	ck_assert_int_eq(write_op(other, BLOCK, 5, STREAM_A), 0);
	ts_page_plan_finish(&model.plan);
	holds[0] = hold(parameter(), 0, 2);
	holds[1] = hold(parameter(), OPS - 1, OPS);
	holds[2] = hold(other, 3, 5);
	holds[3] = hold(other, 8, 9);
	plan_for(holds, 4);
	adopt();
	for (uint32_t step = 0; step < 4; step++) {
		for (uint32_t i = 0; i < OPS; i++)
			ts_enforce_op(pager, i);
		if (step == 1) {
			ts_pager_dead(pager, other, BLOCK);
			ck_assert_int_eq(
			        ts_pager_free(pager, other, BLOCK, 0), 0);
		}
		expect_bytes(parameter(), BLOCK, 200);
	}
	end();
}
END_TEST

/* Not only once its chunk is wanted: then it would be waited for. */
START_TEST(what_a_plan_lets_go_leaves_at_once)
{
	struct ts_plan_hold holds[LAYERS + 3];
	uint32_t n = 0, away = LOSS + 1;

	start(80);
	ts_page_plan_finish(&model.plan);
	holds[n++] = hold(temporary(), LOSS, LOSS + 1);
	holds[n++] = hold(parameter(), 0, OPS);
	for (int i = 1; i < LAYERS; i++)
		holds[n++] = hold(layer(i), written_at(i), read_at(i) + 1);
	/* Nothing comes when this one leaves. */
	holds[n++] = hold(layer(0), written_at(0), away);
	holds[n++] = hold(layer(0), read_at(0) - 1, read_at(0) + 1);
	plan_for(holds, n);
	step_by_pager();
	adopt();
	for (uint32_t i = 0; i < OPS; i++) {
		uint64_t out = stats().out_bytes;

		ts_enforce_op(pager, i);
		ck_assert_uint_eq(
		        stats().out_bytes - out, i == away ? BLOCK : 0);
		op((int)i);
	}
	end();
}
END_TEST

/* Copies out that ops of the next step wait for go first. */
START_TEST(what_leaves_between_steps_goes_in_the_plans_order)
{
	struct ts_plan_hold holds[LAYERS];
	const struct ts_enforce *enforce;
	uint64_t pages = 0;
	int next = LAYERS - 1;

	start(80);
	ts_page_plan_finish(&model.plan);
	for (int i = 0; i < LAYERS; i++) {
		holds[i] = hold(layer(i), OPS - 1, OPS);
		/* Ever earlier the higher they lie. */
		holds[i].free_tick += 1 + (uint32_t)(LAYERS - i);
	}
	plan_for(holds, LAYERS);
	step_by_pager();
	adopt();
	enforce = pager->enforce;
	for (uint32_t i = 0; i < enforce->first_move[1]; i++) {
		const struct ts_plan_move *move = &enforce->moves[i];

		/* Parts of one leave one after the other. */
		while (move->address < layer(next))
			next--;
		ck_assert(!move->take);
		ck_assert_uint_lt(move->address, layer(next) + BLOCK);
		pages += move->pages;
	}
	ck_assert_uint_eq(pages * PAGE, LAYERS * BLOCK);
	end();
}
END_TEST

static void free_layers(void)
{
	for (int i = 0; i < LAYERS; i++) {
		if (model.alive[i])
			ts_pager_dead(pager, layer(i), BLOCK);
		model.alive[i] = false;
	}
}

START_TEST(step_left_in_the_middle_loses_nothing)
{
	start(40);
	step_by_pager();
	adopt();
	for (int left = 1; left < OPS; left++) {
		step_by_plan();
		for (int i = 0; i < left; i++) {
			ts_enforce_op(pager, (uint32_t)i);
			op(i);
		}
		/* What it would have read is freed, then a step off plan. */
		free_layers();
		if (ts_enforce_disturbed(pager))
			adopt();
		step_by_pager();
		if (ts_enforce_disturbed(pager))
			adopt();
		else
			ts_enforce_resume(pager, 0);
	}
	end();
}
END_TEST

START_TEST(step_left_in_the_middle_begins_anew)
{
	start(64);
	step_by_pager();
	adopt();
	for (int left = 1; left < OPS; left++) {
		for (int i = 0; i < left; i++) {
			ts_enforce_op(pager, (uint32_t)i);
			op(i);
		}
		free_layers();
		ck_assert_uint_eq(ts_enforce_disturbed(pager), 0);
		ts_enforce_resume(pager, 0);
		step_by_plan();
	}
	ck_assert_uint_eq(ts_enforce_astray(pager), 0);
	end();
}
END_TEST

/* The op at which pages are taken by the pager, for something else. */
START_TEST(pages_taken_meanwhile_come_back_another_way)
{
	uint64_t more;

	start(32);
	step_by_pager();
	more = alloc(20 * PAGE);
	ck_assert_int_eq(write_op(more, 20 * PAGE, 99, STREAM_B), 0);
	adopt();
	step_by_plan();
	for (int i = 0; i < OPS; i++)
		for (int k = 0; k < OPS; k++) {
			if (k == i)
				expect_bytes(more, 20 * PAGE, 99);
			ts_enforce_op(pager, (uint32_t)k);
			op(k);
		}
	ck_assert_uint_gt(ts_enforce_disturbed(pager), 0);
	expect_bytes(more, 20 * PAGE, 99);
	adopt();
	ck_assert_uint_eq(ts_enforce_disturbed(pager), 0);
	step_by_plan();
	end();
}
END_TEST

/* An op of the step that has one range, and one of what is read. */
static void use_beside(const struct ts_range *one)
{
	struct ts_shortage shortage;
	uint64_t in = 0, out = 0;

	ck_assert_int_eq(ts_pager_begin(pager, one, 1, TS_BEGIN_BY_PLAN,
	                         STREAM_A, &in, &out, &shortage),
	        0);
	ts_pager_end(pager, one, 1, STREAM_A, true);
}

static void read_beside(uint64_t address, uint64_t bytes, bool doubtful)
{
	struct ts_range one = range(address, bytes);

	one.access = TS_ACCESS_READ;
	one.doubtful = doubtful;
	use_beside(&one);
}

/* What the plan has away is used: it comes, and all goes on by the plan. */
START_TEST(pages_used_off_the_plan_make_way_again)
{
	unsigned int maps, unmaps;

	/* Not one page more than the plan takes. */
	start(35);
	step_by_pager();
	adopt();
	step_by_plan();
	maps = fake_gpu.maps;
	unmaps = fake_gpu.unmaps;
	for (int at = LOSS; at < OPS; at++) {
		for (int i = 0; i < OPS; i++) {
			struct ts_pager_stats before;

			ts_enforce_op(pager, (uint32_t)i);
			before = stats();
			op(i);
			ck_assert_uint_eq(stats().in_bytes, before.in_bytes);
			if (i != at)
				continue;
			/* A part of it has all of it come. */
			if (at % 3)
				read_beside(parameter(), BLOCK, at % 2);
			else
				read_beside(parameter() + PAGE, PAGE, at % 2);
			ck_assert_uint_eq(stats().in_bytes,
			        before.in_bytes + (at < OPS - 1 ? BLOCK : 0));
			ck_assert_uint_eq(ts_enforce_missed(pager),
			        !(at % 2) && at < OPS - 1);
		}
	}
	ck_assert_uint_eq(fake_gpu.maps, maps);
	ck_assert_uint_eq(fake_gpu.unmaps, unmaps);
	ck_assert_uint_eq(ts_enforce_astray(pager), 0);
	ck_assert_uint_eq(ts_enforce_disturbed(pager), 0);
	end();
}
END_TEST

/* Small blocks' pages are not the plan's: there is a chunk for each of them. */
START_TEST(pages_that_do_not_move_do_not_share)
{
	uint64_t one, two, out;
	unsigned int maps;

	start(40);
	one = alloc(PAGE);
	two = alloc(PAGE);
	ts_pager_dead(pager, one, PAGE);
	ts_pager_dead(pager, two, PAGE);
	/* No room but for one page, which is given up for another. */
	ts_pager_live(pager, layer(0), 35 * PAGE);
	ck_assert_int_eq(write_op(layer(0), 35 * PAGE, 3, STREAM_A), 0);
	ts_pager_live(pager, one, PAGE);
	ck_assert_int_eq(write_op(one, PAGE, 1, STREAM_A), 0);
	ts_pager_dead(pager, one, PAGE);
	out = stats().out_bytes;
	ts_pager_live(pager, two, PAGE);
	ck_assert_int_eq(write_op(two, PAGE, 2, STREAM_A), 0);
	ck_assert_uint_eq(stats().out_bytes, out);
	ts_pager_dead(pager, layer(0), 35 * PAGE);
	adopt();
	step_by_plan();
	maps = fake_gpu.maps;
	for (int i = 0; i < 3; i++) {
		struct ts_pager_stats before = stats();

		ts_pager_live(pager, one, PAGE);
		read_beside(one, PAGE, false);
		read_beside(two, PAGE, false);
		ts_pager_dead(pager, one, PAGE);
		ck_assert_uint_eq(stats().out_bytes, before.out_bytes);
		ck_assert_uint_eq(stats().in_bytes, before.in_bytes);
		ck_assert_uint_eq(fake_gpu.maps, maps + 1);
	}
	expect_bytes(two, PAGE, 2);
	end();
}
END_TEST

/* Two of them beside one free chunk: of the plan's pages none has to go. */
START_TEST(pages_that_do_not_move_take_no_more_than_is_free)
{
	struct ts_shortage shortage;
	struct ts_range both[2];
	/* The plan's, two pages, and one that is free. */
	const uint64_t limit_pages = 19, fill = (limit_pages - 6) * PAGE;
	uint64_t pages[4], in = 0, out = 0;

	start(limit_pages);
	for (int i = 0; i < 4; i++) {
		pages[i] = alloc(PAGE);
		ts_pager_dead(pager, pages[i], PAGE);
	}
	ts_pager_live(pager, layer(0), fill);
	ck_assert_int_eq(write_op(layer(0), fill, 3, STREAM_A), 0);
	/* The last two get the chunks of the first two. */
	for (int i = 0; i < 4; i++) {
		ts_pager_live(pager, pages[i], PAGE);
		ck_assert_int_eq(write_op(pages[i], PAGE, i, STREAM_A), 0);
		if (i == 1)
			for (int j = 0; j < 2; j++)
				ts_pager_dead(pager, pages[j], PAGE);
	}
	ts_pager_dead(pager, layer(0), fill);
	adopt();
	step_by_plan();
	ck_assert_uint_eq(ts_pager_room(pager), PAGE);
	for (int i = 0; i < LOSS; i++) {
		ts_enforce_op(pager, (uint32_t)i);
		op(i);
	}
	for (int i = 0; i < 2; i++) {
		ts_pager_live(pager, pages[i], PAGE);
		both[i] = range(pages[i], PAGE);
		both[i].access = TS_ACCESS_READ;
	}
	ck_assert_int_eq(ts_pager_begin(pager, both, 2, TS_BEGIN_BY_PLAN,
	                         STREAM_A, &in, &out, &shortage),
	        0);
	ts_pager_end(pager, both, 2, STREAM_A, true);
	ck_assert_uint_eq(out, PAGE);
	for (int i = LOSS; i < OPS; i++) {
		struct ts_pager_stats before;

		ts_enforce_op(pager, (uint32_t)i);
		before = stats();
		op(i);
		ck_assert_uint_eq(stats().in_bytes, before.in_bytes);
	}
	for (int i = 2; i < 4; i++)
		expect_bytes(pages[i], PAGE, i);
	end();
}
END_TEST

/* Once it ends no page is what a plan has there. */
START_TEST(a_plan_that_ended_keeps_no_pages_together)
{
	const struct ts_segment *segment;
	size_t planned = 0, left = 0;

	start(40);
	adopt();
	segment = ts_segment_of(&pager->segments, model.segment);
	for (size_t i = 0; i < segment->unit_count; i++)
		planned += segment->units[i].page->planned;
	ck_assert_uint_eq(planned, (LAYERS + 2) * BLOCK / PAGE);
	ts_enforce_end(pager);
	for (size_t i = 0; i < segment->unit_count; i++)
		left += segment->units[i].page->planned;
	ck_assert_uint_eq(left, 0);
	end();
}
END_TEST

/*
 * What came after the plan, which has all the room: its chunk is of one that
 * waits for pages of the plan, and from then on they share it.
 */
START_TEST(a_page_beside_a_full_plan_maps_nothing_for_long)
{
	unsigned int before;
	struct ts_range one;
	uint64_t other;

	/* All that the plan takes. */
	start(16);
	step_by_pager();
	adopt();
	step_by_plan();
	other = alloc(PAGE);
	ts_pager_dead(pager, other, PAGE);
	one = range(other, PAGE);
	one.access = TS_ACCESS_WRITE;
	for (int step = 0; step < 8; step++) {
		before = fake_gpu.maps + fake_gpu.unmaps;
		for (int i = 0; i < OPS; i++) {
			ts_enforce_op(pager, (uint32_t)i);
			op(i);
			if (i != 5 && i != LOSS)
				continue;
			ts_pager_live(pager, other, PAGE);
			use_beside(&one);
			ts_pager_dead(pager, other, PAGE);
		}
	}
	ck_assert_uint_eq(fake_gpu.maps + fake_gpu.unmaps, before);
	end();
}
END_TEST

/* What an op just uses, and what is pinned, stays. */
START_TEST(pages_in_use_do_not_leave)
{
	struct ts_range one, two;

	start(40);
	step_by_pager();
	adopt();
	one = range(layer(0), BLOCK);
	two = range(layer(1), BLOCK);
	for (int i = 0; i < 5; i++) {
		uint64_t out;

		ts_enforce_op(pager, (uint32_t)i);
		op(i);
		if (i != 2)
			continue;
		ck_assert_int_eq(begin(&two, 1, STREAM_A), 0);
		ts_pager_pin(pager, &two, TS_PIN_ESCAPED);
		ts_pager_end(pager, &two, 1, STREAM_A, false);
		ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
		/* The first layer's turn to leave, then the second's. */
		out = stats().out_bytes;
		ts_enforce_op(pager, written_at(0) + 2);
		ts_enforce_op(pager, written_at(1) + 2);
		ck_assert_uint_eq(stats().out_bytes, out);
		ts_pager_end(pager, &one, 1, STREAM_A, false);
	}
	expect_bytes(layer(0), BLOCK, content(0));
	expect_bytes(layer(1), BLOCK, content(1));
	end();
}
END_TEST

/* As after chunks have changed hands: several pages come into one at once. */
START_TEST(pages_that_want_one_chunk_lose_nothing)
{
	struct ts_plan_hold holds[LAYERS + 3];
	uint32_t *chunks, from, n = 0;

	start(80);
	ts_page_plan_finish(&model.plan);
	holds[n++] = hold(parameter(), 0, OPS);
	for (int i = 0; i < LAYERS; i++)
		holds[n++] = hold(layer(i), 1, OPS - 1);
	plan_for(holds, n);
	chunks = model.plan.chunk_of;
	from = model.plan.n_pages - LAYERS * BLOCK / PAGE;
	for (uint32_t i = from; i < model.plan.n_pages; i++)
		chunks[i] = chunks[i % (BLOCK / PAGE)];
	step_by_pager();
	adopt();
	for (int step = 0; step < 3; step++)
		for (int i = 0; i < OPS; i++) {
			ts_enforce_op(pager, (uint32_t)i);
			op(i);
		}
	ck_assert_uint_gt(ts_enforce_astray(pager), 0);
	end();
}
END_TEST

/* A page that is used out of turn is still there for who comes later. */
START_TEST(stale_plan_costs_time_only)
{
	start(40);
	step_by_pager();
	adopt();
	for (int round = 0; round < 4; round++)
		for (int i = 0; i < OPS; i++) {
			/* Another op than the plan has it. */
			ts_enforce_op(pager, (uint32_t)(i * 7 + round) % OPS);
			op(i);
		}
	end();
}
END_TEST

START_TEST(every_failing_call_is_made_good)
{
	unsigned int calls = 0;

	for (unsigned int at = 0; at <= calls; at += 3) {
		start(40);
		step_by_pager();
		adopt();
		step_by_plan();
		fake_gpu.calls = 0;
		fake_gpu.fail_with = CUDA_ERROR_UNKNOWN;
		fake_gpu.fail_at = at;
		for (int i = 0; i < OPS; i++) {
			ts_enforce_op(pager, (uint32_t)i);
			/* What an op itself meets is its caller's. */
			fake_gpu.fail_at = 0;
			op(i);
			fake_gpu.fail_at = at > fake_gpu.calls ? at : 0;
		}
		fake_gpu.fail_at = 0;
		if (!at)
			calls = fake_gpu.calls;
		step_by_plan();
		end();
	}
	ck_assert_uint_gt(calls, 30);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, steps_by_plan_map_nothing_and_lose_nothing);
	tcase_add_test(tests, what_moves_together_moves_as_one);
	tcase_add_test(tests, what_is_gone_moves_no_more);
	tcase_add_test(tests, what_a_plan_lets_go_leaves_at_once);
	tcase_add_test(
	        tests, what_leaves_between_steps_goes_in_the_plans_order);
	tcase_add_test(tests, step_left_in_the_middle_loses_nothing);
	tcase_add_test(tests, step_left_in_the_middle_begins_anew);
	tcase_add_test(tests, pages_taken_meanwhile_come_back_another_way);
	tcase_add_test(tests, pages_used_off_the_plan_make_way_again);
	tcase_add_test(tests, pages_that_do_not_move_do_not_share);
	tcase_add_test(tests, pages_that_do_not_move_take_no_more_than_is_free);
	tcase_add_test(tests, a_plan_that_ended_keeps_no_pages_together);
	tcase_add_test(tests, a_page_beside_a_full_plan_maps_nothing_for_long);
	tcase_add_test(tests, pages_in_use_do_not_leave);
	tcase_add_test(tests, pages_that_want_one_chunk_lose_nothing);
	tcase_add_test(tests, stale_plan_costs_time_only);
	tcase_add_test(tests, every_failing_call_is_made_good);
}

int main(void)
{
	return run_suite("enforce", add_tests);
}
