/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Launches that are kept and issued again, and what rules say of ops. */
#include <errno.h>
#include <string.h>

#include "agent/funcs.h"
#include "agent/replay.h"
#include "agent/verdict.h"
#include "tests/unit/suite.h"

static struct {
	unsigned int plain, ex;
	CUlaunchConfig config;
	CUlaunchAttribute attributes[TS_REPLAY_ATTRIBUTES];
	uint64_t words[3];
	uint32_t number;
} seen;

static CUresult read_params(void **params)
{
	memcpy(&seen.words[0], params[0], 8);
	memcpy(&seen.number, params[1], 4);
	memcpy(&seen.words[1], params[2], 16);
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, unsigned int grid_x,
        unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
        CUstream stream, void **params, void **extra)
{
	ck_assert_ptr_null(extra);
	ck_assert_uint_eq(grid_x + grid_y + grid_z, 6);
	ck_assert_uint_eq(block_x + block_y + block_z, 66);
	ck_assert_uint_eq(shared_bytes, 512);
	ck_assert_uint_eq((uintptr_t)stream, 77);
	ck_assert_uint_eq((uintptr_t)function, 5);
	seen.plain++;
	return read_params(params);
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction function,
        void **params, void **extra)
{
	ck_assert_ptr_null(extra);
	ck_assert_uint_eq((uintptr_t)function, 5);
	seen.ex++;
	seen.config = *config;
	memcpy(seen.attributes, config->attrs,
	        config->numAttrs * sizeof(*config->attrs));
	return read_params(params);
}

static const struct ts_gpu_ops ops = {.launch = launch, .launch_ex = launch_ex};

/* A pointer, a number, and a struct of two pointers. */
static struct ts_func *function(void)
{
	static union {
		struct ts_func func;
		char room[sizeof(struct ts_func) + 3 * sizeof(struct ts_param)];
	} made;

	made.func = (struct ts_func){
	        .name = (char *)"k", .has_layout = true, .param_count = 3};
	made.func.params[0] = (struct ts_param){0, 8};
	made.func.params[1] = (struct ts_param){8, 4};
	made.func.params[2] = (struct ts_param){16, 16};
	return &made.func;
}

static uint64_t first = 0x10000, both[2] = {0x20000, 0x20100};
static uint32_t number = 0x10000;
static void *params[] = {&first, &number, both};

static struct ts_op an_op(const CUlaunchConfig *config)
{
	struct ts_op op;

	memset(&op, 0, sizeof(op));
	op.kind = TS_OP_LAUNCH;
	op.function = (CUfunction)(uintptr_t)5;
	op.func = function();
	op.params = params;
	op.config = config;
	op.shared_bytes = 512;
	for (unsigned int i = 0; i < 3; i++)
		op.grid[i] = i + 1;
	op.block[0] = 64;
	op.block[1] = op.block[2] = 1;
	return op;
}

START_TEST(only_words_in_the_range_are_led_elsewhere)
{
	struct ts_op op = an_op(NULL);
	struct ts_replay_launch kept;

	memset(&seen, 0, sizeof(seen));
	ck_assert_int_eq(ts_replay_keep(&op, &kept), 0);
	/* What the program does with its own afterwards does not matter. */
	first = 1;
	ck_assert_uint_eq(
	        ts_replay_redirect(&kept, 0x20000, 0x100, 0x90000), 1);
	ck_assert_uint_eq(ts_replay_redirect(&kept, 0x8000, 0x100, 0x90000), 0);
	ck_assert_int_eq(ts_replay_issue(&kept, &ops, 77), 0);
	ck_assert_uint_eq(seen.plain, 1);
	ck_assert_uint_eq(seen.words[0], 0x10000);
	ck_assert_uint_eq(seen.number, 0x10000);
	ck_assert_uint_eq(seen.words[1], 0x90000);
	ck_assert_uint_eq(seen.words[2], 0x20100);
	/* As far into the other block as into the first. */
	ck_assert_uint_eq(
	        ts_replay_redirect(&kept, 0x20080, 0x100, 0x70000), 1);
	ck_assert_int_eq(ts_replay_issue(&kept, &ops, 77), 0);
	ck_assert_uint_eq(seen.words[2], 0x70080);
	first = 0x10000;
	ts_replay_finish(&kept);
}
END_TEST

START_TEST(attributes_that_change_results_are_kept)
{
	CUlaunchAttribute given[] = {
	        {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
	                .value.clusterDim = {2, 1, 1}},
	        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
	                .value.programmaticStreamSerializationAllowed = 1},
	        {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT},
	        {.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN},
	};
	CUlaunchConfig config = {.attrs = given, .numAttrs = 4};
	struct ts_op op = an_op(&config);
	struct ts_replay_launch kept;

	memset(&seen, 0, sizeof(seen));
	op.cooperative = true;
	ck_assert_int_eq(ts_replay_keep(&op, &kept), 0);
	memset(given, 0, sizeof(given));
	ck_assert_int_eq(ts_replay_issue(&kept, &ops, 77), 0);
	ck_assert_uint_eq(seen.ex, 1);
	ck_assert_uint_eq(seen.config.numAttrs, 3);
	ck_assert_int_eq(
	        seen.attributes[0].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
	ck_assert_uint_eq(seen.attributes[0].value.clusterDim.x, 2);
	ck_assert_int_eq(
	        seen.attributes[1].id, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
	ck_assert_int_eq(
	        seen.attributes[2].id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
	ck_assert_int_eq(seen.attributes[2].value.cooperative, 1);
	ck_assert_uint_eq((uintptr_t)seen.config.hStream, 77);
	ck_assert_uint_eq(seen.config.gridDimZ, 3);
	ts_replay_finish(&kept);
}
END_TEST

START_TEST(what_cannot_be_told_again_is_refused)
{
	CUlaunchAttribute unknown = {.id = (CUlaunchAttributeID)9999};
	CUlaunchConfig config = {.attrs = &unknown, .numAttrs = 1};
	struct ts_op op = an_op(&config);
	struct ts_replay_launch kept;
	void *extra[] = {CU_LAUNCH_PARAM_END};

	ck_assert_int_eq(ts_replay_keep(&op, &kept), -ENOTSUP);
	op = an_op(NULL);
	op.unknown_params = true;
	ck_assert_int_eq(ts_replay_keep(&op, &kept), -ENOTSUP);
	op = an_op(NULL);
	op.extra = extra;
	ck_assert_int_eq(ts_replay_keep(&op, &kept), -ENOTSUP);
	op = an_op(NULL);
	function()->has_layout = false;
	ck_assert_int_eq(ts_replay_keep(&op, &kept), -ENOTSUP);
}
END_TEST

#define NAMED(text)                                                            \
	{                                                                      \
		.name = (char *)(text), .has_layout = true                     \
	}

/* One op with an output and an input, as a step records it. */
static enum ts_verdict rule(
        const struct ts_func *func, void (*change)(struct ts_rec_op *op))
{
	struct ts_rec_block blocks[2] = {{.serial = 1}, {.serial = 2}};
	struct ts_rec_use uses[2] = {{.block = 0, .fresh = true}, {.block = 1}};
	struct ts_rec_op op = {
	        .kind = TS_REC_LAUNCH, .func = func, .use_count = 2};
	struct ts_recording step = {.ops = &op,
	        .op_count = 1,
	        .uses = uses,
	        .use_count = 2,
	        .blocks = blocks,
	        .block_count = 2};
	enum ts_verdict verdict = TS_VERDICTS;

	if (change)
		change(&op);
	blocks[0].scratch = op.shared_bytes == 1;
	ck_assert_int_eq(ts_verdict_by_rule(&step, &verdict), 0);
	return verdict;
}

static void is_copy(struct ts_rec_op *op)
{
	op->kind = TS_REC_COPY;
}

static void is_collective(struct ts_rec_op *op)
{
	op->collective = true;
}

static void is_captured(struct ts_rec_op *op)
{
	op->captured = true;
}

static void is_update(struct ts_rec_op *op)
{
	op->updating = true;
}

static void works_in_place(struct ts_rec_op *op)
{
	op->first_use = 1;
	op->use_count = 1;
}

static void makes_scratch_only(struct ts_rec_op *op)
{
	op->shared_bytes = 1;
}

START_TEST(rules_refuse_before_anything_is_tried)
{
	static const struct ts_func plain = NAMED("gelu_kernel");
	static const struct ts_func nccl = NAMED("ncclDevKernel_AllReduce");
	static const struct ts_func adds = NAMED("embedding_backward_kernel");
	static const struct ts_func put = NAMED("index_put_kernel");
	static const struct ts_func scatter = NAMED("scatter_add_kernel");
	static const struct ts_func norm =
	        NAMED("batch_norm_collect_statistics_kernel");
	static const struct ts_func sizes = NAMED("write_indices_nonzero");
	static const struct ts_func adam = NAMED("multi_tensor_apply_kernel");
	static const struct ts_func unknown = {.name = (char *)"k"};

	ck_assert_int_eq(rule(&plain, NULL), TS_VERDICT_OPEN);
	ck_assert_int_eq(rule(&plain, is_copy), TS_VERDICT_NO_LAUNCH);
	ck_assert_int_eq(rule(&plain, is_collective), TS_VERDICT_COLLECTIVE);
	ck_assert_int_eq(rule(&nccl, NULL), TS_VERDICT_COLLECTIVE);
	ck_assert_int_eq(rule(&plain, is_captured), TS_VERDICT_CAPTURED);
	ck_assert_int_eq(rule(&plain, is_update), TS_VERDICT_OPTIMIZER);
	ck_assert_int_eq(rule(&adam, NULL), TS_VERDICT_OPTIMIZER);
	ck_assert_int_eq(rule(&adds, NULL), TS_VERDICT_ATOMICS);
	ck_assert_int_eq(rule(&put, NULL), TS_VERDICT_ATOMICS);
	ck_assert_int_eq(rule(&scatter, NULL), TS_VERDICT_ATOMICS);
	ck_assert_int_eq(rule(&norm, NULL), TS_VERDICT_STATISTICS);
	ck_assert_int_eq(rule(&sizes, NULL), TS_VERDICT_SHARED_STATE);
	ck_assert_int_eq(rule(&plain, works_in_place), TS_VERDICT_NO_OUTPUT);
	ck_assert_int_eq(
	        rule(&plain, makes_scratch_only), TS_VERDICT_NO_OUTPUT);
	ck_assert_int_eq(rule(&unknown, NULL), TS_VERDICT_PARAMETERS);
}
END_TEST

START_TEST(every_verdict_has_its_words)
{
	for (int i = 0; i < TS_VERDICTS; i++) {
		enum ts_verdict_class what =
		        ts_verdict_class((enum ts_verdict)i);

		ck_assert_ptr_nonnull(ts_verdict_reason((enum ts_verdict)i));
		ck_assert_uint_gt(strlen(ts_verdict_class_text(what)), 5);
		ck_assert_int_eq(what == TS_PROVED, i == TS_VERDICT_PROVED);
	}
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, only_words_in_the_range_are_led_elsewhere);
	tcase_add_test(tests, attributes_that_change_results_are_kept);
	tcase_add_test(tests, what_cannot_be_told_again_is_refused);
	tcase_add_test(tests, rules_refuse_before_anything_is_tried);
	tcase_add_test(tests, every_verdict_has_its_words);
}

int main(void)
{
	return run_suite("replay", add);
}
