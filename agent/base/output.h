/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where what is written to a path goes: files are replaced whole, whatever
 * else a path may name is written itself. No state; any thread.
 */
#ifndef TS_OUTPUT_H
#define TS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/*
 * *@ret_file is the name of the file that is to be replaced, or to be made, at
 * @path: behind the links, which stay, and the caller's to free. NULL where
 * there is none: @path names a pipe, a device or, as /dev/stderr does, what a
 * process has open, and ts_output_open() is for these. 0 or a negative errno.
 */
int ts_output_place(const char *path, char **ret_file);

/*
 * Opens what is written itself; NULL with errno. What is open in this process
 * shares its place with who else writes there. A pipe that nobody reads is
 * waited for with @wait, else it is ENXIO; writes wait in any case.
 */
FILE *ts_output_open(const char *path, bool wait);

/* 0, or the negative errno that says why @path cannot be written. */
int ts_output_check(const char *path);

#endif
