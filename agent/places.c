/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/grow.h"

/* So that whatever a kernel reads there lies as it lay in a block. */
#define ROOM_BYTES 512u

uint64_t ts_places_room(uint64_t bytes)
{
	return (bytes + ROOM_BYTES - 1) / ROOM_BYTES * ROOM_BYTES;
}

/* Where in the contents, which are ascending, @value is or belongs. */
static uint32_t position(const struct ts_places *places, uint32_t value)
{
	uint32_t low = 0, high = places->n_contents;

	/* Most ops leave what was numbered after all before it. */
	if (high && places->contents[high - 1].value < value)
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (places->contents[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct ts_place *find(const struct ts_places *places, uint32_t value)
{
	uint32_t at = position(places, value);

	return at < places->n_contents && places->contents[at].value == value
	               ? &places->list[places->contents[at].place]
	               : NULL;
}

const struct ts_place *ts_places_get(
        const struct ts_places *places, uint32_t value)
{
	return find(places, value);
}

/* Op @at of the list leaves @value behind, over @older or in a new place. */
static int write(struct ts_places *places, const struct ts_value *made,
        uint32_t value, uint32_t at)
{
	struct ts_place *place = made->in_place_of == TS_NONE
	                                 ? NULL
	                                 : find(places, made->in_place_of);
	struct ts_content *content;
	uint32_t where;

	if (!place) {
		if (!ts_grow(&places->list, places->count + 1ull, &places->room,
		            sizeof(*places->list)))
			return -ENOMEM;
		place = &places->list[places->count++];
		*place = (struct ts_place){
		        .first = at, .bytes = ts_places_room(made->size_bytes)};
	}
	place->value = value;
	place->last = at;
	if (!ts_grow(&places->contents, places->n_contents + 1ull,
	            &places->content_room, sizeof(*places->contents)))
		return -ENOMEM;
	where = position(places, value);
	content = &places->contents[where];
	memmove(content + 1, content,
	        (places->n_contents++ - where) * sizeof(*content));
	*content = (struct ts_content){value, (uint32_t)(place - places->list)};
	return 0;
}

static int see_op(struct ts_places *places, const struct ts_profile *profile,
        uint32_t op_index, uint32_t at)
{
	const struct ts_profile_op *op = &profile->ops[op_index];
	int rc = 0;

	for (uint32_t k = 0; k < op->n_reads; k++) {
		struct ts_place *place =
		        find(places, profile->uses[op->first_read + k]);

		if (place)
			place->last = at;
	}
	for (uint32_t k = 0; k < op->n_writes && !rc; k++) {
		uint32_t value = profile->uses[op->first_write + k];

		rc = write(places, &profile->values[value], value, at);
	}
	return rc;
}

/* Places in scratch that still live, by offset. */
struct living {
	uint32_t *list;
	uint32_t count;
};

/* The lowest room for place @index beside those before it that still live. */
static void put_lowest(
        struct ts_places *places, uint32_t index, struct living *living)
{
	struct ts_place *place = &places->list[index];
	uint32_t kept = 0, at;
	bool found = false;

	for (uint32_t i = 0; i < living->count; i++) {
		const struct ts_place *other = &places->list[living->list[i]];

		if (other->last < place->first)
			continue;
		living->list[kept++] = living->list[i];
	}
	living->count = kept;
	place->offset = 0;
	for (at = 0; at < kept && !found; at += !found) {
		const struct ts_place *other = &places->list[living->list[at]];

		found = other->offset >= place->offset + place->bytes;
		if (!found)
			place->offset = other->offset + other->bytes;
	}
	memmove(living->list + at + 1, living->list + at,
	        (kept - at) * sizeof(*living->list));
	living->list[at] = index;
	living->count++;
}

static bool has(const uint32_t *list, uint32_t count, uint32_t what)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == what)
			return true;
	return false;
}

int ts_places_find(const struct ts_profile *profile, const uint32_t *ops,
        uint32_t n_ops, const uint32_t *home, uint32_t n_home,
        struct ts_places *ret_places)
{
	struct living living = {0};
	int rc = 0;

	memset(ret_places, 0, sizeof(*ret_places));
	for (uint32_t i = 0; i < n_ops && !rc; i++)
		rc = see_op(ret_places, profile, ops[i], i);
	if (rc)
		return rc;
	living.list = malloc((ret_places->count + 1ull) * sizeof(*living.list));
	if (!living.list)
		return -ENOMEM;
	for (uint32_t i = 0; i < ret_places->count; i++) {
		struct ts_place *place = &ret_places->list[i];

		place->home = has(home, n_home, place->value);
		if (place->home)
			continue;
		put_lowest(ret_places, i, &living);
		if (place->offset + place->bytes > ret_places->bytes)
			ret_places->bytes = place->offset + place->bytes;
	}
	free(living.list);
	return 0;
}

void ts_places_finish(struct ts_places *places)
{
	free(places->list);
	free(places->contents);
	memset(places, 0, sizeof(*places));
}
