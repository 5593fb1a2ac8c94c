/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Steps whose large blocks take turns in their places. */
#include <stdlib.h>
#include <string.h>

#include "agent/cycle.h"
#include "agent/planned_cache.h"
#include "agent/planned_phase.h"
#include "tests/unit/suite.h"

#define OPS   3 /* of a step */
#define LARGE (4ull << 20)

enum { WEIGHT, INPUT, OLD, BLOCKS };

/* The input of step @number lies at this place; it lives until op 1 of the next
 * step, which begins @between ops after it. */
struct script {
	uint64_t places[8];
	uint64_t between;
};

static uint64_t first_op(const struct script *script, unsigned int number)
{
	return 100 + number * (OPS + script->between);
}

static struct ts_rec_block input_of(
        const struct script *script, unsigned int number)
{
	return (struct ts_rec_block){.serial = 10 + number,
	        .address = script->places[number],
	        .bytes = LARGE,
	        .born = first_op(script, number),
	        .died = TS_NEVER};
}

/* Ops read the input, the weight, both. Constant until the next call. */
static struct ts_recording *record(
        const struct script *script, unsigned int number)
{
	static struct ts_rec_block blocks[BLOCKS];
	static struct ts_rec_use uses[4];
	static struct ts_rec_op ops[OPS];
	static struct ts_recording step;

	memset(ops, 0, sizeof(ops));
	memset(uses, 0, sizeof(uses));
	blocks[WEIGHT] = (struct ts_rec_block){.serial = 1,
	        .address = 1ull << 40,
	        .bytes = LARGE,
	        .died = TS_NEVER};
	blocks[INPUT] = input_of(script, number);
	if (number) {
		blocks[OLD] = input_of(script, number - 1);
		blocks[OLD].died = first_op(script, number) + 1;
	}
	uses[0].block = INPUT;
	uses[1].block = WEIGHT;
	uses[2].block = INPUT;
	uses[3].block = WEIGHT;
	for (int i = 0; i < OPS; i++)
		ops[i] = (struct ts_rec_op){.signature = 7,
		        .duration_ns = 1000 - number,
		        .first_use = 50 + (i < 2 ? i : 2),
		        .use_count = i < 2 ? 1 : 2};
	step = (struct ts_recording){.first_op = first_op(script, number),
	        .ops = ops,
	        .op_count = OPS,
	        .first_use = 50,
	        .uses = uses,
	        .use_count = 4,
	        .blocks = blocks,
	        .block_count = number ? BLOCKS : BLOCKS - 1};
	return &step;
}

static void note_all(struct ts_cycles *cycles, const struct script *script,
        unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		ck_assert_int_eq(
		        ts_cycles_note(cycles, record(script, i), 9), 0);
}

static const struct ts_cycle_found two = {.steps = 2, .shapes = 1};

static const struct script turns = {
        .places = {1 << 24, 2 << 24, 1 << 24, 2 << 24, 1 << 24}, .between = 2};

START_TEST(blocks_come_back_to_their_places)
{
	struct script script = {
	        .places = {1 << 24, 2 << 24, 3 << 24, 1 << 24, 1 << 24}};
	struct ts_cycles cycles = {0};

	note_all(&cycles, &script, 1);
	ck_assert_uint_eq(ts_cycles_find(&cycles).steps, 0);
	ts_cycles_forget(&cycles);
	note_all(&cycles, &script, 3);
	ck_assert_uint_eq(ts_cycles_find(&cycles).steps, 0);
	ts_cycles_forget(&cycles);
	note_all(&cycles, &script, 4);
	ck_assert_uint_eq(ts_cycles_find(&cycles).steps, 3);
	ts_cycles_forget(&cycles);
	note_all(&cycles, &script, 5);
	ck_assert_uint_eq(ts_cycles_find(&cycles).steps, 1);
	ts_cycles_forget(&cycles);
	note_all(&cycles, &turns, 4);
	ck_assert_uint_eq(ts_cycles_find(&cycles).steps, 2);
	/* A step of another shape between has them start again. */
	ts_cycles_note(&cycles, record(&turns, 4), 10);
	ck_assert_uint_eq(ts_cycles_find(&cycles).steps, 0);
	ts_cycles_forget(&cycles);
}
END_TEST

/* A block that two steps know is one, and work between has no number. */
START_TEST(the_order_of_uses_is_no_place)
{
	struct script script = {.places = {5ull << 40, 6ull << 40}};
	struct ts_recording *step = record(&script, 0);
	struct ts_rec_use *first = &step->uses[2], kept = *first;
	uint64_t place = ts_cycle_place(step, &step->ops[2]);

	*first = step->uses[3];
	step->uses[3] = kept;
	ck_assert_uint_eq(ts_cycle_place(step, &step->ops[2]), place);
	step->uses[3] = *first;
	ck_assert_uint_ne(ts_cycle_place(step, &step->ops[2]), place);
}
END_TEST

/* Whenever it is looked at. */
START_TEST(a_cycle_begins_where_blocks_lie_lowest)
{
	static const struct script script = {
	        .places = {3 << 24, 1 << 24, 2 << 24, 3 << 24, 1 << 24, 2 << 24,
	                3 << 24, 1 << 24}};
	struct ts_cycles cycles = {0};

	for (unsigned int i = 0; i < 8; i++) {
		struct ts_cycle_found found;

		ts_cycles_note(&cycles, record(&script, i), 9);
		found = ts_cycles_find(&cycles);
		ck_assert_uint_eq(found.steps, i < 3 ? 0 : 3);
		/* One, two, three. */
		if (found.steps)
			ck_assert_int_eq(ts_cycles_begins(&cycles, &found),
			        script.places[i] == 3 << 24);
	}
	ts_cycles_forget(&cycles);
}
END_TEST

START_TEST(steps_become_one)
{
	struct ts_cycles cycles = {0};
	struct ts_recording joined;
	uint64_t base = first_op(&turns, 2);

	note_all(&cycles, &turns, 4);
	ck_assert_int_eq(ts_cycles_join(&cycles, &two, &joined), 0);
	ck_assert_uint_eq(joined.first_op, base);
	ck_assert_uint_eq(joined.op_count, 2 * OPS);
	ck_assert_uint_eq(joined.use_count, 8);
	/* The weight, and the inputs of steps 1, 2 and 3. */
	ck_assert_uint_eq(joined.block_count, 4);
	for (size_t i = 0; i < joined.block_count; i++) {
		const struct ts_rec_block *block = &joined.blocks[i];

		if (block->serial == 11)
			ck_assert_uint_eq(block->died, base + 1);
		if (block->serial == 12)
			ck_assert_uint_eq(block->died, base + OPS + 1);
		if (block->serial == 13) {
			ck_assert_uint_eq(block->born, base + OPS);
			ck_assert_uint_eq(block->died, TS_NEVER);
		}
	}
	for (uint32_t i = 0; i < 2 * OPS; i++) {
		const struct ts_rec_op *op = &joined.ops[i];
		const struct ts_rec_use *use = ts_recording_use(&joined, op, 0);
		uint64_t serial = i % OPS == 1 ? 1 : i < OPS ? 12 : 13;

		ck_assert_uint_eq(joined.blocks[use->block].serial, serial);
		ck_assert_uint_eq(op->duration_ns, 1000 - 3);
	}
	ts_recording_finish(&joined);
	ts_cycles_forget(&cycles);
}
END_TEST

/* Two optimizers: steps of two shapes, whose blocks take turns as well. */
START_TEST(shapes_that_take_turns_are_one)
{
	struct ts_cycles cycles = {0};
	struct ts_cycle_found found, other = {0};
	struct ts_recording joined;
	struct script script = {.places = {1 << 24, 3 << 24, 2 << 24, 3 << 24,
	                                1 << 24, 3 << 24, 2 << 24}};

	for (unsigned int i = 0; i < 7; i++) {
		found = other;
		ts_cycles_note(&cycles, record(&script, i), 9 + i % 2);
		other = ts_cycles_find(&cycles);
		/* Twice they may have come by chance. */
		ck_assert_uint_eq(other.shapes, i < 5 ? 1 : 2);
	}
	ck_assert_uint_eq(other.steps, 4);
	/* The same two, with whichever they begin. */
	ck_assert_uint_eq(found.id, other.id);
	ck_assert(!found.torn);
	ck_assert_int_eq(ts_cycles_join(&cycles, &other, &joined), 0);
	ck_assert_uint_eq(joined.op_count, 4 * OPS);
	/* The last times of either shape. */
	ck_assert_uint_eq(joined.ops[0].duration_ns, 1000 - 5);
	ck_assert_uint_eq(joined.ops[OPS].duration_ns, 1000 - 6);
	ts_recording_finish(&joined);
	ts_cycles_forget(&cycles);
	/* With work between them they are torn. */
	script.between = 1;
	for (unsigned int i = 0; i < 6; i++)
		ts_cycles_note(&cycles, record(&script, i), 9 + i % 2);
	found = ts_cycles_find(&cycles);
	ck_assert(found.torn);
	ts_cycles_forget(&cycles);
}
END_TEST

/* Op @index of a step whose input is at @place. */
static bool see(struct ts_phases *phases, uint32_t index, uint64_t place)
{
	struct ts_use uses[2] = {{.address = place, .bytes = LARGE},
	        {.address = 1ull << 40, .bytes = LARGE}};
	struct ts_op op = {.uses = uses, .count = index == 2 ? 2 : 1};

	if (index == 1)
		op.uses = &uses[1];
	return ts_phases_see(phases, index, &op);
}

static void pass(struct ts_phases *phases, uint64_t place)
{
	for (uint32_t i = 0; i < OPS; i++)
		see(phases, i, place);
	ts_phases_pass(phases);
}

START_TEST(the_step_that_goes_on_is_told_by_its_places)
{
	struct ts_cycles cycles = {0};
	struct ts_recording joined;
	struct ts_phases phases;

	note_all(&cycles, &turns, 4);
	ck_assert_int_eq(ts_cycles_join(&cycles, &two, &joined), 0);
	ts_phases_init(&phases, &joined, 2);
	ts_recording_finish(&joined);
	ts_cycles_forget(&cycles);
	/* The first of the joined ones comes next, then the other. */
	ck_assert_uint_eq(phases.now, 0);
	ck_assert(see(&phases, 0, 1 << 24));
	ck_assert(see(&phases, 1, 1 << 24));
	ck_assert(see(&phases, 2, 1 << 24));
	ts_phases_pass(&phases);
	ck_assert_uint_eq(phases.now, 1);
	/* It comes to the turn of another: from op 0 on that is expected. */
	ck_assert(!see(&phases, 0, 1 << 24));
	ck_assert_uint_eq(phases.now, 0);
	ck_assert(see(&phases, 2, 1 << 24));
	/* In the middle of it there is nothing to expect but that. */
	ck_assert(!see(&phases, 2, 2 << 24));
	ck_assert_uint_eq(phases.now, 0);
	/* Whatever was expected: what passed tells what comes. */
	pass(&phases, 1 << 24);
	ck_assert_uint_eq(phases.now, 1);
	pass(&phases, 2 << 24);
	ck_assert_uint_eq(phases.now, 0);
	ck_assert_uint_eq(phases.strange, 0);
	/* Steps that are none of them are counted. */
	pass(&phases, 5 << 24);
	pass(&phases, 6 << 24);
	ck_assert_uint_eq(phases.strange, 2);
}
END_TEST

START_TEST(a_plan_is_for_blocks_where_they_lie)
{
	struct ts_planned_entry entry = {0};
	struct ts_observed_cycle cycle = {.rounds = 2};
	struct ts_observed observed = {.cycle = &cycle};
	struct ts_cycles cycles = {0};

	note_all(&cycles, &turns, 4);
	ck_assert_int_eq(ts_cycles_join(&cycles, &two, &cycle.step), 0);
	ck_assert_int_eq(ts_planned_cache_follow(&entry, &observed), 0);
	ck_assert(ts_planned_cache_lies(&entry, &observed));
	/* One of the two alone. */
	observed.cycle = NULL;
	observed.step = cycles.last[0].step;
	ck_assert(!ts_planned_cache_lies(&entry, &observed));
	observed.cycle = &cycle;
	cycle.step.blocks[0].address += LARGE;
	ck_assert(!ts_planned_cache_lies(&entry, &observed));
	ts_follow_finish(&entry.follow);
	ts_recording_finish(&cycle.step);
	ts_cycles_forget(&cycles);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, blocks_come_back_to_their_places);
	tcase_add_test(tests, the_order_of_uses_is_no_place);
	tcase_add_test(tests, a_cycle_begins_where_blocks_lie_lowest);
	tcase_add_test(tests, steps_become_one);
	tcase_add_test(tests, shapes_that_take_turns_are_one);
	tcase_add_test(tests, the_step_that_goes_on_is_told_by_its_places);
	tcase_add_test(tests, a_plan_is_for_blocks_where_they_lie);
}

int main(void)
{
	return run_suite("cycle", add_tests);
}
