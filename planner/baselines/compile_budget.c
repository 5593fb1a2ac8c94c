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
	double *best;   /* by capacity step */
	uint8_t *taken; /* n rows of STEPS + 1 */
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
		double need = unit > 0 ? (double)gap->size_bytes / unit : 1e9;
		double gain = (double)p->ops[gap->born_op].duration_ns;

		for (uint32_t c = STEPS + 1; c-- > 0;) {
			double rest = (double)c - need;

			if (rest < 0)
				break;
			if (b->best[(uint32_t)rest] + gain > b->best[c]) {
				b->best[c] = b->best[(uint32_t)rest] + gain;
				b->taken[(uint64_t)i * (STEPS + 1) + c] = 1;
			}
		}
	}
	for (uint32_t i = b->n; i-- > 0;) {
		const struct ts_gap *gap = &b->graph->gaps[b->items[i]];

		choice->action[b->items[i]] = TS_REPLAY;
		if (!b->taken[(uint64_t)i * (STEPS + 1) + at])
			continue;
		choice->action[b->items[i]] = TS_KEEP;
		at = (uint32_t)((double)at - (double)gap->size_bytes / unit);
	}
}

int ts_baseline_compile_budget(
        struct ts_search *search, struct ts_baseline_result *result)
{
	struct budget b = {.graph = search->graph};
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
	if (!b.best || !b.taken)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i <= BUDGETS; i++) {
		fill(&b, &result->choice, 1 - (double)i / BUDGETS);
		err = ts_baseline_simulate(
		        search, result, TS_WINDOWS_TURN, NULL);
		if (result->outcome.fits)
			break;
	}
	free(b.items);
	free(b.best);
	free(b.taken);
	return err;
}
