/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *zeros(uint64_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

void ts_graph_finish(struct ts_graph *graph)
{
	free(graph->objects);
	free(graph->object_of);
	free(graph->writer);
	free(graph->overwriter);
	free(graph->gaps);
	free(graph->from_first);
	free(graph->by_to);
	free(graph->to_first);
	free(graph->object_gaps);
	free(graph->object_first);
	free(graph->start_ns);
	free(graph->alloc_bytes);
	free(graph->free_bytes);
	free(graph->mem_bytes);
	free(graph->need_bytes);
	memset(graph, 0, sizeof(*graph));
}

static int allocate(struct ts_graph *g)
{
	const struct ts_profile *p = g->profile;

	g->object_of = zeros(p->n_values, sizeof(*g->object_of));
	g->objects = zeros(p->n_values, sizeof(*g->objects));
	g->writer = zeros(p->n_values, sizeof(*g->writer));
	g->overwriter = zeros(p->n_values, sizeof(*g->overwriter));
	g->from_first = zeros(p->n_ops + UINT64_C(1), sizeof(*g->from_first));
	g->to_first = zeros(2 * (uint64_t)p->n_ops + 2, sizeof(*g->to_first));
	g->start_ns = zeros(p->n_ops + UINT64_C(1), sizeof(*g->start_ns));
	g->alloc_bytes = zeros(p->n_ops, sizeof(*g->alloc_bytes));
	g->free_bytes = zeros(p->n_ops, sizeof(*g->free_bytes));
	g->mem_bytes = zeros(p->n_ops, sizeof(*g->mem_bytes));
	g->need_bytes = zeros(p->n_ops, sizeof(*g->need_bytes));
	if (!g->object_of || !g->objects || !g->writer || !g->overwriter ||
	        !g->from_first || !g->to_first || !g->start_ns ||
	        !g->alloc_bytes || !g->free_bytes || !g->mem_bytes ||
	        !g->need_bytes)
		return -ENOMEM;
	return 0;
}

/* Follows in-place chains: values of one chain share an object. */
static int make_objects(struct ts_graph *g)
{
	const struct ts_profile *p = g->profile;
	uint32_t *chain =
	        malloc(sizeof(*chain) * (p->n_values ? p->n_values : 1));

	if (!chain)
		return -ENOMEM;
	for (uint32_t v = 0; v < p->n_values; v++)
		g->object_of[v] = TS_NONE;
	for (uint32_t v = 0; v < p->n_values; v++) {
		uint32_t n = 0, root = v, object;

		while (g->object_of[root] == TS_NONE &&
		        p->values[root].in_place_of != TS_NONE) {
			chain[n++] = root;
			root = p->values[root].in_place_of;
		}
		if (g->object_of[root] == TS_NONE) {
			object = g->n_objects++;
			g->object_of[root] = object;
			g->objects[object] = (struct ts_object){
			        .size_bytes = p->values[root].size_bytes,
			        .first_op = g->writer[root],
			        .last_op = TS_NONE,
			        .persistent = p->values[root].persistent,
			};
		}
		object = g->object_of[root];
		while (n)
			g->object_of[chain[--n]] = object;
		if (p->values[v].pinned)
			g->objects[object].pinned = true;
	}
	free(chain);
	return 0;
}

static void find_writers(struct ts_graph *g)
{
	const struct ts_profile *p = g->profile;

	for (uint32_t v = 0; v < p->n_values; v++)
		g->writer[v] = g->overwriter[v] = TS_NONE;
	for (uint32_t i = 0; i < p->n_ops; i++) {
		const struct ts_profile_op *op = &p->ops[i];

		for (uint32_t k = 0; k < op->n_writes; k++)
			g->writer[p->uses[op->first_write + k]] = i;
		g->start_ns[i + 1] = g->start_ns[i] + op->duration_ns;
	}
	for (uint32_t v = 0; v < p->n_values; v++) {
		if (p->values[v].in_place_of != TS_NONE)
			g->overwriter[p->values[v].in_place_of] = g->writer[v];
	}
}

/* Where the walk over all uses stands with one object. */
struct touch {
	uint32_t first;
	uint32_t last;
	/* Version after the last touch. */
	uint32_t version;
	/* Last gap found, to link gaps of one version. */
	uint32_t gap;
	/* Since then, or the step's begin, something made its copy old. */
	bool dirty;
};

struct gap_list {
	struct ts_gap *gaps;
	uint32_t n;
	uint32_t room;
};

static int add_gap(struct ts_graph *g, struct gap_list *list, uint32_t object,
        struct touch *t, uint32_t to_op, uint32_t version)
{
	struct ts_gap *gap;

	if (list->n == list->room) {
		uint32_t room = list->room ? 2 * list->room : 256;
		struct ts_gap *more = realloc(list->gaps, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		list->gaps = more;
		list->room = room;
	}
	gap = &list->gaps[list->n];
	*gap = (struct ts_gap){
	        .object = object,
	        .version = version,
	        .from_op = t->last,
	        .to_op = to_op,
	        .born_op = g->writer[version],
	        .earlier = TS_NONE,
	        .size_bytes = g->objects[object].size_bytes,
	        .replay_ns = TS_NEVER,
	};
	if (t->gap != TS_NONE && list->gaps[t->gap].version == version &&
	        !t->dirty)
		gap->earlier = t->gap;
	gap->dirty = t->dirty;
	t->dirty = false;
	gap->idle_ns = to_op <= g->n_ops
	                       ? g->start_ns[to_op] - g->start_ns[t->last + 1]
	                       : g->start_ns[g->n_ops] -
	                                 g->start_ns[t->last + 1] +
	                                 g->start_ns[to_op - g->n_ops];
	t->gap = list->n++;
	return 0;
}

/* Walks all uses in order; fills @list in order of to_op. */
static int find_gaps(
        struct ts_graph *g, uint64_t min_bytes, struct gap_list *list)
{
	const struct ts_profile *p = g->profile;
	struct touch *touches = zeros(g->n_objects, sizeof(*touches));
	int err = touches ? 0 : -ENOMEM;

	for (uint32_t o = 0; !err && o < g->n_objects; o++)
		touches[o] = (struct touch){
		        TS_NONE, TS_NONE, TS_NONE, TS_NONE, false};
	for (uint32_t v = 0; !err && v < p->n_values; v++) {
		if (g->writer[v] == TS_NONE)
			touches[g->object_of[v]].version = v;
	}
	for (uint32_t i = 0; !err && i < p->n_ops; i++) {
		const struct ts_profile_op *op = &p->ops[i];

		for (uint32_t k = 0; !err && k < op->n_reads + op->n_writes;
		        k++) {
			bool reads = k < op->n_reads;
			uint32_t v = p->uses[reads ? op->first_read + k
			                           : op->first_write + k -
			                                     op->n_reads];
			uint32_t o = g->object_of[v];
			struct touch *t = &touches[o];

			if (t->first == TS_NONE)
				t->first = i;
			if (t->last != TS_NONE && t->last + 1 < i &&
			        !g->objects[o].pinned &&
			        g->objects[o].size_bytes >= min_bytes)
				err = add_gap(g, list, o, t, i, t->version);
			t->last = i;
			if (!reads)
				t->version = v;
			else if (g->dirties && g->dirties[op->first_read + k])
				t->dirty = g->objects[o].dirtied = true;
			g->objects[o].last_op = i;
		}
	}
	for (uint32_t o = 0; !err && o < g->n_objects; o++) {
		struct touch *t = &touches[o];

		if (!g->objects[o].persistent || t->first == TS_NONE ||
		        g->objects[o].pinned ||
		        g->objects[o].size_bytes < min_bytes ||
		        g->n_ops - t->last + t->first < 2)
			continue;
		err = add_gap(g, list, o, t, g->n_ops + t->first, t->version);
	}
	free(touches);
	return err;
}

/* Stable counting sort of the gaps by from_op, and the index by to_op. */
static int index_gaps(struct ts_graph *g, struct gap_list *list)
{
	uint32_t n = list->n, *at = zeros(n, sizeof(*at));
	uint64_t ends = 2 * (uint64_t)g->n_ops + 1;

	g->gaps = zeros(n, sizeof(*g->gaps));
	g->by_to = zeros(n, sizeof(*g->by_to));
	g->object_gaps = zeros(n, sizeof(*g->object_gaps));
	g->object_first =
	        zeros(g->n_objects + UINT64_C(1), sizeof(*g->object_first));
	if (!at || !g->gaps || !g->by_to || !g->object_gaps ||
	        !g->object_first) {
		free(at);
		return -ENOMEM;
	}
	g->n_gaps = n;
	for (uint32_t i = 0; i < n; i++)
		g->from_first[list->gaps[i].from_op + 1]++;
	for (uint32_t i = 0; i < g->n_ops; i++)
		g->from_first[i + 1] += g->from_first[i];
	for (uint32_t i = 0; i < n; i++) {
		at[i] = g->from_first[list->gaps[i].from_op]++;
		g->gaps[at[i]] = list->gaps[i];
	}
	for (uint32_t i = g->n_ops; i > 0; i--)
		g->from_first[i] = g->from_first[i - 1];
	g->from_first[0] = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (g->gaps[i].earlier != TS_NONE)
			g->gaps[i].earlier = at[g->gaps[i].earlier];
		g->to_first[g->gaps[i].to_op + 1]++;
		g->object_first[g->gaps[i].object + 1]++;
	}
	for (uint64_t i = 0; i < ends; i++)
		g->to_first[i + 1] += g->to_first[i];
	for (uint32_t i = 0; i < g->n_objects; i++)
		g->object_first[i + 1] += g->object_first[i];
	for (uint32_t i = 0; i < n; i++) {
		g->by_to[g->to_first[g->gaps[i].to_op]++] = i;
		g->object_gaps[g->object_first[g->gaps[i].object]++] = i;
	}
	for (uint64_t i = ends; i > 0; i--)
		g->to_first[i] = g->to_first[i - 1];
	g->to_first[0] = 0;
	for (uint32_t i = g->n_objects; i > 0; i--)
		g->object_first[i] = g->object_first[i - 1];
	g->object_first[0] = 0;
	free(at);
	return 0;
}

static void measure_memory(struct ts_graph *g)
{
	uint64_t used;

	g->base_bytes = g->profile->resident_bytes;
	for (uint32_t o = 0; o < g->n_objects; o++) {
		const struct ts_object *object = &g->objects[o];

		if (object->first_op != TS_NONE)
			g->alloc_bytes[object->first_op] += object->size_bytes;
		else if (object->persistent || object->last_op != TS_NONE)
			g->base_bytes += object->size_bytes;
		if (!object->persistent && object->last_op != TS_NONE)
			g->free_bytes[object->last_op] += object->size_bytes;
	}
	used = g->base_bytes;
	g->peak_bytes = used;
	for (uint32_t i = 0; i < g->n_ops; i++) {
		used += g->alloc_bytes[i];
		g->mem_bytes[i] = used;
		if (used > g->peak_bytes) {
			g->peak_bytes = used;
			g->peak_op = i;
		}
		used -= g->free_bytes[i];
	}
}

/* Working sets: what is left of m(i) when every open gap is off the device. */
static void measure_floor(struct ts_graph *g)
{
	uint64_t off = 0;

	for (uint32_t k = 0; k < g->n_gaps; k++) {
		if (g->gaps[k].to_op >= g->n_ops)
			off += g->gaps[k].size_bytes;
	}
	g->floor_bytes = g->profile->resident_bytes;
	for (uint32_t i = 0; i < g->n_ops; i++) {
		uint64_t need;

		for (uint32_t k = g->to_first[i]; k < g->to_first[i + 1]; k++)
			off -= g->gaps[g->by_to[k]].size_bytes;
		for (uint32_t k = g->to_first[g->n_ops + i];
		        k < g->to_first[g->n_ops + i + 1]; k++)
			off -= g->gaps[g->by_to[k]].size_bytes;
		need = g->mem_bytes[i] - off;
		g->need_bytes[i] = need;
		if (need > g->floor_bytes) {
			g->floor_bytes = need;
			g->floor_op = i;
		}
		for (uint32_t k = g->from_first[i]; k < g->from_first[i + 1];
		        k++)
			off += g->gaps[k].size_bytes;
	}
}

int ts_graph_init(struct ts_graph *g, const struct ts_profile *profile,
        const struct ts_graph_options *options)
{
	struct gap_list list = {0};
	uint32_t closure[TS_CLOSURE_MAX];
	int err;

	memset(g, 0, sizeof(*g));
	g->profile = profile;
	g->dirties = options->dirties;
	g->n_ops = profile->n_ops;
	err = allocate(g);
	if (!err) {
		find_writers(g);
		err = make_objects(g);
	}
	if (!err)
		err = find_gaps(g, options->min_gap_bytes, &list);
	if (!err)
		err = index_gaps(g, &list);
	free(list.gaps);
	if (err) {
		ts_graph_finish(g);
		return err;
	}
	measure_memory(g);
	measure_floor(g);
	for (uint32_t k = 0; k < g->n_gaps; k++) {
		struct ts_gap *gap = &g->gaps[k];
		uint32_t n;

		if (options->no_replays || gap->to_op >= g->n_ops ||
		        profile->values[gap->version].no_replay)
			continue;
		n = ts_graph_closure(g, gap->version, gap->to_op, closure);
		if (n)
			gap->replay_ns = ts_graph_closure_ns(g, closure, n);
	}
	return 0;
}

bool ts_graph_wraps(const struct ts_graph *g)
{
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (g->gaps[i].to_op > g->n_ops)
			return true;
	}
	return false;
}
