/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What host memory there is. Reads /proc and /sys; any thread. */
#ifndef TS_HOSTMEM_H
#define TS_HOSTMEM_H

#include <stdint.h>

/*
 * Four fifths of the host's memory, or of what its cgroup allows, whichever is
 * less: the default of TAPESWAP_HOST_LIMIT.
 */
uint64_t ts_hostmem_default_limit(void);

#endif
