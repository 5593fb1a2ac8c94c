/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory as PyTorch's expandable segments have it, on the fake device. */
#include "agent/virtual.h"

#include "agent/agent_internal.h"
#include "tests/unit/pager_fixture.h"

#define LIMIT 16
#define RANGE (64 * PAGE)

static const CUmemAllocationProp plain = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

static CUdeviceptr reserved;
static uint64_t base;

static void start(void)
{
	setup_with(LIMIT, 256);
	ts_agent.config.mode = TS_MODE_CAP;
	ts_agent.ops = &fake_gpu_ops;
	ts_mutex_init(&ts_agent.lock, TS_RANK_AGENT);
	ts_blocks_init(&ts_agent.blocks);
	ts_virtual_init();
	atomic_store(&ts_agent.devices[0].pager, pager);
	/* The fake device does not align by itself. */
	ck_assert_int_eq(fake_gpu_ops.address_reserve(
	                         &reserved, RANGE + PAGE, PAGE, 0, 0),
	        CUDA_SUCCESS);
	base = (reserved + PAGE - 1) / PAGE * PAGE;
	ts_virtual_reserved(base, RANGE);
}

static void end(void)
{
	ck_assert_int_eq(ts_virtual_before_free(base), CUDA_SUCCESS);
	ck_assert(!ts_pager_owns(pager, base));
	ck_assert_int_eq(fake_gpu_ops.address_free(reserved, RANGE + PAGE),
	        CUDA_SUCCESS);
	ts_blocks_finish(&ts_agent.blocks);
	teardown();
}

static CUresult create(CUmemGenericAllocationHandle *handle, uint64_t pages)
{
	CUresult result = CUDA_ERROR_UNKNOWN;

	ck_assert(ts_virtual_create(handle, pages * PAGE, &plain, &result));
	return result;
}

static CUmemGenericAllocationHandle created(uint64_t pages)
{
	CUmemGenericAllocationHandle handle = 0;

	ck_assert_int_eq(create(&handle, pages), CUDA_SUCCESS);
	return handle;
}

static CUresult map(CUmemGenericAllocationHandle handle, uint64_t page,
        uint64_t pages, uint64_t offset)
{
	CUresult result = CUDA_ERROR_UNKNOWN;

	ck_assert(ts_virtual_map(
	        base + page * PAGE, pages * PAGE, offset, handle, &result));
	return result;
}

static CUresult unmap(uint64_t page, uint64_t pages)
{
	CUresult result = CUDA_ERROR_UNKNOWN;

	ck_assert(ts_virtual_unmap(base + page * PAGE, pages * PAGE, &result));
	return result;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	CUresult result = CUDA_ERROR_UNKNOWN;

	ck_assert(ts_virtual_release(handle, &result));
	return result;
}

static void report(uint64_t page, int64_t pages)
{
	struct ts_stretch dead, live;

	ts_blocks_report(&ts_agent.blocks, base + page * PAGE,
	        pages * (int64_t)PAGE, 0, &dead, &live);
	if (live.device >= 0)
		ts_pager_live(pager, live.address, live.bytes);
	if (dead.device >= 0)
		ts_pager_dead(pager, dead.address, dead.bytes);
}

START_TEST(blocks_in_what_is_mapped_move_and_keep_their_content)
{
	const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
	        CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUresult result;

	start();
	for (uint64_t i = 0; i < 3; i++) {
		handle = created(8);
		ck_assert_int_eq(map(handle, 8 * i, 8, 0), CUDA_SUCCESS);
		ck_assert(ts_virtual_properties(&prop, handle, &result));
		ck_assert_int_eq(result, CUDA_SUCCESS);
		ck_assert_mem_eq(&prop, &plain, sizeof(prop));
		/* PyTorch keeps no handle. */
		ck_assert_int_eq(release(handle), CUDA_SUCCESS);
	}
	ck_assert(ts_virtual_set_access(base, 24 * PAGE, &access, 1, &result));
	ck_assert_int_eq(result, CUDA_SUCCESS);
	for (uint64_t i = 0; i < 3; i++) {
		report(8 * i, 8);
		ck_assert_int_eq(write_op(base + 8 * i * PAGE, 8 * PAGE,
		                         (int)i + 1, STREAM_A),
		        0);
	}
	ck_assert_uint_gt(stats().out_bytes, 0);
	for (uint64_t i = 0; i < 3; i++)
		expect_bytes(base + 8 * i * PAGE, 8 * PAGE, (int)i + 1);
	for (uint64_t i = 0; i < 3; i++)
		report(8 * i, -8);
	ck_assert_int_eq(unmap(0, 24), CUDA_SUCCESS);
	ck_assert(!ts_virtual_release(handle, &result));
	end();
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
	CUmemGenericAllocationHandle first, second;
	CUresult result;

	start();
	first = created(4);
	second = created(4);
	ck_assert_int_eq(map(first, 0, 4, PAGE), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(map(first, 0, 3, 0), CUDA_ERROR_INVALID_VALUE);
	/* Not all of it in the range that was reserved. */
	ck_assert_int_eq(map(first, 62, 4, 0), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(map(first, 0, 4, 0), CUDA_SUCCESS);
	/* One content at two addresses cannot be moved. */
	ck_assert_int_eq(map(first, 8, 4, 0), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_int_eq(map(second, 3, 4, 0), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(map(second, 4, 4, 0), CUDA_SUCCESS);
	/* Mappings go whole, and ranges when they are empty. */
	ck_assert_int_eq(unmap(0, 6), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(
	        ts_virtual_before_free(base), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(unmap(0, 8), CUDA_SUCCESS);
	ck_assert(!ts_virtual_unmap(base, 8 * PAGE, &result));
	ck_assert_int_eq(release(first), CUDA_SUCCESS);
	ck_assert_int_eq(release(second), CUDA_SUCCESS);
	/* The driver's own. */
	ck_assert(!ts_virtual_map(base, 4 * PAGE, 0, 42, &result));
	ck_assert(!ts_virtual_release(42, &result));
	ck_assert(!ts_virtual_refuses_export(42));
	end();
}
END_TEST

START_TEST(handle_that_is_released_is_mapped_no_more)
{
	CUmemGenericAllocationHandle handle;
	CUresult result;

	start();
	handle = created(4);
	ck_assert(ts_virtual_refuses_export(handle));
	ck_assert_int_eq(map(handle, 0, 4, 0), CUDA_SUCCESS);
	ck_assert_int_eq(unmap(0, 4), CUDA_SUCCESS);
	/* Elsewhere, as long as it is there. */
	ck_assert_int_eq(map(handle, 16, 4, 0), CUDA_SUCCESS);
	ck_assert_int_eq(release(handle), CUDA_SUCCESS);
	ck_assert_int_eq(release(handle), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(map(handle, 0, 4, 0), CUDA_ERROR_INVALID_VALUE);
	ck_assert_int_eq(unmap(16, 4), CUDA_SUCCESS);
	ck_assert(!ts_virtual_release(handle, &result));
	end();
}
END_TEST

START_TEST(more_than_fits_at_once_is_refused)
{
	CUmemGenericAllocationHandle handles[3], refused;

	start();
	/* What is created and not mapped comes to be used together. */
	handles[0] = created(LIMIT / 2);
	handles[1] = created(LIMIT / 2);
	ck_assert_int_eq(create(&refused, 1), CUDA_ERROR_OUT_OF_MEMORY);
	/* What is mapped may move out again. */
	ck_assert_int_eq(map(handles[0], 0, LIMIT / 2, 0), CUDA_SUCCESS);
	handles[2] = created(LIMIT / 2);
	ck_assert_int_eq(create(&refused, 1), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_int_eq(unmap(0, LIMIT / 2), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(release(handles[i]), CUDA_SUCCESS);
	ck_assert_int_eq(release(created(LIMIT)), CUDA_SUCCESS);
	end();
}
END_TEST

/* The context has gone, and a new one come: its pager lies anywhere. */
static void replace_pager(void)
{
	const struct ts_pager_options options = {
	        .limit_bytes = CONTEXT + LIMIT * PAGE,
	        .host_limit_bytes = 256 * PAGE,
	        .unit_bytes = PAGE,
	};
	uint64_t id = ts_pager_id(pager), address;
	struct ts_allocation ignored;

	while (ts_blocks_any_allocation(&ts_agent.blocks, 0, &address))
		ts_blocks_remove_allocation(&ts_agent.blocks, address, &ignored,
		        ts_agent_tell_dead, NULL);
	ts_pager_destroy(pager, true);
	ck_assert_int_eq(ts_pager_create(&fake_gpu_ops, &options, &pager), 0);
	ck_assert_uint_ne(ts_pager_id(pager), id);
	atomic_store(&ts_agent.devices[0].pager, pager);
}

START_TEST(range_of_a_pager_that_is_gone_is_taken_over_by_the_next)
{
	start();
	ck_assert_int_eq(map(created(4), 0, 4, 0), CUDA_SUCCESS);
	ck_assert(ts_pager_owns(pager, base));
	/* malloc() gives the last one's memory to the next, as a rule. */
	for (uint64_t i = 1; i < 4; i++) {
		replace_pager();
		ck_assert(!ts_pager_owns(pager, base));
		ck_assert_int_eq(map(created(4), 8 * i, 4, 0), CUDA_SUCCESS);
		ck_assert(ts_pager_owns(pager, base + 8 * i * PAGE));
		report(8 * i, 4);
		ck_assert_int_eq(
		        write_op(base + 8 * i * PAGE, 4 * PAGE, 5, STREAM_A),
		        0);
		expect_bytes(base + 8 * i * PAGE, 4 * PAGE, 5);
	}
	for (uint64_t i = 0; i < 4; i++)
		ck_assert_int_eq(unmap(8 * i, 4), CUDA_SUCCESS);
	end();
}
END_TEST

START_TEST(range_of_a_pager_that_is_gone_is_freed)
{
	start();
	ck_assert_int_eq(map(created(4), 0, 4, 0), CUDA_SUCCESS);
	replace_pager();
	ck_assert_int_eq(unmap(0, 4), CUDA_SUCCESS);
	/* The new one never had it. */
	end();
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_test(
	        tests, blocks_in_what_is_mapped_move_and_keep_their_content);
	tcase_add_test(tests, what_makes_no_sense_is_refused);
	tcase_add_test(tests, handle_that_is_released_is_mapped_no_more);
	tcase_add_test(tests, more_than_fits_at_once_is_refused);
	tcase_add_test(
	        tests, range_of_a_pager_that_is_gone_is_taken_over_by_the_next);
	tcase_add_test(tests, range_of_a_pager_that_is_gone_is_freed);
}

int main(void)
{
	return run_suite("virtual", add);
}
