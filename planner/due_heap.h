/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gaps by deadline, for the event model: a heap with four children a node that
 * holds the deadlines itself, so that a step down touches one line of memory.
 * Belongs to one planner call; no locks.
 */
#ifndef TS_PLANNER_DUE_HEAP_H
#define TS_PLANNER_DUE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define TS_DUE_CHILDREN 4

struct ts_due_heap {
	/* Deadline and gap; room for all gaps. */
	uint64_t *items;
	uint32_t n;
	/* All ones: the latest comes out first. 0: the earliest. */
	uint64_t flip;
	uint32_t *place_of; /* by gap, UINT32_MAX: not in it */
};

static inline uint32_t ts_due_gap(const struct ts_due_heap *h, uint32_t place)
{
	return (uint32_t)(h->items[place] ^ h->flip);
}

static inline void ts_due_put(
        struct ts_due_heap *h, uint32_t place, uint64_t item)
{
	h->items[place] = item;
	h->place_of[(uint32_t)(item ^ h->flip)] = place;
}

/* @item belongs at @place or nearer to the top; where it ended up. */
static inline uint32_t ts_due_up(
        struct ts_due_heap *h, uint32_t place, uint64_t item)
{
	while (place) {
		uint32_t parent = (place - 1) / TS_DUE_CHILDREN;

		if (item >= h->items[parent])
			break;
		ts_due_put(h, place, h->items[parent]);
		place = parent;
	}
	ts_due_put(h, place, item);
	return place;
}

/* @item belongs at @place or further from the top. */
static inline void ts_due_down(
        struct ts_due_heap *h, uint32_t place, uint64_t item)
{
	for (;;) {
		uint64_t first = TS_DUE_CHILDREN * (uint64_t)place + 1;
		uint64_t end = first + TS_DUE_CHILDREN, least = first;

		if (first >= h->n)
			break;
		end = end < h->n ? end : h->n;
		for (uint64_t i = first + 1; i < end; i++)
			least = h->items[i] < h->items[least] ? i : least;
		if (item <= h->items[least])
			break;
		ts_due_put(h, place, h->items[least]);
		place = (uint32_t)least;
	}
	ts_due_put(h, place, item);
}

static inline uint64_t ts_due_item(
        const struct ts_due_heap *h, uint32_t due, uint32_t gap)
{
	return ((uint64_t)due << 32 | gap) ^ h->flip;
}

static inline void ts_due_push(
        struct ts_due_heap *h, uint32_t due, uint32_t gap)
{
	ts_due_up(h, h->n++, ts_due_item(h, due, gap));
}

/* At the end, in no order; ts_due_sort() later. */
static inline void ts_due_append(
        struct ts_due_heap *h, uint32_t due, uint32_t gap)
{
	ts_due_put(h, h->n++, ts_due_item(h, due, gap));
}

static inline void ts_due_sort(struct ts_due_heap *h)
{
	for (uint32_t i = h->n / TS_DUE_CHILDREN + 1; i-- > 0;) {
		if (i < h->n)
			ts_due_down(h, i, h->items[i]);
	}
}

/* Takes out what is at @place; @sorted: keeps the order. */
static inline void ts_due_remove(
        struct ts_due_heap *h, uint32_t place, bool sorted)
{
	uint64_t last = h->items[--h->n];

	h->place_of[ts_due_gap(h, place)] = UINT32_MAX;
	if (place == h->n)
		return;
	if (sorted)
		ts_due_down(h, ts_due_up(h, place, last), last);
	else
		ts_due_put(h, place, last);
}

#endif
