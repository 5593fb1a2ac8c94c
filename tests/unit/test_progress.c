/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When lines of progress are due, by times that are made up. */
#include "agent/cli/progress.h"
#include "tests/unit/suite.h"

#define MS 1000000ull

static void check_rests(bool terminal, uint64_t rest_ns)
{
	struct ts_progress progress;
	uint64_t now;

	ts_progress_begin(&progress, "sweep", 9);
	progress.terminal = terminal;
	now = progress.begun_ns;
	ck_assert(!ts_progress_due(&progress, now));
	ck_assert(!ts_progress_due(&progress, now + rest_ns - MS));
	ck_assert(!progress.told);
	for (int i = 0; i < 3; i++) {
		now += rest_ns;
		ck_assert(ts_progress_due(&progress, now));
		ck_assert(progress.told);
		ck_assert(!ts_progress_due(&progress, now + rest_ns - MS));
	}
}

START_TEST(a_terminal_is_told_after_half_a_second)
{
	check_rests(true, 500 * MS);
}
END_TEST

START_TEST(a_file_is_told_after_half_a_minute)
{
	check_rests(false, 30000 * MS);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, a_terminal_is_told_after_half_a_second);
	tcase_add_test(tests, a_file_is_told_after_half_a_minute);
}

int main(void)
{
	return run_suite("progress", add_tests);
}
