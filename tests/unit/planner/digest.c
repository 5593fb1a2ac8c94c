/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints the plans of reference workloads and random tapes, as plan.json has
 * them: built at several levels of optimisation, and run in several
 * environments, it must print the same bytes.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/workloads.h"
#include "tests/unit/planner/random_tape.h"

#define TAPES      150
#define WIDE_TAPES 20

static int print_plan(const struct ts_profile *p, uint64_t limit_bytes)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_plan plan;
	json_t *root;
	int err;

	options.search_evaluations = 100;
	if (ts_plan_make(p, limit_bytes, &options, &plan, NULL))
		return -1;
	root = ts_plan_to_json(&plan, p);
	ts_plan_finish(&plan);
	err = json_dumpf(root, stdout, JSON_SORT_KEYS | JSON_INDENT(1));
	json_decref(root);
	return err;
}

static int print_shares(const struct ts_profile *p)
{
	struct ts_graph g;
	uint64_t floor, peak;
	int err = ts_graph_init(&g, p, &(struct ts_graph_options){0});

	if (err)
		return err;
	floor = g.floor_bytes;
	peak = g.peak_bytes;
	ts_graph_finish(&g);
	for (uint64_t k = 1; !err && k < 4; k++)
		err = print_plan(p, floor + (peak - floor) / 4 * k);
	return err;
}

int main(void)
{
	static const char *const names[] = {"bert-large", "gpt2-xl", "vgg-16"};
	struct ts_profile p;
	int err = 0;

	setlocale(LC_ALL, "");
	for (uint64_t seed = 0; !err && seed < TAPES + WIDE_TAPES; seed++) {
		err = seed < TAPES ? ts_random_tape(seed, &p)
		                   : ts_random_wide_tape(seed, &p);
		if (!err)
			err = print_shares(&p);
		ts_profile_finish(&p);
	}
	for (int i = 0; !err && i < 3; i++) {
		err = ts_workload(names[i], ts_machine_find("a100"), &p);
		if (!err)
			err = print_shares(&p);
		ts_profile_finish(&p);
	}
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
