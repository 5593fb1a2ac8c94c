/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/graph.h"

uint32_t ts_graph_gap_at(const struct ts_graph *g, uint32_t value, uint32_t op)
{
	uint32_t object = g->object_of[value];
	uint32_t low = g->object_first[object];
	uint32_t end = g->object_first[object + 1];
	uint32_t high = end;

	/* The last gap that starts before op. */
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (g->gaps[g->object_gaps[mid]].from_op < op)
			low = mid + 1;
		else
			high = mid;
	}
	if (low > g->object_first[object] &&
	        g->gaps[g->object_gaps[low - 1]].to_op >= op)
		return g->object_gaps[low - 1];
	/* Before the first use the gap that wraps is still open. */
	if (end > g->object_first[object] &&
	        g->gaps[g->object_gaps[end - 1]].to_op >= g->n_ops + op)
		return g->object_gaps[end - 1];
	return TS_NONE;
}

bool ts_graph_producer(const struct ts_graph *g, uint32_t value,
        struct ts_producer *ret_producer)
{
	const struct ts_profile *p = g->profile;
	const struct ts_value *v = &p->values[value];
	const struct ts_profile_op *op;

	if (g->writer[value] == TS_NONE || v->no_replay)
		return false;
	if (v->rebuild != TS_NONE) {
		const struct ts_rebuild *rebuild = &p->rebuilds[v->rebuild];

		*ret_producer = (struct ts_producer){TS_NONE,
		        rebuild->duration_ns, p->uses + rebuild->first_read,
		        rebuild->n_reads};
		return true;
	}
	op = &p->ops[g->writer[value]];
	if (!p->signatures[op->signature].replayable)
		return false;
	*ret_producer = (struct ts_producer){g->writer[value], op->duration_ns,
	        p->uses + op->first_read, op->n_reads};
	return true;
}

uint32_t ts_graph_closure(const struct ts_graph *g, uint32_t value, uint32_t op,
        uint32_t ret_values[TS_CLOSURE_MAX])
{
	uint32_t n = 1;

	/* Breadth first: ret_values is both the queue and the result. */
	ret_values[0] = value;
	for (uint32_t at = 0; at < n; at++) {
		struct ts_producer producer;

		if (!ts_graph_producer(g, ret_values[at], &producer))
			return 0;
		for (uint32_t k = 0; k < producer.n_reads; k++) {
			uint32_t read = producer.reads[k];
			bool known = ts_graph_alive(g, read, op);

			for (uint32_t i = 0; !known && i < n; i++)
				known = ret_values[i] == read;
			if (known)
				continue;
			if (n == TS_CLOSURE_MAX)
				return 0;
			ret_values[n++] = read;
		}
	}
	return n;
}

uint64_t ts_graph_closure_ns(
        const struct ts_graph *g, const uint32_t *values, uint32_t n)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct ts_producer producer;
		bool counted = false;

		if (!ts_graph_producer(g, values[i], &producer))
			return TS_NEVER;
		for (uint32_t k = 0; k < i && !counted; k++)
			counted = producer.op != TS_NONE &&
			          g->writer[values[k]] == producer.op &&
			          g->profile->values[values[k]].rebuild ==
			                  TS_NONE;
		if (!counted)
			ns += producer.duration_ns;
	}
	return ns;
}
