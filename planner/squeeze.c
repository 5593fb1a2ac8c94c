/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pass 2: walk the memory profile and cover every op above the limit with
 * the cheapest replay. Called by repair and by baselines.
 */
#include "planner/absence.h"
#include "planner/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct squeeze {
	struct ts_pass *pass;
	struct ts_choice *choice;
	const struct ts_graph *graph;
	struct ts_segtree memory;
	/* Candidates: by cost per byte, and (larger than the excess) by cost.
	 */
	struct ts_heap per_byte;
	struct ts_heap whole;
	/* Nothing can replay these: furthest next use first. */
	struct ts_heap last_resort;
	uint32_t next_gap; /* gaps below have been offered */
	struct ts_absence absence;
};

static double per_byte(const struct squeeze *q, uint32_t gap)
{
	return (double)q->pass->price_ns[gap] /
	       (double)q->graph->gaps[gap].size_bytes;
}

/* Orders of the three heaps; ties by gap. */
static bool cheaper_per_byte(const void *data, uint32_t a, uint32_t b)
{
	double x = per_byte(data, a), y = per_byte(data, b);

	return x != y ? x < y : a < b;
}

static bool cheaper(const void *data, uint32_t a, uint32_t b)
{
	const uint64_t *price = ((const struct squeeze *)data)->pass->price_ns;

	return price[a] != price[b] ? price[a] < price[b] : a < b;
}

static bool wanted_later(const void *data, uint32_t a, uint32_t b)
{
	const struct ts_gap *gaps = ((const struct squeeze *)data)->graph->gaps;

	return gaps[a].to_op != gaps[b].to_op ? gaps[a].to_op > gaps[b].to_op
	                                      : a < b;
}

static void mark(struct squeeze *q, uint32_t gap, enum ts_action action)
{
	q->choice->action[gap] = (uint8_t)action;
	ts_absence_set(&q->absence, gap, q->graph->gaps[gap].from_op + 1,
	        ts_absence_end(&q->absence, gap));
	if (action == TS_REPLAY)
		ts_absence_pull(&q->absence, gap);
}

/*
 * Swapped gaps leave when their copy is done: first come, first served from
 * the birth of the values on.
 */
static int place_swaps(struct squeeze *q)
{
	const struct ts_graph *g = q->graph;
	const struct ts_device *device = &g->profile->device;
	double t = 0;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		uint32_t gap = q->pass->order_by_age[i], low, high;
		const struct ts_gap *info = &g->gaps[gap];
		uint32_t born;

		if (q->choice->action[gap] != TS_SWAP)
			continue;
		born = info->born_op == TS_NONE ? info->from_op : info->born_op;
		if (info->to_op >= g->n_ops) {
			ts_absence_set(&q->absence, gap, info->from_op + 1,
			        info->to_op);
			continue;
		}
		if (t < (double)g->start_ns[born + 1])
			t = (double)g->start_ns[born + 1];
		t += (double)info->size_bytes /
		             (double)device->d2h_bytes_per_s * 1e9 +
		     (double)device->copy_latency_ns;
		/* First op that starts when the copy is done. */
		low = info->from_op + 1;
		high = info->to_op;
		while (low < high) {
			uint32_t mid = low + (high - low) / 2;

			if ((double)g->start_ns[mid] >= t)
				high = mid;
			else
				low = mid + 1;
		}
		ts_absence_set(&q->absence, gap, low, info->to_op);
	}
	return 0;
}

/* Offers the gaps that are open at @op. */
static void offer(struct squeeze *q, uint32_t op)
{
	const struct ts_graph *g = q->graph;

	while (q->next_gap < g->n_gaps && g->gaps[q->next_gap].from_op < op) {
		uint32_t gap = q->next_gap++;
		const struct ts_gap *info = &g->gaps[gap];
		uint64_t price = q->pass->price_ns[gap];

		if (q->choice->action[gap] != TS_KEEP || info->to_op <= op ||
		        !info->size_bytes)
			continue;
		if (price != TS_NEVER)
			ts_heap_push(&q->per_byte, gap, cheaper_per_byte, q);
		if (q->pass->verdict[gap] != TS_NEVER_SWAP)
			ts_heap_push(&q->last_resort, gap, wanted_later, q);
	}
}

static bool usable(const struct squeeze *q, uint32_t gap, uint32_t op)
{
	return q->choice->action[gap] == TS_KEEP &&
	       q->graph->gaps[gap].to_op > op;
}

static bool replayable(const struct squeeze *q, uint32_t gap, uint32_t op)
{
	return usable(q, gap, op) &&
	       ts_absence_may_pull(&q->absence, gap,
	               ts_absence_end(&q->absence, gap), NULL, 0);
}

/* Cheapest cost / min(size, excess) among what is open at @op. */
static uint32_t cheapest(struct squeeze *q, uint32_t op, double excess)
{
	const struct ts_graph *g = q->graph;
	uint32_t gap;

	for (;;) {
		while (q->whole.n && !replayable(q, q->whole.items[0], op))
			ts_heap_pop(&q->whole, cheaper, q);
		while (q->per_byte.n &&
		        !replayable(q, q->per_byte.items[0], op))
			ts_heap_pop(&q->per_byte, cheaper_per_byte, q);
		if (!q->per_byte.n)
			break;
		gap = q->per_byte.items[0];
		if ((double)g->gaps[gap].size_bytes <= excess)
			break;
		/* The excess only shrinks: from here on it counts as a whole */
		ts_heap_pop(&q->per_byte, cheaper_per_byte, q);
		ts_heap_push(&q->whole, gap, cheaper, q);
	}
	if (!q->whole.n && !q->per_byte.n)
		return TS_NONE;
	if (!q->whole.n)
		gap = q->per_byte.items[0];
	else if (!q->per_byte.n ||
	         (double)q->pass->price_ns[q->whole.items[0]] / excess <
	                 per_byte(q, q->per_byte.items[0]))
		gap = q->whole.items[0];
	else
		gap = q->per_byte.items[0];
	return gap;
}

static uint32_t last_resort(struct squeeze *q, uint32_t op)
{
	while (q->last_resort.n && !usable(q, q->last_resort.items[0], op))
		ts_heap_pop(&q->last_resort, wanted_later, q);
	return q->last_resort.n ? q->last_resort.items[0] : TS_NONE;
}

static int squeeze_init(struct squeeze *q)
{
	uint64_t n = q->graph->n_gaps + UINT64_C(1);
	int err = ts_segtree_init(
	        &q->memory, q->graph->mem_bytes, q->graph->n_ops);

	q->per_byte.items = calloc(n, sizeof(uint32_t));
	q->whole.items = calloc(n, sizeof(uint32_t));
	q->last_resort.items = calloc(n, sizeof(uint32_t));
	q->absence = (struct ts_absence){q->graph, q->pass, q->choice,
	        &q->memory, calloc(n, sizeof(uint32_t)),
	        ts_absence_most_pulled(q->graph)};
	if (err || !q->per_byte.items || !q->whole.items ||
	        !q->last_resort.items || !q->absence.stack)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->graph->n_gaps; i++)
		q->pass->pos[i] = q->pass->away[i] = 0;
	return place_swaps(q);
}

int ts_pass_squeeze(struct ts_pass *pass, struct ts_choice *choice)
{
	struct squeeze q = {
	        .pass = pass, .choice = choice, .graph = pass->graph};
	int64_t limit = (int64_t)pass->limit_bytes;
	uint32_t op = 0;
	int err = squeeze_init(&q);

	for (uint32_t i = 0; !err && i < pass->graph->n_gaps; i++) {
		if (choice->action[i] == TS_REPLAY ||
		        (pass->verdict[i] == TS_MUST_REPLAY &&
		                pass->price_ns[i] != TS_NEVER))
			mark(&q, i, TS_REPLAY);
	}
	while (!err) {
		uint32_t gap;

		op = ts_segtree_first_above(&q.memory, op, limit);
		if (op >= pass->graph->n_ops)
			break;
		pass->looks += TS_LOOKS;
		offer(&q, op);
		gap = cheapest(
		        &q, op, (double)(ts_segtree_max(&q.memory) - limit));
		if (gap != TS_NONE) {
			mark(&q, gap, TS_REPLAY);
			continue;
		}
		gap = last_resort(&q, op);
		if (gap != TS_NONE)
			mark(&q, gap, TS_SWAP);
		else
			op++;
	}
	ts_segtree_finish(&q.memory);
	free(q.per_byte.items);
	free(q.whole.items);
	free(q.last_resort.items);
	free(q.absence.stack);
	return err;
}
