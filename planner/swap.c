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

/* Copies that pass 1 has accepted, in both orders. */
struct link {
	const struct ts_graph *graph;
	uint32_t pivot;
	double out_end_ns;  /* copies out have to be done by then */
	double in_begin_ns; /* copies in start then */
	uint32_t n;
	uint32_t *by_birth; /* gaps in order of production */
	uint32_t *by_need;  /* gaps in order of deadline */
	uint32_t *merged;
	/* Bytes that ops from the pivot on have given back, by op. */
	uint64_t *released;
};

static double copy_ns(const struct ts_graph *g, uint64_t bytes, uint64_t rate)
{
	return (double)bytes / (double)rate * 1e9 +
	       (double)g->profile->device.copy_latency_ns;
}

static double born_ns(const struct ts_graph *g, const struct ts_gap *gap)
{
	uint32_t op = gap->born_op == TS_NONE ? gap->from_op : gap->born_op;

	return (double)g->start_ns[op + 1];
}

/* qsort_r() comparisons; @graph is its argument. */
static int order_birth(const void *a, const void *b, void *graph)
{
	const struct ts_graph *g = graph;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	double x = born_ns(g, &g->gaps[i]), y = born_ns(g, &g->gaps[k]);

	if (x != y)
		return x < y ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int order_need(const void *a, const void *b, void *graph)
{
	const struct ts_graph *g = graph;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	uint32_t x = g->gaps[i].to_op, y = g->gaps[k].to_op;

	if (x != y)
		return x < y ? -1 : 1;
	return i < k ? -1 : i > k;
}

/* Merges @n sorted @add into the sorted @list of link->n; into merged. */
static void merge(const struct link *link, const uint32_t *list,
        const uint32_t *add, uint32_t n,
        int (*order)(const void *, const void *, void *))
{
	uint32_t i = 0, k = 0, to = 0;

	while (i < link->n || k < n) {
		bool old = k == n ||
		           (i < link->n && order(&list[i], &add[k],
		                                   (void *)link->graph) < 0);

		link->merged[to++] = old ? list[i++] : add[k++];
	}
}

/* First in, first out from birth on; all done before out_end_ns? */
static bool out_in_time(const struct link *link, uint32_t n)
{
	const struct ts_graph *g = link->graph;
	double t = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct ts_gap *gap = &g->gaps[link->merged[i]];
		double born = born_ns(g, gap);

		if (t < born)
			t = born;
		t += copy_ns(
		        g, gap->size_bytes, g->profile->device.d2h_bytes_per_s);
		if (t > link->out_end_ns)
			return false;
	}
	return true;
}

/*
 * Earliest deadline first from the pivot on. Memory is taken as full there:
 * a copy starts only when ops have given back what it and those before it
 * take (kept values and swapped ones alike).
 */
static bool in_in_time(const struct link *link, uint32_t n)
{
	const struct ts_graph *g = link->graph;
	double t = link->in_begin_ns;
	uint32_t op = link->pivot;
	uint64_t taken = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct ts_gap *gap = &g->gaps[link->merged[i]];

		taken += gap->size_bytes;
		while (op < g->n_ops && link->released[op] < taken)
			op++;
		if (op >= g->n_ops)
			return false;
		if (t < (double)g->start_ns[op + 1])
			t = (double)g->start_ns[op + 1];
		t += copy_ns(
		        g, gap->size_bytes, g->profile->device.h2d_bytes_per_s);
		if (t > (double)g->start_ns[gap->to_op])
			return false;
	}
	return true;
}

/* Takes all @n gaps of @add or none. */
static bool add_all(
        struct link *link, const uint32_t *add, uint32_t n, uint32_t *sorted)
{
	memcpy(sorted, add, n * sizeof(*add));
	qsort_r(sorted, n, sizeof(*sorted), order_need, (void *)link->graph);
	merge(link, link->by_need, sorted, n, order_need);
	if (!in_in_time(link, link->n + n))
		return false;
	qsort_r(sorted, n, sizeof(*sorted), order_birth, (void *)link->graph);
	merge(link, link->by_birth, sorted, n, order_birth);
	if (!out_in_time(link, link->n + n))
		return false;
	memcpy(link->by_birth, link->merged,
	        (link->n + n) * sizeof(*link->merged));
	qsort_r(sorted, n, sizeof(*sorted), order_need, (void *)link->graph);
	merge(link, link->by_need, sorted, n, order_need);
	memcpy(link->by_need, link->merged,
	        (link->n + n) * sizeof(*link->merged));
	link->n += n;
	return true;
}

static int link_init(struct link *link, const struct ts_pass *pass)
{
	const struct ts_graph *g = pass->graph;
	uint64_t n = g->n_gaps + UINT64_C(1), sum = 0;
	const struct ts_profile *p = g->profile;

	memset(link, 0, sizeof(*link));
	link->graph = g;
	link->pivot = pass->pivot_op != TS_NONE ? pass->pivot_op
	              : p->n_turns              ? p->turns[0]
	                                        : g->peak_op;
	link->out_end_ns = (1 - pass->guard) * (double)g->start_ns[link->pivot];
	link->in_begin_ns = (double)g->start_ns[link->pivot];
	link->by_birth = calloc(n, sizeof(*link->by_birth));
	link->by_need = calloc(n, sizeof(*link->by_need));
	link->merged = calloc(n, sizeof(*link->merged));
	link->released =
	        calloc(g->n_ops + UINT64_C(1), sizeof(*link->released));
	if (!link->by_birth || !link->by_need || !link->merged ||
	        !link->released)
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
	free(link->by_birth);
	free(link->by_need);
	free(link->merged);
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
	uint64_t covered = 0, looked_at = 0;
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
	        looked_at < MAX_LOOKED_AT) {
		uint64_t bytes = 0;
		uint32_t take = 0;

		while (take < chunk && at + take < n &&
		        covered + bytes < deficit)
			bytes += g->gaps[pass->set[at + take++]].size_bytes;
		looked_at += link.n + take;
		if (add_all(&link, pass->set + at, take, pass->away)) {
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
	pass->looks += looked_at / CHEAP_LOOKS;
	for (uint32_t i = 0; !err && i < link.n; i++)
		choice->action[link.by_need[i]] = TS_SWAP;
	link_finish(&link);
	return err;
}
