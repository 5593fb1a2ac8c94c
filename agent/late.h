/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Block reports that nobody needs yet: by address, what became of it in the
 * end. While steps are only followed an allocator's births and deaths cost one
 * look into this table; most cancel out before anybody asks for blocks again.
 * The owner guards it.
 */
#ifndef TS_LATE_H
#define TS_LATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Small: the table is out of the caches each time that it is looked into. */
struct ts_late_report {
	uint64_t address;   /* 0: no report */
	int64_t bytes : 56; /* > 0: a block is there; < 0: there is none */
	int64_t device : 8;
};

struct ts_late {
	struct ts_late_report *slots;
	size_t slot_count; /* a power of two, or 0 */
	size_t count;
};

/*
 * The last word on an address counts. False where there is no memory for it,
 * or it is none that the table can hold.
 */
bool ts_late_put(
        struct ts_late *late, uint64_t address, int64_t bytes, int device);

/* Forgets all reports; the memory stays. */
void ts_late_clear(struct ts_late *late);

void ts_late_finish(struct ts_late *late);

#endif
