/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tables of addresses that kernels write, where what they name does not fit;
 * and host memory that is read before the device is done with it.
 */
#include "agent/agent_internal.h"
#include "tests/unit/pager_fixture.h"

static struct ts_gpu_ops ops;

static CUresult get_device(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

static CUresult name_of(CUresult error, const char **name)
{
	(void)error;
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

static void start(uint64_t limit_pages)
{
	setup_with(limit_pages, 64);
	ops = fake_gpu_ops;
	ops.ctx_get_device = get_device;
	ops.error_name = name_of;
	ts_agent.ops = &ops;
	ts_agent.config.mode = TS_MODE_CAP;
	ts_mutex_init(&ts_agent.lock, TS_RANK_AGENT);
	ts_blocks_init(&ts_agent.blocks);
	ts_tables_init(&ts_agent.tables);
	atomic_store(&ts_agent.devices[0].pager, pager);
}

static void stop(void)
{
	atomic_store(&ts_agent.devices[0].pager, NULL);
	teardown();
}

static uint64_t block(uint64_t bytes)
{
	uint64_t address = alloc(bytes);

	ck_assert_int_eq(ts_blocks_add_allocation(&ts_agent.blocks, address,
	                         bytes, 0, FAKE_CONTEXT, true),
	        0);
	return address;
}

/* A kernel of signature @number that writes @word into the block @table. */
static void launch(uint64_t table, uint64_t word, uint64_t number)
{
	struct ts_op op;

	ts_op_init(&op, TS_OP_LAUNCH, "writer");
	op.signature = number;
	op.stream = STREAM_A;
	ts_op_touch(&op, &ts_agent.blocks, table, 0, TS_ACCESS_READWRITE);
	ck_assert_uint_eq(op.count, 1);
	ck_assert_int_eq(begin(op.ranges, 1, STREAM_A), 0);
	*(uint64_t *)(uintptr_t)table = word;
	ts_pager_end(pager, op.ranges, 1, STREAM_A, true);
	ts_agent_scan_written(&op);
	ts_op_finish(&op);
}

static void keep(uint64_t address, uint64_t bytes)
{
	struct ts_range one = range(address, bytes);

	ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
	ts_pager_pin(pager, &one, TS_PIN_CAPTURED);
	ts_pager_end(pager, &one, 1, STREAM_A, false);
}

/* What it names has no room beside what else stays; op @number wrote it. */
static uint64_t table_that_does_not_fit(uint64_t number)
{
	uint64_t table, other, kept;

	start(8);
	table = block(PAGE);
	other = block(4 * PAGE);
	kept = block(5 * PAGE);
	keep(kept, 5 * PAGE);
	launch(table, other, number);
	return table;
}

START_TEST(what_a_written_table_names_stays)
{
	uint64_t table, other;

	start(8);
	table = block(PAGE);
	other = block(4 * PAGE);
	launch(table, other, 1);
	ck_assert_int_eq(ts_agent_tables_settle(), CUDA_SUCCESS);
	ck_assert_uint_eq(stats().pinned_bytes, 4 * PAGE);
	stop();
}
END_TEST

START_TEST(ops_are_refused_until_what_a_table_names_fits)
{
	table_that_does_not_fit(2);
	ck_assert_int_eq(ts_agent_tables_settle(), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(ts_agent_tables_settle(), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_uint_eq(stats().pinned_bytes, 5 * PAGE);
	ts_pager_unpin_captured(pager);
	ck_assert_int_eq(ts_agent_tables_settle(), CUDA_SUCCESS);
	ck_assert_uint_eq(stats().pinned_bytes, 4 * PAGE);
	ck_assert(!atomic_load(&ts_agent.tables.any_open));
	stop();
}
END_TEST

static CUresult device_lost(void)
{
	return CUDA_ERROR_ILLEGAL_ADDRESS;
}

START_TEST(error_of_the_device_is_not_taken_for_want_of_memory)
{
	table_that_does_not_fit(4);
	ops.ctx_synchronize = device_lost;
	ck_assert_int_eq(ts_agent_tables_settle(), CUDA_ERROR_ILLEGAL_ADDRESS);
	ops.ctx_synchronize = fake_gpu_ops.ctx_synchronize;
	stop();
}
END_TEST

START_TEST(table_that_is_freed_refuses_nothing)
{
	struct ts_allocation gone;
	uint64_t table;

	table = table_that_does_not_fit(3);
	ck_assert_int_eq(ts_agent_tables_settle(), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert(ts_blocks_remove_allocation(
	        &ts_agent.blocks, table, &gone, ts_agent_tell_dead, NULL));
	ck_assert_int_eq(ts_agent_tables_settle(), CUDA_SUCCESS);
	stop();
}
END_TEST

#define DOWNLOADS (TS_DOWNLOADS_MAX + 6)

START_TEST(downloads_that_gave_way_are_waited_for)
{
	static uint64_t host[DOWNLOADS];
	uint64_t table, first = 0;
	bool done;

	start(8);
	table = block(PAGE);
	for (int i = 0; i < DOWNLOADS; i++) {
		struct ts_op op;

		ts_op_init(&op, TS_OP_COPY, "MemcpyDtoH");
		op.host = (uint64_t)(uintptr_t)&host[i];
		op.bytes = sizeof(host[i]);
		ts_op_touch(&op, &ts_agent.blocks, table, 0, TS_ACCESS_READ);
		ck_assert_int_eq(write_op(table, PAGE, i, STREAM_A), 0);
		first = first ? first : ts_pager_last_op(pager);
		ts_downloads_note(&op);
		ts_op_finish(&op);
	}
	/* Not while something captures, and still to be waited for then. */
	atomic_store(&ts_agent.capturing, 1);
	ck_assert(!ts_downloads_wait(&host[0], sizeof(host[0])));
	atomic_store(&ts_agent.capturing, 0);
	ck_assert(ts_downloads_wait(&host[0], sizeof(host[0])));
	ts_mutex_lock(&pager->lock);
	done = ts_streams_done(&pager->streams, first);
	ts_mutex_unlock(&pager->lock);
	ck_assert(done);
	stop();
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(tests, what_a_written_table_names_stays);
	tcase_add_test(tests, ops_are_refused_until_what_a_table_names_fits);
	tcase_add_test(tests, table_that_is_freed_refuses_nothing);
	tcase_add_test(
	        tests, error_of_the_device_is_not_taken_for_want_of_memory);
	tcase_add_test(tests, downloads_that_gave_way_are_waited_for);
}

int main(void)
{
	return run_suite("scan", add);
}
