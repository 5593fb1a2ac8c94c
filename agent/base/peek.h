/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading memory that may not be readable. Any thread. */
#ifndef TS_PEEK_H
#define TS_PEEK_H

#include <stddef.h>

/*
 * Copies @bytes at @source of this process to @ret_data by way of the kernel,
 * which refuses where a plain read would end the process; at most as many as
 * a pipe holds. Returns 0, -EFAULT where not all of it can be read, or what the
 * kernel says where there is no way.
 */
int ts_peek(const void *source, size_t bytes, void *ret_data);

#endif
