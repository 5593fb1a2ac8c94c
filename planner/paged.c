/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/paged.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/graph.h"
#include "planner/pages.h"

/* PyTorch's, of what shares a segment of one page. */
#define SMALL_BYTES (UINT64_C(1) << 20)

struct work {
	const struct ts_profile *from;
	struct ts_graph graph; /* of @from: its storages are the blocks */
	struct ts_page_view *view;
	uint64_t *fixed; /* pages that do not move, ascending */
	size_t n_fixed;
};

bool ts_paged_known(const struct ts_profile *p)
{
	for (uint32_t v = 0; v < p->n_values; v++)
		if (p->values[v].address)
			return true;
	return false;
}

static void find_lives(struct work *w)
{
	const struct ts_profile *p = w->from;

	for (uint32_t v = 0; v < p->n_values; v++) {
		uint32_t o = w->graph.object_of[v];
		const struct ts_object *object = &w->graph.objects[o];
		struct ts_page_range *range = &w->view->ranges[o];

		if (p->values[v].in_place_of != TS_NONE)
			continue;
		range->before = object->first_op == TS_NONE;
		range->first = range->before ? 0 : object->first_op;
		range->idle =
		        object->last_op == TS_NONE ? 0 : object->last_op + 1;
		range->used = range->idle || range->before;
		range->end = p->values[v].died;
		if (object->persistent || range->end > p->n_ops)
			range->end = p->n_ops;
		/* Where it is not known when it was freed: with its last use.
		 */
		if (range->end < range->idle || !p->values[v].address)
			range->end =
			        object->persistent ? p->n_ops : range->idle;
		range->address = p->values[v].address;
		range->bytes = object->size_bytes;
	}
}

/* Behind the storages: there is nothing to read, but it has its memory. */
static void find_idle(struct work *w)
{
	const struct ts_profile *p = w->from;

	for (uint32_t i = 0; i < p->n_idle; i++) {
		const struct ts_idle *idle = &p->idle[i];
		uint32_t end = idle->died < p->n_ops ? idle->died : p->n_ops;

		if (idle->address)
			w->view->ranges[w->graph.n_objects + i] =
			        (struct ts_page_range){.address = idle->address,
			                .bytes = idle->size_bytes,
			                .end = end,
			                .used = true,
			                .before = true};
	}
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* What is small and where that is known has no pages of its own. */
static int find_fixed(struct work *w)
{
	uint32_t n_blocks = w->view->n_blocks;
	size_t n = 0;

	w->fixed = malloc((2ull * n_blocks + 1) * sizeof(*w->fixed));
	if (!w->fixed)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_blocks; i++) {
		struct ts_page_range *range = &w->view->ranges[i];
		uint64_t last = range->address + range->bytes - 1;

		if (!range->bytes || range->bytes > SMALL_BYTES ||
		        !range->address)
			continue;
		w->fixed[n++] = range->address / TS_PAGE_BYTES;
		w->fixed[n++] = last / TS_PAGE_BYTES;
		range->bytes = 0;
	}
	qsort(w->fixed, n, sizeof(*w->fixed), by_number);
	for (size_t i = 0; i < n; i++)
		if (!i || w->fixed[i] != w->fixed[w->n_fixed - 1])
			w->fixed[w->n_fixed++] = w->fixed[i];
	return 0;
}

/* A run is told what copies only read, of kernels it takes nothing for
 * certain. */
static uint8_t *find_only_read(const struct ts_profile *p)
{
	uint8_t *only_read = calloc(p->n_uses + 1ull, sizeof(*only_read));

	for (uint32_t i = 0; only_read && i < p->n_ops; i++) {
		const struct ts_profile_op *op = &p->ops[i];

		if (!strncmp(p->signatures[op->signature].name, "Memcpy", 6))
			memset(only_read + op->first_read, 1, op->n_reads);
	}
	return only_read;
}

static int make(struct work *w, bool small_move, uint64_t leaving_limit_bytes)
{
	uint8_t *only_read;
	int err = ts_page_view_init(
	        w->view, w->graph.n_objects + w->from->n_idle);

	if (err)
		return err;
	find_lives(w);
	find_idle(w);
	if (!small_move)
		err = find_fixed(w);
	if (!err)
		err = ts_page_view_cut(
		        w->view, TS_PAGE_BYTES, w->fixed, w->n_fixed);
	if (!err && leaving_limit_bytes)
		err = ts_page_view_let_go(
		        w->view, w->from->n_ops, leaving_limit_bytes);
	if (err)
		return err;
	only_read = find_only_read(w->from);
	err = only_read ? ts_page_view_fill(w->view,
	                          &(struct ts_page_contents){.profile = w->from,
	                                  .block_of = w->graph.object_of,
	                                  .n_valued = w->graph.n_objects,
	                                  .only_read = only_read})
	                : -ENOMEM;
	free(only_read);
	w->view->profile.resident_bytes =
	        ts_pages_limit(w->from->resident_bytes, (uint32_t)w->n_fixed);
	return err;
}

int ts_paged_make(const struct ts_profile *from, bool small_move,
        uint64_t leaving_limit_bytes, struct ts_page_view *ret)
{
	struct work w = {.from = from, .view = ret};
	int err = ts_graph_init(
	        &w.graph, from, &(struct ts_graph_options){.no_replays = true});

	memset(ret, 0, sizeof(*ret));
	if (err)
		return err;
	err = make(&w, small_move, leaving_limit_bytes);
	ts_graph_finish(&w.graph);
	free(w.fixed);
	if (err)
		ts_page_view_finish(ret);
	return err;
}
