/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The main of a unit test program: one suite, one case. */
#ifndef UNIT_SUITE_H
#define UNIT_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int run_suite(const char *name, void (*add)(TCase *tests))
{
	Suite *suite = suite_create(name);
	TCase *tests = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_set_timeout(tests, 120);
	add(tests);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
