/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/enforce_fixture.h"

#include "runtime/enforce.h"

struct enforce_model model;

uint64_t parameter(void)
{
	return model.segment;
}

uint64_t temporary(void)
{
	return model.segment + BLOCK;
}

uint64_t layer(int i)
{
	return model.segment + (2 + (uint64_t)i) * BLOCK;
}

uint32_t written_at(int i)
{
	return 1 + (uint32_t)i;
}

uint32_t read_at(int i)
{
	return LOSS + 1 + (uint32_t)(LAYERS - 1 - i);
}

struct ts_plan_hold hold(
        uint64_t address, uint32_t take_op, uint32_t release_op)
{
	return (struct ts_plan_hold){address, BLOCK, take_op, release_op,
	        take_op * 10, release_op * 10};
}

void plan_for(const struct ts_plan_hold *holds, uint32_t n)
{
	struct ts_enforce_survey survey;

	ck_assert_int_eq(ts_enforce_survey(pager, false, &survey), 0);
	ck_assert_int_eq(ts_page_plan_make(survey.segments, survey.n_segments,
	                         holds, n, PAGE, OPS, TICKS, &model.plan),
	        0);
	free(survey.segments);
}

static void make_plan(void)
{
	struct ts_plan_hold holds[2 * LAYERS + 3];
	uint32_t n = 0;

	holds[n++] = hold(temporary(), LOSS, LOSS + 1);
	holds[n++] = hold(parameter(), 0, 1);
	holds[n++] = hold(parameter(), OPS - 1, OPS);
	for (int i = 0; i < LAYERS; i++) {
		if (i >= LAYERS - KEPT) {
			holds[n++] =
			        hold(layer(i), written_at(i), read_at(i) + 1);
			continue;
		}
		holds[n++] = hold(layer(i), written_at(i), written_at(i) + 2);
		holds[n++] = hold(layer(i), read_at(i) - 1, read_at(i) + 1);
	}
	plan_for(holds, n);
}

void start(uint64_t limit_pages)
{
	setup_with(limit_pages, 512);
	memset(&model, 0, sizeof(model));
	model.segment = alloc((LAYERS + 2) * BLOCK);
	ts_pager_dead(pager, temporary(), (LAYERS + 1) * BLOCK);
	ck_assert_int_eq(write_op(parameter(), BLOCK, 200, STREAM_A), 0);
	make_plan();
}

void end(void)
{
	ck_assert_uint_le(pager->stats.peak_bytes, pager->account.limit_bytes);
	ck_assert_uint_eq(fake_gpu.violations, 0);
	ts_page_plan_finish(&model.plan);
	teardown();
}

/* The fake device is done only once somebody waits for it. */
void adopt(void)
{
	ck_assert_int_eq(ts_pager_wait_op(pager, ts_pager_last_op(pager)), 0);
	ck_assert_int_eq(ts_enforce_adopt(pager, &model.plan, 0), 0);
}

/* Layers of several steps differ, and all their bytes count. */
int content(int i)
{
	return 1 + (model.step * LAYERS + i) % 190;
}

static void write_block(uint64_t address, int value)
{
	ts_pager_live(pager, address, BLOCK);
	ck_assert_int_eq(write_op(address, BLOCK, value, STREAM_A), 0);
}

void op(int index)
{
	int i = PASSES + 1 - index;

	if (!index) {
		expect_bytes(parameter(), BLOCK, 200 + model.step % 50);
	} else if (index <= LAYERS) {
		write_block(layer(index - 1), content(index - 1));
		model.alive[index - 1] = true;
	} else if (index == LOSS) {
		write_block(temporary(), 7);
		expect_bytes(temporary(), BLOCK, 7);
		ts_pager_dead(pager, temporary(), BLOCK);
	} else if (index < OPS - 1) {
		expect_bytes(layer(i), BLOCK, content(i));
		ts_pager_dead(pager, layer(i), BLOCK);
		model.alive[i] = false;
	} else {
		model.step++;
		ck_assert_int_eq(write_op(parameter(), BLOCK,
		                         200 + model.step % 50, STREAM_A),
		        0);
	}
}

/* Ops find what they use where it is to be. */
void step_by_plan(void)
{
	for (int i = 0; i < OPS; i++) {
		struct ts_pager_stats before;

		ts_enforce_op(pager, (uint32_t)i);
		before = stats();
		op(i);
		ck_assert_uint_eq(stats().in_bytes, before.in_bytes);
		ck_assert_uint_eq(stats().out_bytes, before.out_bytes);
	}
}

void step_by_pager(void)
{
	for (int i = 0; i < OPS; i++)
		op(i);
}
