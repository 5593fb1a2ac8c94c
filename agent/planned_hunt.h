/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The search for the most that the planner may have for its plan to find chunks
 * for all pages. Pure.
 */
#ifndef TS_PLANNED_HUNT_H
#define TS_PLANNED_HUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Where it stands. */
struct ts_planned_hunt {
	uint64_t limit;  /* to be tried */
	uint64_t fits;   /* the most that did, or 0 */
	uint64_t fails;  /* the least that did not, or 0 */
	uint64_t low;    /* the most that is too little for any plan, or 0 */
	unsigned int in; /* failures in a row */
	/* It ends where @fits and @fails are apart by so small a part. */
	unsigned int close;
};

/*
 * What to try next after @hunt->limit, by whose plan @excess_bytes are missing;
 * false: nothing.
 */
bool ts_planned_hunt_on(struct ts_planned_hunt *hunt, uint64_t excess_bytes,
        uint64_t page_bytes);

#endif
