/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Known steps followed op by op; words of parameters, and their classes. */
#include <string.h>

#include "agent/funcs.h"
#include "agent/observed.h"
#include "agent/shapes.h"
#include "agent/track.h"
#include "agent/words.h"
#include "tests/unit/suite.h"

#define OPS_MAX 64

/* Letters for signatures; a capital at @turn begins the backward. */
static struct ts_observed *spelled(const char *text)
{
	/* The tracker keeps steps for good. */
	static struct ts_observed *kept[8];
	static size_t count;
	struct ts_observed *made = calloc(1, sizeof(*made));

	ck_assert_ptr_nonnull(made);
	ck_assert_uint_lt(count, sizeof(kept) / sizeof(kept[0]));
	kept[count++] = made;
	made->op_count = (uint32_t)strlen(text);
	made->signatures = calloc(OPS_MAX, sizeof(*made->signatures));
	made->turns = calloc(OPS_MAX, sizeof(*made->turns));
	for (uint32_t i = 0; i < made->op_count; i++) {
		made->signatures[i] = (uint64_t)text[i];
		made->hash = made->hash * 31 + (uint64_t)text[i];
		if (text[i] >= 'A' && text[i] <= 'Z' &&
		        (!i || text[i - 1] > 'Z'))
			made->turns[made->turn_count++] = i;
	}
	return made;
}

static const struct ts_observed *known(const char *text, const char *since)
{
	const struct ts_observed *step = spelled(text);
	uint64_t ops[OPS_MAX];
	size_t count = strlen(since);

	for (size_t i = 0; i < count; i++)
		ops[i] = (uint64_t)since[i];
	ck_assert_int_eq(ts_track_add(step, ops, count), 0);
	return step;
}

static struct ts_spot follow(const char *text)
{
	struct ts_spot spot = {.step = NULL};

	for (; *text; text++)
		ts_track_op((uint64_t)*text, &spot);
	return spot;
}

START_TEST(a_step_is_followed_from_where_it_stands)
{
	const struct ts_observed *step;
	struct ts_spot spot;
	uint64_t before;

	ts_track_init();
	before = ts_track_steps();
	step = known("abcDEo", "ab");
	spot = follow("c");
	ck_assert_ptr_eq(spot.step, step);
	ck_assert_uint_eq(spot.op, 2);
	ck_assert(spot.sure && !spot.begins && !spot.turns && !spot.ends);
	ck_assert(follow("D").turns);
	ck_assert(!follow("E").turns);
	ck_assert(follow("o").ends);
	spot = follow("a");
	ck_assert(spot.begins && spot.sure);
	ck_assert_uint_eq(spot.op, 0);
	ck_assert_uint_eq(ts_track_steps(), before + 1);
}
END_TEST

START_TEST(a_step_is_found_again_after_other_work)
{
	const char *long_step = "abcdefghijklmnopqrstABCDo";
	const struct ts_observed *step;
	struct ts_spot spot;

	ts_track_init();
	step = known(long_step, "");
	ck_assert(follow(long_step).ends);
	/* An evaluation begins as the step does. */
	spot = follow("abcdefghijklmnopqxyz");
	ck_assert_ptr_null(spot.step);
	ck_assert_uint_gt(ts_track_astray(), 0);
	spot = follow("abc");
	ck_assert_ptr_eq(spot.step, step);
	ck_assert(!spot.sure);
	spot = follow("defghijklmnop");
	ck_assert(spot.sure && spot.begins);
	ck_assert_uint_eq(spot.op, TS_TRACK_SURE - 1);
	ck_assert(!follow("q").begins);
	ck_assert(follow("rstABCDo").ends);
}
END_TEST

START_TEST(shapes_that_take_turns_are_told_apart)
{
	const struct ts_observed *shorter, *longer;

	ts_track_init();
	shorter = known("abcDo", "");
	longer = known("abcdeDEo", "");
	ck_assert_ptr_eq(follow("abcDo").step, shorter);
	ck_assert_ptr_eq(follow("abcdeDEo").step, longer);
	ck_assert(follow("abcDo").ends);
	ck_assert(follow("abcdeDEo").ends);
	ts_track_lose();
	ck_assert(!follow("a").sure);
	ts_track_mark();
	ck_assert(follow("a").begins);
}
END_TEST

START_TEST(a_step_that_repeats_itself_inside_is_followed)
{
	const struct ts_observed *step;
	struct ts_spot spot;

	ts_track_init();
	step = known("aabaabaac", "");
	spot = follow("aabaabaac");
	ck_assert(spot.ends);
	/* One layer more, as of another model: its last ops fit, no more. */
	spot = follow("aabaabaabaac");
	ck_assert_ptr_eq(spot.step, step);
	ck_assert_uint_eq(spot.op, 8);
	ts_track_clear();
	ck_assert_ptr_null(follow("a").step);
}
END_TEST

static struct ts_func *function(const struct ts_param *params, size_t count)
{
	struct ts_func *func =
	        calloc(1, sizeof(*func) + count * sizeof(*params));

	ck_assert_ptr_nonnull(func);
	func->param_count = count;
	memcpy(func->params, params, count * sizeof(*params));
	func->word_count = ts_words_count(params, count);
	return func;
}

START_TEST(words_are_cut_where_the_buffer_is_aligned)
{
	static const struct ts_param params[] = {
	        {0, 8}, {8, 4}, {12, 16}, {28, 1}};
	struct ts_func *func = function(params, 4);
	unsigned char packed[16], small = 0xfe;
	uint64_t first = 7, words[6] = {0}, part;
	uint32_t second = 0xabcdef01;
	void *values[] = {&first, &second, packed, &small};

	for (int i = 0; i < 16; i++)
		packed[i] = (unsigned char)i;
	ck_assert_uint_eq(func->word_count, 6);
	ts_words_read(func, values, words);
	ck_assert_uint_eq(words[0], 7);
	ck_assert_uint_eq(words[1], 0xabcdef01);
	ck_assert_uint_eq(words[2], 0x03020100);
	memcpy(&part, packed + 4, 8);
	ck_assert_uint_eq(words[3], part);
	ck_assert_uint_eq(words[4], 0x0f0e0d0c);
	ck_assert_uint_eq(words[5], 0xfe);
	ck_assert_uint_eq(ts_words_at(func, 3).param, 2);
	ck_assert_uint_eq(ts_words_at(func, 3).offset, 4);
	ck_assert_uint_eq(ts_words_at(func, 3).bytes, 8);
	ck_assert_uint_eq(ts_words_at(func, 4).offset, 12);
	ck_assert_uint_eq(ts_words_at(func, 4).bytes, 4);
	ck_assert_uint_eq(ts_words_at(func, 5).param, 3);
	free(func);
}
END_TEST

START_TEST(lists_have_no_words)
{
	static const struct ts_param params[] = {
	        {0, TS_WORDS_BYTES_MAX}, {TS_WORDS_BYTES_MAX, 8}};

	ck_assert_uint_eq(ts_words_count(params, 2), 0);
	ck_assert_uint_eq(ts_words_count(params, 1), TS_WORDS_BYTES_MAX / 8);
}
END_TEST

/* A step of one launch: four words, the first of which is in the block. */
static struct ts_shape *note(struct ts_shapes *shapes, struct ts_func *func,
        uint64_t block, const uint64_t *words)
{
	struct ts_recording step = {.op_count = 1,
	        .ops = calloc(1, sizeof(struct ts_rec_op)),
	        .uses = calloc(1, sizeof(struct ts_rec_use)),
	        .use_count = 1,
	        .words = calloc(4, sizeof(uint64_t)),
	        .word_count = 4,
	        .blocks = calloc(2, sizeof(struct ts_rec_block)),
	        .block_count = 2};
	struct ts_shape *shape;

	step.ops[0] = (struct ts_rec_op){
	        .signature = 1, .func = func, .use_count = 1, .word_count = 4};
	step.blocks[0] = (struct ts_rec_block){.address = block, .bytes = 4096};
	step.blocks[1] =
	        (struct ts_rec_block){.address = 1 << 20, .bytes = 4096};
	memcpy(step.words, words, 4 * sizeof(*words));
	shape = ts_shapes_note(shapes, &step);
	ts_recording_finish(&step);
	return shape;
}

START_TEST(words_are_pointers_constants_or_vary)
{
	static const struct ts_param params[] = {
	        {0, 8}, {8, 8}, {16, 8}, {24, 8}};
	static struct ts_shapes shapes;
	struct ts_func *func = function(params, 4);
	struct ts_shape *shape;

	/* The last one points to what is no operand. */
	note(&shapes, func, 8192,
	        (const uint64_t[]){8192 + 64, 5, 1, (1 << 20) + 8});
	shape = note(&shapes, func, 65536,
	        (const uint64_t[]){65536 + 64, 5, 2, (1 << 20) + 8});
	ck_assert_ptr_nonnull(shape);
	ck_assert_uint_eq(shape->seen, 2);
	ck_assert_uint_eq(shape->word_class[0], TS_WORD_POINTER);
	ck_assert_uint_eq(ts_word_use(shape->words[0]), 0);
	ck_assert_uint_eq(ts_word_offset(shape->words[0]), 64);
	ck_assert_uint_eq(shape->word_class[1], TS_WORD_CONSTANT);
	ck_assert_uint_eq(shape->words[1], 5);
	ck_assert_uint_eq(shape->word_class[2], TS_WORD_VARYING);
	ck_assert_uint_eq(shape->word_class[3], TS_WORD_VARYING);
	/* Another place in the block is another operand. */
	note(&shapes, func, 8192, (const uint64_t[]){8192, 5, 3, 0});
	ck_assert_uint_eq(shape->word_class[0], TS_WORD_VARYING);
	ts_shapes_finish(&shapes);
	free(func);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, a_step_is_followed_from_where_it_stands);
	tcase_add_test(tests, a_step_is_found_again_after_other_work);
	tcase_add_test(tests, shapes_that_take_turns_are_told_apart);
	tcase_add_test(tests, a_step_that_repeats_itself_inside_is_followed);
	tcase_add_test(tests, words_are_cut_where_the_buffer_is_aligned);
	tcase_add_test(tests, lists_have_no_words);
	tcase_add_test(tests, words_are_pointers_constants_or_vary);
}

int main(void)
{
	return run_suite("track", add);
}
