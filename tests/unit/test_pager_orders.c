/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What happens while the pager has let its lock go: calls of the driver do what
 * another thread of the program would do just then.
 */
#include "runtime/enforce.h"
#include "runtime/wait.h"
#include "tests/unit/pager_fixture.h"

static struct ts_gpu_ops ops;

/* The fixture's pager calls @ops from now on. */
static void use_ops(void)
{
	pager->ops = &ops;
	pager->streams.ops = &ops;
	pager->host.ops = &ops;
}

/* ------------------------------------------- an op while pages are cut open */

static struct ts_range taken_up;
static int taken_rc;

static CUresult pin_slowly(void **memory, size_t bytes, unsigned int flags)
{
	if (taken_up.bytes)
		taken_rc = begin(&taken_up, 1, STREAM_B);
	return fake_gpu_ops.host_alloc(memory, bytes, flags);
}

/* The device is done by the time that it is asked, unless something holds. */
static bool held;

static CUresult query_and_wait(CUevent event)
{
	return held ? CUDA_ERROR_NOT_READY
	            : fake_gpu_ops.event_synchronize(event);
}

START_TEST(plan_takes_no_page_that_an_op_has_just_taken_up)
{
	struct ts_plan_stay stay = {
	        .take_op = 0, .release_op = 2, .free_tick = 2};
	struct ts_plan_strip strip = {.pages = 8, .n_stays = 1};
	uint32_t chunk_of[8] = {0, 1, 2, 3, 4, 5, 6, 7};
	struct ts_page_plan plan = {.n_ops = 2,
	        .n_ticks = 2,
	        .page_bytes = PAGE,
	        .strips = &strip,
	        .n_strips = 1,
	        .stays = &stay,
	        .n_stays = 1,
	        .chunk_of = chunk_of,
	        .n_pages = 8,
	        .n_chunks = 8,
	        .peak_pages = 8};

	setup_with(8, 64);
	ops = fake_gpu_ops;
	ops.host_alloc = pin_slowly;
	ops.event_query = query_and_wait;
	use_ops();
	strip.address = alloc(8 * PAGE);
	ck_assert_int_eq(write_op(strip.address, 8 * PAGE, 1, STREAM_A), 0);
	taken_up = range(strip.address, 8 * PAGE);
	taken_rc = -1;
	ck_assert_int_eq(ts_enforce_adopt(pager, &plan, 0), -EBUSY);
	ck_assert_int_eq(taken_rc, 0);
	/* The op's pages are there until it ends. */
	memset((void *)(uintptr_t)strip.address, 2, 8 * PAGE);
	ts_pager_end(pager, &taken_up, 1, STREAM_B, true);
	taken_up.bytes = 0;
	expect_bytes(strip.address, 8 * PAGE, 2);
	ck_assert_int_eq(ts_enforce_adopt(pager, &plan, 0), 0);
	expect_bytes(strip.address, 8 * PAGE, 2);
	teardown();
}
END_TEST

/* ------------------------------------- a plan while the device is not done */

static CUresult synchronize_unless_held(CUstream stream)
{
	if (held)
		ck_abort_msg("waits for what the program has to release");
	return fake_gpu_ops.stream_synchronize(stream);
}

START_TEST(plan_waits_for_the_device_a_while_only)
{
	struct ts_page_plan plan = {
	        .n_ops = 2, .n_ticks = 2, .page_bytes = PAGE};
	uint64_t a, begin_ns;

	setup_with(8, 64);
	ops = fake_gpu_ops;
	ops.event_query = query_and_wait;
	ops.stream_synchronize = synchronize_unless_held;
	use_ops();
	a = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, STREAM_A), 0);
	held = true;
	begin_ns = ts_now_ns();
	ck_assert_int_eq(ts_enforce_adopt(pager, &plan, 0), -EAGAIN);
	ck_assert_uint_ge(ts_now_ns() - begin_ns, TS_WAIT_NS);
	ck_assert_ptr_null(pager->enforce);
	held = false;
	ck_assert_int_eq(ts_enforce_adopt(pager, &plan, 0), 0);
	ck_assert_ptr_nonnull(pager->enforce);
	expect_bytes(a, 4 * PAGE, 1);
	teardown();
}
END_TEST

/* ------------------------------------------ pages that stay where they are */

START_TEST(plan_leaves_pinned_pages_out)
{
	struct ts_enforce_survey survey;
	uint64_t free_pages = 0;
	struct ts_range one;
	uint64_t a, b;

	setup_with(64, 64);
	a = alloc(32 * PAGE);
	b = alloc(16 * PAGE);
	one = range(a, PAGE);
	ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
	ts_pager_pin(pager, &one, TS_PIN_ESCAPED);
	ts_pager_end(pager, &one, 1, STREAM_A, false);
	ck_assert_int_eq(ts_enforce_survey(pager, false, &survey), 0);
	for (uint32_t i = 0; i < survey.n_segments; i++) {
		free_pages += survey.segments[i].pages;
		ck_assert(a < survey.segments[i].base ||
		          a >= survey.segments[i].base +
		                          survey.segments[i].pages * PAGE);
	}
	/* One page of several units holds what is pinned. */
	ck_assert_uint_ge(survey.fixed_pages, 1);
	ck_assert_uint_lt(survey.fixed_pages, 32);
	ck_assert_uint_eq(survey.fixed_pages + free_pages, 48);
	ck_assert_ptr_nonnull(ts_plan_segment_at(
	        survey.segments, survey.n_segments, b, PAGE));
	free(survey.segments);
	teardown();
}
END_TEST

/* Is the first page of the segment at @address there? */
static bool is_there(uint64_t address)
{
	return ts_segment_of(&pager->segments, address)
	        ->units[0]
	        .page->resident;
}

static uint32_t pages_of(const struct ts_enforce_survey *survey)
{
	uint32_t pages = 0;

	for (uint32_t i = 0; i < survey->n_segments; i++)
		pages += survey->segments[i].pages;
	return pages;
}

/*
 * A page that small allocations share and one of a larger segment take turns in
 * one chunk; a small one that the plan has nothing of is there all the time.
 */
START_TEST(small_pages_move_if_asked_for)
{
	struct ts_enforce_survey survey, rest;
	struct ts_page_plan plan;
	uint64_t small, other, large;

	setup_with(CONTEXT / PAGE + 8, 64);
	ops = fake_gpu_ops;
	ops.event_query = query_and_wait;
	use_ops();
	held = false;
	small = alloc(PAGE);
	other = alloc(PAGE);
	large = alloc(2 * PAGE);
	ck_assert_int_eq(write_op(small, PAGE, 1, STREAM_A), 0);
	ck_assert_int_eq(write_op(other, PAGE, 2, STREAM_A), 0);
	ck_assert_int_eq(write_op(large, 2 * PAGE, 3, STREAM_A), 0);
	ck_assert_int_eq(ts_enforce_survey(pager, false, &rest), 0);
	ck_assert_uint_eq(rest.small_pages, 2);
	ck_assert_uint_eq(rest.fixed_pages, 2);
	ck_assert_uint_eq(pages_of(&rest), 2);
	free(rest.segments);
	ck_assert_int_eq(ts_enforce_survey(pager, true, &survey), 0);
	ck_assert_uint_eq(survey.small_pages, 2);
	ck_assert_uint_eq(survey.fixed_pages, 0);
	ck_assert_uint_eq(pages_of(&survey), 4);
	ck_assert_int_eq(
	        ts_page_plan_make(survey.segments, survey.n_segments,
	                (struct ts_plan_hold[]){{small, PAGE, 0, 1, 0, 1},
	                        {large, PAGE, 1, 2, 1, 2}},
	                2, PAGE, 2, 2, &plan),
	        0);
	ck_assert_uint_eq(plan.n_chunks, 1);
	free(survey.segments);
	ck_assert_int_eq(ts_pager_wait_op(pager, ts_pager_last_op(pager)), 0);
	ck_assert_int_eq(ts_enforce_adopt(pager, &plan, 1), 0);
	for (int i = 0; i < 4; i++) {
		bool first = i % 2;

		ts_enforce_op(pager, !first);
		ck_assert(is_there(small) == first);
		ck_assert(is_there(other));
		ck_assert(is_there(large) != first);
		expect_bytes(first ? small : large, PAGE, first ? 1 : 3);
		expect_bytes(other, PAGE, 2);
	}
	ts_page_plan_finish(&plan);
	teardown();
}
END_TEST

/* ----------------------------------------------------- captures that begin */

static bool capturing;

static CUresult synchronize_unless_capturing(CUstream stream)
{
	if (capturing && (uintptr_t)stream == STREAM_A)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return fake_gpu_ops.stream_synchronize(stream);
}

START_TEST(what_was_issued_before_a_capture_is_waited_for_by_events)
{
	struct ts_shortage shortage;
	struct ts_range one;
	uint64_t in = 0, out = 0, a, b;

	setup_with(4, 64);
	ops = fake_gpu_ops;
	ops.stream_synchronize = synchronize_unless_capturing;
	use_ops();
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	/* b gets memory that an op on the same stream may still read. */
	read_op(a, 4 * PAGE);
	read_op(b, 4 * PAGE);
	ts_pager_capture_begins(pager);
	capturing = true;
	one = range(b, 4 * PAGE);
	ck_assert_int_eq(ts_pager_begin(pager, &one, 1, TS_BEGIN_CAPTURING,
	                         STREAM_A, &in, &out, &shortage),
	        0);
	ts_pager_end(pager, &one, 1, STREAM_A, false);
	capturing = false;
	teardown();
}
END_TEST

/* ------------------------------------- streams destroyed while others wait */

static struct ts_mutex lock;
static struct ts_streams streams;
static unsigned int whole_waits;

static void destroy_a(void)
{
	ts_mutex_lock(&lock);
	ts_streams_destroyed(&streams, STREAM_A, FAKE_CONTEXT);
	ts_mutex_unlock(&lock);
}

static CUresult destroy_a_meanwhile(CUstream stream)
{
	destroy_a();
	return CUDA_SUCCESS;
}

static CUresult destroy_a_when_asked(CUstream stream, CUcontext *context)
{
	destroy_a();
	*context = FAKE_CONTEXT;
	return CUDA_SUCCESS;
}

static CUresult count_waits(void)
{
	whole_waits++;
	return CUDA_SUCCESS;
}

static CUresult push_known(CUcontext context)
{
	ck_assert_ptr_eq(context, FAKE_CONTEXT);
	return fake_gpu_ops.ctx_push(context);
}

/* First the threads' streams, with nothing to do; then @middle and A. */
static void issue_on(ts_stream_key middle)
{
	ts_mutex_init(&lock, TS_RANK_PAGER);
	ops = fake_gpu_ops;
	ops.ctx_synchronize = count_waits;
	ops.ctx_push = push_known;
	whole_waits = 0;
	ts_streams_init(&streams, &ops, FAKE_CONTEXT);
	ck_assert_int_eq(
	        ts_streams_issued(&streams, TS_STREAM_PER_THREAD, 1), 0);
	ts_streams_synchronized(&streams, TS_STREAM_PER_THREAD, 1);
	if (middle)
		ck_assert_int_eq(ts_streams_issued(&streams, middle, 2), 0);
	ck_assert_int_eq(ts_streams_issued(&streams, STREAM_A, 3), 0);
}

static void finish_streams(void)
{
	ts_mutex_unlock(&lock);
	ts_streams_finish(&streams, false);
	ts_mutex_finish(&lock);
}

static unsigned int device_waits;

static CUresult count_wait(CUstream stream, CUevent event, unsigned int flags)
{
	device_waits++;
	return fake_gpu_ops.stream_wait_event(stream, event, flags);
}

/* Its stream has no handle that tells it from other threads'. */
START_TEST(stream_of_a_thread_waits_for_a_copy_once)
{
	unsigned int before;
	uint64_t a, b;

	setup_with(6, 64);
	ops = fake_gpu_ops;
	ops.stream_wait_event = count_wait;
	use_ops();
	pager->in.ops = &ops;
	a = alloc(4 * PAGE);
	b = alloc(4 * PAGE);
	ck_assert_int_eq(write_op(a, 4 * PAGE, 1, TS_STREAM_PER_THREAD), 0);
	ck_assert_int_eq(write_op(b, 4 * PAGE, 2, TS_STREAM_PER_THREAD), 0);
	before = device_waits;
	ck_assert_int_eq(write_op(a, 4 * PAGE, 3, TS_STREAM_PER_THREAD), 0);
	ck_assert_uint_gt(device_waits, before);
	before = device_waits;
	for (int i = 4; i < 20; i++)
		ck_assert_int_eq(
		        write_op(a, 4 * PAGE, i, TS_STREAM_PER_THREAD), 0);
	ck_assert_uint_eq(device_waits, before);
	expect_bytes(a, 4 * PAGE, 19);
	expect_bytes(b, 4 * PAGE, 2);
	teardown();
}
END_TEST

START_TEST(ops_of_a_stream_destroyed_meanwhile_are_waited_for)
{
	issue_on(STREAM_B);
	ops.stream_synchronize = destroy_a_meanwhile;
	ts_mutex_lock(&lock);
	ck_assert_int_eq(ts_streams_wait(&streams, 3, &lock), CUDA_SUCCESS);
	ck_assert(ts_streams_done(&streams, 3));
	ck_assert_uint_eq(whole_waits, 1);
	finish_streams();
}
END_TEST

START_TEST(stream_destroyed_while_it_is_marked_is_waited_for)
{
	issue_on(0);
	ops.stream_get_ctx = destroy_a_when_asked;
	ts_mutex_lock(&lock);
	ck_assert_int_eq(
	        ts_streams_order(&streams, 3, 0, (CUstream)0x30, &lock),
	        CUDA_SUCCESS);
	ck_assert_uint_eq(whole_waits, 1);
	finish_streams();
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, stream_of_a_thread_waits_for_a_copy_once);
	tcase_add_test(tests, plan_takes_no_page_that_an_op_has_just_taken_up);
	tcase_add_test(tests, plan_waits_for_the_device_a_while_only);
	tcase_add_test(tests, plan_leaves_pinned_pages_out);
	tcase_add_test(tests, small_pages_move_if_asked_for);
	tcase_add_test(tests,
	        what_was_issued_before_a_capture_is_waited_for_by_events);
	tcase_add_test(
	        tests, ops_of_a_stream_destroyed_meanwhile_are_waited_for);
	tcase_add_test(
	        tests, stream_destroyed_while_it_is_marked_is_waited_for);
}

int main(void)
{
	return run_suite("pager_orders", add_tests);
}
