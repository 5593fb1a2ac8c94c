/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Block reports that nobody needs yet. While steps are only followed an
 * allocator's births and deaths are written down one after the other, and a
 * table by address takes them up from time to time: most cancel out before
 * anybody asks for blocks again. The owner guards it.
 */
#ifndef TS_LATE_H
#define TS_LATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ts_late_report {
	uint64_t address;   /* 0: no report */
	int64_t bytes : 56; /* > 0: a block is there; < 0: there is none */
	int64_t device : 8;
};

struct ts_late {
	struct ts_late_report *list;  /* newest last */
	size_t listed, room;          /* 0: the next one has to make some */
	struct ts_late_report *slots; /* what the list has been, by address */
	size_t slot_count;            /* a power of two, or 0 */
	size_t count;                 /* of them: taken */
};

/*
 * The last word on an address counts. False where there is no memory for it,
 * or it is none that can be written down.
 */
bool ts_late_put(
        struct ts_late *late, uint64_t address, int64_t bytes, int device);

/* False where there were none. */
static inline bool ts_late_any(const struct ts_late *late)
{
	return late->listed || late->count;
}

/* Takes the list up into the table, which has room for it. */
void ts_late_sort(struct ts_late *late);

/* Forgets all reports; the memory stays. */
void ts_late_clear(struct ts_late *late);

void ts_late_finish(struct ts_late *late);

#endif
