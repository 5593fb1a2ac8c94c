/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ops that are looked at: each gives a valid bound, the highest counts. */
#define MAX_OPS 48
/* Gaps that are looked at over all ops. */
#define MAX_WORK 1000000
/* Turns of the bisection of the step time; it ends at 1 ns anyway. */
#define MAX_TURNS 64

struct byte_cost {
	double ns_per_byte;
	double bytes;
};

/* What can be off the device at one op. */
struct offer {
	struct byte_cost *costs;
	uint32_t n;
	/* Written in this step; came with it and are changed; are not. */
	double own_bytes;
	double dirty_bytes;
	double clean_bytes;
};

struct scratch {
	const struct ts_graph *graph;
	struct offer offer;
	/* By op: bytes of the open gaps whose closure runs it. */
	double *sharers;
	uint32_t *gaps;
	uint32_t n_gaps;
};

static int by_cost(const void *a, const void *b)
{
	const struct byte_cost *x = a, *y = b;

	if (x->ns_per_byte != y->ns_per_byte)
		return x->ns_per_byte < y->ns_per_byte ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static bool open_at(
        const struct ts_graph *g, const struct ts_gap *gap, uint32_t op)
{
	return (gap->from_op < op && gap->to_op > op) ||
	       gap->to_op > g->n_ops + op;
}

/*
 * Calls for each launch of the gap's closure: adds its bytes to the op's
 * sharers (total NULL), or the gap's share of the op's time to *total.
 */
static void closure_shares(
        struct scratch *s, const struct ts_gap *gap, double *total)
{
	const struct ts_graph *g = s->graph;
	uint32_t values[TS_CLOSURE_MAX];
	uint32_t n = ts_graph_closure(g, gap->version, gap->to_op, values);
	double bytes = (double)gap->size_bytes;

	for (uint32_t i = 0; i < n; i++) {
		struct ts_producer producer;
		bool counted = false;

		if (!ts_graph_producer(g, values[i], &producer))
			return;
		if (producer.op == TS_NONE) {
			/* A rebuild makes one value: nobody shares it. */
			if (total && i == 0)
				*total += (double)producer.duration_ns;
			continue;
		}
		for (uint32_t k = 0; k < i && !counted; k++)
			counted = g->writer[values[k]] == producer.op;
		if (counted)
			continue;
		if (total)
			*total += (double)producer.duration_ns * bytes /
			          s->sharers[producer.op];
		else
			s->sharers[producer.op] += bytes;
	}
}

static void clear_shares(struct scratch *s, const struct ts_gap *gap)
{
	uint32_t values[TS_CLOSURE_MAX];
	uint32_t n =
	        ts_graph_closure(s->graph, gap->version, gap->to_op, values);

	for (uint32_t i = 0; i < n; i++) {
		if (s->graph->writer[values[i]] != TS_NONE)
			s->sharers[s->graph->writer[values[i]]] = 0;
	}
}

/* Everything that may be off at @op, cheapest to replay first. */
static void make_offer(struct scratch *s, uint32_t op)
{
	const struct ts_graph *g = s->graph;
	struct offer *offer = &s->offer;

	offer->n = s->n_gaps = 0;
	offer->own_bytes = offer->dirty_bytes = offer->clean_bytes = 0;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];
		double bytes = (double)gap->size_bytes;
		bool past = gap->to_op > g->n_ops + op && gap->from_op >= op;

		if (!open_at(g, gap, op) || !gap->size_bytes)
			continue;
		if (gap->born_op != TS_NONE && !past)
			offer->own_bytes += bytes;
		else if (gap->born_op != TS_NONE)
			offer->dirty_bytes += bytes;
		else
			offer->clean_bytes += bytes;
		if (gap->replay_ns == TS_NEVER)
			continue;
		s->gaps[s->n_gaps++] = i;
		closure_shares(s, gap, NULL);
	}
	for (uint32_t i = 0; i < s->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[s->gaps[i]];
		double ns = 0;

		closure_shares(s, gap, &ns);
		offer->costs[offer->n++] = (struct byte_cost){
		        ns / (double)gap->size_bytes, (double)gap->size_bytes};
	}
	for (uint32_t i = 0; i < s->n_gaps; i++)
		clear_shares(s, &g->gaps[s->gaps[i]]);
	qsort(offer->costs, offer->n, sizeof(*offer->costs), by_cost);
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double at_least_zero(double a)
{
	return a > 0 ? a : 0;
}

/*
 * Least step time above the ideal if the link may work as long as a step of
 * @step_ns takes; -1 where that is not enough to bring it all off.
 */
static double extra_ns(
        const struct scratch *s, uint32_t op, double deficit, double step_ns)
{
	const struct ts_graph *g = s->graph;
	const struct ts_device *d = &g->profile->device;
	const struct offer *offer = &s->offer;
	double out = (double)d->d2h_bytes_per_s * 1e-9;
	double in = (double)d->h2d_bytes_per_s * 1e-9;
	double own_by_time = (double)g->start_ns[op] * out;
	double own = least(offer->own_bytes, own_by_time), dirty, clean;
	double still, ns = 0, stallable;

	own = least(own, step_ns * in);
	dirty = least(offer->dirty_bytes, at_least_zero(step_ns * out - own));
	dirty = least(dirty, at_least_zero(step_ns * in - own));
	clean = least(
	        offer->clean_bytes, at_least_zero(step_ns * in - own - dirty));
	still = deficit - own - dirty - clean;
	/* Own bytes that leave during stalls before the op. */
	stallable = offer->own_bytes - own;
	for (uint32_t i = 0; still > 0 && i < offer->n; i++) {
		const struct byte_cost *cost = &offer->costs[i];
		double bytes = least(still, cost->bytes);

		if (cost->ns_per_byte >= 1 / out)
			break;
		ns += bytes * cost->ns_per_byte;
		still -= bytes;
	}
	if (still <= 0)
		return ns;
	if (still > stallable + 0.5)
		return -1;
	return ns + still / out;
}

static double bound_at(struct scratch *s, uint32_t op, double deficit)
{
	double ideal = (double)s->graph->start_ns[s->graph->n_ops];
	double low = ideal, high = ideal, extra;

	make_offer(s, op);
	/* More time for the link means less extra: the two meet somewhere. */
	for (uint32_t turn = 0;; turn++) {
		extra = extra_ns(s, op, deficit, high);
		if (extra >= 0 && ideal + extra <= high)
			break;
		if (turn == MAX_TURNS)
			return -1;
		low = high;
		high = 2 * high + 1;
	}
	for (uint32_t turn = 0; turn < MAX_TURNS && high - low > 0.5; turn++) {
		double mid = (low + high) / 2;

		extra = extra_ns(s, op, deficit, mid);
		if (extra >= 0 && ideal + extra <= mid)
			high = mid;
		else
			low = mid;
	}
	return low;
}

/* The ops where most has to be dropped, and the peak. */
static uint32_t pick_ops(
        const struct ts_graph *g, uint64_t limit, uint32_t ops[MAX_OPS])
{
	double keys[MAX_OPS];
	uint32_t n = 0;
	double out = (double)g->profile->device.d2h_bytes_per_s * 1e-9;
	/* Only the best op of each stretch: neighbours say the same. */
	uint32_t stretch = g->n_ops / (4 * MAX_OPS) + 1;

	for (uint32_t from = 0; from < g->n_ops; from += stretch) {
		double key = -1e300;
		uint32_t best = from, at;

		for (uint32_t i = from; i < g->n_ops && i < from + stretch;
		        i++) {
			double k = (double)g->mem_bytes[i] - (double)limit -
			           out * (double)g->start_ns[i];

			if (g->mem_bytes[i] > limit && k > key) {
				key = k;
				best = i;
			}
		}
		if (key == -1e300 || (n == MAX_OPS && key <= keys[n - 1]))
			continue;
		if (n < MAX_OPS)
			n++;
		for (at = n - 1; at > 0 && keys[at - 1] < key; at--) {
			keys[at] = keys[at - 1];
			ops[at] = ops[at - 1];
		}
		keys[at] = key;
		ops[at] = best;
	}
	if (n && g->mem_bytes[g->peak_op] > limit)
		ops[n < MAX_OPS ? n++ : MAX_OPS - 1] = g->peak_op;
	return n;
}

int ts_bound_step(
        const struct ts_graph *g, uint64_t limit_bytes, uint64_t *ret_step_ns)
{
	struct scratch s = {.graph = g};
	uint32_t ops[MAX_OPS], n, most;
	double best = (double)g->start_ns[g->n_ops];
	int err = 0;

	if (limit_bytes < g->floor_bytes) {
		*ret_step_ns = TS_NEVER;
		return 0;
	}
	s.offer.costs = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.offer.costs));
	s.gaps = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.gaps));
	s.sharers = calloc(g->n_ops + UINT64_C(1), sizeof(*s.sharers));
	if (!s.offer.costs || !s.gaps || !s.sharers) {
		err = -ENOMEM;
		goto out_free;
	}
	n = pick_ops(g, limit_bytes, ops);
	most = MAX_WORK / (g->n_gaps + 1) + 2;
	for (uint32_t i = 0; i < n; i++) {
		/* Long tapes: the first ones, and the peak, which is last. */
		if (i >= most && i + 1 < n)
			continue;
		double deficit =
		        (double)g->mem_bytes[ops[i]] - (double)limit_bytes;
		double ns = bound_at(&s, ops[i], deficit);

		if (ns < 0) {
			best = -1;
			break;
		}
		if (ns > best)
			best = ns;
	}
	*ret_step_ns = best < 0 ? TS_NEVER : (uint64_t)best;
out_free:
	free(s.offer.costs);
	free(s.gaps);
	free(s.sharers);
	return err;
}
