/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_hunt.h"

bool ts_planned_hunt_on(struct ts_planned_hunt *hunt, uint64_t excess_bytes,
        uint64_t page_bytes)
{
	uint64_t less = excess_bytes << hunt->in;

	if (hunt->fits) {
		uint64_t apart = hunt->fails - hunt->fits;

		hunt->limit = hunt->fits + apart / 2;
		return hunt->fails && apart > hunt->fits / hunt->close &&
		       apart > 2 * page_bytes;
	}
	/* Gone too far down: between that and what needed too many chunks. */
	if (hunt->low) {
		hunt->limit = hunt->low + (hunt->fails - hunt->low) / 2;
		return hunt->fails - hunt->low > 2 * page_bytes;
	}
	/* Of so much less memory ever more goes by between the pages. */
	hunt->in++;
	if (less >= hunt->limit)
		return false;
	hunt->limit -= less;
	return true;
}
