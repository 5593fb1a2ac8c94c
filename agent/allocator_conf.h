/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PyTorch's own settings of its allocator, where they would keep memory from
 * being placed. Called once, as the agent starts; no lock.
 */
#ifndef TS_ALLOCATOR_CONF_H
#define TS_ALLOCATOR_CONF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Expandable segments map memory of their own, which could not be moved. Takes
 * them off in the environment, where PyTorch reads them when it makes its
 * first allocation, and says so: what the agent places does not fragment.
 */
void ts_allocator_conf_amend(void);

/*
 * Writes @value with "expandable_segments:True" made False, as often as it is
 * there, into @ret, of @size bytes. False where there was none, or no room.
 */
bool ts_allocator_conf_plain(const char *value, char *ret, size_t size);

#endif
