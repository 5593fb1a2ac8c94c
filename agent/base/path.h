/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* File names with placeholders. No state; any thread. */
#ifndef TS_PATH_H
#define TS_PATH_H

#include <stddef.h>

/*
 * Writes @pattern to @ret_path with %p as the process id, %r as the local rank
 * (0 where none is set) and %% as %. Returns -ENAMETOOLONG where @size does
 * not do and -EINVAL at any other character after %.
 */
int ts_path_expand(const char *pattern, char *ret_path, size_t size);

#endif
