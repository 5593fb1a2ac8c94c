/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a plan moves though nobody needs it to move stays where it is. */
#include "runtime/enforce.h"

#include "tests/unit/enforce_fixture.h"

static const struct ts_plan_strip *strip_at(uint32_t stay)
{
	const struct ts_plan_strip *strip = model.plan.strips;

	while (stay >= strip->first_stay + strip->n_stays)
		strip++;
	return strip;
}

/* True where @stay, of another strip, is in the gap before @next. */
static bool is_between(const struct ts_plan_stay *before,
        const struct ts_plan_stay *stay, const struct ts_plan_stay *next)
{
	/* The gap goes on in the step after. */
	if (next->take_op <= before->take_op)
		return stay->release_op > before->release_op ||
		       stay->take_op < next->take_op;
	return stay->take_op < next->take_op &&
	       stay->release_op > before->release_op;
}

/* True where no other strip has a chunk of @strip's between two of its stays.
 */
static bool is_alone(const struct ts_plan_strip *strip, uint32_t stay)
{
	const struct ts_page_plan *plan = &model.plan;
	uint32_t next = stay + 1 < strip->first_stay + strip->n_stays
	                        ? stay + 1
	                        : strip->first_stay;
	bool others = false;

	for (uint32_t i = 0; i < plan->n_stays; i++) {
		const struct ts_plan_strip *other = strip_at(i);

		if (other == strip ||
		        !is_between(&plan->stays[stay], &plan->stays[i],
		                &plan->stays[next]))
			continue;
		for (uint32_t a = 0; a < strip->pages; a++)
			for (uint32_t b = 0; b < other->pages; b++)
				others |=
				        plan->chunk_of[strip->first_page + a] ==
				        plan->chunk_of[other->first_page + b];
	}
	return !others;
}

/* True where the block there has died before @stay ends. */
static bool is_dead_after(const struct ts_plan_strip *strip, uint32_t stay)
{
	uint32_t block = (uint32_t)((strip->address - model.segment) / BLOCK);

	return block == 1 || (block > 1 && model.plan.stays[stay].release_op ==
	                                           read_at((int)block - 2) + 1);
}

/* What dies and comes to life in a chunk that nobody else has then stays. */
START_TEST(nothing_moves_where_nothing_lives_and_nobody_comes)
{
	const struct ts_enforce *enforce;
	uint32_t kept = 0;

	start(40);
	step_by_pager();
	adopt();
	for (int i = 0; i < 3; i++)
		step_by_plan();
	enforce = pager->enforce;
	for (uint32_t i = 0; i < model.plan.n_stays; i++) {
		const struct ts_plan_strip *strip = strip_at(i);

		ck_assert_int_eq(enforce->gaps[i].kept,
		        is_alone(strip, i) && is_dead_after(strip, i));
		kept += enforce->gaps[i].kept;
	}
	ck_assert_uint_gt(kept, 0);
	ck_assert_uint_lt(kept, LAYERS + 1);
	end();
}
END_TEST

/* A gap that is kept, of the layers. */
static uint32_t kept_gap(void)
{
	for (uint32_t i = 0; i < model.plan.n_stays; i++)
		if (pager->enforce->gaps[i].kept &&
		        strip_at(i)->address >= layer(0))
			return i;
	ck_abort_msg("no gap is kept");
	return 0;
}

/* It died at the same point in each step, but need not in the next. */
START_TEST(what_lives_on_where_it_died_before_is_not_lost)
{
	const struct ts_plan_strip *strip;
	uint32_t gap, block;

	start(40);
	step_by_pager();
	adopt();
	for (int i = 0; i < 3; i++)
		step_by_plan();
	gap = kept_gap();
	strip = strip_at(gap);
	block = (uint32_t)((strip->address - model.segment) / BLOCK) - 2;
	for (uint32_t i = 0; i < OPS; i++) {
		ts_enforce_op(pager, i);
		if (i == read_at((int)block))
			expect_bytes(
			        layer((int)block), BLOCK, content((int)block));
		else
			op((int)i);
	}
	for (uint32_t i = 0; i < written_at((int)block); i++) {
		ts_enforce_op(pager, i);
		op((int)i);
	}
	model.step--;
	expect_bytes(layer((int)block), BLOCK, content((int)block));
	model.step++;
	ts_pager_dead(pager, layer((int)block), BLOCK);
	for (uint32_t i = written_at((int)block); i < OPS; i++) {
		ts_enforce_op(pager, i);
		op((int)i);
	}
	step_by_plan();
	ck_assert_uint_eq(ts_enforce_astray(pager), 0);
	end();
}
END_TEST

static struct ts_page *page_at(const struct ts_plan_strip *strip)
{
	struct ts_segment *segment =
	        ts_segment_of(&pager->segments, strip->address);

	return segment->units[(strip->address - segment->base) / PAGE].page;
}

/* As the pager does it, since nothing is in it. */
static void take(struct ts_page *page)
{
	ck_assert(page->resident);
	ts_mutex_lock(&pager->gate);
	ts_mutex_lock(&pager->lock);
	pager->victims.count = 0;
	ck_assert_int_eq(ts_pages_add(&pager->victims, page), 0);
	ck_assert_int_eq(ts_pager_evict(pager, &(struct ts_shortage){0}), 0);
	ts_mutex_unlock(&pager->lock);
	ts_mutex_unlock(&pager->gate);
	ck_assert(!page->resident);
}

START_TEST(what_is_kept_comes_back_where_the_plan_is_taken_up)
{
	struct ts_page *page;

	start(40);
	step_by_pager();
	adopt();
	for (int i = 0; i < 3; i++)
		step_by_plan();
	page = page_at(strip_at(kept_gap()));
	take(page);
	/* It is in the gap at both ends of a step. */
	ts_enforce_resume(pager, 0);
	ck_assert(page->resident);
	step_by_plan();
	end();
}
END_TEST

/* Likewise where other moves of the plan came after that. */
START_TEST(what_was_taken_in_a_step_comes_back_before_the_next)
{
	struct ts_page *page;
	uint32_t gap, taken_at, moves = 0;

	start(40);
	step_by_pager();
	adopt();
	for (int i = 0; i < 3; i++)
		step_by_plan();
	gap = kept_gap();
	page = page_at(strip_at(gap));
	taken_at = model.plan.stays[gap].release_op;
	for (uint32_t i = 0; i < OPS; i++) {
		bool moved = ts_enforce_op(pager, i);

		moves += i > taken_at && moved;
		op((int)i);
		if (i == taken_at)
			take(page);
	}
	ck_assert_uint_gt(moves, 0);
	ck_assert(!page->resident);
	ts_enforce_resume(pager, 0);
	ck_assert(page->resident);
	end();
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(
	        tests, nothing_moves_where_nothing_lives_and_nobody_comes);
	tcase_add_test(tests, what_lives_on_where_it_died_before_is_not_lost);
	tcase_add_test(
	        tests, what_is_kept_comes_back_where_the_plan_is_taken_up);
	tcase_add_test(
	        tests, what_was_taken_in_a_step_comes_back_before_the_next);
}

int main(void)
{
	return run_suite("enforce_kept", add_tests);
}
