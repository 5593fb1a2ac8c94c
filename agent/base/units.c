/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/units.h"

#include <inttypes.h>
#include <stdio.h>

struct ts_size_unit ts_size_unit(uint64_t largest_bytes)
{
	if (largest_bytes >= 1ull << 30)
		return (struct ts_size_unit){"GiB", 0x1p30};
	if (largest_bytes >= 1ull << 20)
		return (struct ts_size_unit){"MiB", 0x1p20};
	if (largest_bytes >= 1ull << 10)
		return (struct ts_size_unit){"KiB", 0x1p10};
	return (struct ts_size_unit){"bytes", 1};
}

struct ts_size_text ts_size(uint64_t bytes)
{
	struct ts_size_unit unit = ts_size_unit(bytes);
	struct ts_size_text size;

	if (unit.bytes <= 1)
		snprintf(size.text, sizeof(size.text), "%" PRIu64 " bytes",
		        bytes);
	else
		snprintf(size.text, sizeof(size.text), "%.*f %s",
		        bytes >= 1ull << 30 ? 2 : 1, (double)bytes / unit.bytes,
		        unit.name);
	return size;
}
