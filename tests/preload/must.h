/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How small programs here end where something is not as it has to be. */
#ifndef TESTS_PRELOAD_MUST_H
#define TESTS_PRELOAD_MUST_H

#include <stdio.h>
#include <stdlib.h>

/* @status: 0 where all is well; also what a driver call answered. */
static inline void must(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %d\n", what, status);
	exit(1);
}

#define MUST_TEXT(line) #line
#define MUST_AT(line)   MUST_TEXT(line) ": "
#define MUST(call)      must((int)(call), MUST_AT(__LINE__) #call)

#endif
