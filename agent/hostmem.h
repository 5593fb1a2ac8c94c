/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What host memory there is. Reads /proc and /sys; any thread. */
#ifndef TS_HOSTMEM_H
#define TS_HOSTMEM_H

#include <stdint.h>

/*
 * Four fifths of the memory that the host has free, or that its cgroups leave,
 * whichever is less: the default of TAPESWAP_HOST_LIMIT.
 */
uint64_t ts_hostmem_default_limit(void);

/* The same by the files under @root/proc and @root/sys: for tests. */
uint64_t ts_hostmem_limit_under(const char *root);

#endif
