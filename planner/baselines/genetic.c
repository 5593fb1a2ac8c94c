/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Genetic search over keep, swap and replay of every gap that bridges the
 * peak: the search space of POET, the method of SwapAdvisor. Compared offline
 * only. Seeded by plans, or started from random ones.
 */
#include "planner/baselines/baseline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POPULATION 24

struct genetic {
	struct ts_search *search;
	uint32_t *genes; /* gaps that may change */
	uint32_t n;
	uint8_t *plans; /* POPULATION + 1 rows of n actions */
	uint64_t fitness[POPULATION + 1];
	uint64_t random;
	enum ts_window_mode windows;
	struct ts_baseline_result *result;
};

static uint32_t draw(struct genetic *ga, uint32_t below)
{
	ga->random ^= ga->random >> 12;
	ga->random ^= ga->random << 25;
	ga->random ^= ga->random >> 27;
	return (uint32_t)((ga->random * UINT64_C(2685821657736338717)) >> 33) %
	       below;
}

static uint8_t *plan(struct genetic *ga, uint32_t row)
{
	return ga->plans + (uint64_t)row * ga->n;
}

static uint8_t random_action(struct genetic *ga, uint32_t gene)
{
	const struct ts_gap *gap = &ga->search->graph->gaps[ga->genes[gene]];

	return (uint8_t)draw(ga, gap->replay_ns == TS_NEVER ? 2 : 3);
}

/* Plans that do not fit rank by how far they are above the limit. */
static int evaluate(struct genetic *ga, uint32_t row)
{
	struct ts_search *s = ga->search;
	struct ts_outcome outcome;
	int err;

	memset(s->trial.action, TS_KEEP, s->trial.n_gaps);
	for (uint32_t i = 0; i < ga->n; i++)
		s->trial.action[ga->genes[i]] = plan(ga, row)[i];
	ts_windows_set(s->graph, &s->trial, ga->windows);
	err = ts_model_run(s->model, &s->trial, &outcome, NULL);
	if (err)
		return err;
	ga->fitness[row] = outcome.fits ? outcome.step_ns
	                                : (TS_NEVER / 2) + outcome.stuck_bytes;
	if (outcome.fits &&
	        (!ga->result->outcome.fits ||
	                outcome.step_ns < ga->result->outcome.step_ns)) {
		ga->result->outcome = outcome;
		ts_choice_copy(&ga->result->choice, &s->trial);
	}
	return 0;
}

static uint32_t tournament(struct genetic *ga)
{
	uint32_t a = draw(ga, POPULATION), b = draw(ga, POPULATION);

	return ga->fitness[a] <= ga->fitness[b] ? a : b;
}

static uint32_t worst(const struct genetic *ga)
{
	uint32_t at = 0;

	for (uint32_t i = 1; i < POPULATION; i++) {
		if (ga->fitness[i] > ga->fitness[at])
			at = i;
	}
	return at;
}

static int first_population(struct genetic *ga,
        const struct ts_choice *const *seeds, uint32_t n_seeds)
{
	int err = 0;

	for (uint32_t row = 0; !err && row < POPULATION; row++) {
		for (uint32_t i = 0; i < ga->n; i++) {
			uint8_t action = random_action(ga, i);

			/* Seeds as they are, then slightly changed ones. */
			if (n_seeds && (row < n_seeds || draw(ga, 50)))
				action = seeds[row % n_seeds]
				                 ->action[ga->genes[i]];
			plan(ga, row)[i] = action;
		}
		err = evaluate(ga, row);
	}
	return err;
}

static int next_child(struct genetic *ga)
{
	const uint8_t *mother = plan(ga, tournament(ga));
	const uint8_t *father = plan(ga, tournament(ga));
	uint32_t from = draw(ga, ga->n), length = draw(ga, ga->n) + 1, out;
	uint8_t *child = plan(ga, POPULATION);
	int err;

	memcpy(child, mother, ga->n);
	for (uint32_t i = 0; i < length; i++)
		child[(from + i) % ga->n] = father[(from + i) % ga->n];
	for (uint32_t i = draw(ga, 4); i > 0; i--) {
		uint32_t gene = draw(ga, ga->n);

		child[gene] = random_action(ga, gene);
	}
	err = evaluate(ga, POPULATION);
	out = worst(ga);
	if (!err && ga->fitness[POPULATION] < ga->fitness[out]) {
		memcpy(plan(ga, out), child, ga->n);
		ga->fitness[out] = ga->fitness[POPULATION];
	}
	return err;
}

int ts_genetic(struct ts_search *search, const struct ts_choice *const *seeds,
        uint32_t n_seeds, uint32_t evaluations,
        struct ts_baseline_result *result)
{
	const struct ts_graph *g = search->graph;
	struct genetic ga = {.search = search,
	        .random = UINT64_C(0x2545f4914f6cdd1d),
	        .windows = TS_WINDOWS_TURN,
	        .result = result};
	uint32_t pivot = ts_baseline_pivot(g);
	int err;

	memset(result, 0, sizeof(*result));
	result->outcome.step_ns = TS_NEVER;
	result->plain = true;
	err = ts_choice_init(&result->choice, g->n_gaps);
	if (err)
		return err;
	ga.genes = calloc(g->n_gaps + UINT64_C(1), sizeof(*ga.genes));
	if (!ga.genes)
		err = -ENOMEM;
	for (uint32_t i = 0; !err && i < g->n_gaps; i++) {
		if (ts_baseline_bridges(&g->gaps[i], pivot))
			ga.genes[ga.n++] = i;
	}
	if (!err) {
		ga.plans = calloc((POPULATION + 1) * (uint64_t)ga.n + 1, 1);
		err = ga.plans ? 0 : -ENOMEM;
	}
	if (!err && ga.n)
		err = first_population(&ga, seeds, n_seeds);
	for (uint32_t i = POPULATION; !err && ga.n && i < evaluations; i++)
		err = next_child(&ga);
	free(ga.genes);
	free(ga.plans);
	if (err)
		ts_choice_finish(&result->choice);
	return err;
}
