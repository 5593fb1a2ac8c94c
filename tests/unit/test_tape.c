/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ops, the blocks they touch, the tape of them, and the steps in it. */
#include <string.h>

#include "agent/layout.h"
#include "agent/op.h"
#include "agent/tape.h"
#include "tests/unit/suite.h"

#define MIB (1ull << 20)

static struct ts_blocks blocks;
static struct ts_step step;

static void add_block(uint64_t address, uint64_t bytes)
{
	struct ts_stretch dead, live;

	ts_blocks_report(&blocks, address, (int64_t)bytes, 0, &dead, &live);
}

/* Parameters of 8, 4 and 28 bytes, one after the other. */
static struct ts_func *kernel(void)
{
	static const struct ts_param params[] = {{0, 8}, {8, 4}, {12, 28}};
	static struct ts_func *func;

	if (func)
		return func;
	func = calloc(1, sizeof(*func) + sizeof(params));
	ck_assert_ptr_nonnull(func);
	func->name = (char *)"kernel";
	func->has_layout = true;
	func->param_count = 3;
	memcpy(func->params, params, sizeof(params));
	return func;
}

START_TEST(aligned_words_of_parameters_name_blocks)
{
	/* At 12: bytes 4, 12, 20 of it are aligned in the buffer. */
	unsigned char packed[28] = {0};
	uint64_t first = 16 * MIB + 100, second = 32 * MIB, third = 48 * MIB;
	uint32_t count = 5;
	void *params[] = {&first, &count, packed};
	struct ts_op op;

	ts_blocks_init(&blocks);
	add_block(16 * MIB, MIB);
	add_block(32 * MIB, MIB);
	add_block(48 * MIB, MIB);
	memcpy(packed + 12, &second, 8);
	memcpy(packed + 5, &third, 7);
	ts_op_init(&op, TS_OP_LAUNCH, NULL);
	op.func = kernel();
	op.params = params;
	ts_op_touch_params(&op, &blocks);
	ck_assert_uint_eq(op.count, 2);
	ck_assert_uint_eq(op.uses[0].address, 16 * MIB);
	ck_assert_uint_eq(op.ranges[0].bytes, MIB);
	ck_assert_uint_eq(op.uses[1].address, 32 * MIB);
	ts_op_finish(&op);
	ts_blocks_finish(&blocks);
}
END_TEST

/* A kernel with one struct of @bytes, behind a pointer or alone. */
static struct ts_func *kernel_with(const char *name, uint32_t bytes, bool alone)
{
	const struct ts_param params[] = {{0, 8}, {8, bytes}};
	struct ts_func *func = calloc(1, sizeof(*func) + sizeof(params));

	ck_assert_ptr_nonnull(func);
	func->has_layout = true;
	func->param_count = alone ? 1 : 2;
	memcpy(func->params, params, sizeof(params));
	if (alone)
		func->params[0].bytes = (uint16_t)bytes;
	func->layout = ts_layout_create(name, func->params, func->param_count);
	ck_assert_ptr_nonnull(func->layout);
	return func;
}

/*
 * A word at @at of the struct is no operand by the layout. What a step by a
 * plan makes of it: bytes of the block that are to be there.
 */
static uint64_t bytes_behind(
        struct ts_func *func, char *data, uint32_t at, bool *ret_doubted)
{
	static uint64_t none;
	uint64_t word = 16 * MIB, bytes;
	void *alone[] = {data}, *behind[] = {&none, data};
	struct ts_op op;

	ts_blocks_init(&blocks);
	add_block(16 * MIB, MIB);
	memcpy(data + at, &word, sizeof(word));
	ts_op_init(&op, TS_OP_LAUNCH, NULL);
	op.func = func;
	op.params = func->param_count == 1 ? alone : behind;
	op.grid[0] = op.grid[1] = op.grid[2] = 1;
	ts_op_touch_params(&op, &blocks);
	ck_assert_uint_eq(op.count, 1);
	ck_assert(op.uses[0].doubtful);
	*ret_doubted = ts_op_skip_unused(&op);
	bytes = op.ranges[0].bytes;
	ts_op_finish(&op);
	ts_blocks_finish(&blocks);
	ts_layout_destroy(func->layout);
	free(func);
	return bytes;
}

#define ELEMENTWISE "void at::native::elementwise_kernel<F>(F)"
#define REDUCE      "void at::native::reduce_kernel<F>(F)"
#define CONCAT                                                                 \
	"void at::native::(anonymous namespace)::CatArrayBatchedCopy<F>(F)"

START_TEST(words_that_may_be_operands_are_not_skipped)
{
	char data[1100] = {0}, reduce[1100] = {0}, concat[1100] = {0};
	bool doubted;

	/* Nothing in these says that the layout is right. */
	ck_assert_uint_eq(bytes_behind(kernel_with(ELEMENTWISE, 624, false),
	                          data, 200, &doubted),
	        MIB);
	ck_assert(doubted);
	ck_assert_uint_eq(bytes_behind(kernel_with(REDUCE, 1048, true), reduce,
	                          304, &doubted),
	        MIB);
	ck_assert(doubted);
	/* A size that the struct of a concatenation never has. */
	ck_assert_uint_eq(bytes_behind(kernel_with(CONCAT, 1024, false), concat,
	                          512, &doubted),
	        MIB);
	ck_assert(doubted);
}
END_TEST

START_TEST(slots_that_are_not_used_are_skipped)
{
	/* One dimension of seven: divisor, its multiplier and its shift. */
	static const uint32_t sizes[] = {1, 7, 0x24924925, 3};
	char concat[2720] = {0}, reduce[1048] = {0}, offsets[624] = {0};
	bool doubted;

	ck_assert_uint_eq(bytes_behind(kernel_with(CONCAT, 2720, false), concat,
	                          512, &doubted),
	        0);
	ck_assert(!doubted);
	/* Before the outputs' calculator and 64 bytes at the end. */
	memcpy(reduce + 1048 - 64 - 504 - 404, sizes, sizeof(sizes));
	ck_assert_uint_eq(bytes_behind(kernel_with(REDUCE, 1048, true), reduce,
	                          304, &doubted),
	        0);
	ck_assert(!doubted);
	/* Sizes of dimensions that the calculator in front does not have. */
	memcpy(offsets, sizes, sizeof(sizes));
	ck_assert_uint_eq(bytes_behind(kernel_with(ELEMENTWISE, 624, false),
	                          offsets, 200, &doubted),
	        0);
	ck_assert(!doubted);
	/* What may belong to more operands than the calculator has. */
	ck_assert_uint_eq(bytes_behind(kernel_with(ELEMENTWISE, 624, false),
	                          offsets, 408, &doubted),
	        MIB);
	ck_assert(doubted);
}
END_TEST

START_TEST(uses_stand_as_their_operands_do)
{
	/* Source and result of a reduction; the first word is left over. */
	static const uint32_t at[] = {304, 1048 - 64, 1048 - 56};
	static const uint64_t words[] = {32 * MIB, 16 * MIB, 32 * MIB};
	struct ts_func *func = kernel_with(REDUCE, 1048, true);
	char data[1048] = {0};
	void *params[] = {data};
	struct ts_op op;

	for (int i = 0; i < 3; i++)
		memcpy(data + at[i], &words[i], sizeof(words[i]));
	ts_blocks_init(&blocks);
	add_block(16 * MIB, 2 * MIB);
	add_block(32 * MIB, MIB);
	ts_op_init(&op, TS_OP_LAUNCH, NULL);
	op.func = func;
	op.params = params;
	op.grid[0] = op.grid[1] = op.grid[2] = 1;
	ts_op_touch_params(&op, &blocks);
	ck_assert_uint_eq(op.count, 2);
	for (int i = 0; i < 2; i++) {
		ck_assert(!op.uses[i].doubtful);
		ck_assert_uint_eq(op.uses[i].offset, at[i + 1]);
		ck_assert_uint_eq(op.uses[i].address, words[i + 1]);
		ck_assert_uint_eq(op.ranges[i].address, words[i + 1]);
		ck_assert_uint_eq(op.ranges[i].bytes, (2 - i) * MIB);
	}
	ts_op_finish(&op);
	ts_blocks_finish(&blocks);
	ts_layout_destroy(func->layout);
	free(func);
}
END_TEST

START_TEST(parameter_buffer_names_blocks)
{
	uint64_t buffer[3] = {7, 32 * MIB + 8, 1};
	size_t bytes = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
	        CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	struct ts_op op;

	ts_blocks_init(&blocks);
	add_block(32 * MIB, MIB);
	ts_op_init(&op, TS_OP_LAUNCH, NULL);
	op.func = kernel();
	op.extra = extra;
	ts_op_touch_params(&op, &blocks);
	ck_assert_uint_eq(op.count, 1);
	ts_op_finish(&op);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(unknown_parameters_may_mean_any_block)
{
	struct ts_op op;

	ts_blocks_init(&blocks);
	for (uint64_t i = 1; i <= 100; i++)
		add_block(i * MIB, 512);
	ts_op_init(&op, TS_OP_LAUNCH, NULL);
	op.func = kernel();
	op.unknown_params = true;
	ts_op_touch_params(&op, &blocks);
	ck_assert_uint_eq(op.count, 100);
	ck_assert_uint_eq(op.uses[99].address, 100 * MIB);
	ts_op_finish(&op);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(copy_inside_a_block_touches_only_its_part)
{
	struct ts_op op;

	ts_blocks_init(&blocks);
	add_block(16 * MIB, MIB);
	ts_op_init(&op, TS_OP_COPY, "copy");
	ts_op_touch(&op, &blocks, 16 * MIB + 64, 100, TS_ACCESS_WRITE);
	ck_assert_uint_eq(op.count, 1);
	ck_assert_uint_eq(op.ranges[0].address, 16 * MIB + 64);
	ck_assert_uint_eq(op.ranges[0].bytes, 100);
	ck_assert_uint_eq(op.uses[0].bytes, MIB);
	/* Read and written by one op: both. */
	ts_op_touch(&op, &blocks, 16 * MIB, 32, TS_ACCESS_READ);
	ck_assert_uint_eq(op.count, 1);
	ck_assert_uint_eq(op.ranges[0].address, 16 * MIB);
	ck_assert_uint_eq(op.ranges[0].bytes, 164);
	ck_assert_int_eq(op.ranges[0].access, TS_ACCESS_READWRITE);
	ts_op_finish(&op);
	ts_blocks_finish(&blocks);
}
END_TEST

START_TEST(copy_over_several_blocks_touches_them_all)
{
	struct ts_op op;

	ts_blocks_init(&blocks);
	add_block(16 * MIB, MIB);
	add_block(18 * MIB, MIB);
	ts_op_init(&op, TS_OP_SET, "set");
	ts_op_touch(&op, &blocks, 16 * MIB + 512, 2 * MIB, TS_ACCESS_WRITE);
	ck_assert_uint_eq(op.count, 2);
	ck_assert_uint_eq(op.ranges[0].bytes, MIB - 512);
	ck_assert_uint_eq(op.ranges[1].address, 18 * MIB);
	ck_assert_uint_eq(op.ranges[1].bytes, 512);
	ts_op_finish(&op);
	ts_blocks_finish(&blocks);
}
END_TEST

static void push_loop(const char *sequence, int times)
{
	for (int i = 0; i < times; i++)
		for (const char *at = sequence; *at; at++)
			ts_step_push(&step, (uint64_t)*at * 7919);
}

/* Forward layers, backward layers, an optimizer: longer than a gram each. */
#define LAYER     "abcdefghij"
#define BACK      "ABCDEFGHIJKLMN"
#define OPTIMIZER "0123456789"

static void push_step(void)
{
	push_loop("embedding<", 1);
	push_loop(LAYER, 12);
	push_loop("loss>", 1);
	push_loop(BACK, 12);
	push_loop(OPTIMIZER, 1);
}

#define STEP_OPS (10 + 12 * 10 + 5 + 12 * 14 + 10)

START_TEST(step_is_found_and_not_its_layers)
{
	uint64_t first, length;

	ck_assert_int_eq(ts_step_init(&step), 0);
	push_loop("initialize the weights first", 1);
	push_step();
	/* Only layers recurred so far, and those broke off. */
	ck_assert_uint_eq(ts_step_last(&step, &first, &length), 0);
	for (int i = 0; i < 4; i++)
		push_step();
	ck_assert_uint_ge(ts_step_last(&step, &first, &length), 4);
	ck_assert_uint_eq(length, STEP_OPS);
	ck_assert_uint_le(first + length, step.count);
	ck_assert_uint_gt(first + 2 * length, step.count);
	ts_step_finish(&step);
}
END_TEST

START_TEST(longer_first_step_does_not_hide_the_others)
{
	uint64_t first, length;

	ck_assert_int_eq(ts_step_init(&step), 0);
	push_step();
	push_loop("zeros for the optimizer's state", 3);
	for (int i = 0; i < 3; i++)
		push_step();
	ck_assert_uint_ge(ts_step_last(&step, &first, &length), 2);
	ck_assert_uint_eq(length, STEP_OPS);
	ts_step_finish(&step);
}
END_TEST

START_TEST(no_step_where_nothing_recurs)
{
	uint64_t first, length;

	ck_assert_int_eq(ts_step_init(&step), 0);
	for (uint64_t i = 0; i < 3000; i++)
		ts_step_push(&step, i * 2654435761u);
	ck_assert_uint_eq(ts_step_last(&step, &first, &length), 0);
	ck_assert_uint_eq(ts_step_oldest_needed(&step), 0);
	ts_step_finish(&step);
}
END_TEST

START_TEST(many_steps_find_the_last)
{
	uint64_t first, length;

	ck_assert_int_eq(ts_step_init(&step), 0);
	for (int i = 0; i < 5000; i++)
		push_step();
	ck_assert_uint_gt(step.count, TS_STEP_HISTORY);
	ck_assert_uint_ge(ts_step_last(&step, &first, &length), 4000);
	ck_assert_uint_eq(length, STEP_OPS);
	ck_assert_uint_gt(first + 2 * length, step.count);
	ts_step_finish(&step);
}
END_TEST

START_TEST(tape_keeps_the_recent_ops_and_counts_all)
{
	static struct ts_tape tape;
	struct ts_use use = {.serial = 0, .bytes = MIB};
	const uint64_t ops = 3 * TS_TAPE_MAX;
	struct ts_op op;

	ck_assert_int_eq(ts_tape_init(&tape), 0);
	for (uint64_t i = 0; i < ops; i++) {
		ts_op_init(&op, TS_OP_SET, "set");
		op.bytes = i;
		use.serial = i;
		op.uses[0] = use;
		op.count = 1;
		ts_tape_record(&tape, &op);
		ts_op_finish(&op);
	}
	ck_assert_uint_eq(tape.totals[TS_OP_SET], ops);
	ck_assert_uint_eq(tape.op_count, ops);
	ck_assert_uint_le(tape.op_count - tape.oldest_op, TS_TAPE_MAX);
	ck_assert_uint_ge(tape.op_count - tape.oldest_op, TS_TAPE_KEEP / 2);
	for (uint64_t i = tape.oldest_op; i < ops; i++) {
		const struct ts_tape_op *kept = ts_tape_op(&tape, i);

		ck_assert_uint_eq(kept->bytes, i);
		ck_assert_uint_eq(
		        ts_tape_use(&tape, kept->first_use)->serial, i);
	}
	ts_tape_finish(&tape);
}
END_TEST

START_TEST(signatures_tell_geometry_apart_and_families_do_not)
{
	struct ts_op op[4];

	for (int i = 0; i < 4; i++) {
		ts_op_init(&op[i], TS_OP_LAUNCH, NULL);
		op[i].func = kernel();
		op[i].grid[0] = i == 1 ? 9 : 8;
		op[i].cluster[0] = i == 2 ? 2 : 0;
		op[i].stream = i == 3 ? 77 : 0;
		ts_op_sign(&op[i]);
		ck_assert_uint_eq(op[i].family, op[0].family);
		ts_op_finish(&op[i]);
	}
	ck_assert_uint_ne(op[1].signature, op[0].signature);
	ck_assert_uint_ne(op[2].signature, op[0].signature);
	ck_assert_uint_eq(op[3].signature, op[0].signature);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(
	        tests, signatures_tell_geometry_apart_and_families_do_not);
	tcase_add_test(tests, aligned_words_of_parameters_name_blocks);
	tcase_add_test(tests, parameter_buffer_names_blocks);
	tcase_add_test(tests, words_that_may_be_operands_are_not_skipped);
	tcase_add_test(tests, slots_that_are_not_used_are_skipped);
	tcase_add_test(tests, uses_stand_as_their_operands_do);
	tcase_add_test(tests, unknown_parameters_may_mean_any_block);
	tcase_add_test(tests, copy_inside_a_block_touches_only_its_part);
	tcase_add_test(tests, copy_over_several_blocks_touches_them_all);
	tcase_add_test(tests, step_is_found_and_not_its_layers);
	tcase_add_test(tests, longer_first_step_does_not_hide_the_others);
	tcase_add_test(tests, no_step_where_nothing_recurs);
	tcase_add_test(tests, many_steps_find_the_last);
	tcase_add_test(tests, tape_keeps_the_recent_ops_and_counts_all);
}

int main(void)
{
	return run_suite("tape", add_tests);
}
