/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/absence.h"

/* Replays that one may bring forward, on tapes of up to so many ops; at least.
 */
#define MOST_PULLED  256
#define MOST_OPS     50000
#define LEAST_PULLED 64

uint32_t ts_absence_most_pulled(const struct ts_graph *g)
{
	uint64_t most = MOST_PULLED * (uint64_t)MOST_OPS / (g->n_ops + 1);

	if (most > MOST_PULLED)
		return MOST_PULLED;
	return most < LEAST_PULLED ? LEAST_PULLED : (uint32_t)most;
}

static void add_range(
        struct ts_absence *a, uint32_t away, uint32_t pos, int64_t size)
{
	uint32_t n = a->graph->n_ops;

	if (away < n)
		ts_segtree_add(a->memory, away, pos < n ? pos : n, size);
	if (pos > n)
		ts_segtree_add(
		        a->memory, away > n ? away - n : 0, pos - n, size);
}

/* An edge goes from @from to @to: what it passes over gets @size. */
static void move_edge(
        struct ts_absence *a, uint32_t from, uint32_t to, int64_t size)
{
	if (from < to)
		add_range(a, from, to, size);
	else if (to < from)
		add_range(a, to, from, -size);
}

void ts_absence_set(
        struct ts_absence *a, uint32_t gap, uint32_t away, uint32_t pos)
{
	struct ts_pass *pass = a->pass;
	int64_t size = (int64_t)a->graph->gaps[gap].size_bytes;
	uint32_t from = pass->away[gap], to = pass->pos[gap];

	pass->away[gap] = away;
	pass->pos[gap] = pos;
	if (from < pos && away < to && from < to && away < pos) {
		/* Mostly one end moves, and not far. */
		move_edge(a, from, away, size);
		move_edge(a, to, pos, -size);
		return;
	}
	if (from < to)
		add_range(a, from, to, size);
	if (away < pos)
		add_range(a, away, pos, -size);
}

uint32_t ts_absence_end(const struct ts_absence *a, uint32_t gap)
{
	const struct ts_pass *pass = a->pass;
	const struct ts_gap *info = &a->graph->gaps[gap];
	uint32_t pos = info->to_op;

	for (uint32_t k = pass->reader_first[gap];
	        k < pass->reader_first[gap + 1]; k++) {
		uint32_t reader = pass->readers[k], at = pass->pos[reader];

		if (a->choice->action[reader] != TS_REPLAY)
			continue;
		if (at <= info->from_op)
			at += a->graph->n_ops;
		if (at < pos)
			pos = at;
	}
	return pos;
}

static double start_of(
        const struct ts_absence *a, const double *time_ns, uint32_t op)
{
	uint32_t n = a->graph->n_ops;

	return op < n ? time_ns[op] : time_ns[n] + time_ns[op - n];
}

bool ts_absence_may_pull(const struct ts_absence *a, uint32_t gap, uint32_t pos,
        const double *time_ns, double pull_ns)
{
	struct ts_pass *pass = a->pass;
	uint32_t *stack = a->stack, depth = 0, seen = 0;

	stack[depth++] = gap;
	while (depth) {
		uint32_t at = stack[--depth];

		pass->looks++;
		if (++seen > a->most_pulled)
			return false;
		for (uint32_t k = pass->input_first[at];
		        k < pass->input_first[at + 1]; k++) {
			uint32_t input = pass->inputs[k];
			uint32_t own = ts_absence_own_op(
			        a, input, pos % a->graph->n_ops);

			if (a->choice->action[input] != TS_REPLAY ||
			        pass->pos[input] <= own)
				continue;
			if (time_ns &&
			        start_of(a, time_ns,
			                a->graph->gaps[input].to_op) -
			                        start_of(a, time_ns, own) >
			                pull_ns)
				return false;
			if (depth < a->graph->n_gaps)
				stack[depth++] = input;
		}
	}
	return true;
}

void ts_absence_pull(struct ts_absence *a, uint32_t gap)
{
	struct ts_pass *pass = a->pass;
	uint32_t *stack = a->stack, depth = 0;

	stack[depth++] = gap;
	while (depth) {
		uint32_t at = stack[--depth];

		pass->looks++;
		for (uint32_t k = pass->input_first[at];
		        k < pass->input_first[at + 1]; k++) {
			uint32_t input = pass->inputs[k];
			uint32_t pos =
			        ts_absence_own_op(a, input, pass->pos[at]);

			if (a->choice->action[input] == TS_KEEP ||
			        pass->pos[input] <= pos)
				continue;
			ts_absence_set(a, input, pass->away[input], pos);
			if (a->choice->action[input] == TS_REPLAY &&
			        depth < a->graph->n_gaps)
				stack[depth++] = input;
		}
	}
}
