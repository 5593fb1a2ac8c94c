/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/pager_fixture.h"

struct ts_pager *pager;
bool with_helper;

void setup_with(uint64_t limit_pages, uint64_t host_pages)
{
	struct ts_pager_options options = {
	        .limit_bytes = CONTEXT + limit_pages * PAGE,
	        .host_limit_bytes = host_pages * PAGE,
	        .unit_bytes = PAGE,
	        .helper_thread = with_helper,
	};

	fake_gpu_reset(512 * PAGE, CONTEXT);
	ck_assert_int_eq(ts_pager_create(&fake_gpu_ops, &options, &pager), 0);
}

void teardown(void)
{
	ts_pager_destroy(pager, true);
	ck_assert_uint_eq(fake_gpu.violations, 0);
	ck_assert_uint_eq(fake_gpu.handles, 0);
	ck_assert_uint_eq(fake_gpu.reservations, 0);
	ck_assert_uint_eq(fake_gpu.events, 0);
}

uint64_t alloc(uint64_t bytes)
{
	struct ts_shortage shortage;
	uint64_t address = 0;

	ck_assert_int_eq(
	        ts_pager_alloc(pager, bytes, 0, &address, &shortage), 0);
	return address;
}

struct ts_range range(uint64_t address, uint64_t bytes)
{
	return (struct ts_range){.address = address,
	        .bytes = bytes,
	        .access = TS_ACCESS_READWRITE};
}

int begin(struct ts_range *ranges, size_t count, ts_stream_key stream)
{
	struct ts_shortage shortage;
	uint64_t in = 0, out = 0;

	return ts_pager_begin(
	        pager, ranges, count, 0, stream, &in, &out, &shortage);
}

int write_op(uint64_t address, uint64_t bytes, int value, ts_stream_key stream)
{
	struct ts_range one = range(address, bytes);
	int rc = begin(&one, 1,
	        stream & TS_STREAM_KIND ? stream & TS_STREAM_KIND : stream);

	if (rc)
		return rc;
	memset((void *)(uintptr_t)address, value, bytes);
	fake_gpu_launch(stream, address, bytes);
	ts_pager_end(pager, &one, 1, stream, true);
	return 0;
}

void expect_bytes(uint64_t address, uint64_t bytes, int value)
{
	struct ts_range one = range(address, bytes);
	const unsigned char *at = (const unsigned char *)(uintptr_t)address;

	one.access = TS_ACCESS_READ;
	ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
	for (uint64_t i = 0; i < bytes; i++)
		if (at[i] != value)
			ck_abort_msg("byte %llu: %d, not %d",
			        (unsigned long long)i, at[i], value);
	ts_pager_end(pager, &one, 1, STREAM_A, true);
}

void read_op(uint64_t address, uint64_t bytes)
{
	struct ts_range one = range(address, bytes);

	one.access = TS_ACCESS_READ;
	ck_assert_int_eq(begin(&one, 1, STREAM_A), 0);
	ts_pager_end(pager, &one, 1, STREAM_A, true);
}

struct ts_pager_stats stats(void)
{
	struct ts_pager_stats now;

	ts_pager_stats(pager, &now);
	return now;
}
