/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Static page assignment: no chunk is ever in two places at once. */
#include "tests/unit/planner/suite.h"

#include <string.h>

#include "planner/pages.h"
#include "planner/plan.h"
#include "planner/repair.h"
#include "planner/workloads.h"
#include "tests/unit/planner/random_tape.h"

static void check(const struct ts_graph *g, const struct ts_pages *pages)
{
	uint32_t *until = calloc(pages->n_chunks + 1, sizeof(*until));
	uint32_t *by_start = calloc(g->n_ops + 2, sizeof(*by_start));
	uint32_t *order = calloc(pages->n_residencies + 1, sizeof(*order));

	/* Residencies by start, by counting. */
	for (uint32_t i = 0; i < pages->n_residencies; i++)
		by_start[pages->residencies[i].from_op + 1]++;
	for (uint32_t i = 0; i <= g->n_ops; i++)
		by_start[i + 1] += by_start[i];
	for (uint32_t i = 0; i < pages->n_residencies; i++)
		order[by_start[pages->residencies[i].from_op]++] = i;
	for (uint32_t i = 0; i < pages->n_residencies; i++) {
		const struct ts_residency *r = &pages->residencies[order[i]];
		uint64_t count = 0;

		for (uint32_t k = 0; k < r->n_runs; k++) {
			const struct ts_page_run *run =
			        &pages->runs[r->first_run + k];

			count += run->count;
			for (uint32_t c = run->first_chunk;
			        c < run->first_chunk + run->count; c++) {
				ck_assert_uint_lt(c, pages->n_chunks);
				ck_assert_msg(until[c] <= r->from_op,
				        "chunk %u is taken twice at op %u", c,
				        r->from_op);
				until[c] = r->to_op + 1;
			}
		}
		ck_assert_uint_ge(count * TS_PAGE_BYTES,
		        g->objects[r->object].size_bytes);
	}
	ck_assert_uint_ge(pages->n_chunks, pages->peak_pages);
	free(until);
	free(by_start);
	free(order);
}

static void plan_and_check(
        const struct ts_profile *p, uint64_t limit, struct ts_pages *pages)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_search search;
	struct ts_graph g;

	options.search_evaluations = 0;
	ck_assert_int_eq(
	        ts_graph_init(&g, p, &(struct ts_graph_options){TS_PAGE_BYTES}),
	        0);
	ck_assert_int_eq(ts_search_init(&search, &g, limit), 0);
	ck_assert_int_eq(ts_plan_search(&search, &options), 0);
	if (search.best.outcome.fits) {
		ck_assert_int_eq(ts_search_settle(&search), 0);
		ck_assert_int_eq(ts_pages_assign(&g, &search.best.choice,
		                         ts_model_left(search.model),
		                         ts_model_back(search.model), pages),
		        0);
		check(&g, pages);
	}
	ts_search_finish(&search);
	ts_graph_finish(&g);
}

START_TEST(pages_of_random_tapes_do_not_meet)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct ts_pages pages = {0};
		struct ts_profile p;
		struct ts_graph g;
		uint64_t limit;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		limit = (g.floor_bytes + g.peak_bytes) / 2;
		ts_graph_finish(&g);
		plan_and_check(&p, limit, &pages);
		ts_pages_finish(&pages);
		ts_profile_finish(&p);
	}
}
END_TEST

START_TEST(reference_workloads_need_few_chunks_beyond_the_peak)
{
	static const char *const names[] = {
	        "bert-large", "gpt2-xl", "llama-7b"};

	for (size_t i = 0; i < 3; i++) {
		struct ts_pages pages = {0};
		struct ts_profile p;
		struct ts_graph g;
		uint64_t limit;

		ck_assert_int_eq(
		        ts_workload(names[i], ts_machine_find("a100"), &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		limit = g.peak_bytes / 2;
		ts_graph_finish(&g);
		plan_and_check(&p, limit, &pages);
		printf("%s: %u chunks, peak %u pages, %u remaps\n", names[i],
		        pages.n_chunks, pages.peak_pages, pages.remaps);
		ck_assert_double_le((double)pages.n_chunks,
		        1.02 * (double)pages.peak_pages);
		ts_pages_finish(&pages);
		ts_profile_finish(&p);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {pages_of_random_tapes_do_not_meet,
	        reference_workloads_need_few_chunks_beyond_the_peak};

	return ts_run_suite(
	        "planner pages", tests, sizeof(tests) / sizeof(tests[0]), 300);
}
