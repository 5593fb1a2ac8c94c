/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pass 2: walk the memory profile and cover every op above the limit with
 * the cheapest replay. Called by repair and by baselines.
 */
#include "planner/passes.h"
#include "planner/segtree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct item {
	double key;
	uint32_t gap;
};

/* Binary heap, smallest key first, ties by gap. */
struct heap {
	struct item *items;
	uint32_t n;
};

static bool less(const struct item *a, const struct item *b)
{
	return a->key != b->key ? a->key < b->key : a->gap < b->gap;
}

static void push(struct heap *heap, double key, uint32_t gap)
{
	struct item item = {key, gap};
	uint32_t i = heap->n++;

	while (i && less(&item, &heap->items[(i - 1) / 2])) {
		heap->items[i] = heap->items[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->items[i] = item;
}

static void pop(struct heap *heap)
{
	struct item last = heap->items[--heap->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= heap->n)
			break;
		if (child + 1 < heap->n &&
		        less(&heap->items[child + 1], &heap->items[child]))
			child++;
		if (!less(&heap->items[child], &last))
			break;
		heap->items[i] = heap->items[child];
		i = child;
	}
	heap->items[i] = last;
}

struct squeeze {
	struct ts_pass *pass;
	struct ts_choice *choice;
	const struct ts_graph *graph;
	struct ts_segtree memory;
	/* Candidates: by cost per byte, and (larger than the excess) by cost.
	 */
	struct heap per_byte;
	struct heap whole;
	/* Nothing can replay these: furthest next use first. */
	struct heap last_resort;
	uint32_t next_gap; /* gaps below have been offered */
	uint32_t *stack;
};

/* @gap is off the device over [away, pos) now: tell the profile. */
static void set_range(
        struct squeeze *q, uint32_t gap, uint32_t away, uint32_t pos)
{
	struct ts_pass *pass = q->pass;
	uint32_t n = q->graph->n_ops;
	int64_t size = (int64_t)q->graph->gaps[gap].size_bytes;
	uint32_t old_away = pass->away[gap], old_pos = pass->pos[gap];

	if (old_away < old_pos) {
		ts_segtree_add(
		        &q->memory, old_away, old_pos < n ? old_pos : n, size);
		if (old_pos > n)
			ts_segtree_add(&q->memory, 0, old_pos - n, size);
	}
	pass->away[gap] = away;
	pass->pos[gap] = pos;
	if (away < pos) {
		ts_segtree_add(&q->memory, away, pos < n ? pos : n, -size);
		if (pos > n)
			ts_segtree_add(&q->memory, 0, pos - n, -size);
	}
}

/*
 * A value that a replay reads has to be back when the replay runs. Pulls the
 * return of the inputs of @gap forward, and of their inputs in turn.
 */
static void pull_inputs(struct squeeze *q, uint32_t gap)
{
	const struct ts_pass *pass = q->pass;
	uint32_t depth = 0;

	q->stack[depth++] = gap;
	while (depth) {
		uint32_t at = q->stack[--depth];

		for (uint32_t k = pass->input_first[at];
		        k < pass->input_first[at + 1]; k++) {
			uint32_t input = pass->inputs[k];
			uint32_t pos = pass->pos[at];

			if (q->choice->action[input] == TS_KEEP ||
			        pass->pos[input] <= pos ||
			        q->graph->gaps[input].from_op >= pos)
				continue;
			set_range(q, input, pass->away[input], pos);
			if (q->choice->action[input] == TS_REPLAY &&
			        depth < q->graph->n_gaps)
				q->stack[depth++] = input;
		}
	}
}

static void mark(struct squeeze *q, uint32_t gap, enum ts_action action)
{
	const struct ts_gap *info = &q->graph->gaps[gap];
	const struct ts_pass *pass = q->pass;
	uint32_t pos = info->to_op;

	q->choice->action[gap] = (uint8_t)action;
	for (uint32_t k = pass->reader_first[gap];
	        k < pass->reader_first[gap + 1]; k++) {
		uint32_t reader = pass->readers[k];

		if (q->choice->action[reader] == TS_REPLAY &&
		        pass->pos[reader] < pos &&
		        pass->pos[reader] > info->from_op)
			pos = pass->pos[reader];
	}
	set_range(q, gap, info->from_op + 1, pos);
	if (action == TS_REPLAY)
		pull_inputs(q, gap);
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
			set_range(q, gap, info->from_op + 1, info->to_op);
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
		set_range(q, gap, low, info->to_op);
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
			push(&q->per_byte,
			        (double)price / (double)info->size_bytes, gap);
		if (q->pass->verdict[gap] != TS_NEVER_SWAP)
			push(&q->last_resort, -(double)info->to_op, gap);
	}
}

static bool usable(const struct squeeze *q, uint32_t gap, uint32_t op)
{
	return q->choice->action[gap] == TS_KEEP &&
	       q->graph->gaps[gap].to_op > op;
}

/* Cheapest cost / min(size, excess) among what is open at @op. */
static uint32_t cheapest(struct squeeze *q, uint32_t op, double excess)
{
	const struct ts_graph *g = q->graph;
	uint32_t gap;

	for (;;) {
		while (q->whole.n && !usable(q, q->whole.items[0].gap, op))
			pop(&q->whole);
		while (q->per_byte.n &&
		        !usable(q, q->per_byte.items[0].gap, op))
			pop(&q->per_byte);
		if (!q->per_byte.n)
			break;
		gap = q->per_byte.items[0].gap;
		if ((double)g->gaps[gap].size_bytes <= excess)
			break;
		/* The excess only shrinks: from here on it counts as a whole */
		pop(&q->per_byte);
		push(&q->whole, (double)q->pass->price_ns[gap], gap);
	}
	if (!q->whole.n && !q->per_byte.n)
		return TS_NONE;
	if (!q->whole.n)
		gap = q->per_byte.items[0].gap;
	else if (!q->per_byte.n ||
	         q->whole.items[0].key / excess < q->per_byte.items[0].key)
		gap = q->whole.items[0].gap;
	else
		gap = q->per_byte.items[0].gap;
	return gap;
}

static uint32_t last_resort(struct squeeze *q, uint32_t op)
{
	while (q->last_resort.n && !usable(q, q->last_resort.items[0].gap, op))
		pop(&q->last_resort);
	return q->last_resort.n ? q->last_resort.items[0].gap : TS_NONE;
}

static int squeeze_init(struct squeeze *q)
{
	uint64_t n = q->graph->n_gaps + UINT64_C(1);
	int err = ts_segtree_init(
	        &q->memory, q->graph->mem_bytes, q->graph->n_ops);

	q->per_byte.items = calloc(n, sizeof(struct item));
	q->whole.items = calloc(n, sizeof(struct item));
	q->last_resort.items = calloc(n, sizeof(struct item));
	q->stack = calloc(n, sizeof(*q->stack));
	if (err || !q->per_byte.items || !q->whole.items ||
	        !q->last_resort.items || !q->stack)
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
	free(q.stack);
	return err;
}
