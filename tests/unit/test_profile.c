/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pure parts of observing: regions, shapes of steps, kernel names. */
#include <string.h>

#include "agent/funcs.h"
#include "agent/kernel.h"
#include "agent/layout.h"
#include "agent/numbers.h"
#include "agent/regions.h"
#include "agent/shapes.h"
#include "tests/unit/suite.h"

static const uint64_t no_cuts[64];

/* Letters for signatures: "ab" is a layer's ops, "x" others. */
static uint32_t spell(const char *text, uint64_t *ret)
{
	uint32_t length = (uint32_t)strlen(text);

	for (uint32_t i = 0; i < length; i++)
		ret[i] = (uint64_t)text[i];
	return length;
}

START_TEST(layers_are_found_and_not_what_repeats_in_them)
{
	uint64_t ops[64];
	uint32_t end = spell("xyqqqabcdqqqabcdqqqabcdz", ops);
	struct ts_run runs[4];

	ck_assert_uint_eq(ts_regions_find(ops, no_cuts, 0, end, runs, 4), 1);
	ck_assert_uint_eq(runs[0].first, 2);
	ck_assert_uint_eq(runs[0].period, 7);
	ck_assert_uint_eq(runs[0].count, 3);
}
END_TEST

START_TEST(groups_of_layers_are_told_apart)
{
	uint64_t ops[64];
	uint32_t end = spell("abcdabcdabcdxefghiefghi", ops);
	struct ts_run runs[4];

	ck_assert_uint_eq(ts_regions_find(ops, no_cuts, 0, end, runs, 4), 2);
	ck_assert_uint_eq(runs[0].count, 3);
	ck_assert_uint_eq(runs[1].first, 13);
	ck_assert_uint_eq(runs[1].period, 5);
	ck_assert_uint_eq(runs[1].count, 2);
}
END_TEST

START_TEST(a_layer_begins_where_least_is_alive)
{
	uint64_t ops[64], cuts[64] = {0};
	/* The run may begin at 0 or at 1. */
	uint32_t end = spell("dabcdabcdabcdz", ops);
	struct ts_run runs[4];

	for (int i = 0; i < 64; i++)
		cuts[i] = i % 4 == 1 ? 1 : 100;
	ck_assert_uint_eq(ts_regions_find(ops, cuts, 0, end, runs, 4), 1);
	ck_assert_uint_eq(runs[0].first, 1);
	ck_assert_uint_eq(runs[0].count, 3);
}
END_TEST

START_TEST(nothing_repeats)
{
	uint64_t ops[64];
	uint32_t end = spell("abcdefghijklmnop", ops);
	struct ts_run runs[4];

	ck_assert_uint_eq(ts_regions_find(ops, no_cuts, 0, end, runs, 4), 0);
	ck_assert_int_ne(ts_regions_find_counted(ops, 0, end, 2, runs), 0);
}
END_TEST

/* Capitals are ops of a backward; every op takes @ns. */
static struct ts_shape *note(
        struct ts_shapes *shapes, const char *text, uint64_t ns)
{
	size_t length = strlen(text);
	struct ts_recording step = {.op_count = length,
	        .ops = calloc(length, sizeof(struct ts_rec_op))};
	struct ts_shape *shape;

	for (size_t i = 0; i < length; i++) {
		step.ops[i].signature = (uint64_t)text[i];
		step.ops[i].backward = text[i] >= 'A' && text[i] <= 'Z';
		step.ops[i].duration_ns = ns;
		step.ops[i].gap_ns = ns;
	}
	step.duration_ns = ts_recording_duration(&step);
	shape = ts_shapes_note(shapes, &step);
	ts_recording_finish(&step);
	return shape;
}

START_TEST(a_step_after_an_evaluation_is_the_same_step)
{
	static struct ts_shapes shapes;
	struct ts_shape *first = note(&shapes, "abCDo", 9);

	ck_assert_ptr_eq(note(&shapes, "evalabCDo", 7), first);
	ck_assert_ptr_eq(note(&shapes, "abCDo", 8), first);
	ck_assert_uint_eq(first->seen, 3);
	ck_assert_uint_eq(first->timed, 3);
	ck_assert_uint_eq(first->best_ns[0], 7);
	ck_assert_uint_eq(shapes.other_ops, 4);
	/* A whole micro-step before it is no evaluation. */
	ck_assert_ptr_ne(note(&shapes, "abCDabCDo", 9), first);
	ck_assert_uint_eq(shapes.steps, 4);
	ts_shapes_finish(&shapes);
}
END_TEST

START_TEST(a_step_after_an_evaluation_has_a_period)
{
	static struct ts_shapes shapes;
	struct ts_shape *shape = note(&shapes, "abCDo", TS_UNKNOWN_NS);

	ck_assert_uint_eq(shape->step_ns, TS_UNKNOWN_NS);
	note(&shapes, "evalabCDo", 9);
	ck_assert_uint_eq(shape->step_ns, 5 * 9);
	/* That of steps in a row is better known, if longer. */
	note(&shapes, "abCDo", 10);
	note(&shapes, "evalabCDo", 8);
	ck_assert_uint_eq(shape->step_ns, 5 * 10);
	note(&shapes, "abCDo", 7);
	ck_assert_uint_eq(shape->step_ns, 5 * 7);
	ts_shapes_finish(&shapes);
}
END_TEST

START_TEST(a_step_that_is_not_all_there_makes_no_shape)
{
	static struct ts_shapes shapes;
	struct ts_rec_op op = {.signature = 1};
	struct ts_recording step = {.op_count = 1, .ops = &op, .partial = true};

	ck_assert_ptr_null(ts_shapes_note(&shapes, &step));
	ck_assert_uint_eq(shapes.steps, 1);
	ck_assert_uint_eq(shapes.count, 0);
}
END_TEST

START_TEST(the_shape_not_seen_for_longest_gives_way)
{
	static struct ts_shapes shapes;
	char text[] = "aBo";

	for (int i = 0; i < TS_SHAPES_MAX + 3; i++) {
		text[0] = (char)('a' + i);
		ck_assert_ptr_nonnull(note(&shapes, text, 1));
	}
	ck_assert_uint_eq(shapes.count, TS_SHAPES_MAX);
	text[0] = 'a' + TS_SHAPES_MAX + 2;
	ck_assert_uint_eq(note(&shapes, text, 1)->seen, 2);
	text[0] = 'a';
	ck_assert_uint_eq(note(&shapes, text, 1)->seen, 1);
	ts_shapes_finish(&shapes);
}
END_TEST

START_TEST(types_of_parameters_come_from_the_name)
{
	struct ts_kernel *kernel = ts_kernel_create(
	        "void at::native::(anonymous namespace)::layer_norm_kernel<"
	        "float>(int, float const*, float*)");

	ck_assert_ptr_nonnull(kernel);
	ck_assert_str_eq(kernel->label, "layer_norm_kernel");
	ck_assert_int_eq(kernel->op_class, TS_CLASS_NORM);
	ck_assert_uint_eq(kernel->param_count, 3);
	ck_assert_uint_eq(kernel->param_type[0], TS_PARAM_OTHER);
	ck_assert_uint_eq(kernel->param_type[1], TS_PARAM_CONST);
	ck_assert_uint_eq(kernel->param_type[2], TS_PARAM_WRITABLE);
	ts_kernel_destroy(kernel);
	kernel = ts_kernel_create("triton_poi_fused_0");
	ck_assert_ptr_nonnull(kernel);
	ck_assert_str_eq(kernel->label, "triton_poi_fused_0");
	ck_assert_uint_eq(kernel->param_count, 0);
	ts_kernel_destroy(kernel);
}
END_TEST

START_TEST(names_tell_what_writes_no_addresses)
{
	ck_assert(ts_writes_numbers(
	        "void at::native::(anonymous namespace)::layer_norm_kernel<"
	        "float>(int, float const*, float*)"));
	ck_assert(ts_writes_numbers("ampere_sgemm_128x64_nn"));
	/* A name that only ends so. */
	ck_assert(ts_writes_numbers("void at::native::prolong<float>(float*)"));
	ck_assert(!ts_writes_numbers(
	        "void at::native::vectorized_elementwise_kernel<4, "
	        "at::native::FillFunctor<long>, std::array<char*, 1ul> "
	        ">(int)"));
	ck_assert(!ts_writes_numbers("void at::native::CatArrayBatchedCopy<"
	                             "at::native::OpaqueType<8u> >(int)"));
	ck_assert(!ts_writes_numbers(
	        "void at::native::gather<float>(float const**, float*)"));
	ck_assert(!ts_writes_numbers(
	        "void "
	        "at::cuda::detail::prepare_grouped_gemm_data<float>(float*)"));
	ck_assert(!ts_writes_numbers("grouped_gemm_setup"));
	ck_assert(!ts_writes_numbers("triton_poi_fused_0"));
	ck_assert(!ts_writes_numbers("?"));
}
END_TEST

START_TEST(stale_slots_of_a_concatenation_are_left_out)
{
	const struct ts_param params[] = {{0, 8}, {8, 3392}};
	static char inputs[3392];
	void *values[] = {inputs, inputs};
	const uint32_t grid[] = {1, 2, 1};
	struct ts_layout *layout =
	        ts_layout_create("void at::native::(anonymous namespace)::"
	                         "CatArrayBatchedCopy<float>(float*, Inputs)",
	                params, 2);
	uint32_t used = ts_layout_used(layout, values, grid);

	ck_assert_ptr_nonnull(layout);
	ck_assert(ts_layout_keeps(layout, used, 0, 0));
	ck_assert(ts_layout_keeps(layout, used, 1, 8));
	ck_assert(!ts_layout_keeps(layout, used, 1, 16));
	ts_layout_destroy(layout);
	ck_assert(ts_layout_keeps(NULL, 0, 3, 4096));
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, layers_are_found_and_not_what_repeats_in_them);
	tcase_add_test(tests, groups_of_layers_are_told_apart);
	tcase_add_test(tests, a_layer_begins_where_least_is_alive);
	tcase_add_test(tests, nothing_repeats);
	tcase_add_test(tests, a_step_after_an_evaluation_is_the_same_step);
	tcase_add_test(tests, a_step_after_an_evaluation_has_a_period);
	tcase_add_test(tests, a_step_that_is_not_all_there_makes_no_shape);
	tcase_add_test(tests, the_shape_not_seen_for_longest_gives_way);
	tcase_add_test(tests, types_of_parameters_come_from_the_name);
	tcase_add_test(tests, names_tell_what_writes_no_addresses);
	tcase_add_test(tests, stale_slots_of_a_concatenation_are_left_out);
}

int main(void)
{
	return run_suite("profile", add);
}
