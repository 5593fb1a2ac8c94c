/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/passes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Gaps with what they are sorted by. */
struct ranked {
	double key;
	uint32_t gap;
};

static int by_key_descending(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->key != y->key)
		return x->key > y->key ? -1 : 1;
	return x->gap < y->gap ? -1 : x->gap > y->gap;
}

/* What came from outside first, then by the op that made it. */
static uint64_t age(const struct ts_gap *gap)
{
	return gap->born_op == TS_NONE ? 0 : gap->born_op + UINT64_C(1);
}

static int rank_by_age(struct ts_pass *pass)
{
	const struct ts_graph *g = pass->graph;
	uint32_t *first = calloc(g->n_ops + UINT64_C(3), sizeof(*first));

	if (!first)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gaps; i++)
		first[age(&g->gaps[i]) + 1]++;
	for (uint32_t i = 0; i <= g->n_ops; i++)
		first[i + 1] += first[i];
	for (uint32_t i = 0; i < g->n_gaps; i++)
		pass->order_by_age[first[age(&g->gaps[i])]++] = i;
	free(first);
	return 0;
}

static int rank(struct ts_pass *pass)
{
	const struct ts_graph *g = pass->graph;
	struct ranked *all = calloc(g->n_gaps + UINT64_C(1), sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		all[i].gap = i;
		all[i].key = gap->replay_ns == TS_NEVER
		                     ? 1e300
		                     : (double)gap->replay_ns /
		                               (double)(gap->size_bytes + 1);
	}
	qsort(all, g->n_gaps, sizeof(*all), by_key_descending);
	for (uint32_t i = 0; i < g->n_gaps; i++)
		pass->order_by_cost[i] = all[i].gap;
	free(all);
	return rank_by_age(pass);
}

/* Room for @more inputs beside @n; doubles. */
static int room_for_inputs(
        struct ts_pass *pass, uint64_t n, uint32_t more, uint64_t *room)
{
	uint32_t *inputs;

	if (n + more < *room)
		return 0;
	*room = 2 * (n + more) + 64;
	if (*room >= TS_NONE)
		return -ENOMEM;
	inputs = realloc(pass->inputs, *room * sizeof(*inputs));
	if (!inputs)
		return -ENOMEM;
	pass->inputs = inputs;
	return 0;
}

/* Appends the gaps that the closure of @gap reads to those before. */
static int add_inputs(
        struct ts_pass *pass, uint32_t gap, uint64_t *total, uint64_t *room)
{
	const struct ts_graph *g = pass->graph;
	uint32_t values[TS_CLOSURE_MAX], n;
	const struct ts_gap *info = &g->gaps[gap];

	if (info->replay_ns == TS_NEVER)
		return 0;
	n = ts_graph_closure(g, info->version, info->to_op, values);
	for (uint32_t i = 0; i < n; i++) {
		struct ts_producer producer;

		if (!ts_graph_producer(g, values[i], &producer))
			continue;
		if (room_for_inputs(pass, *total, producer.n_reads, room))
			return -ENOMEM;
		for (uint32_t k = 0; k < producer.n_reads; k++) {
			uint32_t input;

			if (!ts_graph_alive(g, producer.reads[k], info->to_op))
				continue;
			input = ts_graph_gap_at(
			        g, producer.reads[k], info->to_op);
			if (input != TS_NONE && input != gap)
				pass->inputs[(*total)++] = input;
		}
	}
	return 0;
}

static int link_closures(struct ts_pass *pass)
{
	const struct ts_graph *g = pass->graph;
	uint32_t n = g->n_gaps;
	uint64_t total = 0, room = 0;

	for (uint32_t i = 0; i < n; i++) {
		pass->input_first[i] = (uint32_t)total;
		if (add_inputs(pass, i, &total, &room))
			return -ENOMEM;
	}
	pass->input_first[n] = (uint32_t)total;
	pass->readers = calloc(total + 1, sizeof(*pass->readers));
	if (!pass->readers)
		return -ENOMEM;
	for (uint64_t i = 0; i < total; i++)
		pass->reader_first[pass->inputs[i] + 1]++;
	for (uint32_t i = 0; i < n; i++)
		pass->reader_first[i + 1] += pass->reader_first[i];
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = pass->input_first[i];
		        k < pass->input_first[i + 1]; k++)
			pass->readers[pass->reader_first[pass->inputs[k]]++] =
			        i;
	}
	for (uint32_t i = n; i > 0; i--)
		pass->reader_first[i] = pass->reader_first[i - 1];
	pass->reader_first[0] = 0;
	return 0;
}

int ts_pass_init(struct ts_pass *pass, const struct ts_graph *graph)
{
	uint64_t n = graph->n_gaps + UINT64_C(2);
	int err;

	memset(pass, 0, sizeof(*pass));
	pass->graph = graph;
	pass->guard = 0.02;
	pass->pivot_op = TS_NONE;
	pass->verdict = calloc(n, sizeof(*pass->verdict));
	pass->price_ns = calloc(n, sizeof(*pass->price_ns));
	pass->input_first = calloc(n, sizeof(*pass->input_first));
	pass->reader_first = calloc(n, sizeof(*pass->reader_first));
	pass->order_by_cost = calloc(n, sizeof(*pass->order_by_cost));
	pass->order_by_age = calloc(n, sizeof(*pass->order_by_age));
	pass->set = calloc(n, sizeof(*pass->set));
	pass->pos = calloc(n, sizeof(*pass->pos));
	pass->away = calloc(n, sizeof(*pass->away));
	if (!pass->verdict || !pass->price_ns || !pass->input_first ||
	        !pass->reader_first || !pass->order_by_cost ||
	        !pass->order_by_age || !pass->set || !pass->pos ||
	        !pass->away) {
		ts_pass_finish(pass);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < graph->n_gaps; i++)
		pass->price_ns[i] = graph->gaps[i].replay_ns;
	err = link_closures(pass);
	if (!err)
		err = rank(pass);
	if (err)
		ts_pass_finish(pass);
	return err;
}

void ts_pass_finish(struct ts_pass *pass)
{
	free(pass->verdict);
	free(pass->price_ns);
	free(pass->input_first);
	free(pass->inputs);
	free(pass->reader_first);
	free(pass->readers);
	free(pass->order_by_cost);
	free(pass->order_by_age);
	free(pass->set);
	free(pass->pos);
	free(pass->away);
	memset(pass, 0, sizeof(*pass));
}
