/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pass 1: spend the link budget. Called by repair and by baselines. */
#include "planner/passes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* After so many rejections in a row the link is taken as full. */
#define MAX_REJECTED 512
/* And after so many copies were looked at. */
#define MAX_LOOKED_AT 6000000
/* These are cheap: so many of them are as much as one look elsewhere. */
#define CHEAP_LOOKS 3

/* A copy in one of the two orders, and how things stand after it. */
struct copy {
	uint64_t key; /* op that it is ordered by, then the gap */
	uint64_t size_bytes;
	double ns;
	double end_ns;
	/* Of copies in: bytes up to here, and the op that had freed them. */
	uint64_t taken;
	uint32_t op;
};

struct copies {
	struct copy *list;
	/* The list with what is tried, from @from on. */
	struct copy *with;
	uint32_t from;
};

/* Copies that pass 1 has accepted, in both orders. */
struct link {
	const struct ts_graph *graph;
	uint32_t pivot;
	double out_end_ns;  /* copies out have to be done by then */
	double in_begin_ns; /* copies in start then */
	uint32_t n;
	uint32_t room;
	struct copies by_birth; /* in order of production */
	struct copies by_need;  /* in order of deadline */
	struct copy *add;       /* what is tried */
	uint64_t looked_at;
	/* Bytes that ops from the pivot on have given back, by op. */
	uint64_t *released;
};

static double copy_ns(const struct ts_graph *g, uint64_t bytes, uint64_t rate)
{
	return (double)bytes / (double)rate * 1e9 +
	       (double)g->profile->device.copy_latency_ns;
}

static uint32_t op_of(const struct copy *copy)
{
	return (uint32_t)(copy->key >> 32);
}

static int by_key(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static struct copy copy_of(const struct link *link, uint32_t gap, bool out)
{
	const struct ts_graph *g = link->graph;
	const struct ts_device *d = &g->profile->device;
	const struct ts_gap *info = &g->gaps[gap];
	uint32_t born =
	        info->born_op == TS_NONE ? info->from_op : info->born_op;
	uint64_t op = out ? born : info->to_op;

	return (struct copy){.key = op << 32 | gap,
	        .size_bytes = info->size_bytes,
	        .ns = copy_ns(g, info->size_bytes,
	                out ? d->d2h_bytes_per_s : d->h2d_bytes_per_s)};
}

/* First of the accepted copies that comes after @key. */
static uint32_t place_of(
        const struct link *link, const struct copies *c, uint64_t key)
{
	uint32_t low = 0, high = link->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (c->list[mid].key < key)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* First in, first out from birth on; done before out_end_ns? */
static bool out_in_time(
        const struct link *link, const struct copy *before, struct copy *copy)
{
	double t = before ? before->end_ns : 0;
	double born = (double)link->graph->start_ns[op_of(copy) + 1];

	if (t < born)
		t = born;
	copy->end_ns = t + copy->ns;
	return copy->end_ns <= link->out_end_ns;
}

/*
 * Earliest deadline first from the pivot on. Memory is taken as full there:
 * a copy starts only when ops have given back what it and those before it
 * take (kept values and swapped ones alike).
 */
static bool in_in_time(
        const struct link *link, const struct copy *before, struct copy *copy)
{
	const struct ts_graph *g = link->graph;
	double t = before ? before->end_ns : link->in_begin_ns;
	uint32_t op = before ? before->op : link->pivot;

	copy->taken = (before ? before->taken : 0) + copy->size_bytes;
	while (op < g->n_ops && link->released[op] < copy->taken)
		op++;
	copy->op = op;
	if (op >= g->n_ops)
		return false;
	if (t < (double)g->start_ns[op + 1])
		t = (double)g->start_ns[op + 1];
	copy->end_ns = t + copy->ns;
	return copy->end_ns <= (double)g->start_ns[op_of(copy)];
}

typedef bool (*in_time_fn)(
        const struct link *link, const struct copy *before, struct copy *copy);

/* Whether all is in time with the @n gaps as well; sets c->with. */
static bool fits(struct link *link, struct copies *c, const uint32_t *gaps,
        uint32_t n, in_time_fn in_time)
{
	const struct copy *before;
	uint32_t i, k = 0, to;

	for (uint32_t j = 0; j < n; j++)
		link->add[j] = copy_of(link, gaps[j], c == &link->by_birth);
	if (n > 1)
		qsort(link->add, n, sizeof(*link->add), by_key);
	/* Before the first of them nothing changes. */
	c->from = i = to = place_of(link, c, link->add[0].key);
	before = i ? &c->list[i - 1] : NULL;
	for (; i < link->n || k < n; to++) {
		bool old = k == n ||
		           (i < link->n && c->list[i].key < link->add[k].key);

		c->with[to] = old ? c->list[i++] : link->add[k++];
		link->looked_at++;
		if (!in_time(link, before, &c->with[to]))
			return false;
		before = &c->with[to];
	}
	return true;
}

static void accept(const struct link *link, struct copies *c, uint32_t n)
{
	memcpy(c->list + c->from, c->with + c->from,
	        (link->n + n - c->from) * sizeof(*c->list));
}

/* Takes all @n gaps or none. */
static bool add_all(struct link *link, const uint32_t *gaps, uint32_t n)
{
	if (!fits(link, &link->by_need, gaps, n, in_in_time) ||
	        !fits(link, &link->by_birth, gaps, n, out_in_time))
		return false;
	accept(link, &link->by_need, n);
	accept(link, &link->by_birth, n);
	link->n += n;
	return true;
}

static bool grow(struct copy **copies, uint64_t room)
{
	struct copy *more = realloc(*copies, room * sizeof(*more));

	if (!more)
		return false;
	*copies = more;
	return true;
}

/* Room for so many copies. */
static int make_room(struct link *link, uint64_t n)
{
	uint64_t room = 2 * n + 64;

	if (n <= link->room)
		return 0;
	if (room > UINT32_MAX || !grow(&link->by_birth.list, room) ||
	        !grow(&link->by_birth.with, room) ||
	        !grow(&link->by_need.list, room) ||
	        !grow(&link->by_need.with, room) || !grow(&link->add, room))
		return -ENOMEM;
	link->room = (uint32_t)room;
	return 0;
}

static int link_init(struct link *link, const struct ts_pass *pass)
{
	const struct ts_graph *g = pass->graph;
	uint64_t sum = 0;
	const struct ts_profile *p = g->profile;

	memset(link, 0, sizeof(*link));
	link->graph = g;
	link->pivot = pass->pivot_op != TS_NONE ? pass->pivot_op
	              : p->n_turns              ? p->turns[0]
	                                        : g->peak_op;
	link->out_end_ns = (1 - pass->guard) * (double)g->start_ns[link->pivot];
	link->in_begin_ns = (double)g->start_ns[link->pivot];
	link->released =
	        calloc(g->n_ops + UINT64_C(1), sizeof(*link->released));
	if (!link->released)
		return -ENOMEM;
	/* Only what was alive at the pivot counts as given back. */
	for (uint32_t o = 0; o < g->n_objects; o++) {
		const struct ts_object *object = &g->objects[o];

		if (object->last_op != TS_NONE && !object->persistent &&
		        object->last_op >= link->pivot &&
		        (object->first_op == TS_NONE ||
		                object->first_op < link->pivot))
			link->released[object->last_op] += object->size_bytes;
	}
	for (uint32_t i = 0; i < g->n_ops; i++) {
		sum += link->released[i];
		link->released[i] = sum;
	}
	return 0;
}

static void link_finish(struct link *link)
{
	free(link->by_birth.list);
	free(link->by_birth.with);
	free(link->by_need.list);
	free(link->by_need.with);
	free(link->add);
	free(link->released);
}

int ts_pass_swap(struct ts_pass *pass, struct ts_choice *choice)
{
	const struct ts_graph *g = pass->graph;
	const uint32_t *order = pass->order == TS_ORDER_AGE
	                                ? pass->order_by_age
	                                : pass->order_by_cost;
	uint64_t deficit = g->peak_bytes > pass->limit_bytes
	                           ? g->peak_bytes - pass->limit_bytes
	                           : 0;
	uint32_t chunk = 1, at = 0, n = 0, rejected = 0;
	uint64_t covered = 0;
	struct link link;
	int err = link_init(&link, pass);

	/* Candidates bridge the pivot; pass->set lists them in order. */
	for (uint32_t i = 0; !err && i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[order[i]];

		if (gap->from_op < link.pivot && gap->to_op > link.pivot &&
		        gap->to_op < g->n_ops &&
		        pass->verdict[order[i]] == TS_MAY &&
		        choice->action[order[i]] == TS_KEEP)
			pass->set[n++] = order[i];
	}
	while (!err && at < n && covered < deficit && rejected < MAX_REJECTED &&
	        link.looked_at < MAX_LOOKED_AT) {
		uint64_t bytes = 0;
		uint32_t take = 0;

		while (take < chunk && at + take < n &&
		        covered + bytes < deficit)
			bytes += g->gaps[pass->set[at + take++]].size_bytes;
		err = make_room(&link, link.n + (uint64_t)take);
		if (err)
			break;
		if (add_all(&link, pass->set + at, take)) {
			covered += bytes;
			at += take;
			chunk = 2 * take;
			rejected = 0;
		} else if (take > 1) {
			chunk = take / 2;
		} else {
			at++;
			rejected++;
		}
	}
	pass->looks += link.looked_at / CHEAP_LOOKS;
	for (uint32_t i = 0; !err && i < link.n; i++)
		choice->action[(uint32_t)link.by_need.list[i].key] = TS_SWAP;
	link_finish(&link);
	return err;
}
