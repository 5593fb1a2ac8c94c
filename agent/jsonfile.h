/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JSON files that are there whole or not at all. */
#ifndef TS_JSONFILE_H
#define TS_JSONFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The head every object of ours begins with; NULL without memory. */
json_t *ts_json_head(const char *schema);

/*
 * Writes @value to @path by way of a new file beside it that takes its name
 * once it is complete, or straight to what is no file (base/output.h). Takes no
 * reference. Returns 0 or a negative errno.
 */
int ts_json_write(const json_t *value, const char *path, size_t flags);

/* Whether @json is a plan as a run writes it: with its tape or its figures. */
bool ts_json_is_of_run(const json_t *json);

/*
 * Whether @path, which @setting names, can be written: a line where it cannot,
 * for want of a folder, say, or because somebody else's file is there, but one
 * however often it is asked. Returns 0 or a negative errno.
 */
int ts_json_check_setting(const char *setting, const char *path);

/*
 * The same of a file beside what somebody else's stays for: only of the place.
 */
int ts_json_check_place(const char *setting, const char *path);

/*
 * Writes the file that @setting names, and a line where that fails: one,
 * however often it is tried, unless it fails in another way. What is there and
 * is not of the kind that runs write for @setting stays: -EEXIST. Drops @value.
 */
int ts_json_write_setting(
        json_t *value, const char *setting, const char *path, size_t flags);

#endif
