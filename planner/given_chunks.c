/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/given_chunks.h"

#include <errno.h>
#include <stdlib.h>

static int by_take(const void *a, const void *b)
{
	const struct ts_plan_stay *x = a, *y = b;

	return x->take_op < y->take_op ? -1 : x->take_op > y->take_op;
}

/* The place that @address is in, or NULL. */
static const struct ts_plan_place *place_of(
        const struct ts_page_plan_input *in, uint64_t address)
{
	uint32_t low = 0, high = in->n_places;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (in->places[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - in->places[low - 1].address >=
	                    in->places[low - 1].pages * in->page_bytes)
		return NULL;
	return &in->places[low - 1];
}

/* Is nobody there for an op that somebody else has the chunk for? */
static int check(const struct ts_page_plan *plan)
{
	uint32_t *first = calloc(plan->n_chunks + 2ull, sizeof(*first)), n = 0;
	struct ts_plan_stay *all = NULL;
	int rc = first ? 0 : -ENOMEM;

	for (int pass = 0; pass < 2 && !rc; pass++) {
		for (uint32_t s = 0; s < plan->n_strips; s++) {
			const struct ts_plan_strip *strip = &plan->strips[s];
			const struct ts_plan_stay *stays =
			        plan->stays + strip->first_stay;

			for (uint32_t i = 0; i < strip->pages; i++) {
				uint32_t chunk =
				        plan->chunk_of[strip->first_page + i];

				for (uint32_t k = 0; k < strip->n_stays; k++) {
					if (pass)
						all[first[chunk + 1]++] =
						        stays[k];
					else
						first[chunk + 2]++;
				}
			}
		}
		for (uint32_t c = 2; c < plan->n_chunks + 2 && !pass; c++)
			first[c] += first[c - 1];
		n = first[plan->n_chunks + 1];
		if (!pass)
			all = malloc((n + 1ull) * sizeof(*all));
		if (!all)
			rc = -ENOMEM;
	}
	for (uint32_t c = 0; c < plan->n_chunks && !rc; c++) {
		struct ts_plan_stay *own = all + first[c];
		uint32_t count = first[c + 1] - first[c];

		qsort(own, count, sizeof(*own), by_take);
		for (uint32_t k = 1; k < count && !rc; k++)
			if (own[k].take_op < own[k - 1].release_op)
				rc = -EBUSY;
	}
	free(first);
	free(all);
	return rc;
}

int ts_given_chunks_take(
        const struct ts_page_plan_input *in, struct ts_page_plan *plan)
{
	plan->n_chunks = in->n_chunks;
	plan->chunk_of = malloc((plan->n_pages + 1ull) * sizeof(uint32_t));
	if (!plan->chunk_of)
		return -ENOMEM;
	for (uint32_t s = 0; s < plan->n_strips; s++) {
		const struct ts_plan_strip *strip = &plan->strips[s];

		for (uint32_t i = 0; i < strip->pages; i++) {
			uint64_t address =
			        strip->address + i * plan->page_bytes;
			const struct ts_plan_place *place =
			        place_of(in, address);

			if (!place)
				return -EINVAL;
			plan->chunk_of[strip->first_page + i] =
			        place->first_chunk +
			        (uint32_t)((address - place->address) /
			                   plan->page_bytes);
			if (plan->chunk_of[strip->first_page + i] >=
			        plan->n_chunks)
				return -EINVAL;
		}
	}
	return check(plan);
}
