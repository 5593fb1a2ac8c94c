/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pager under random ops, failing calls and threads: no byte is lost. */
#include <pthread.h>

#include "tests/unit/pager_fixture.h"

#define BLOCKS 24

struct model {
	uint64_t segment[4];
	struct {
		uint64_t address, bytes;
		int value; /* 0: not alive */
		bool written;
	} blocks[BLOCKS];
};

static uint64_t random_state;

static uint32_t random_below(uint32_t bound)
{
	random_state =
	        random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % bound;
}

static void check_chunks(void)
{
	uint64_t resident = 0;
	struct ts_list *lists[] = {&pager->used, &pager->spare};

	for (int i = 0; i < 2; i++)
		for (struct ts_list *at = lists[i]->next; at != lists[i];
		        at = at->next)
			resident += ts_container_of(at, struct ts_page, list)
			                    ->bytes;
	ck_assert_uint_eq(pager->chunks.created_bytes,
	        resident + pager->chunks.idle_bytes);
	ck_assert_uint_eq(
	        fake_gpu.used_bytes, CONTEXT + pager->chunks.created_bytes);
	ck_assert_uint_eq(fake_gpu.handles, pager->chunks.created);
	ck_assert_uint_eq(pager->busy_count, 0);
}

/* Four segments of 8 pages, each cut into six blocks of uneven sizes. */
static void start_model(struct model *model)
{
	static const uint64_t cuts[] = {0, 1, 2, 4, 5, 7, 8};

	memset(model, 0, sizeof(*model));
	for (int i = 0; i < 4; i++) {
		model->segment[i] = alloc(8 * PAGE);
		for (int j = 0; j < 6; j++) {
			uint64_t from = cuts[j] * PAGE, to = cuts[j + 1] * PAGE;

			/* Blocks meet inside pages. */
			from += from ? 512 : 0;
			to += to < 8 * PAGE ? 512 : 0;
			model->blocks[i * 6 + j].address =
			        model->segment[i] + from;
			model->blocks[i * 6 + j].bytes = to - from;
		}
		ts_pager_dead(pager, model->segment[i], 8 * PAGE);
	}
}

static void random_step(struct model *model)
{
	int first = (int)random_below(BLOCKS), other;

	if (!model->blocks[first].value) {
		model->blocks[first].value = 1;
		model->blocks[first].written = false;
		ts_pager_live(pager, model->blocks[first].address,
		        model->blocks[first].bytes);
	} else if (!random_below(4)) {
		model->blocks[first].value = 0;
		ts_pager_dead(pager, model->blocks[first].address,
		        model->blocks[first].bytes);
		return;
	}
	other = (int)random_below(BLOCKS);
	if (model->blocks[other].value && model->blocks[other].written)
		expect_bytes(model->blocks[other].address,
		        model->blocks[other].bytes, model->blocks[other].value);
	model->blocks[first].value = 1 + (int)random_below(250);
	model->blocks[first].written = true;
	ck_assert_int_eq(
	        write_op(model->blocks[first].address,
	                model->blocks[first].bytes, model->blocks[first].value,
	                random_below(2) ? STREAM_A : STREAM_B),
	        0);
}

START_TEST(random_ops_lose_no_byte_within_the_limit)
{
	struct model model;

	random_state = (uint64_t)_i;
	setup_with(9, 256);
	start_model(&model);
	for (int i = 0; i < 1500; i++) {
		random_step(&model);
		ck_assert_uint_eq(fake_gpu.violations, 0);
	}
	check_chunks();
	ck_assert_uint_gt(stats().out_bytes, 0);
	ck_assert_uint_gt(stats().reclaimed_pages, 0);
	ck_assert_uint_le(fake_gpu.peak_bytes, CONTEXT + 9 * PAGE);
	teardown();
}
END_TEST

#define STEP_BLOCKS 40
#define STEPS       12

/* Once the step is known pages are copied ahead of need, either way. */
START_TEST(steps_that_repeat_lose_no_byte)
{
	uint64_t blocks[STEP_BLOCKS], now = 0;

	with_helper = _i;
	setup_with(48, 512);
	for (int i = 0; i < STEP_BLOCKS; i++)
		blocks[i] = alloc(2 * PAGE);
	for (int step = 1; step <= STEPS; step++) {
		for (int i = 0; i < STEP_BLOCKS; i++) {
			uint64_t period = step > 2 ? 2 * STEP_BLOCKS : 0;

			ts_pager_tell_time(pager, ++now, period);
			if (step > 1)
				expect_bytes(blocks[i], 2 * PAGE, step - 1);
			else
				read_op(blocks[i], 2 * PAGE);
			ts_pager_tell_time(pager, ++now, period);
			ck_assert_int_eq(write_op(blocks[i], 2 * PAGE, step,
			                         i % 2 ? STREAM_A : STREAM_B),
			        0);
		}
		ck_assert_uint_eq(fake_gpu.violations, 0);
	}
	check_chunks();
	ck_assert_uint_gt(stats().in_bytes, 0);
	ck_assert_uint_le(fake_gpu.peak_bytes, CONTEXT + 48 * PAGE);
	teardown();
}
END_TEST

/* All of it fits; what is used last is copied out while it stays. */
START_TEST(op_comes_after_a_copy_made_ahead_of_need)
{
	uint64_t blocks[STEP_BLOCKS / 2], now = 0;

	setup_with(STEP_BLOCKS, 512);
	for (int i = 0; i < STEP_BLOCKS / 2; i++)
		blocks[i] = alloc(2 * PAGE);
	for (int step = 1; step <= 4; step++)
		for (int i = 0; i < STEP_BLOCKS / 2; i++) {
			ts_pager_tell_time(pager, ++now, STEP_BLOCKS / 2);
			ck_assert_int_eq(
			        write_op(blocks[i], 2 * PAGE, step, STREAM_A),
			        0);
		}
	ck_assert_uint_eq(fake_gpu.copies, 0);
	/* For want of host memory nothing is copied, none is pinned for it. */
	ts_pager_help(pager, TS_HELP_AHEAD);
	ck_assert_uint_eq(fake_gpu.copies, 0);
	ck_assert_uint_eq(stats().host_pinned_bytes, 0);
	ck_assert_int_eq(ts_pager_grow_host(pager, 1, false), 0);
	ts_pager_help(pager, TS_HELP_AHEAD);
	ck_assert_uint_gt(fake_gpu.copies, 0);
	for (int i = 0; i < STEP_BLOCKS / 2; i++)
		write_op(blocks[i], 2 * PAGE, 5, STREAM_B);
	ck_assert_uint_eq(fake_gpu.violations, 0);
	teardown();
}
END_TEST

START_TEST(op_in_the_memory_of_a_free_block_comes_after_its_ops)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ts_pager_dead(pager, a, 4 * PAGE);
	/* Nothing is copied that would wait for them. */
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_B), 0);
	ck_assert_uint_eq(fake_gpu.copies, 0);
	ck_assert_uint_eq(fake_gpu.violations, 0);
	teardown();
}
END_TEST

START_TEST(dead_block_leaves_nothing_in_host_memory)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_eq(stats().out_bytes, 4 * PAGE);
	ts_pager_dead(pager, a, 4 * PAGE);
	ck_assert_uint_eq(
	        pager->host.free_slots * PAGE, pager->host.pinned_bytes);
	/* What lives there next begins with nothing. */
	ts_pager_live(pager, a, 4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 3, STREAM_A), 0);
	ck_assert_uint_eq(stats().in_bytes, 0);
	expect_bytes(a, 4 * PAGE, 3);
	teardown();
}
END_TEST

START_TEST(pages_move_where_the_driver_pins_nothing)
{
	uint64_t a, b;

	setup_with(4, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	fake_gpu.refuse_pinning = true;
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_A), 0);
	ck_assert_uint_gt(ts_pager_plain_bytes(pager), 0);
	expect_bytes(a, 4 * PAGE, 1);
	expect_bytes(b, 4 * PAGE, 2);
	/* It belongs to no context. */
	ck_assert_int_eq(ts_pager_rebind(pager, FAKE_OTHER), CUDA_SUCCESS);
	fake_gpu.context = FAKE_OTHER;
	fake_gpu_context_gone(FAKE_CONTEXT);
	ts_pager_context_gone(pager, FAKE_CONTEXT);
	expect_bytes(a, 4 * PAGE, 1);
	teardown();
}
END_TEST

/*
 * Two blocks that fit, and the driver has no memory for one of the calls that
 * the second needs. True where no call is left to fail.
 */
static bool try_passing_refusal(unsigned int fail_at)
{
	struct ts_shortage shortage;
	uint64_t a, b;
	bool last;

	setup_with(8, 64);
	a = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	fake_gpu.calls = 0;
	fake_gpu.fail_at = fail_at;
	fake_gpu.fail_with = CUDA_ERROR_OUT_OF_MEMORY;
	if (!ts_pager_alloc(pager, 4 * PAGE, 0, &b, &shortage)) {
		write_op(b, 4 * PAGE, 2, STREAM_A);
		last = fake_gpu.calls < fail_at;
		fake_gpu.fail_at = 0;
		ck_assert_int_eq(write_op(b, 4 * PAGE, 3, STREAM_A), 0);
		expect_bytes(a, 4 * PAGE, 1);
		expect_bytes(b, 4 * PAGE, 3);
		ck_assert_uint_eq(stats().out_bytes, 0);
		ck_assert_uint_eq(fake_gpu.used_bytes, CONTEXT + 8 * PAGE);
	} else {
		last = fake_gpu.calls < fail_at;
		fake_gpu.fail_at = 0;
	}
	teardown();
	return last;
}

START_TEST(memory_refused_for_a_moment_is_used_afterwards)
{
	unsigned int at = 1;

	while (!try_passing_refusal(at))
		at++;
	ck_assert_uint_gt(at, 4);
}
END_TEST

/*
 * With the n-th driver call failing an op either runs or is refused; then
 * nothing is lost, and the next try works.
 */
static unsigned int try_failure(unsigned int fail_at, CUresult with)
{
	uint64_t a, b;
	unsigned int calls;
	int rc;

	setup_with(6, 64);
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, STREAM_B), 0);
	fake_gpu.calls = 0;
	fake_gpu.fail_at = fail_at;
	fake_gpu.fail_with = with;
	rc = write_op(a, 4 * PAGE, 3, STREAM_A);
	calls = fake_gpu.calls;
	fake_gpu.fail_at = 0;
	check_chunks();
	expect_bytes(b, 4 * PAGE, 2);
	/* What was refused has not been done. */
	expect_bytes(a, 4 * PAGE, rc ? 1 : 3);
	/* Nor what had to go for that. */
	expect_bytes(b, 4 * PAGE, 2);
	check_chunks();
	ck_assert_uint_le(fake_gpu.peak_bytes, CONTEXT + 6 * PAGE);
	teardown();
	return calls;
}

START_TEST(every_failing_call_loses_nothing)
{
	static const CUresult results[] = {
	        CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN};
	unsigned int at;

	for (int i = 0; i < 2; i++) {
		for (at = 1; try_failure(at, results[i]) >= at; at++)
			;
		/* The calls were really reached, all of them. */
		ck_assert_uint_gt(at, 8);
	}
}
END_TEST

/*
 * The same for what is copied out ahead of need: what then has to go is whole,
 * whichever of its pages was saved before. Returns the calls made.
 */
static unsigned int try_failure_ahead(unsigned int fail_at)
{
	uint64_t blocks[STEP_BLOCKS / 2], other, now = 0;
	unsigned int calls;

	setup_with(STEP_BLOCKS, 512);
	for (int i = 0; i < STEP_BLOCKS / 2; i++)
		blocks[i] = alloc(2 * PAGE);
	other = alloc(STEP_BLOCKS * PAGE);
	for (int step = 1; step <= 3; step++)
		for (int i = 0; i < STEP_BLOCKS / 2; i++) {
			ts_pager_tell_time(pager, ++now, STEP_BLOCKS / 2);
			ck_assert_int_eq(
			        write_op(blocks[i], 2 * PAGE, i + 1, STREAM_A),
			        0);
		}
	ck_assert_int_eq(ts_pager_grow_host(pager, 1, false), 0);
	/* Their many events are not what this is about. */
	ck_assert_int_eq(ts_copyq_start(&pager->out), CUDA_SUCCESS);
	ck_assert_int_eq(ts_copyq_start(&pager->in), CUDA_SUCCESS);
	fake_gpu.calls = 0;
	fake_gpu.fail_at = fail_at;
	fake_gpu.fail_with = CUDA_ERROR_UNKNOWN;
	ts_pager_help(pager, TS_HELP_AHEAD);
	calls = fake_gpu.calls;
	fake_gpu.fail_at = 0;
	ck_assert_int_eq(write_op(other, STEP_BLOCKS * PAGE, 99, STREAM_B), 0);
	for (int i = 0; i < STEP_BLOCKS / 2; i++)
		expect_bytes(blocks[i], 2 * PAGE, i + 1);
	expect_bytes(other, STEP_BLOCKS * PAGE, 99);
	check_chunks();
	teardown();
	return calls;
}

START_TEST(failing_call_ahead_of_need_loses_nothing)
{
	unsigned int at = 1;

	while (try_failure_ahead(at) >= at)
		at++;
	/* Copies and what orders them were among the calls. */
	ck_assert_uint_gt(at, 2);
}
END_TEST

#define THREADS      4
#define OWN_BLOCKS   3
#define OWN_SMALL    5
#define THREAD_STEPS 300

/* One of the threads: ops on blocks of its own, of two pages each. */
static void *work(void *argument)
{
	uint64_t base = *(uint64_t *)argument, state = base;
	int values[OWN_BLOCKS] = {0};

	for (int i = 0; i < THREAD_STEPS; i++) {
		int which = (int)(state >> 33) % OWN_BLOCKS;
		uint64_t address = base + (uint64_t)which * 2 * PAGE;
		struct ts_range one = range(address, 2 * PAGE);
		const unsigned char *at =
		        (const unsigned char *)(uintptr_t)address;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		if (begin(&one, 1, STREAM_A))
			return (void *)"refused";
		if (values[which] && (at[0] != values[which] ||
		                             at[2 * PAGE - 1] != values[which]))
			return (void *)"lost";
		values[which] = 1 + i % 250;
		memset((void *)(uintptr_t)address, values[which], 2 * PAGE);
		ts_pager_end(pager, &one, 1, STREAM_A, true);
	}
	return NULL;
}

/* A small allocation; threads share the pages these lie in. */
struct small {
	uint64_t address, bytes;
	int value; /* 0: not written yet */
};

static bool holds(const struct small *small)
{
	const unsigned char *at =
	        (const unsigned char *)(uintptr_t)small->address;

	for (uint64_t i = 0; small->value && i < small->bytes; i++)
		if (at[i] != small->value)
			return false;
	return true;
}

/* Frees it, and takes another of a size that no neighbour has. */
static bool renew(struct small *small, int step)
{
	struct ts_shortage shortage;

	if (small->address) {
		ts_pager_dead(pager, small->address, small->bytes);
		if (ts_pager_free(pager, small->address, small->bytes, 0))
			return false;
	}
	small->bytes = 1 + (uint64_t)(step * 97) % 3000;
	small->value = 0;
	return !ts_pager_alloc(
	        pager, small->bytes, 0, &small->address, &shortage);
}

/*
 * One of the threads with small allocations of its own: each op works on a
 * large block and on two of them, as a launch does, and some are renewed.
 */
static void *work_small(void *argument)
{
	uint64_t base = *(uint64_t *)argument;
	struct small small[OWN_SMALL] = {0};

	for (int i = 0; i < OWN_SMALL; i++)
		if (!renew(&small[i], i))
			return (void *)"refused";
	for (int i = 0; i < THREAD_STEPS; i++) {
		struct small *first = &small[i % OWN_SMALL];
		struct small *second = &small[(i + 1 + i / 7) % OWN_SMALL];
		struct ts_range ranges[] = {
		        range(base, PAGE),
		        range(first->address, first->bytes),
		        range(second->address, second->bytes),
		};
		/* An op notes each block once. */
		size_t count = first == second ? 2 : 3;

		if (begin(ranges, count, STREAM_B))
			return (void *)"refused";
		if (!holds(first) || !holds(second))
			return (void *)"lost";
		first->value = 1 + i % 250;
		memset((void *)(uintptr_t)first->address, first->value,
		        first->bytes);
		second->value = first->value;
		memset((void *)(uintptr_t)second->address, second->value,
		        second->bytes);
		ts_pager_end(pager, ranges, count, STREAM_B, true);
		if (i % 3 == 0 && !renew(&small[i % OWN_SMALL], i))
			return (void *)"not renewed";
	}
	for (int i = 0; i < OWN_SMALL; i++) {
		ts_pager_dead(pager, small[i].address, small[i].bytes);
		if (ts_pager_free(pager, small[i].address, small[i].bytes, 0))
			return (void *)"not freed";
	}
	return NULL;
}

/* Another one: allocations that come and go, and blocks within one. */
static void *churn(void *argument)
{
	for (int i = 0; i < THREAD_STEPS / 4; i++) {
		struct ts_shortage shortage;
		struct ts_pager_stats now;
		uint64_t address;

		if (ts_pager_alloc(pager, 3 * PAGE, 0, &address, &shortage))
			return (void *)"refused";
		ts_pager_dead(pager, address, 3 * PAGE);
		ts_pager_live(pager, address + 512, PAGE);
		ts_pager_stats(pager, &now);
		ts_pager_dead(pager, address + 512, PAGE);
		if (ts_pager_free(pager, address, 3 * PAGE, 0))
			return (void *)"not freed";
	}
	return NULL;
}

START_TEST(threads_lose_no_byte)
{
	pthread_t threads[2 * THREADS + 1];
	uint64_t bases[2 * THREADS];
	void *complaint;

	/* As many as can be busy at once, the pages of small allocations among
	 * them, and the allocation that churns. */
	with_helper = _i;
	setup_with(3 * THREADS + 2 + 3, 256);
	for (int i = 0; i < 2 * THREADS; i++)
		bases[i] = alloc(2 * OWN_BLOCKS * PAGE);
	for (int i = 0; i < THREADS; i++) {
		pthread_create(&threads[i], NULL, work, &bases[i]);
		pthread_create(&threads[THREADS + i], NULL, work_small,
		        &bases[THREADS + i]);
	}
	pthread_create(&threads[2 * THREADS], NULL, churn, NULL);
	for (int i = 0; i <= 2 * THREADS; i++) {
		pthread_join(threads[i], &complaint);
		ck_assert_msg(!complaint, "%s", (char *)complaint);
	}
	check_chunks();
	ck_assert_uint_gt(stats().out_bytes, 0);
	ck_assert_uint_le(
	        fake_gpu.peak_bytes, CONTEXT + (3 * THREADS + 2 + 3) * PAGE);
	teardown();
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_loop_test(
	        tests, random_ops_lose_no_byte_within_the_limit, 1, 9);
	tcase_add_loop_test(
	        tests, steps_that_repeat_lose_no_byte, false, true + 1);
	tcase_add_test(tests, op_comes_after_a_copy_made_ahead_of_need);
	tcase_add_test(
	        tests, op_in_the_memory_of_a_free_block_comes_after_its_ops);
	tcase_add_test(tests, dead_block_leaves_nothing_in_host_memory);
	tcase_add_test(tests, pages_move_where_the_driver_pins_nothing);
	tcase_add_test(tests, memory_refused_for_a_moment_is_used_afterwards);
	tcase_add_test(tests, every_failing_call_loses_nothing);
	tcase_add_test(tests, failing_call_ahead_of_need_loses_nothing);
	tcase_add_loop_test(tests, threads_lose_no_byte, false, true + 1);
}

int main(void)
{
	return run_suite("pager_stress", add_tests);
}
