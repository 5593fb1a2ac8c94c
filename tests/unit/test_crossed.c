/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Steps that go by a plan, or not. It comes into force while the lock is let
 * go: where another thread's op comes meanwhile, nobody knows what comes next.
 */
#include <pthread.h>

#include "agent/planned.h"
#include "agent/planned_internal.h"
#include "runtime/enforce_internal.h"
#include "tests/unit/pager_fixture.h"

#define OPS   40
#define TICKS (OPS * 10)
/* The signature of an op of no step. */
#define OTHER 1000

/* What a test sets up: a step of OPS ops with a plan for it. */
static struct {
	struct ts_gpu_ops ops;
	struct ts_planned_bucket bucket;
	bool crosses; /* an op of another thread, once */
} fixture;

static void come(uint64_t signature)
{
	struct ts_op op = {
	        .kind = TS_OP_SET, .signature = signature, .stream = STREAM_A};

	ts_planned_op(&op);
}

static void *other_thread(void *data)
{
	come(*(const uint64_t *)data);
	return NULL;
}

/* As the plan is put into force the pager asks for the context. */
static CUresult get_current(CUcontext *ret)
{
	uint64_t signature = OTHER;
	pthread_t thread;

	if (fixture.crosses && ts_planned.adopting) {
		fixture.crosses = false;
		ck_assert_int_eq(
		        pthread_create(&thread, NULL, other_thread, &signature),
		        0);
		pthread_join(thread, NULL);
	}
	return fake_gpu_ops.ctx_get_current(ret);
}

/* Steps are not timed here. */
static CUresult create_no_event(CUevent *event, unsigned int flags)
{
	(void)event;
	(void)flags;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void make_plan(struct ts_page_plan *ret_plan)
{
	uint64_t address = alloc(PAGE);
	struct ts_plan_hold hold = {address, PAGE, 0, OPS, 0, TICKS};
	struct ts_enforce_survey survey;

	ck_assert_int_eq(write_op(address, PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(ts_pager_wait_op(pager, ts_pager_last_op(pager)), 0);
	ck_assert_int_eq(ts_enforce_survey(pager, false, &survey), 0);
	ck_assert_int_eq(ts_page_plan_make(survey.segments, survey.n_segments,
	                         &hold, 1, PAGE, OPS, TICKS, ret_plan),
	        0);
	free(survey.segments);
}

static struct ts_planned_entry *start(void)
{
	static const struct ts_gpu_ops no_events = {
	        .event_create = create_no_event};
	struct ts_planned_entry *entry;
	struct ts_follow_op ops[OPS];

	setup_with(16, 16);
	fixture.ops = fake_gpu_ops;
	fixture.ops.ctx_get_current = get_current;
	pager->ops = &fixture.ops;
	ts_agent.ops = &no_events;
	atomic_store(&ts_agent.devices[0].pager, pager);
	ts_mutex_init(&ts_planned.lock, TS_RANK_PLAN);
	pthread_cond_init(&ts_planned.adopted, NULL);
	entry = ts_planned_cache_oldest(&ts_planned.cache, NULL);
	for (uint32_t i = 0; i < OPS; i++)
		ops[i] = (struct ts_follow_op){'a' + i, STREAM_A};
	ck_assert_int_eq(ts_follow_init(&entry->follow, ops, OPS), 0);
	entry->phases.steps = 1;
	entry->bucket = &fixture.bucket;
	entry->number = 1;
	entry->pager_ns = 1;
	make_plan(&entry->made.pages);
	ts_planned_cache_add(&ts_planned.cache, entry);
	atomic_store(&ts_planned.has_plan, true);
	return entry;
}

static void end(struct ts_planned_entry *entry)
{
	ts_planned_end_force();
	ts_planned_cache_drop(&ts_planned.cache, entry);
	atomic_store(&ts_agent.devices[0].pager, NULL);
	pager->ops = &fake_gpu_ops;
	teardown();
}

/* A whole step, and the first op of the next one. */
static void come_to_it(void)
{
	for (uint64_t i = 0; i <= OPS; i++)
		come('a' + i % OPS);
}

START_TEST(a_plan_comes_into_force_after_a_whole_step)
{
	struct ts_planned_entry *entry = start();

	come_to_it();
	ck_assert_uint_eq(ts_planned.figures.joins, 1);
	ck_assert_uint_eq(ts_planned.figures.adopted, 1);
	ck_assert_ptr_eq(ts_planned.in_force, entry);
	end(entry);
}
END_TEST

START_TEST(one_that_was_crossed_does_not)
{
	struct ts_planned_entry *entry = start();

	fixture.crosses = true;
	come_to_it();
	ck_assert(!fixture.crosses);
	ck_assert_uint_eq(ts_planned.figures.joins, 1);
	ck_assert_uint_eq(ts_planned.figures.adopted, 0);
	ck_assert_ptr_null(ts_planned.in_force);
	ck_assert_ptr_null(ts_planned.now);
	/* A step by the pager, then it is tried once more. */
	for (uint64_t i = 1; i <= 2 * OPS; i++)
		come('a' + i % OPS);
	ck_assert_uint_eq(ts_planned.figures.adopted, 1);
	ck_assert_ptr_eq(ts_planned.in_force, entry);
	end(entry);
}
END_TEST

/* Ops [first, end) of a step. */
static void come_all(uint64_t first, uint64_t end)
{
	for (uint64_t i = first; i < end; i++)
		come('a' + i);
}

START_TEST(a_step_after_other_work_is_taken_up_in_the_middle)
{
	struct ts_planned_entry *entry = start();

	come_to_it();
	come_all(1, OPS);
	ck_assert_uint_eq(ts_planned.figures.steps, 1);
	/* What begins like a step, and is none. */
	come_all(0, 20);
	come(OTHER);
	ck_assert_ptr_null(ts_planned.now);
	/* Only a longer beginning is none of that. */
	come_all(0, 30);
	ck_assert_ptr_null(ts_planned.now);
	come_all(30, 31);
	ck_assert_ptr_eq(ts_planned.now, entry);
	ck_assert_uint_eq(ts_planned.at, 31);
	come_all(31, OPS);
	ck_assert_uint_eq(ts_planned.figures.steps, 2);
	ck_assert_uint_eq(ts_planned.figures.adopted, 1);
	/* It was one after all: less of it is waited for the next time. */
	come(OTHER);
	come_all(0, 1);
	come(OTHER);
	come_all(0, 16);
	ck_assert_ptr_eq(ts_planned.now, entry);
	end(entry);
}
END_TEST

START_TEST(a_plan_with_blocks_elsewhere_waits_for_another)
{
	struct ts_planned_entry *entry = start();

	come_to_it();
	come_all(1, OPS - 1);
	pager->enforce->missed += 8;
	come_all(OPS - 1, OPS);
	ck_assert(entry->misplaced);
	ck_assert_ptr_null(ts_planned.in_force);
	/* The pager alone goes on. */
	come_all(0, OPS);
	come_all(0, OPS);
	ck_assert_ptr_null(ts_planned.now);
	ck_assert_uint_eq(ts_planned.figures.steps, 1);
	end(entry);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, a_plan_comes_into_force_after_a_whole_step);
	tcase_add_test(tests, one_that_was_crossed_does_not);
	tcase_add_test(
	        tests, a_step_after_other_work_is_taken_up_in_the_middle);
	tcase_add_test(tests, a_plan_with_blocks_elsewhere_waits_for_another);
}

int main(void)
{
	return run_suite("crossed", add_tests);
}
