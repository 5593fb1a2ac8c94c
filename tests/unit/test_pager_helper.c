/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pager's helper: what it does, and that it comes and goes unnoticed. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/inside.h"
#include "tests/unit/pager_fixture.h"

#define BLOCK_PAGES 8
#define BLOCKS      136
/* What a slab of host memory holds: fewer than all blocks have. */
#define SLAB_PAGES 1024
#define HOST_PAGES (4 * SLAB_PAGES)
#define LIMIT      32
/* So many fill the limit and a slab. */
#define FULL    (BLOCKS - LIMIT / BLOCK_PAGES)
#define WAIT_MS 5000

static uint64_t blocks[BLOCKS];

/* One after the other, so that all but the last few move out. */
static void write_blocks(int from, int end)
{
	for (int i = from; i < end; i++) {
		blocks[i] = alloc(BLOCK_PAGES * PAGE);
		ck_assert_int_eq(write_op(blocks[i], BLOCK_PAGES * PAGE, i + 1,
		                         STREAM_A),
		        0);
	}
}

static void check_blocks(int count)
{
	for (int i = 0; i < count; i++)
		expect_bytes(blocks[i], BLOCK_PAGES * PAGE, i + 1);
}

/* Ops that move nothing, in numbers that make the pager look around. */
static void read_often(uint64_t address)
{
	for (int i = 0; i < 64; i++)
		read_op(address, PAGE);
}

static bool wait_for_host(uint64_t pages)
{
	for (int i = 0; i < WAIT_MS; i++) {
		if (stats().host_pinned_bytes == pages * PAGE)
			return true;
		usleep(1000);
	}
	return false;
}

/* True where the helper is there; which signals it blocks. */
static bool find_thread(uint64_t *blocked)
{
	DIR *tasks = opendir("/proc/self/task");
	char path[300], line[300];
	struct dirent *entry;
	bool found = false;

	ck_assert_ptr_nonnull(tasks);
	while (!found && (entry = readdir(tasks))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status",
		        entry->d_name);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			if (!strcmp(line, "Name:\ttapeswap\n"))
				found = true;
			if (found && !strncmp(line, "SigBlk:", 7))
				*blocked = strtoull(line + 7, NULL, 16);
		}
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return found;
}

/* Its name comes, and it goes, a moment later. */
static bool wait_for_thread(bool there, uint64_t *blocked)
{
	for (int i = 0; i < WAIT_MS && find_thread(blocked) != there; i++)
		usleep(1000);
	return find_thread(blocked) == there;
}

START_TEST(host_memory_is_there_before_it_is_needed)
{
	uint64_t waited;

	with_helper = _i;
	setup_with(LIMIT, HOST_PAGES);
	write_blocks(0, FULL - 1);
	ck_assert_uint_eq(stats().host_pinned_bytes, SLAB_PAGES * PAGE);
	write_blocks(FULL - 1, FULL);
	read_often(blocks[FULL - 1]);
	ck_assert(wait_for_host(2 * SLAB_PAGES));
	waited = stats().wait_pinning_ns;
	write_blocks(FULL, BLOCKS);
	ck_assert_uint_eq(stats().wait_pinning_ns, waited);
	ck_assert_uint_eq(stats().host_pinned_bytes, 2 * SLAB_PAGES * PAGE);
	check_blocks(BLOCKS);
	teardown();
}
END_TEST

START_TEST(what_cannot_be_pinned_ahead_is_pinned_when_needed)
{
	unsigned int calls;

	setup_with(LIMIT, HOST_PAGES);
	write_blocks(0, FULL - 1);
	fake_gpu.refuse_pinning = true;
	write_blocks(FULL - 1, FULL);
	read_often(blocks[FULL - 1]);
	ck_assert_uint_eq(stats().host_pinned_bytes, SLAB_PAGES * PAGE);
	/* Nor is it tried again and again. */
	calls = fake_gpu.calls;
	ts_pager_help(pager, TS_HELP_PIN);
	ck_assert_uint_eq(fake_gpu.calls, calls);
	fake_gpu.refuse_pinning = false;
	write_blocks(FULL, BLOCKS);
	ck_assert_uint_eq(stats().host_pinned_bytes, 2 * SLAB_PAGES * PAGE);
	ck_assert_uint_eq(ts_pager_plain_bytes(pager), 0);
	check_blocks(BLOCKS);
	teardown();
}
END_TEST

START_TEST(thread_comes_when_asked_and_takes_no_signals)
{
	static const int signals[] = {
	        SIGINT, SIGTERM, SIGUSR1, SIGPROF, SIGALRM, SIGCHLD, SIGSEGV};
	uint64_t blocked = 0;

	with_helper = true;
	setup_with(LIMIT, HOST_PAGES);
	ck_assert(!find_thread(&blocked));
	ts_helper_ask(&pager->helper, TS_HELP_PIN);
	ck_assert(wait_for_thread(true, &blocked));
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		ck_assert_msg(blocked >> (signals[i] - 1) & 1, "signal %d",
		        signals[i]);
	ts_pager_quiet(pager);
	ck_assert(wait_for_thread(false, &blocked));
	/* What is asked from now on is done at once. */
	write_blocks(0, FULL);
	read_often(blocks[FULL - 1]);
	ck_assert_uint_eq(stats().host_pinned_bytes, 2 * SLAB_PAGES * PAGE);
	ck_assert(!find_thread(&blocked));
	check_blocks(FULL);
	teardown();
}
END_TEST

/* 0 until the helper has told. */
static void tell_where(void *data, unsigned int what)
{
	*(_Atomic int *)data = ts_inside ? 1 : -1;
}

START_TEST(what_the_thread_calls_is_the_agents)
{
	_Atomic int told = 0;
	struct ts_helper helper;

	ts_helper_init(&helper, true, tell_where, &told);
	ts_helper_ask(&helper, TS_HELP_PIN);
	for (int i = 0; i < WAIT_MS && !told; i++)
		usleep(1000);
	ck_assert_int_eq(told, 1);
	/* Whoever asks may be the program, and is in a wrapper then. */
	ck_assert(!ts_inside);
	ts_helper_stop(&helper, false);
	ts_helper_finish(&helper);
}
END_TEST

START_TEST(child_of_a_fork_finds_every_lock_free)
{
	uint64_t blocked;
	int status;

	with_helper = true;
	setup_with(LIMIT, HOST_PAGES);
	write_blocks(0, FULL);
	for (int i = 0; i < 40; i++) {
		pid_t child;

		ts_helper_ask(&pager->helper, TS_HELP_PIN | TS_HELP_AHEAD);
		child = fork();
		if (!child) {
			alarm(60);
			ts_helper_ask(&pager->helper, TS_HELP_AHEAD);
			_exit(find_thread(&blocked) ||
			        ts_pager_last_op(pager) != FULL);
		}
		ck_assert_int_gt(child, 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
	}
	check_blocks(FULL);
	teardown();
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_loop_test(tests, host_memory_is_there_before_it_is_needed,
	        false, true + 1);
	tcase_add_test(
	        tests, what_cannot_be_pinned_ahead_is_pinned_when_needed);
	tcase_add_test(tests, thread_comes_when_asked_and_takes_no_signals);
	tcase_add_test(tests, what_the_thread_calls_is_the_agents);
	tcase_add_test(tests, child_of_a_fork_finds_every_lock_free);
}

int main(void)
{
	return run_suite("pager_helper", add_tests);
}
