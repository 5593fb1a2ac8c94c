/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/trace_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the step's last round tells of ops and copies. */
struct round {
	double start;
	double *op_end;                /* by op */
	double *copy_begin, *copy_end; /* by value, copies out; 0: none */
	uint32_t *came;                /* by gap, copies in */
	struct ts_trace_change *changes;
	size_t count;
};

static int round_init(struct round *round, const struct ts_graph *g,
        size_t n_events, double start)
{
	size_t n_values = g->profile->n_values;

	*round = (struct round){.start = start,
	        .op_end = calloc(g->n_ops + 1ull, sizeof(double)),
	        .copy_begin = calloc(n_values + 1, sizeof(double)),
	        .copy_end = calloc(n_values + 1, sizeof(double)),
	        .came = calloc(g->n_gaps + 1ull, sizeof(uint32_t)),
	        .changes = calloc(
	                2 * n_events + g->n_gaps + 1, sizeof(*round->changes))};
	return round->op_end && round->copy_begin && round->copy_end &&
	                       round->came && round->changes
	               ? 0
	               : -ENOMEM;
}

static void add(struct round *round, double ns, double bytes)
{
	round->changes[round->count++] = (struct ts_trace_change){ns, bytes};
}

/* Ops and replays allocate and free; copies in take. */
static void take_event(struct round *round, const struct ts_program *program,
        const struct ts_trace_event *event)
{
	const struct ts_instr *instr = &program->instrs[event->index];
	double size;

	switch (event->lane) {
	case TS_LANE_COMPUTE:
		round->op_end[instr->op] = event->end;
		/* fall through */
	case TS_LANE_REPLAY:
		add(round, event->begin, (double)instr->alloc_bytes);
		add(round, event->end, -(double)instr->free_bytes);
		break;
	case TS_LANE_D2H:
		round->copy_begin[event->index] = event->begin;
		round->copy_end[event->index] = event->end;
		break;
	case TS_LANE_H2D:
		size = (double)program->graph->gaps[event->index].size_bytes;
		/* It had come too early, and left again. */
		if (round->came[event->index]++)
			add(round, event->begin, -size);
		add(round, event->begin, size);
		break;
	}
}

/*
 * When the value of @gap leaves: with its last use, or with its copy where that
 * ends later. One that stays away into the next step may still be leaving as
 * this one begins.
 */
static double leaves_at(
        const struct round *round, const struct ts_gap *gap, uint32_t n_ops)
{
	double used = round->op_end[gap->from_op];
	double begun = round->copy_begin[gap->version];
	double copied = round->copy_end[gap->version];

	if (copied > round->start && begun < round->start)
		return gap->to_op >= n_ops ? copied : used;
	return copied > used ? copied : used;
}

/* What is copied out leaves, what is made again is dropped. */
static void take_gap(struct round *round, const struct ts_graph *g,
        const struct ts_choice *choice, uint32_t gap)
{
	const struct ts_gap *info = &g->gaps[gap];

	if (choice->action[gap] == TS_REPLAY)
		add(round, round->op_end[info->from_op],
		        -(double)info->size_bytes);
	else if (choice->action[gap] == TS_SWAP && round->came[gap])
		add(round, leaves_at(round, info, g->n_ops),
		        -(double)info->size_bytes);
}

static int by_time(const void *a, const void *b)
{
	const struct ts_trace_change *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* What was there at the start is known from the peak. */
static double first_bytes(const struct round *round, uint64_t peak_bytes)
{
	double used = 0, most = 0;

	for (size_t i = 0; i < round->count; i++) {
		used += round->changes[i].bytes;
		if (used > most)
			most = used;
	}
	return (double)peak_bytes - most;
}

int ts_trace_memory(const struct ts_trace_events *events,
        const struct ts_program *program, const struct ts_choice *choice,
        double start_ns, uint64_t peak_bytes,
        struct ts_trace_change **ret_changes, size_t *ret_count,
        double *ret_bytes)
{
	const struct ts_graph *g = program->graph;
	struct round round;
	int rc = round_init(&round, g, events->count, start_ns);

	if (rc)
		goto out_round;
	for (size_t i = 0; i < events->count; i++)
		if (events->items[i].end > start_ns)
			take_event(&round, program, &events->items[i]);
	for (uint32_t gap = 0; gap < g->n_gaps; gap++)
		take_gap(&round, g, choice, gap);
	qsort(round.changes, round.count, sizeof(*round.changes), by_time);
	*ret_bytes = first_bytes(&round, peak_bytes);
	*ret_count = round.count;
	*ret_changes = round.changes;
	round.changes = NULL;
out_round:
	free(round.op_end);
	free(round.copy_begin);
	free(round.copy_end);
	free(round.came);
	free(round.changes);
	return rc;
}
