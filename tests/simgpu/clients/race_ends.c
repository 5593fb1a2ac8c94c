/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Race detection where memory goes or comes: unmapping what work uses that
 * nobody has waited for, whatever the device does, pools, which give memory out
 * again in an order of their own, page-locked memory, and branches of graphs.
 */
#include "race_client.h"

#define BYTES        (4 * MIB)
#define NON_BLOCKING CU_STREAM_NON_BLOCKING
#define READWRITE    CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define NO_ACCESS    CU_MEM_ACCESS_FLAGS_PROT_NONE

static bool waits;
static const char *unmap_sync;

static void check(void (*scenario)(void), int races, int possible)
{
	json_t *report = race_report(scenario, "SIMGPU_UNMAP_SYNC", unmap_sync);

	ck_assert_int_eq(race_number(report, "races"), races);
	ck_assert_int_eq(race_number(report, "possible_races"), possible);
	ck_assert_int_eq(race_number(report, "memory_errors"), 0);
	json_decref(report);
}

/* Long enough for small work to be over, without anybody looking. */
static void pass_time(void)
{
	for (int i = 0; i < 1000; i++) {
		CUdeviceptr other = 0;

		OK(cuMemAddressReserve(&other, PAGE, 0, 0, 0));
		OK(cuMemAddressFree(other, PAGE));
	}
}

/* A chunk at two addresses, BYTES apart. */
static CUdeviceptr two_addresses(void)
{
	CUmemGenericAllocationHandle chunk = client_chunk(BYTES);
	CUdeviceptr va = client_reserve(2 * BYTES);

	OK(cuMemMap(va, BYTES, 0, chunk, 0));
	OK(cuMemMap(va + BYTES, BYTES, 0, chunk, 0));
	OK(cuMemRelease(chunk));
	OK(client_access(va, 2 * BYTES, READWRITE));
	return va;
}

enum end { END_UNMAP, END_ACCESS, END_OTHER_ADDRESS, END_COUNT };
static enum end end;

static void ended(void)
{
	CUdeviceptr va;
	CUstream stream;

	client_start();
	stream = race_stream(NON_BLOCKING);
	va = two_addresses();
	OK(cuMemsetD8Async(va, 1, BYTES, stream));
	OK(cuMemsetD8Async(va + 100, 1, 1000, stream));
	pass_time();
	if (waits)
		OK(cuStreamSynchronize(stream));
	switch (end) {
	case END_UNMAP:
		OK(cuMemUnmap(va, BYTES));
		break;
	case END_ACCESS:
		OK(client_access(va, BYTES, NO_ACCESS));
		break;
	default:
		OK(cuMemUnmap(va + BYTES, BYTES));
	}
}

/* Both sets are named; the first has left parts that the second covers not. */
START_TEST(unmapping_without_waiting_is_a_race)
{
	int races = _i == END_OTHER_ADDRESS ? 0 : 2;

	end = (enum end)_i;
	unmap_sync = "none";
	check(ended, races, 0);
	unmap_sync = "device";
	check(ended, races, 0);
	waits = true;
	check(ended, 0, 0);
}
END_TEST

/* A later use through another address does not hide the first one. */
static void used_through_both(void)
{
	CUdeviceptr va;
	CUstream stream;

	client_start();
	stream = race_stream(NON_BLOCKING);
	va = two_addresses();
	OK(cuMemsetD8Async(va, 1, BYTES, stream));
	OK(cuMemsetD8Async(va + BYTES, 1, BYTES, stream));
	pass_time();
	OK(cuMemUnmap(va, BYTES));
}

START_TEST(each_address_is_waited_for)
{
	unmap_sync = "none";
	check(used_through_both, 1, 0);
}
END_TEST

static void guessed(void)
{
	CUdeviceptr va;
	CUstream stream;

	client_start();
	stream = race_stream(NON_BLOCKING);
	va = two_addresses();
	race_launch(client_kernel("unheard_of", 2), va, va, stream);
	pass_time();
	if (waits)
		OK(cuStreamSynchronize(stream));
	OK(cuMemUnmap(va, BYTES));
}

START_TEST(guessed_use_makes_a_possible_race)
{
	unmap_sync = "none";
	check(guessed, 0, 1);
	waits = true;
	check(guessed, 0, 0);
}
END_TEST

/* That unmapping waits for the device is no order to rely on. */
static void unmapping_between(void)
{
	CUstream a, b;
	CUdeviceptr p, other;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	other = two_addresses();
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	OK(cuMemUnmap(other, BYTES));
	if (waits)
		race_order(b, a);
	OK(cuMemsetD8Async(p, 2, BYTES, b));
}

START_TEST(unmapping_other_memory_is_no_order)
{
	unmap_sync = "device";
	check(unmapping_between, 1, 0);
	waits = true;
	check(unmapping_between, 0, 0);
}
END_TEST

/* ------------------------------------------------------------------- pools */

static bool soon;

static void memory_of_a_pool(void)
{
	CUstream a, b;
	CUdeviceptr p, q;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	OK(cuMemAllocAsync(&p, BYTES, a));
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	OK(cuMemFreeAsync(p, a));
	if (!soon)
		pass_time();
	OK(cuMemAllocAsync(&q, BYTES, b));
	ck_assert_uint_eq(p, q);
	OK(cuMemsetD8Async(q, 1, BYTES, b));
	OK(cuMemFreeAsync(q, b));
}

START_TEST(a_pool_orders_the_uses_of_its_memory)
{
	unmap_sync = "none";
	soon = _i;
	check(memory_of_a_pool, 0, 0);
}
END_TEST

static void pool_between(void)
{
	CUstream a, b;
	CUdeviceptr p, q;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	OK(cuMemAllocAsync(&q, BYTES, a));
	OK(cuMemFreeAsync(q, a));
	pass_time();
	/* The pool sees that it is free, the program has not looked. */
	OK(cuMemAllocAsync(&q, BYTES, b));
	OK(cuMemsetD8Async(p, 2, BYTES, b));
}

START_TEST(what_a_pool_sees_is_no_order_of_the_program)
{
	unmap_sync = "none";
	check(pool_between, 1, 0);
}
END_TEST

static void freed_in_stream_order(void)
{
	CUstream a, b;
	CUdeviceptr p, q;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	q = race_device(BYTES);
	OK(cuMemAllocAsync(&p, BYTES, a));
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	race_order(b, a);
	OK(cuMemcpyDtoDAsync(q, p, BYTES, b));
	if (waits)
		race_order(a, b);
	OK(cuMemFreeAsync(p, a));
}

START_TEST(freeing_what_another_stream_reads_is_a_race)
{
	unmap_sync = "none";
	check(freed_in_stream_order, 1, 0);
	waits = true;
	check(freed_in_stream_order, 0, 0);
}
END_TEST

/* ------------------------------------------------- page-locked memory, graphs
 */

static bool registered;

static void pinned_memory_freed(void)
{
	static _Alignas(4096) unsigned char own[BYTES];
	CUstream stream;
	CUdeviceptr p;
	void *host = own;

	client_start();
	stream = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	if (registered)
		OK(cuMemHostRegister(own, BYTES, 0));
	else
		host = race_pinned(BYTES);
	OK(cuMemcpyHtoDAsync(p, host, BYTES, stream));
	if (waits)
		OK(cuStreamSynchronize(stream));
	if (registered)
		OK(cuMemHostUnregister(own));
	else
		OK(cuMemFreeHost(host));
}

START_TEST(page_locked_memory_ends_after_its_copies)
{
	unmap_sync = "none";
	registered = _i;
	check(pinned_memory_freed, 1, 0);
	waits = true;
	check(pinned_memory_freed, 0, 0);
}
END_TEST

static void managed_memory_freed(void)
{
	CUstream stream;
	CUdeviceptr p;

	client_start();
	stream = race_stream(NON_BLOCKING);
	OK(cuMemAllocManaged(&p, BYTES, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemsetD8Async(p, 1, BYTES, stream));
	pass_time();
	if (waits)
		OK(cuStreamSynchronize(stream));
	OK(cuMemFree(p));
}

START_TEST(managed_memory_ends_after_its_work)
{
	unmap_sync = "none";
	check(managed_memory_freed, 1, 0);
	waits = true;
	check(managed_memory_freed, 0, 0);
}
END_TEST

static void branches(void)
{
	CUgraphExec exec;
	CUgraph graph;
	CUstream a, b;
	CUdeviceptr p;
	CUevent event;

	client_start();
	a = race_stream(NON_BLOCKING);
	b = race_stream(NON_BLOCKING);
	p = race_device(BYTES);
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	race_order(b, a);
	OK(cuMemsetD8Async(p, 1, BYTES, a));
	if (waits)
		race_order(b, a);
	OK(cuMemsetD8Async(p, 2, BYTES, b));
	race_order(a, b);
	OK(cuStreamEndCapture(a, &graph));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, a));
	OK(cuGraphLaunch(exec, a)); /* after all of the first */
}

/* One pair for each launch. */
START_TEST(branches_of_a_graph_race)
{
	unmap_sync = "none";
	check(branches, 2, 0);
	waits = true;
	check(branches, 0, 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("race_ends");

	tcase_add_loop_test(
	        tests, unmapping_without_waiting_is_a_race, 0, END_COUNT);
	tcase_add_test(tests, each_address_is_waited_for);
	tcase_add_test(tests, guessed_use_makes_a_possible_race);
	tcase_add_test(tests, unmapping_other_memory_is_no_order);
	tcase_add_loop_test(tests, a_pool_orders_the_uses_of_its_memory, 0, 2);
	tcase_add_test(tests, what_a_pool_sees_is_no_order_of_the_program);
	tcase_add_test(tests, freeing_what_another_stream_reads_is_a_race);
	tcase_add_loop_test(
	        tests, page_locked_memory_ends_after_its_copies, 0, 2);
	tcase_add_test(tests, managed_memory_ends_after_its_work);
	tcase_add_test(tests, branches_of_a_graph_race);
	return client_run(tests, "race_ends");
}
