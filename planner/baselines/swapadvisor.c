/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SwapAdvisor without its genetic search: Belady's rule on the known
 * schedule. Where an op does not fit, what is used furthest ahead leaves;
 * copies run as early as they can.
 */
#include "planner/baselines/baseline.h"

#include <errno.h>
#include <stdlib.h>

/* Heap of open gaps, furthest next use first. */
struct heap {
	const struct ts_graph *graph;
	uint32_t *gaps;
	uint32_t n;
};

static bool further(const struct heap *h, uint32_t a, uint32_t b)
{
	uint32_t x = h->graph->gaps[a].to_op, y = h->graph->gaps[b].to_op;

	return x != y ? x > y : a < b;
}

static void push(struct heap *h, uint32_t gap)
{
	uint32_t i = h->n++;

	for (; i && further(h, gap, h->gaps[(i - 1) / 2]); i = (i - 1) / 2)
		h->gaps[i] = h->gaps[(i - 1) / 2];
	h->gaps[i] = gap;
}

static uint32_t pop(struct heap *h)
{
	uint32_t top = h->gaps[0], last = h->gaps[--h->n], i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= h->n)
			break;
		if (child + 1 < h->n &&
		        further(h, h->gaps[child + 1], h->gaps[child]))
			child++;
		if (!further(h, h->gaps[child], last))
			break;
		h->gaps[i] = h->gaps[child];
		i = child;
	}
	h->gaps[i] = last;
	return top;
}

int ts_baseline_choose_swapadvisor(
        struct ts_search *search, struct ts_choice *choice)
{
	const struct ts_graph *g = search->graph;
	struct heap heap = {.graph = g};
	uint64_t off = 0;

	heap.gaps = calloc(g->n_gaps + UINT64_C(1), sizeof(*heap.gaps));
	if (!heap.gaps)
		return -ENOMEM;
	ts_baseline_clear(choice);
	for (uint32_t i = 0; i < g->n_ops; i++) {
		for (uint32_t k = g->to_first[i]; k < g->to_first[i + 1]; k++) {
			if (choice->action[g->by_to[k]] == TS_SWAP)
				off -= g->gaps[g->by_to[k]].size_bytes;
		}
		while (g->mem_bytes[i] - off > search->limit_bytes && heap.n) {
			uint32_t gap = pop(&heap);

			if (g->gaps[gap].to_op <= i)
				continue;
			choice->action[gap] = TS_SWAP;
			off += g->gaps[gap].size_bytes;
		}
		for (uint32_t k = g->from_first[i]; k < g->from_first[i + 1];
		        k++) {
			if (g->gaps[k].to_op < g->n_ops)
				push(&heap, k);
		}
	}
	free(heap.gaps);
	return 0;
}

int ts_baseline_swapadvisor(
        struct ts_search *search, struct ts_baseline_result *result)
{
	int err = ts_baseline_choose_swapadvisor(search, &result->choice);

	return err ? err
	           : ts_baseline_simulate(
	                     search, result, TS_WINDOWS_TURN, NULL);
}
