/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizes as people read them. No state; any thread. */
#ifndef TS_UNITS_H
#define TS_UNITS_H

#include <stdint.h>

struct ts_size_text {
	char text[32];
};

/*
 * "11.94 GiB", "20.0 MiB", "1.5 KiB" or "12 bytes", whichever the size is of:
 * ts_size(n).text in a call.
 */
struct ts_size_text ts_size(uint64_t bytes);

/* What all sizes of a table are given in. */
struct ts_size_unit {
	const char *name;
	double bytes;
};

/* That in which @largest_bytes would be given. */
struct ts_size_unit ts_size_unit(uint64_t largest_bytes);

#endif
