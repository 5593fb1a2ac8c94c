/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The default of TAPESWAP_HOST_LIMIT, by files as the kernel writes them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/hostmem.h"
#include "tests/unit/suite.h"

#define MIB (1ull << 20)

static char root[64];

static void set_up(void)
{
	strcpy(root, "/tmp/tapeswap-hostmem-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

/* With the folders it lies in. */
static void put(const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/'));
	        *at++ = '/') {
		*at = '\0';
		mkdir(whole, 0700);
	}
	file = fopen(whole, "we");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

static void expect_of(uint64_t bytes)
{
	ck_assert_uint_eq(ts_hostmem_limit_under(root), bytes / 5 * 4);
}

static void put_host(void)
{
	put("/proc/meminfo", "MemTotal:       8388608 kB\n"
	                     "MemFree:         102400 kB\n"
	                     "MemAvailable:   2097152 kB\n");
}

START_TEST(without_groups_it_is_of_what_the_host_has_free)
{
	put_host();
	expect_of(2048 * MIB);
	put("/proc/self/cgroup", "0::/user.slice\n");
	put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
	expect_of(2048 * MIB);
}
END_TEST

START_TEST(least_group_on_the_way_up_counts)
{
	put_host();
	put("/proc/self/cgroup", "12:pids:/x\n0::/a/b\n");
	put("/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
	put("/sys/fs/cgroup/a/b/memory.current", "104857600\n");
	expect_of(924 * MIB);
	put("/sys/fs/cgroup/a/memory.max", "524288000\n");
	put("/sys/fs/cgroup/a/memory.current", "209715200\n");
	expect_of(300 * MIB);
	/* Over its limit it has nothing left. */
	put("/sys/fs/cgroup/a/memory.current", "629145600\n");
	expect_of(0);
}
END_TEST

START_TEST(group_of_the_first_version_counts)
{
	put_host();
	put("/proc/self/cgroup", "5:memory:/docker/x\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
	expect_of(1023 * MIB);
	/* A limit that is none. */
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes",
	        "9223372036854771712\n");
	expect_of(2048 * MIB);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, without_groups_it_is_of_what_the_host_has_free);
	tcase_add_test(tests, least_group_on_the_way_up_counts);
	tcase_add_test(tests, group_of_the_first_version_counts);
}

int main(void)
{
	return run_suite("hostmem", add_tests);
}
