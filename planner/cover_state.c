/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the pass over all gaps keeps from round to round. */
#include "planner/cover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Distinct ops of the static closure of @gap; into @ops. */
static uint32_t closure_of(
        const struct ts_graph *g, uint32_t gap, uint32_t ops[TS_CLOSURE_MAX])
{
	uint32_t values[TS_CLOSURE_MAX], n, count = 0;

	if (g->gaps[gap].replay_ns == TS_NEVER)
		return 0;
	n = ts_graph_closure(
	        g, g->gaps[gap].version, g->gaps[gap].to_op, values);
	for (uint32_t i = 0; i < n; i++) {
		struct ts_producer producer;
		bool counted = false;

		/* A rebuild serves one value: nothing shares it. */
		if (!ts_graph_producer(g, values[i], &producer) ||
		        producer.op == TS_NONE)
			continue;
		for (uint32_t k = 0; k < count && !counted; k++)
			counted = ops[k] == producer.op;
		if (!counted)
			ops[count++] = producer.op;
	}
	return count;
}

static int list_closures(struct ts_cover *c)
{
	const struct ts_graph *g = c->pass->graph;
	uint32_t ops[TS_CLOSURE_MAX], total = 0;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		c->closure_first[i] = total;
		total += closure_of(g, i, ops);
	}
	c->closure_first[g->n_gaps] = total;
	c->closure_ops = calloc(total + UINT64_C(1), sizeof(*c->closure_ops));
	c->users = calloc(total + UINT64_C(1), sizeof(*c->users));
	if (!c->closure_ops || !c->users)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		uint32_t n = closure_of(g, i, ops);

		memcpy(c->closure_ops + c->closure_first[i], ops,
		        n * sizeof(*ops));
		for (uint32_t k = 0; k < n; k++)
			c->user_first[ops[k] + 1]++;
	}
	for (uint32_t i = 0; i < g->n_ops; i++)
		c->user_first[i + 1] += c->user_first[i];
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		for (uint32_t k = c->closure_first[i];
		        k < c->closure_first[i + 1]; k++)
			c->users[c->user_first[c->closure_ops[k]]++] = i;
	}
	for (uint32_t i = g->n_ops; i > 0; i--)
		c->user_first[i] = c->user_first[i - 1];
	c->user_first[0] = 0;
	return 0;
}

int ts_cover_init(struct ts_cover *c, struct ts_pass *pass)
{
	const struct ts_graph *g = pass->graph;
	uint64_t gaps = g->n_gaps + UINT64_C(1), ops = g->n_ops + UINT64_C(2);
	int err;

	memset(c, 0, sizeof(*c));
	c->pass = pass;
	c->extra_bytes = calloc(ops, sizeof(*c->extra_bytes));
	c->start_bytes = calloc(ops, sizeof(*c->start_bytes));
	c->over_ns = calloc(2 * ops, sizeof(*c->over_ns));
	c->time_ns = calloc(ops, sizeof(*c->time_ns));
	c->closure_first = calloc(gaps + 1, sizeof(*c->closure_first));
	c->user_first = calloc(ops, sizeof(*c->user_first));
	c->paid_until = calloc(ops, sizeof(*c->paid_until));
	c->later = calloc(gaps, sizeof(*c->later));
	c->heap.place_of = calloc(gaps, sizeof(*c->heap.place_of));
	c->key = calloc(gaps, sizeof(*c->key));
	c->heap.items = calloc(gaps, sizeof(*c->heap.items));
	c->stack = calloc(gaps, sizeof(*c->stack));
	err = c->extra_bytes && c->start_bytes && c->over_ns && c->key &&
	                      c->heap.items && c->stack && c->time_ns &&
	                      c->closure_first && c->user_first &&
	                      c->paid_until && c->heap.place_of && c->later
	              ? 0
	              : -ENOMEM;
	if (!err)
		err = ts_slots_init(&c->out);
	if (!err)
		err = ts_slots_init(&c->in);
	if (!err)
		err = list_closures(c);
	if (err) {
		ts_cover_finish(c);
		return err;
	}
	memset(c->later, 0xff, gaps * sizeof(*c->later));
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (g->gaps[i].earlier != TS_NONE)
			c->later[g->gaps[i].earlier] = i;
	}
	return 0;
}

void ts_cover_finish(struct ts_cover *c)
{
	ts_slots_finish(&c->out);
	ts_slots_finish(&c->in);
	ts_segtree_finish(&c->memory);
	free(c->extra_bytes);
	free(c->start_bytes);
	free(c->over_ns);
	free(c->time_ns);
	free(c->closure_first);
	free(c->closure_ops);
	free(c->user_first);
	free(c->users);
	free(c->paid_until);
	free(c->later);
	free(c->key);
	free(c->heap.items);
	free(c->heap.place_of);
	free(c->stack);
	memset(c, 0, sizeof(*c));
}

void ts_cover_reset(struct ts_cover *c)
{
	const struct ts_graph *g = c->pass->graph;

	memset(c->extra_bytes, 0, g->n_ops * sizeof(*c->extra_bytes));
	for (uint32_t i = 0; i <= g->n_ops; i++)
		c->time_ns[i] = (double)g->start_ns[i];
}

void ts_cover_move_times(
        struct ts_cover *c, const double *time_ns, double share)
{
	for (uint32_t i = 0; i <= c->pass->graph->n_ops; i++)
		c->time_ns[i] += share * (time_ns[i] - c->time_ns[i]);
}
