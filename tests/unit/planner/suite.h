/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every test program of the planner does in main(). */
#ifndef TS_TEST_PLANNER_SUITE_H
#define TS_TEST_PLANNER_SUITE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs one case of @tests; long ones get @timeout_s. An exit status. */
static inline int ts_run_suite(
        const char *name, const TTest *const *tests, size_t n, double timeout_s)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, timeout_s);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
