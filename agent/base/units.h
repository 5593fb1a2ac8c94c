/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes as people read them. No state; any thread. */
#ifndef TS_UNITS_H
#define TS_UNITS_H

#include <stdint.h>

struct ts_size_text {
	char text[32];
};

/* "11.94 GiB", or "20.0 MiB" below half a GiB: ts_size(n).text in a call. */
struct ts_size_text ts_size(uint64_t bytes);

#endif
