/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* JSON files that are there whole or not at all. */
#ifndef TS_JSONFILE_H
#define TS_JSONFILE_H

#include <jansson.h>
#include <stddef.h>

/* The head every object of ours begins with; NULL without memory. */
json_t *ts_json_head(const char *schema);

/*
 * Writes @value to @path by way of a new file beside it that takes its name
 * once it is complete. Takes no reference. Returns 0 or a negative errno.
 */
int ts_json_write(const json_t *value, const char *path, size_t flags);

/*
 * The same for the file that @setting names, and a line where it fails: one,
 * however often that is tried, unless it fails in another way. Drops @value.
 */
int ts_json_write_setting(
        json_t *value, const char *setting, const char *path, size_t flags);

#endif
