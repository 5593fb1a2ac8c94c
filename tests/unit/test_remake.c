/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Values that are given up and made again, on a device whose kernels compute
 * (late_gpu.h). What is given up is overwritten at once.
 *
 * A step of ten ops: V is made by three of them through memory that another
 * block has later on, U is made from V and wanted before V is.
 */
#include "agent/agent_internal.h"
#include "agent/proof_internal.h"
#include "agent/remake_internal.h"
#include "tests/unit/late_gpu.h"
#include "tests/unit/pager_fixture.h"

#define OPS   10u
#define PLAN  7u
#define ROOMY 64u /* pages: nothing moves */
#define ARENA (1u << 20)

enum { X, S1, S2, V, U, D, E, T, F, R1, R2, BLOCKS, NONE = BLOCKS };

/* What an op makes from what; before it comes, or after it, blocks change. */
static const struct {
	uint32_t out, in[2];
	bool other_stream; /* where the step has two */
} shape[OPS] = {
        {S1, {X, NONE}, false},
        {S2, {S1, NONE}, false},
        {V, {S1, S2}, false},
        {U, {V, NONE}, true},
        {D, {V, NONE}, false},
        {E, {U, NONE}, true},
        {T, {D, NONE}, false},
        {F, {E, D}, false},
        {R1, {U, F}, true},
        {R2, {V, T}, false},
};

/* The last op that touches it; results stay. */
static const uint32_t last_op[BLOCKS] = {[X] = OPS,
        [S1] = 2,
        [S2] = 2,
        [V] = 9,
        [U] = 8,
        [D] = 7,
        [E] = 7,
        [T] = 9,
        [F] = 8,
        [R1] = OPS,
        [R2] = OPS};

static struct {
	struct ts_observed observed;
	struct ts_observed_device device;
	struct ts_rec_op rec_ops[OPS];
	struct ts_rec_use rec_uses[4 * OPS];
	struct ts_rec_block rec_blocks[BLOCKS + 1];
	uint64_t signatures[OPS];
	uint32_t use_read[4 * OPS], use_write[4 * OPS];
	enum ts_verdict verdicts[OPS];
	bool in_place[OPS];
	struct ts_closures *closures;
	/* Of the program. */
	uint64_t address[BLOCKS];
	bool lives[BLOCKS];
	unsigned char holds[BLOCKS]; /* every byte, had nothing been given up */
	bool two_streams, keeps_content;
	ts_stream_key last_stream;
	uint32_t next; /* op of the step; on plan */
	unsigned char number;
} s;

/* -------------------------------------------------- the step, as recorded */

static const struct ts_func *function(void)
{
	static union {
		struct ts_func func;
		char room[sizeof(struct ts_func) + 3 * sizeof(struct ts_param)];
	} made;

	made.func = (struct ts_func){
	        .name = (char *)"k", .has_layout = true, .param_count = 3};
	made.func.params[0] = (struct ts_param){0, 8};
	made.func.params[1] = (struct ts_param){8, 16};
	made.func.params[2] = (struct ts_param){24, 1};
	return &made.func;
}

static void record_use(uint32_t at, uint32_t block, bool written, uint32_t in)
{
	struct ts_recording *step = &s.observed.step;
	size_t use = step->use_count++;

	s.rec_uses[use] = (struct ts_rec_use){.block = block,
	        .param = written ? 0 : 1,
	        .offset = written ? 0 : 8 * in,
	        .fresh = written};
	s.use_read[use] = written ? TS_NONE : block;
	s.use_write[use] = written ? block : TS_NONE;
	s.rec_ops[at].use_count++;
}

static void record_op(struct ts_profile_builder *builder, uint32_t at)
{
	uint32_t out = shape[at].out, n = shape[at].in[1] == NONE ? 1 : 2;
	uint32_t signature =
	        ts_builder_signature(builder, "k", TS_CLASS_OTHER, true);

	s.signatures[at] = at + 1;
	s.rec_ops[at] = (struct ts_rec_op){.signature = at + 1,
	        .stream = STREAM_A,
	        .duration_ns = 1000,
	        .first_use = s.observed.step.use_count};
	ts_builder_op(builder, signature, 1000, shape[at].in, n, &out, 1);
	record_use(at, out, true, 0);
	for (uint32_t i = 0; i < n; i++)
		record_use(at, shape[at].in[i], false, i);
	s.verdicts[at] = TS_VERDICT_PROVED;
}

/* Op @at had a word besides its operands that led to @block. */
static void record_doubt(uint32_t at, uint32_t block)
{
	struct ts_recording *step = &s.observed.step;
	uint64_t after = s.rec_ops[at].first_use + s.rec_ops[at].use_count;

	for (size_t i = step->use_count++; i > after; i--) {
		s.rec_uses[i] = s.rec_uses[i - 1];
		s.use_read[i] = s.use_read[i - 1];
		s.use_write[i] = s.use_write[i - 1];
	}
	s.rec_uses[after] = (struct ts_rec_use){.block = block, .param = 1};
	s.use_read[after] = TS_NONE;
	s.use_write[after] = TS_NONE;
	s.rec_ops[at].doubt_count++;
	for (uint32_t i = at + 1; i < OPS; i++)
		s.rec_ops[i].first_use++;
}

static void record(void)
{
	struct ts_recording *step = &s.observed.step;
	struct ts_profile_builder builder;

	ts_builder_init(&builder);
	builder.profile.device = (struct ts_device){.memory_bytes = 1 << 30,
	        .d2h_bytes_per_s = 1 << 20,
	        .h2d_bytes_per_s = 1 << 20,
	        .d2h_both_bytes_per_s = 1 << 20,
	        .h2d_both_bytes_per_s = 1 << 20};
	for (uint32_t i = 0; i < BLOCKS; i++) {
		ts_builder_value(&builder, PAGE, TS_KIND_OTHER);
		s.rec_blocks[i] = (struct ts_rec_block){
		        .serial = 1000 + i, .bytes = PAGE};
	}
	builder.profile.values[X].persistent = true;
	for (uint32_t i = 0; i < OPS; i++)
		record_op(&builder, i);
	ck_assert_int_eq(ts_builder_take(&builder, &s.device.profile), 0);
	step->ops = s.rec_ops;
	step->op_count = OPS;
	step->uses = s.rec_uses;
	step->blocks = s.rec_blocks;
	step->block_count = BLOCKS + 1;
	s.device.values.use_read = s.use_read;
	s.device.values.use_write = s.use_write;
	s.observed.op_count = OPS;
	s.observed.signatures = s.signatures;
	s.observed.devices = &s.device;
	s.observed.device_count = 1;
}

/* ------------------------------------------------------------ the program */

static void is_born(uint32_t block)
{
	if (s.lives[block])
		return;
	ck_assert_int_eq(ts_blocks_add_allocation(&ts_agent.blocks,
	                         s.address[block], PAGE, 0, FAKE_CONTEXT, true),
	        0);
	ts_pager_live(pager, s.address[block], PAGE);
	s.lives[block] = true;
}

static void dies(uint32_t block)
{
	struct ts_allocation allocation;

	ck_assert(ts_blocks_remove_allocation(&ts_agent.blocks,
	        s.address[block], &allocation, ts_agent_tell_dead, NULL));
	s.lives[block] = false;
}

static void use(struct ts_op *op, uint32_t block, bool written, uint32_t in)
{
	struct ts_use *to = &op->uses[op->count];
	const struct ts_block *found;

	ts_mutex_lock(&ts_agent.blocks.lock);
	found = ts_blocks_find_locked(&ts_agent.blocks, s.address[block]);
	ck_assert_ptr_nonnull(found);
	*to = (struct ts_use){.serial = found->serial,
	        .address = found->address,
	        .bytes = found->bytes,
	        .access = written ? TS_ACCESS_READWRITE : TS_ACCESS_READ,
	        .param = written ? 0 : 1,
	        .offset = written ? 0 : 8 * in,
	        .fresh = written};
	ts_mutex_unlock(&ts_agent.blocks.lock);
	op->ranges[op->count++] = (struct ts_range){
	        .address = to->address, .bytes = PAGE, .access = to->access};
}

/* One op of the program: @plan_at OPS where it is none of the step. */
struct coming {
	uint32_t plan_at;
	uint32_t out, in[2];
	uint32_t doubt; /* a word that is no operand leads there; or NONE */
	ts_stream_key stream;
};

static struct coming of_the_step(uint32_t at)
{
	return (struct coming){.plan_at = at,
	        .out = shape[at].out,
	        .in = {shape[at].in[0], shape[at].in[1]},
	        .doubt = NONE,
	        .stream = s.two_streams && shape[at].other_stream ? STREAM_B
	                                                          : STREAM_A};
}

/* The program has its own streams wait for each other. */
static void order(ts_stream_key stream)
{
	if (stream != s.last_stream)
		late_gpu_run();
	s.last_stream = stream;
}

/* Of what is given up nothing is left. */
static void lose(uint32_t from, ts_stream_key stream)
{
	for (uint32_t i = from; i < ts_remake.count && !s.keeps_content; i++)
		late_gpu_fill(
		        ts_remake.items[i].value.address, PAGE, 0xee, stream);
}

static void come(const struct coming *coming)
{
	uint64_t words[2] = {0}, out = s.address[coming->out];
	void *params[] = {&out, words, &s.number};
	struct ts_op op;
	uint32_t given_up;

	is_born(coming->out);
	ts_op_init(&op, TS_OP_LAUNCH, NULL);
	op.function = (CUfunction)(uintptr_t)1;
	op.func = function();
	for (int i = 0; i < 3; i++)
		op.grid[i] = op.block[i] = 1;
	op.params = params;
	op.stream = coming->stream;
	op.signature = coming->plan_at + 1;
	op.plan = coming->plan_at < OPS ? PLAN : 0;
	op.plan_at = coming->plan_at;
	if (coming->doubt != NONE) {
		use(&op, coming->doubt, false, 0);
		op.uses[0].doubtful = true;
	}
	use(&op, coming->out, true, 0);
	for (uint32_t i = 0; i < 2; i++) {
		if (coming->in[i] == NONE)
			continue;
		use(&op, coming->in[i], false, i);
		words[i] = s.address[coming->in[i]];
	}
	order(op.stream);
	ts_mutex_lock(&ts_proof.lock);
	ck_assert_int_eq(ts_remake_comes(&op, true), CUDA_SUCCESS);
	ts_mutex_unlock(&ts_proof.lock);
	given_up = ts_remake.count;
	ck_assert_int_eq(begin(op.ranges, op.count, op.stream), 0);
	late_gpu_ops.launch(op.function, 1, 1, 1, 1, 1, 1, 0,
	        (CUstream)(uintptr_t)op.stream, params, NULL);
	ts_pager_end(pager, op.ranges, op.count, op.stream, true);
	s.holds[coming->out] = late_gpu_byte(s.holds[coming->in[0]],
	        coming->in[1] == NONE ? 0 : s.holds[coming->in[1]], s.number);
	ts_mutex_lock(&ts_proof.lock);
	ts_remake_issued(&op, true);
	ts_mutex_unlock(&ts_proof.lock);
	lose(given_up, op.stream);
	ts_op_finish(&op);
}

static void die_after(uint32_t at)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (s.lives[i] && last_op[i] == at)
			dies(i);
}

/* The ops of the step up to @end. */
static void come_until(uint32_t end)
{
	for (; s.next < end; s.next++) {
		struct coming coming = of_the_step(s.next);

		come(&coming);
		die_after(s.next);
	}
}

static void begin_step(void)
{
	s.next = 0;
	s.number = (unsigned char)(s.number + 11);
}

static void check(uint32_t block)
{
	late_gpu_run();
	expect_bytes(s.address[block], PAGE, s.holds[block]);
}

static void end_step(void)
{
	come_until(OPS);
	check(R1);
	check(R2);
	dies(R1);
	dies(R2);
	ck_assert_uint_eq(ts_remake.count, 0);
	ck_assert_uint_eq(ts_remake.failed, 0);
	ck_assert_uint_eq(ts_remake.made, ts_remake.given);
}

/* --------------------------------------------------------------- one test */

static uint32_t closure_of(uint32_t value, uint32_t to_op)
{
	for (uint32_t i = 0; i < s.closures->count; i++)
		if (s.closures->list[i].value == value &&
		        s.closures->list[i].to_op == to_op)
			return i;
	ck_abort_msg("no closure of value %u", value);
	return 0;
}

static void prove(void)
{
	s.closures =
	        ts_closures_create(&s.observed, s.verdicts, s.in_place, 1, 100);
	ck_assert_ptr_nonnull(s.closures);
	for (uint32_t i = 0; i < s.closures->count; i++)
		s.closures->list[i].verdict = TS_VERDICT_PROVED;
	ts_proof.closures = s.closures;
}

/* @values of V and U are given up. */
static void start(uint64_t limit_pages, bool with_u)
{
	struct ts_replay_choice choices[2];

	setup_with(limit_pages, ROOMY);
	pager->ops = &late_gpu_ops;
	ts_agent.ops = &late_gpu_ops;
	ts_blocks_init(&ts_agent.blocks);
	atomic_store(&ts_agent.devices[0].pager, pager);
	ts_mutex_init(&ts_proof.lock, TS_RANK_PROOF);
	ts_map_init(&ts_proof.by_serial);
	ts_proof.on = true;
	s.last_stream = STREAM_A;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		/* What was S1 is T by then. */
		s.address[i] = i == T ? s.address[S1] : alloc(PAGE);
		if (i != T)
			ts_pager_dead(pager, s.address[i], PAGE);
		s.rec_blocks[i].address = s.address[i];
	}
	is_born(X);
	ck_assert_int_eq(write_op(s.address[X], PAGE, 9, STREAM_A), 0);
	s.holds[X] = 9;
	prove();
	choices[0] = (struct ts_replay_choice){closure_of(V, 9), 4, 9};
	choices[1] = (struct ts_replay_choice){closure_of(U, 8), 5, 8};
	ck_assert_int_eq(ts_remake_reserve(ARENA), 0);
	ck_assert_int_eq(ts_remake_by_plan(PLAN, choices, with_u ? 2 : 1), 0);
}

static void end(void)
{
	late_gpu_run();
	ts_remake_end_plan(PLAN);
	ts_remake_stop(true);
	ts_proof.closures = NULL;
	ts_closures_destroy(s.closures);
	ts_profile_finish(&s.device.profile);
	ts_blocks_finish(&ts_agent.blocks);
	atomic_store(&ts_agent.devices[0].pager, NULL);
	pager->ops = &fake_gpu_ops;
	teardown();
}

static void set_up(void)
{
	late_gpu_reset(PAGE);
	memset(&s, 0, sizeof(s));
	record();
}

static void check_given_up(uint64_t given, uint64_t early)
{
	ck_assert_uint_eq(ts_remake.given, given);
	ck_assert_uint_eq(ts_remake.early, early);
}

/* Each with its own number in its kernels' parameters. */
static void three_steps(void)
{
	for (int i = 0; i < 3; i++) {
		begin_step();
		end_step();
	}
}

START_TEST(values_are_what_they_were)
{
	set_up();
	start(ROOMY, false);
	three_steps();
	check_given_up(3, 0);
	/* Each by three launches, beside the step's own. */
	ck_assert_uint_eq(late_gpu.launches, 3 * (OPS + 3));
	end();
}
END_TEST

START_TEST(what_a_value_is_made_from_is_made_before)
{
	set_up();
	start(ROOMY, true);
	three_steps();
	check_given_up(6, 0);
	end();
}
END_TEST

START_TEST(streams_wait_for_what_others_make)
{
	set_up();
	s.two_streams = true;
	start(ROOMY, true);
	three_steps();
	ck_assert_uint_eq(ts_remake.given, 6);
	end();
}
END_TEST

START_TEST(other_streams_wait_for_what_they_want_early)
{
	struct coming reader;

	set_up();
	start(ROOMY, false);
	begin_step();
	come_until(6);
	/* Reads V where the step reads D, and not in V's stream. */
	reader = of_the_step(6);
	reader.in[0] = V;
	reader.stream = STREAM_B;
	come(&reader);
	s.next++;
	check(T);
	check_given_up(1, 1);
	end_step();
	end();
}
END_TEST

START_TEST(an_op_off_plan_finds_everything)
{
	struct coming reader = {OPS, F, {V, U}, NONE, STREAM_A};

	set_up();
	start(ROOMY, true);
	begin_step();
	come_until(6);
	ck_assert_uint_eq(ts_remake.count, 2);
	come(&reader);
	check(F);
	check_given_up(2, 2);
	end_step();
	end();
}
END_TEST

START_TEST(who_leaves_the_plan_gives_nothing_up)
{
	struct coming other = {OPS, F, {X, NONE}, NONE, STREAM_A};

	set_up();
	start(ROOMY, true);
	begin_step();
	come_until(4);
	come(&other);
	/* All that comes after is none of the plan's step. */
	for (; s.next < OPS; s.next++) {
		struct coming coming = of_the_step(s.next);

		come(&coming);
	}
	check(R1);
	check(R2);
	check_given_up(0, 0);
	ck_assert_uint_eq(ts_remake.count, 0);
	end();
}
END_TEST

START_TEST(who_leaves_the_plan_finds_everything_at_once)
{
	/* It reads nothing of it. */
	struct coming other = {OPS, F, {X, NONE}, NONE, STREAM_A};

	set_up();
	start(ROOMY, true);
	begin_step();
	come_until(6);
	ck_assert_uint_eq(ts_remake.count, 2);
	come(&other);
	check(V);
	check(U);
	ck_assert_uint_eq(ts_remake.count, 0);
	end_step();
	end();
}
END_TEST

START_TEST(all_is_made_before_memory_is_freed)
{
	set_up();
	start(ROOMY, true);
	begin_step();
	come_until(6);
	ck_assert_uint_eq(ts_remake.count, 2);
	ck_assert(ts_remake_all());
	check(V);
	check(U);
	check_given_up(2, 2);
	end_step();
	end();
}
END_TEST

/* The step writes T there; this one writes what V is made from. */
START_TEST(who_writes_a_leaf_finds_the_value_made)
{
	struct coming writer;

	set_up();
	start(ROOMY, false);
	begin_step();
	come_until(6);
	writer = of_the_step(6);
	writer.out = X;
	come(&writer);
	s.next++;
	is_born(T);
	s.holds[T] = 3;
	ck_assert_int_eq(write_op(s.address[T], PAGE, 3, STREAM_A), 0);
	end_step();
	check_given_up(1, 1);
	end();
}
END_TEST

START_TEST(a_leaf_that_is_freed_keeps_what_it_holds)
{
	const uint64_t limit = 16;
	uint64_t other;

	set_up();
	late_gpu.eager = true;
	s.keeps_content = true;
	start(limit, false);
	other = alloc((limit - 4) * PAGE);
	begin_step();
	come_until(5);
	dies(X);
	/* Takes what nobody has, first of all. */
	ck_assert_int_eq(write_op(other, (limit - 4) * PAGE, 1, STREAM_A), 0);
	end_step();
	check_given_up(1, 0);
	end();
}
END_TEST

/* A word that is no operand leads to X, and did so when all was proved. */
START_TEST(a_doubt_that_was_looked_at_makes_nothing)
{
	struct coming doubtful;

	set_up();
	record_doubt(6, X);
	start(ROOMY, false);
	begin_step();
	come_until(6);
	doubtful = of_the_step(6);
	doubtful.doubt = X;
	come(&doubtful);
	ck_assert_uint_eq(ts_remake.count, 1);
	check_given_up(1, 0);
	s.next++;
	end_step();
	end();
}
END_TEST

/* It led to another block then, which had X's place. */
START_TEST(a_doubt_of_another_block_is_believed)
{
	struct coming doubtful;

	set_up();
	record_doubt(6, BLOCKS);
	start(ROOMY, false);
	s.rec_blocks[BLOCKS] = s.rec_blocks[X];
	s.rec_blocks[X].address += ROOMY * PAGE;
	begin_step();
	come_until(6);
	doubtful = of_the_step(6);
	doubtful.doubt = X;
	come(&doubtful);
	s.next++;
	/* And the op does write there. */
	late_gpu_fill(s.address[X], PAGE, 0x55, STREAM_A);
	s.holds[X] = 0x55;
	end_step();
	check_given_up(1, 1);
	end();
}
END_TEST

/*
 * An op was to be tried, and the program needs what that would be tried in: it
 * may be tried the next time, and the step goes on.
 */
START_TEST(what_the_program_needs_nothing_is_tried_in)
{
	struct ts_proof_trial trials[2] = {0};

	ts_proof.trials = trials;
	ts_proof.at = 1;
	atomic_store(&ts_proof.phase, TS_PROOF_RUNNING);
	ts_proof.making_count = 1;
	ts_proof.making[0] = (struct ts_proof_output){0};
	ts_proof_step_spare();
	ck_assert_uint_eq(ts_proof.making_count, 0);
	ck_assert_int_eq(trials[1].failed, TS_VERDICT_NO_ROOM);
	ck_assert_int_eq(ts_verdict_class(trials[1].failed), TS_NOT_TRIED);
	ck_assert_int_eq(atomic_load(&ts_proof.phase), TS_PROOF_RUNNING);
	/* Where none was to be nothing is said of it. */
	ts_proof.at = 0;
	ts_proof_step_spare();
	ck_assert_int_eq(trials[0].failed, TS_VERDICT_OPEN);
	atomic_store(&ts_proof.phase, TS_PROOF_IDLE);
	ts_proof.trials = NULL;
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, what_the_program_needs_nothing_is_tried_in);
	tcase_add_test(tcase, values_are_what_they_were);
	tcase_add_test(tcase, what_a_value_is_made_from_is_made_before);
	tcase_add_test(tcase, streams_wait_for_what_others_make);
	tcase_add_test(tcase, other_streams_wait_for_what_they_want_early);
	tcase_add_test(tcase, an_op_off_plan_finds_everything);
	tcase_add_test(tcase, who_leaves_the_plan_gives_nothing_up);
	tcase_add_test(tcase, who_leaves_the_plan_finds_everything_at_once);
	tcase_add_test(tcase, all_is_made_before_memory_is_freed);
	tcase_add_test(tcase, who_writes_a_leaf_finds_the_value_made);
	tcase_add_test(tcase, a_leaf_that_is_freed_keeps_what_it_holds);
	tcase_add_test(tcase, a_doubt_that_was_looked_at_makes_nothing);
	tcase_add_test(tcase, a_doubt_of_another_block_is_believed);
}

int main(void)
{
	return run_suite("remake", add_tests);
}
