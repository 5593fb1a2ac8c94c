/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the values live that ops make when they are launched again: at home,
 * which is where the step has them, or in scratch. What an op changes in place
 * stays where it is: the contents of a block, up to the last one that one of
 * the ops makes, have one place. A piece of scratch goes to the next value once
 * no op is left that touches the former. Pure, plain data; whoever has it owns
 * it.
 */
#ifndef TS_PLACES_H
#define TS_PLACES_H

#include "planner/profile.h"

struct ts_place {
	uint32_t value; /* the last content of it */
	/* Ops of the list, by index: the first that makes it, the last that
	 * touches it. */
	uint32_t first, last;
	bool home;
	uint64_t bytes, offset; /* in scratch, where it is not at home */
};

/* One content of a place. */
struct ts_content {
	uint32_t value, place;
};

struct ts_places {
	struct ts_place *list; /* ascending by first */
	uint32_t count, room;
	struct ts_content *contents;
	uint32_t n_contents, content_room;
	uint64_t bytes; /* of scratch, for all of them */
};

/* Scratch that @bytes take of a larger piece. */
uint64_t ts_places_room(uint64_t bytes);

/*
 * Of all that @ops, ascending, each once, write. At home is what ends as one
 * of @home. 0 or -ENOMEM; ts_places_finish() in any case.
 */
int ts_places_find(const struct ts_profile *profile, const uint32_t *ops,
        uint32_t n_ops, const uint32_t *home, uint32_t n_home,
        struct ts_places *ret_places);
void ts_places_finish(struct ts_places *places);

/* Of @value, which one of the ops writes; NULL: none does. */
const struct ts_place *ts_places_get(
        const struct ts_places *places, uint32_t value);

#endif
