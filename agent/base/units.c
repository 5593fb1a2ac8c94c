/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/units.h"

#include <stdio.h>

struct ts_size_text ts_size(uint64_t bytes)
{
	struct ts_size_text size;

	if (bytes < 1u << 29)
		snprintf(size.text, sizeof(size.text), "%.1f MiB",
		        (double)bytes / (1 << 20));
	else
		snprintf(size.text, sizeof(size.text), "%.2f GiB",
		        (double)bytes / (1 << 30));
	return size;
}
