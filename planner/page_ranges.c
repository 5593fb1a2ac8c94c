/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocks cut into whole pages, and when these leave. */
#include "planner/page_view.h"

#include <errno.h>
#include <stdlib.h>

#include "planner/pages.h"

enum { HEAD, TAIL, EDGES };

/* The part of a page at one end of a block. */
struct edge {
	uint64_t page;
	uint32_t block, first, end;
	uint8_t which;
};

struct work {
	struct ts_page_view *view;
	uint64_t page_bytes;
	const uint64_t *fixed;
	size_t n_fixed;
	uint64_t invented; /* where what lies nobody knows where is told to */
	struct edge *edges;
	uint32_t n_edges;
};

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void add_edge(
        struct work *w, uint32_t block, uint64_t address, int which)
{
	const struct ts_page_range *range = &w->view->ranges[block];
	uint64_t page = address / w->page_bytes;

	if (w->n_fixed &&
	        bsearch(&page, w->fixed, w->n_fixed, sizeof(page), by_number))
		return;
	w->edges[w->n_edges++] = (struct edge){
	        address, block, range->first, range->end, (uint8_t)which};
}

/* Whole pages of a block; its ends are edges where they are parts of some. */
static void cut_block(struct work *w, uint32_t block)
{
	struct ts_page_range *range = &w->view->ranges[block];
	uint64_t page = w->page_bytes;
	uint64_t from = range->address, end = from + range->bytes;
	uint64_t first = from - from % page;
	uint64_t last = end - 1 - (end - 1) % page;

	if (!range->bytes || range->end <= range->first) {
		range->bytes = 0;
		return;
	}
	if (!from) {
		range->bytes = (range->bytes + page - 1) / page * page;
		if (range->bytes > TS_MAX_BYTES - w->invented)
			return;
		range->address = TS_INVENTED_ADDRESS + w->invented;
		w->invented += range->bytes;
		return;
	}
	range->address = first;
	range->bytes = last + page - first;
	if (first < from || (first == last && end < last + page)) {
		add_edge(w, block, first, HEAD);
		range->address += page;
		range->bytes -= page;
	}
	if (last > first && end < last + page) {
		add_edge(w, block, last, TAIL);
		range->bytes -= page;
	}
}

static int by_page(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

/* A page that one block alone has as long as it lives is the block's own. */
static void give_page(struct work *w, const struct edge *edge)
{
	struct ts_page_range *range = &w->view->ranges[edge->block];

	if (edge->which == HEAD)
		range->address -= w->page_bytes;
	range->bytes += w->page_bytes;
}

/* The page that @count edges have parts of, from @edge on, is a range. */
static void share_page(
        struct work *w, const struct edge *edge, uint32_t count, uint32_t end)
{
	struct ts_page_view *view = w->view;
	uint32_t index = view->n_ranges++;
	struct ts_page_range *range = &view->ranges[index];

	*range = (struct ts_page_range){.address = edge->page,
	        .bytes = w->page_bytes,
	        .first = edge->first,
	        .end = end};
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_page_range *of = &view->ranges[edge[i].block];

		range->used |= of->used;
		range->before |= of->before;
		if (of->idle > range->idle)
			range->idle = of->idle;
		view->shared[edge[i].block][edge[i].which] = index;
	}
}

static void sort_out_edges(struct work *w)
{
	uint32_t count;

	qsort(w->edges, w->n_edges, sizeof(*w->edges), by_page);
	for (uint32_t i = 0; i < w->n_edges; i += count) {
		const struct edge *edge = &w->edges[i];
		uint32_t end = edge->end;

		for (count = 1; i + count < w->n_edges; count++) {
			if (edge[count].page != edge->page ||
			        edge[count].first >= end)
				break;
			if (edge[count].end > end)
				end = edge[count].end;
		}
		if (count == 1)
			give_page(w, edge);
		else
			share_page(w, edge, count, end);
	}
}

int ts_page_view_cut(struct ts_page_view *view, uint64_t page_bytes,
        const uint64_t *fixed, size_t n_fixed)
{
	struct work w = {.view = view,
	        .page_bytes = page_bytes,
	        .fixed = fixed,
	        .n_fixed = n_fixed,
	        .edges = malloc((EDGES * (uint64_t)view->n_blocks + 1) *
	                        sizeof(*w.edges))};

	if (!w.edges)
		return -ENOMEM;
	for (uint32_t i = 0; i < view->n_blocks; i++)
		cut_block(&w, i);
	sort_out_edges(&w);
	free(w.edges);
	return 0;
}

/* --------------------------------------------------------------- letting go */

/* Of the limit so much may leave before one op. */
#define LEAVING_PART 16

/* Lives on after its last use, with an op at least between that and its end. */
static bool lingers(const struct ts_page_range *range, uint32_t n_ops)
{
	return range->used && range->bytes && range->idle + 1 < range->end &&
	       !(range->before && range->end == n_ops);
}

/* The op before which @range leaves: soon, with not too much else. */
static uint32_t leaving_op(const struct ts_page_range *range,
        const uint64_t *leaving, uint64_t most_bytes)
{
	uint32_t best = range->idle + 1;

	for (uint32_t op = best; op < range->end; op++) {
		if (leaving[op] + range->bytes <= most_bytes)
			return op;
		if (leaving[op] < leaving[best])
			best = op;
	}
	return best;
}

int ts_page_view_let_go(
        struct ts_page_view *view, uint32_t n_ops, uint64_t limit_bytes)
{
	uint64_t *leaving = calloc(n_ops + 1ull, sizeof(*leaving));

	if (!leaving)
		return -ENOMEM;
	for (uint32_t i = 0; i < view->n_blocks; i++) {
		struct ts_page_range *range = &view->ranges[i];

		/* Left in the step before. */
		if (!range->idle && range->end < n_ops)
			range->bytes = 0;
		if (!lingers(range, n_ops))
			continue;
		range->end =
		        leaving_op(range, leaving, limit_bytes / LEAVING_PART);
		range->leaves = true;
		leaving[range->end] += range->bytes;
	}
	free(leaving);
	return 0;
}
