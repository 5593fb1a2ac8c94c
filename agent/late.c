/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/late.h"

#include <stdlib.h>
#include <string.h>

#define LIST_ROOM   2048u
#define FIRST_SLOTS (4 * LIST_ROOM) /* a power of two */

static struct ts_late_report *slot_of(
        const struct ts_late *late, uint64_t address)
{
	size_t mask = late->slot_count - 1;
	size_t slot = (address >> 9) * 0x9fb21c651e98df25ull >> 32 & mask;

	while (late->slots[slot].address &&
	        late->slots[slot].address != address)
		slot = (slot + 1) & mask;
	return &late->slots[slot];
}

static bool grow(struct ts_late *late)
{
	struct ts_late larger = *late;

	larger.slot_count =
	        late->slot_count ? 2 * late->slot_count : FIRST_SLOTS;
	larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < late->slot_count; i++)
		if (late->slots[i].address)
			*slot_of(&larger, late->slots[i].address) =
			        late->slots[i];
	free(late->slots);
	*late = larger;
	return true;
}

void ts_late_sort(struct ts_late *late)
{
	for (size_t i = 0; i < late->listed; i++) {
		struct ts_late_report *slot =
		        slot_of(late, late->list[i].address);

		late->count += !slot->address;
		*slot = late->list[i];
	}
	late->listed = 0;
}

/* For a whole list, which the table can take up then. */
static bool make_room(struct ts_late *late)
{
	ts_late_sort(late);
	late->room = 0;
	if (!late->list)
		late->list = malloc(LIST_ROOM * sizeof(*late->list));
	if (!late->list)
		return false;
	while (2 * (late->count + LIST_ROOM) > late->slot_count)
		if (!grow(late))
			return false;
	late->room = LIST_ROOM;
	return true;
}

bool ts_late_put(
        struct ts_late *late, uint64_t address, int64_t bytes, int device)
{
	struct ts_late_report report = {address, bytes, device};

	if (!address || report.bytes != bytes || report.device != device)
		return false;
	if (late->listed == late->room && !make_room(late))
		return false;
	late->list[late->listed++] = report;
	return true;
}

void ts_late_clear(struct ts_late *late)
{
	if (late->count)
		memset(late->slots, 0, late->slot_count * sizeof(*late->slots));
	late->count = 0;
	late->listed = 0;
}

void ts_late_finish(struct ts_late *late)
{
	free(late->list);
	free(late->slots);
	memset(late, 0, sizeof(*late));
}
