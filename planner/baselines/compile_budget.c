/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory budget of torch.compile: recomputing is free (norms, activation
 * functions, dropout) or forbidden (everything heavy), so by default exactly
 * the heavy outputs are saved, the cut with the fewest bytes. Where that is
 * above the budget, a knapsack decides which of them are saved: each op's own
 * run time against the size of its output, added up. The budget that first
 * fits is taken, as a user would find it by trying.
 */
#include "planner/baselines/baseline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps of the discretized capacity of the knapsack. */
#define STEPS 256
/* Budgets that are tried, from all of the default down to nothing. */
#define BUDGETS 20

static bool forbidden(enum ts_op_class c)
{
	return c != TS_CLASS_NORM && c != TS_CLASS_ELEMENTWISE &&
	       c != TS_CLASS_DROPOUT && c != TS_CLASS_POOL;
}

struct budget {
	const struct ts_graph *graph;
	uint32_t *items; /* gaps of forbidden ops */
	uint32_t n;
	uint64_t bytes;
	double *best;    /* by capacity step */
	uint8_t *taken;  /* n rows of STEPS + 1 */
	int64_t *change; /* by op */
};

static void collect(struct budget *b, struct ts_choice *choice)
{
	const struct ts_graph *g = b->graph;
	uint32_t pivot = ts_baseline_pivot(g);

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		if (!ts_baseline_bridges(gap, pivot) ||
		        gap->replay_ns == TS_NEVER)
			continue;
		choice->action[i] = TS_REPLAY;
		if (!forbidden(ts_baseline_class(g, gap)))
			continue;
		b->items[b->n++] = i;
		b->bytes += gap->size_bytes;
	}
}

/* Steps of the capacity that the item takes; more than there are at most. */
static uint32_t steps_of(const struct budget *b, uint32_t item, double unit)
{
	double size = (double)b->graph->gaps[b->items[item]].size_bytes;
	double steps = unit > 0 ? ceil(size / unit - 1e-12) : STEPS + 1;

	return steps < STEPS + 1 ? (uint32_t)steps : STEPS + 1;
}

/* Saves what the knapsack takes into @share of the default's bytes. */
static void fill(struct budget *b, struct ts_choice *choice, double share)
{
	const struct ts_profile *p = b->graph->profile;
	double unit = share * (double)b->bytes / STEPS;
	uint32_t at = STEPS;

	memset(b->best, 0, (STEPS + 1) * sizeof(*b->best));
	memset(b->taken, 0, (uint64_t)b->n * (STEPS + 1));
	for (uint32_t i = 0; i < b->n; i++) {
		const struct ts_gap *gap = &b->graph->gaps[b->items[i]];
		uint8_t *taken = b->taken + (uint64_t)i * (STEPS + 1);
		double gain = (double)p->ops[gap->born_op].duration_ns;
		uint32_t steps = steps_of(b, i, unit);

		for (uint32_t c = STEPS + 1; c-- > steps;) {
			double with = b->best[c - steps] + gain;

			if (with > b->best[c]) {
				b->best[c] = with;
				taken[c] = 1;
			}
		}
	}
	for (uint32_t i = b->n; i-- > 0;) {
		choice->action[b->items[i]] = TS_REPLAY;
		if (!b->taken[(uint64_t)i * (STEPS + 1) + at])
			continue;
		choice->action[b->items[i]] = TS_KEEP;
		at -= steps_of(b, i, unit);
	}
}

/*
 * False: even with nothing beside the ops, what is kept does not fit. A run
 * would end there as well, but takes longer to say so.
 */
static bool may_fit(const struct budget *b, const struct ts_choice *choice,
        uint64_t limit_bytes)
{
	const struct ts_graph *g = b->graph;
	int64_t away = 0;

	memset(b->change, 0, (g->n_ops + UINT64_C(1)) * sizeof(*b->change));
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		if (choice->action[i] != TS_REPLAY)
			continue;
		b->change[gap->from_op + 1] += (int64_t)gap->size_bytes;
		if (gap->to_op <= g->n_ops)
			b->change[gap->to_op] -= (int64_t)gap->size_bytes;
	}
	for (uint32_t i = 0; i < g->n_ops; i++) {
		away += b->change[i];
		if ((int64_t)g->mem_bytes[i] - away > (int64_t)limit_bytes)
			return false;
	}
	return true;
}

int ts_baseline_compile_budget(
        struct ts_search *search, struct ts_baseline_result *result)
{
	struct budget b = {.graph = search->graph};
	uint32_t first = 0;
	int err = 0;

	ts_baseline_clear(&result->choice);
	if (b.graph->peak_bytes <= search->limit_bytes)
		return ts_baseline_simulate(
		        search, result, TS_WINDOWS_TURN, NULL);
	b.items = calloc(b.graph->n_gaps + UINT64_C(1), sizeof(*b.items));
	if (!b.items)
		return -ENOMEM;
	collect(&b, &result->choice);
	b.best = calloc(STEPS + 1, sizeof(*b.best));
	b.taken = calloc((uint64_t)b.n * (STEPS + 1) + 1, 1);
	b.change = calloc(b.graph->n_ops + UINT64_C(1), sizeof(*b.change));
	if (!b.best || !b.taken || !b.change)
		err = -ENOMEM;
	/* All that may be dropped is: where that does not fit, nothing does. */
	else if (!may_fit(&b, &result->choice, search->limit_bytes))
		first = BUDGETS;
	for (uint32_t i = first; !err && i <= BUDGETS; i++) {
		fill(&b, &result->choice, 1 - (double)i / BUDGETS);
		if (i < BUDGETS &&
		        !may_fit(&b, &result->choice, search->limit_bytes))
			continue;
		err = ts_baseline_simulate(
		        search, result, TS_WINDOWS_TURN, NULL);
		if (result->outcome.fits)
			break;
	}
	free(b.items);
	free(b.best);
	free(b.taken);
	free(b.change);
	return err;
}
