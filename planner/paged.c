/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/paged.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/graph.h"
#include "planner/pages.h"

enum { HEAD, TAIL, EDGES };

enum { READS = 1, WRITES = 2 };

/* Whole pages that live and move together. */
struct range {
	uint64_t address, bytes;
	uint32_t first, end; /* ops it lives for; end: n_ops, it stays */
	uint32_t idle;       /* from this op on none uses it */
	bool before;         /* is there when the step begins */
};

/* PyTorch's, of what shares a segment of one page. */
#define SMALL_BYTES (UINT64_C(1) << 20)

/* The part of a page at one end of a storage. */
struct edge {
	uint64_t page;
	uint32_t object, first, end;
	uint8_t which;
};

struct work {
	const struct ts_profile *from;
	struct ts_graph graph; /* of @from, for its storages */
	struct ts_paged *to;
	/* The storages' own, what is idle, then those shared. */
	struct range *ranges;
	uint32_t n_own; /* not shared */
	uint32_t n_ranges;
	uint64_t *fixed; /* pages that do not move, ascending */
	size_t n_fixed;
	struct edge *edges;
	uint32_t n_edges;
	uint32_t (*shared)[EDGES]; /* by range of one's own, or TS_NONE */
	uint32_t *now;             /* by range: the value in it, or TS_NONE */
	/* By op: the first range that lives no longer, and by range the next.
	 */
	uint32_t *last, *next_last;
	uint32_t *seen; /* by range: one past the last op that touched it */
	uint8_t *touch; /* by shared range: what the op at hand does */
	uint32_t *touched;
	uint32_t n_touched;
	uint32_t values_room, uses_room;
};

bool ts_paged_known(const struct ts_profile *p)
{
	for (uint32_t v = 0; v < p->n_values; v++)
		if (p->values[v].address)
			return true;
	return false;
}

/* ------------------------------------------------------------------- pages */

/* And where they lay, before they are cut into pages. */
static void find_lives(struct work *w)
{
	const struct ts_profile *p = w->from;

	for (uint32_t v = 0; v < p->n_values; v++) {
		uint32_t o = w->graph.object_of[v];
		const struct ts_object *object = &w->graph.objects[o];
		struct range *range = &w->ranges[o];

		if (p->values[v].in_place_of != TS_NONE)
			continue;
		range->before = object->first_op == TS_NONE;
		range->first = range->before ? 0 : object->first_op;
		range->idle =
		        object->last_op == TS_NONE ? 0 : object->last_op + 1;
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
		/* Where it is not known where it lay it has pages of its own.
		 */
		if (!range->address)
			range->bytes = (range->bytes + TS_PAGE_BYTES - 1) /
			               TS_PAGE_BYTES * TS_PAGE_BYTES;
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
			w->ranges[w->graph.n_objects + i] =
			        (struct range){.address = idle->address,
			                .bytes = idle->size_bytes,
			                .end = end,
			                .before = true};
	}
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* What is small and where that is known has no pages of its own. */
static int find_fixed(struct work *w)
{
	size_t n = 0;

	w->fixed = malloc((2ull * w->n_own + 1) * sizeof(*w->fixed));
	if (!w->fixed)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_own; i++) {
		struct range *range = &w->ranges[i];
		uint64_t last = range->address + range->bytes - 1;

		if (!range->bytes || range->bytes > SMALL_BYTES ||
		        !range->address)
			continue;
		w->fixed[n++] = range->address / TS_PAGE_BYTES;
		w->fixed[n++] = last / TS_PAGE_BYTES;
		range->bytes = 0;
	}
	qsort(w->fixed, n, sizeof(*w->fixed), by_address);
	for (size_t i = 0; i < n; i++)
		if (!i || w->fixed[i] != w->fixed[w->n_fixed - 1])
			w->fixed[w->n_fixed++] = w->fixed[i];
	return 0;
}

static bool is_fixed(const struct work *w, uint64_t address)
{
	uint64_t page = address / TS_PAGE_BYTES;

	return bsearch(&page, w->fixed, w->n_fixed, sizeof(page), by_address);
}

static void add_edge(struct work *w, uint32_t object, uint64_t page, int which)
{
	const struct range *range = &w->ranges[object];

	if (is_fixed(w, page))
		return;
	w->edges[w->n_edges++] = (struct edge){
	        page, object, range->first, range->end, (uint8_t)which};
}

/* Whole pages of a storage; its ends are edges where they are parts of some. */
static void cut(struct work *w, uint32_t object)
{
	struct range *range = &w->ranges[object];
	uint64_t from = range->address, end = from + range->bytes;
	uint64_t first = from - from % TS_PAGE_BYTES;
	uint64_t last = end - 1 - (end - 1) % TS_PAGE_BYTES;

	if (!range->bytes || range->end <= range->first) {
		range->bytes = 0;
		return;
	}
	if (!from)
		return;
	range->address = first;
	range->bytes = last + TS_PAGE_BYTES - first;
	if (first < from || (first == last && end < last + TS_PAGE_BYTES)) {
		add_edge(w, object, first, HEAD);
		range->address += TS_PAGE_BYTES;
		range->bytes -= TS_PAGE_BYTES;
	}
	if (last > first && end < last + TS_PAGE_BYTES) {
		add_edge(w, object, last, TAIL);
		range->bytes -= TS_PAGE_BYTES;
	}
}

static int by_page(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

/* A page that one storage alone has as long as it lives is the storage's. */
static void give_page(struct work *w, const struct edge *edge)
{
	struct range *range = &w->ranges[edge->object];

	if (edge->which == HEAD)
		range->address -= TS_PAGE_BYTES;
	range->bytes += TS_PAGE_BYTES;
}

static void share_page(
        struct work *w, const struct edge *edge, uint32_t count, uint32_t end)
{
	uint32_t index = w->n_ranges++;
	struct range *range = &w->ranges[index];

	*range = (struct range){.address = edge->page,
	        .bytes = TS_PAGE_BYTES,
	        .first = edge->first,
	        .end = end};
	for (uint32_t i = 0; i < count; i++) {
		const struct range *of = &w->ranges[edge[i].object];

		range->before |= of->before;
		if (of->idle > range->idle)
			range->idle = of->idle;
		w->shared[edge[i].object][edge[i].which] = index;
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

static int find_ranges(struct work *w)
{
	uint32_t n = w->graph.n_objects + w->from->n_idle;

	/* Ranges of storages and of what is idle, and one at most for each of
	 * their ends. */
	w->ranges = calloc(3ull * n + 1, sizeof(*w->ranges));
	w->edges = malloc((2ull * n + 1) * sizeof(*w->edges));
	w->shared = malloc((n + 1ull) * sizeof(*w->shared));
	if (!w->ranges || !w->edges || !w->shared)
		return -ENOMEM;
	memset(w->shared, 0xff, (n + 1ull) * sizeof(*w->shared));
	w->n_ranges = n;
	w->n_own = n;
	find_lives(w);
	find_idle(w);
	if (find_fixed(w))
		return -ENOMEM;
	for (uint32_t o = 0; o < n; o++)
		cut(w, o);
	sort_out_edges(w);
	return 0;
}

/* ------------------------------------------------------------------ values */

static int copy_values(struct work *w)
{
	const struct ts_profile *from = w->from;
	struct ts_profile *profile = &w->to->profile;

	w->values_room = from->n_values;
	profile->values =
	        malloc((from->n_values + 1ull) * sizeof(*profile->values));
	if (!profile->values)
		return -ENOMEM;
	if (from->n_values)
		memcpy(profile->values, from->values,
		        from->n_values * sizeof(*from->values));
	for (uint32_t v = 0; v < from->n_values; v++) {
		const struct range *range = &w->ranges[w->graph.object_of[v]];

		profile->values[v].size_bytes = range->bytes;
		profile->values[v].address = range->address;
	}
	return 0;
}

/* A new value of a shared range; TS_NONE without memory. */
static uint32_t new_value(struct work *w, uint32_t range, uint32_t old)
{
	struct ts_profile *profile = &w->to->profile;
	const struct range *of = &w->ranges[range];

	if (profile->n_values == w->values_room) {
		uint32_t room = 2 * w->values_room + 64;
		void *more = realloc(profile->values,
		        (room + 1ull) * sizeof(*profile->values));

		if (!more)
			return TS_NONE;
		profile->values = more;
		w->values_room = room;
	}
	profile->values[profile->n_values] =
	        (struct ts_value){.size_bytes = of->bytes,
	                .signature = TS_NONE,
	                .kind = TS_KIND_OTHER,
	                .no_replay = true,
	                .in_place_of = old,
	                .address = of->address,
	                .died = TS_NONE,
	                .rebuild = TS_NONE};
	return profile->n_values++;
}

static bool add_use(struct work *w, uint32_t value, bool dirty)
{
	struct ts_profile *profile = &w->to->profile;

	if (profile->n_uses == w->uses_room) {
		uint32_t room = 2 * w->uses_room + 1024;
		uint32_t *uses =
		        realloc(profile->uses, room * sizeof(*profile->uses));
		uint8_t *dirties;

		if (uses)
			profile->uses = uses;
		dirties = realloc(w->to->dirties, room * sizeof(*dirties));
		if (dirties)
			w->to->dirties = dirties;
		if (!uses || !dirties)
			return false;
		w->uses_room = room;
	}
	w->to->dirties[profile->n_uses] = dirty;
	profile->uses[profile->n_uses++] = value;
	return true;
}

/* What an op finds in a shared range; TS_NONE: nothing, it is the first. */
static int find_content(struct work *w, uint32_t range, uint32_t *ret_value)
{
	const struct range *at = &w->ranges[range];

	if (w->now[range] == TS_NONE && at->before) {
		w->now[range] = new_value(w, range, TS_NONE);
		if (w->now[range] == TS_NONE)
			return -ENOMEM;
		w->to->profile.values[w->now[range]].persistent =
		        at->end == w->from->n_ops;
	}
	*ret_value = w->now[range];
	return 0;
}

static void see(struct work *w, uint32_t op, uint32_t value, uint8_t how)
{
	uint32_t object = w->graph.object_of[value];
	const uint32_t *shared = w->shared[object];

	w->now[object] = value;
	w->seen[object] = op + 1;
	for (int i = 0; i < EDGES; i++) {
		if (shared[i] == TS_NONE)
			continue;
		if (!w->touch[shared[i]])
			w->touched[w->n_touched++] = shared[i];
		w->touch[shared[i]] |= how;
	}
}

/* As if the op read what lives for no longer than it does. */
static bool read_last(struct work *w, uint32_t op)
{
	bool ok = true;

	for (uint32_t i = w->last[op]; i != TS_NONE; i = w->next_last[i]) {
		uint32_t value = w->now[i];

		if (w->seen[i] > op)
			continue;
		if (i >= w->graph.n_objects && find_content(w, i, &value))
			return false;
		ok &= value == TS_NONE || add_use(w, value, false);
	}
	return ok;
}

/* A run is told what copies only read, of kernels it takes nothing for
 * certain. */
static bool is_copy(const struct ts_profile *p, uint32_t op)
{
	return !strncmp(p->signatures[p->ops[op].signature].name, "Memcpy", 6);
}

/* Who writes a part of a page leaves the other parts as they were. */
static int add_op(struct work *w, uint32_t index)
{
	const struct ts_profile *from = w->from;
	const struct ts_profile_op *was = &from->ops[index];
	struct ts_profile *profile = &w->to->profile;
	struct ts_profile_op *op = &profile->ops[index];
	bool dirty = !is_copy(from, index), ok = true;

	*op = *was;
	w->n_touched = 0;
	op->first_read = profile->n_uses;
	for (uint32_t k = 0; k < was->n_reads; k++) {
		uint32_t value = from->uses[was->first_read + k];

		see(w, index, value, READS);
		ok &= add_use(w, value, dirty);
	}
	for (uint32_t k = 0; k < was->n_writes; k++)
		see(w, index, from->uses[was->first_write + k], WRITES);
	for (uint32_t k = 0; k < w->n_touched; k++) {
		uint32_t found;

		if (find_content(w, w->touched[k], &found))
			return -ENOMEM;
		if (found != TS_NONE)
			ok &= add_use(w, found, true);
		w->seen[w->touched[k]] = index + 1;
	}
	ok &= read_last(w, index);
	op->n_reads = profile->n_uses - op->first_read;
	op->first_write = profile->n_uses;
	for (uint32_t k = 0; k < was->n_writes; k++)
		ok &= add_use(w, from->uses[was->first_write + k], true);
	for (uint32_t k = 0; k < w->n_touched; k++) {
		uint32_t range = w->touched[k];

		if (w->now[range] == TS_NONE || w->touch[range] & WRITES) {
			w->now[range] = new_value(w, range, w->now[range]);
			ok &= w->now[range] != TS_NONE &&
			      add_use(w, w->now[range], true);
		}
		w->touch[range] = 0;
	}
	op->n_writes = profile->n_uses - op->first_write;
	return ok ? 0 : -ENOMEM;
}

/* What rebuilds values reads too: those of the profile come along. */
static int copy_rebuilds(struct work *w)
{
	const struct ts_profile *from = w->from;
	struct ts_profile *profile = &w->to->profile;
	bool ok = true;

	profile->rebuilds =
	        malloc((from->n_rebuilds + 1ull) * sizeof(*profile->rebuilds));
	if (!profile->rebuilds)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_rebuilds; i++) {
		const struct ts_rebuild *was = &from->rebuilds[i];

		profile->rebuilds[i] = *was;
		profile->rebuilds[i].first_read = profile->n_uses;
		for (uint32_t k = 0; k < was->n_reads; k++)
			ok &= add_use(
			        w, from->uses[was->first_read + k], false);
	}
	return ok ? 0 : -ENOMEM;
}

/* What is in storages before any op; and who lives on after its last use. */
static int begin(struct work *w)
{
	const struct ts_profile *from = w->from;
	uint32_t n = w->n_ranges;

	w->now = malloc((n + 1ull) * sizeof(*w->now));
	w->seen = calloc(n + 1ull, sizeof(*w->seen));
	w->touch = calloc(n + 1ull, sizeof(*w->touch));
	w->touched = malloc((n + 1ull) * sizeof(*w->touched));
	w->next_last = malloc((n + 1ull) * sizeof(*w->next_last));
	w->last = malloc((from->n_ops + 1ull) * sizeof(*w->last));
	w->to->profile.ops =
	        malloc((from->n_ops + 1ull) * sizeof(*w->to->profile.ops));
	if (!w->now || !w->seen || !w->touch || !w->touched || !w->next_last ||
	        !w->last || !w->to->profile.ops)
		return -ENOMEM;
	memset(w->now, 0xff, (n + 1ull) * sizeof(*w->now));
	memset(w->last, 0xff, (from->n_ops + 1ull) * sizeof(*w->last));
	for (uint32_t v = 0; v < from->n_values; v++)
		if (w->graph.writer[v] == TS_NONE &&
		        from->values[v].in_place_of == TS_NONE)
			w->now[w->graph.object_of[v]] = v;
	for (uint32_t i = 0; i < n; i++) {
		const struct range *range = &w->ranges[i];

		if ((!range->idle && !range->before) || !range->bytes ||
		        range->idle >= range->end ||
		        (range->before && range->end == from->n_ops))
			continue;
		w->next_last[i] = w->last[range->end - 1];
		w->last[range->end - 1] = i;
	}
	return 0;
}

/* What no op touches, but is there all the time. */
static int add_idle(struct work *w)
{
	uint32_t ignored;

	for (uint32_t i = w->graph.n_objects; i < w->n_ranges; i++)
		if (w->ranges[i].before && w->ranges[i].end == w->from->n_ops &&
		        find_content(w, i, &ignored))
			return -ENOMEM;
	return 0;
}

static int make(struct work *w)
{
	int err = find_ranges(w);

	if (!err)
		err = copy_values(w);
	if (!err)
		err = begin(w);
	for (uint32_t i = 0; i < w->from->n_ops && !err; i++)
		err = add_op(w, i);
	if (!err)
		err = copy_rebuilds(w);
	return err ? err : add_idle(w);
}

int ts_paged_make(const struct ts_profile *from, struct ts_paged *ret)
{
	struct work w = {.from = from, .to = ret};
	int err = ts_graph_init(
	        &w.graph, from, &(struct ts_graph_options){.no_replays = true});

	if (err)
		return err;
	*ret = (struct ts_paged){.profile = *from};
	ret->profile.ops = NULL;
	ret->profile.values = NULL;
	ret->profile.rebuilds = NULL;
	ret->profile.uses = NULL;
	ret->profile.n_uses = 0;
	err = make(&w);
	ts_graph_finish(&w.graph);
	ret->profile.resident_bytes =
	        ts_pages_limit(from->resident_bytes, (uint32_t)w.n_fixed);
	free(w.ranges);
	free(w.fixed);
	free(w.edges);
	free(w.shared);
	free(w.now);
	free(w.seen);
	free(w.touch);
	free(w.touched);
	free(w.last);
	free(w.next_last);
	if (err)
		ts_paged_finish(ret);
	return err;
}

void ts_paged_finish(struct ts_paged *paged)
{
	free(paged->profile.ops);
	free(paged->profile.values);
	free(paged->profile.rebuilds);
	free(paged->profile.uses);
	free(paged->dirties);
	memset(paged, 0, sizeof(*paged));
}
