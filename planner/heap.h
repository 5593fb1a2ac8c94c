/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A binary heap of indices in an order that the caller gives; inline, so that
 * the comparison is compiled in. Memory is the caller's.
 */
#ifndef TS_PLANNER_HEAP_H
#define TS_PLANNER_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TS_HEAP_INLINE static inline __attribute__((always_inline))

/* Does @a come out before @b? A strict order. */
typedef bool (*ts_heap_before_fn)(const void *data, uint32_t a, uint32_t b);

struct ts_heap {
	uint32_t *items; /* room for all that may be in it */
	uint32_t n;
	/* By index: its place, UINT32_MAX: not in it. NULL: nobody asks. */
	uint32_t *place_of;
};

TS_HEAP_INLINE void ts_heap_put(
        struct ts_heap *heap, uint32_t place, uint32_t item)
{
	heap->items[place] = item;
	if (heap->place_of)
		heap->place_of[item] = place;
}

/* @item belongs at @place or nearer to the top; where it ended up. */
TS_HEAP_INLINE uint32_t ts_heap_up(struct ts_heap *heap, uint32_t place,
        uint32_t item, ts_heap_before_fn before, const void *data)
{
	for (; place && before(data, item, heap->items[(place - 1) / 2]);
	        place = (place - 1) / 2)
		ts_heap_put(heap, place, heap->items[(place - 1) / 2]);
	ts_heap_put(heap, place, item);
	return place;
}

/* @item belongs at @place or further from the top. */
TS_HEAP_INLINE void ts_heap_down(struct ts_heap *heap, uint32_t place,
        uint32_t item, ts_heap_before_fn before, const void *data)
{
	const uint32_t *items = heap->items;

	for (;;) {
		uint32_t child = 2 * place + 1;

		if (child >= heap->n)
			break;
		if (child + 1 < heap->n &&
		        before(data, items[child + 1], items[child]))
			child++;
		if (!before(data, items[child], item))
			break;
		ts_heap_put(heap, place, items[child]);
		place = child;
	}
	ts_heap_put(heap, place, item);
}

TS_HEAP_INLINE void ts_heap_push(struct ts_heap *heap, uint32_t item,
        ts_heap_before_fn before, const void *data)
{
	ts_heap_up(heap, heap->n++, item, before, data);
}

/* Takes out what is at @place. */
TS_HEAP_INLINE void ts_heap_remove(struct ts_heap *heap, uint32_t place,
        ts_heap_before_fn before, const void *data)
{
	uint32_t last = heap->items[--heap->n];

	if (heap->place_of)
		heap->place_of[heap->items[place]] = UINT32_MAX;
	if (place == heap->n)
		return;
	place = ts_heap_up(heap, place, last, before, data);
	ts_heap_down(heap, place, last, before, data);
}

TS_HEAP_INLINE void ts_heap_pop(
        struct ts_heap *heap, ts_heap_before_fn before, const void *data)
{
	ts_heap_remove(heap, 0, before, data);
}

#endif
