/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays that grow by doubling. Whoever has one owns it, and guards it. */
#ifndef TS_PLANNER_GROW_H
#define TS_PLANNER_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Room for @count items of @item_bytes in the array whose pointer is at
 * @array_pointer, where there is room for *@room. False without memory: then
 * all is as it was.
 */
static inline bool ts_grow(
        void *array_pointer, uint64_t count, uint32_t *room, size_t item_bytes)
{
	void **array = array_pointer, *more;
	uint64_t next = 2 * count + 8;

	if (count <= *room)
		return true;
	more = next < UINT32_MAX ? realloc(*array, next * item_bytes) : NULL;
	if (!more)
		return false;
	*array = more;
	*room = (uint32_t)next;
	return true;
}

#endif
