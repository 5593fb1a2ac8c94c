/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Page assignment: every page has a chunk over all its spans, no chunk is in
 * two places at once, counts are right, few chunks do, and what it takes
 * itself is bounded.
 */
#include "tests/unit/planner/suite.h"

#include <errno.h>
#include <string.h>

#include "planner/packing.h"
#include "planner/pages.h"
#include "planner/plan.h"
#include "planner/workloads.h"
#include "tests/unit/planner/random_tape.h"

/* Check tells its parent of every assertion: too slow for so many. */
static void must(bool holds, const char *what, uint64_t which)
{
	if (!holds)
		ck_abort_msg("%s (%llu)", what, (unsigned long long)which);
}

/* Chunks by page of the runs, one after the other, and span. */
struct chunks {
	uint32_t *of;
	uint64_t *first; /* by run */
};

static struct chunks spread(
        const struct ts_pack_input *in, const struct ts_packing *packing)
{
	struct chunks c = {NULL, calloc(in->n_runs + 1, sizeof(*c.first))};

	for (uint32_t r = 0; r < in->n_runs; r++)
		c.first[r + 1] = c.first[r] + (uint64_t)in->runs[r].count *
		                                      in->runs[r].n_spans;
	c.of = malloc((c.first[in->n_runs] + 1) * sizeof(*c.of));
	memset(c.of, 0xff, (c.first[in->n_runs] + 1) * sizeof(*c.of));
	for (uint32_t i = 0; i < packing->n_pieces; i++) {
		const struct ts_pack_piece *piece = &packing->pieces[i];
		const struct ts_pack_run *run = &in->runs[piece->run];
		uint32_t *at = c.of + c.first[piece->run] +
		               (uint64_t)piece->span * run->count +
		               piece->offset;

		must(piece->offset + piece->count <= run->count,
		        "a piece outside its run", i);
		for (uint32_t k = 0; k < piece->count; k++) {
			must(at[k] == UINT32_MAX, "a page placed twice", i);
			at[k] = piece->first_chunk + k;
		}
	}
	return c;
}

/* Remaps as they are counted page by page; every slot of a chunk has one. */
static uint64_t check_packing(
        const struct ts_pack_input *in, const struct ts_packing *packing)
{
	struct chunks c = spread(in, packing);
	uint8_t *taken =
	        calloc((uint64_t)packing->n_chunks * in->n_slots + 1, 1);
	uint64_t remaps = 0;

	for (uint32_t r = 0; r < in->n_runs; r++) {
		const struct ts_pack_run *run = &in->runs[r];

		for (uint32_t k = 0; k < run->n_spans * run->count; k++) {
			uint32_t n = k / run->count, page = k % run->count;
			uint32_t before = n ? n - 1 : run->n_spans - 1;
			uint32_t chunk = c.of[c.first[r] + k];
			const struct ts_pack_span *span =
			        &in->spans[run->first_span + n];

			must(chunk < packing->n_chunks, "no such chunk", chunk);
			for (uint32_t s = span->from; s <= span->to; s++) {
				uint8_t *slot =
				        &taken[(uint64_t)chunk * in->n_slots +
				                s];

				must(!*slot, "a chunk taken twice", chunk);
				*slot = 1;
			}
			remaps += chunk !=
			          c.of[c.first[r] +
			                  (uint64_t)before * run->count + page];
		}
	}
	ck_assert_uint_eq(remaps, packing->remaps);
	free(taken);
	free(c.of);
	free(c.first);
	return remaps;
}

#define RUNS  30
#define SPANS (RUNS * 5)

struct random_runs {
	struct ts_pack_run runs[RUNS];
	struct ts_pack_span spans[SPANS];
	struct ts_pack_input in;
	uint32_t peak;
};

static void make_runs(struct ts_random *r, struct random_runs *to)
{
	uint32_t pages[64] = {0}, n_spans = 0;

	to->in = (struct ts_pack_input){.runs = to->runs,
	        .n_runs = 1 + ts_random_below(r, RUNS),
	        .spans = to->spans,
	        .n_slots = 1 + ts_random_below(r, 60),
	        .most_sent = UINT64_MAX};
	to->peak = 0;
	for (uint32_t i = 0; i < to->in.n_runs; i++) {
		struct ts_pack_run *run = &to->runs[i];
		uint32_t at = ts_random_below(r, 3)
		                      ? ts_random_below(r, to->in.n_slots)
		                      : 0;

		*run = (struct ts_pack_run){.count = 1 + ts_random_below(r, 9),
		        .first_span = n_spans};
		while (run->n_spans < 5 && at < to->in.n_slots) {
			uint32_t end = at + ts_random_below(r, 12);

			if (end >= to->in.n_slots)
				end = to->in.n_slots - 1;
			to->spans[n_spans++] = (struct ts_pack_span){at, end};
			run->n_spans++;
			for (uint32_t s = at; s <= end; s++)
				pages[s] += run->count;
			at = end + 2 + ts_random_below(r, 12);
		}
		run->wraps = run->n_spans > 1 &&
		             !to->spans[run->first_span].from &&
		             to->spans[n_spans - 1].to + 1 == to->in.n_slots;
	}
	for (uint32_t s = 0; s < to->in.n_slots; s++)
		to->peak = pages[s] > to->peak ? pages[s] : to->peak;
}

START_TEST(random_runs_never_meet)
{
	uint64_t chunks = 0, peaks = 0, remaps = 0, moves = 0;

	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct random_runs random;
		struct ts_packing packing;
		struct ts_random r;

		ts_random_seed(&r, seed);
		make_runs(&r, &random);
		random.in.most_chunks = TS_PACK_STATIC;
		ck_assert_int_eq(ts_pack(&random.in, &packing), 0);
		ck_assert_uint_eq(check_packing(&random.in, &packing), 0);
		chunks += packing.n_chunks;
		peaks += random.peak;
		ts_packing_finish(&packing);
		random.in.most_chunks = random.peak + ts_random_below(&r, 3);
		ck_assert_int_eq(ts_pack(&random.in, &packing), 0);
		remaps += check_packing(&random.in, &packing);
		moves += packing.moves;
		ck_assert_uint_le(packing.n_chunks, random.in.most_chunks);
		ts_packing_finish(&packing);
	}
	ck_assert_uint_gt(moves, 0);
	printf("random runs: static %.2f %% more chunks than the peak, else "
	       "remaps of %.2f %%\n",
	        100.0 * (double)(chunks - peaks) / (double)peaks,
	        100.0 * (double)remaps / (double)peaks);
	ck_assert_double_le((double)chunks, 1.15 * (double)peaks);
}
END_TEST

static void find(struct ts_page_plan_input *in, struct ts_page_plan *plan)
{
	in->anywhere = true;
	in->page_bytes = TS_PAGE_BYTES;
	in->n_ticks = in->n_ops;
	ck_assert_int_eq(ts_page_plan_find(in, plan), 0);
}

static struct ts_plan_hold hold(
        uint64_t page, uint32_t pages, uint32_t from, uint32_t end)
{
	return (struct ts_plan_hold){page * TS_PAGE_BYTES,
	        pages * TS_PAGE_BYTES, from, end, from, end};
}

/* Nested stays that come back: what a stack of swapped layers makes. */
START_TEST(pages_that_come_back_find_their_own_chunk)
{
	enum { LAYERS = 50, OPS = 4 * LAYERS };
	struct ts_plan_hold holds[2 * LAYERS];
	struct ts_page_plan_input in = {
	        .n_ops = OPS, .holds = holds, .n_holds = 2 * LAYERS};
	struct ts_page_plan plan;

	for (uint32_t i = 0; i < LAYERS; i++) {
		uint32_t back = OPS - 4 - 2 * i;

		holds[2 * i] = hold(i * 10, 10, 2 * i, 2 * i + 4);
		holds[2 * i + 1] = hold(i * 10, 10, back, back + 4);
	}
	find(&in, &plan);
	ck_assert_uint_eq(plan.n_chunks, plan.peak_pages);
	ts_page_plan_finish(&plan);
	in.may_remap = true;
	in.most_chunks = UINT32_MAX;
	find(&in, &plan);
	ck_assert_uint_eq(plan.n_chunks, plan.peak_pages);
	ck_assert_uint_eq(plan.remaps, 0);
	ts_page_plan_finish(&plan);
}
END_TEST

/* Three stays around the step, any two of which meet, two at a time. */
START_TEST(where_the_peak_does_not_suffice_otherwise_a_page_moves)
{
	const struct ts_plan_hold holds[] = {hold(0, 1, 0, 6),
	        hold(1, 1, 4, 10), hold(2, 1, 8, 12), hold(2, 1, 0, 2)};
	struct ts_page_plan_input in = {
	        .n_ops = 12, .holds = holds, .n_holds = 4};
	struct ts_page_plan plan;

	find(&in, &plan);
	ck_assert_uint_eq(plan.n_chunks, 3);
	ck_assert_uint_eq(plan.remaps, 0);
	ts_page_plan_finish(&plan);
	in.may_remap = true;
	find(&in, &plan);
	ck_assert_uint_eq(plan.peak_pages, 2);
	ck_assert_uint_eq(plan.n_chunks, 2);
	ck_assert_uint_eq(plan.moves, 1);
	ck_assert_ptr_null(plan.chunk_of);
	ts_page_plan_finish(&plan);
}
END_TEST

START_TEST(what_is_too_much_is_refused)
{
	struct ts_plan_hold one = hold(0, 1, 0, 1);
	struct ts_page_plan_input in = {.n_ops = 2,
	        .n_ticks = 2,
	        .holds = &one,
	        .n_holds = 1,
	        .anywhere = true,
	        .page_bytes = TS_PAGE_BYTES};
	struct ts_page_plan plan;

	one.bytes = TS_MAX_BYTES;
	ck_assert_int_eq(ts_page_plan_find(&in, &plan), -E2BIG);
	one.address = UINT64_MAX - 5;
	ck_assert_int_eq(ts_page_plan_find(&in, &plan), -EINVAL);
	one = hold(0, 1, 0, 1);
	in.n_ops = 0;
	ck_assert_int_eq(ts_page_plan_find(&in, &plan), -EINVAL);
}
END_TEST

/* Ranges over one another, each in strips that all the others cut. */
START_TEST(ranges_over_one_another_take_bounded_memory)
{
	enum { N = 4000 };
	struct ts_plan_hold *holds = malloc(N * sizeof(*holds));
	struct ts_page_plan_input in = {.n_ops = N,
	        .n_ticks = N,
	        .holds = holds,
	        .n_holds = N,
	        .anywhere = true,
	        .page_bytes = TS_PAGE_BYTES};
	struct ts_page_plan plan;

	for (uint32_t i = 0; i < N; i++)
		holds[i] = hold(i, 2 * N, i, i + 1);
	ck_assert_int_eq(ts_page_plan_find(&in, &plan), -E2BIG);
	free(holds);
}
END_TEST

/* Two storages of a million pages each that take turns 600 times. */
START_TEST(large_storages_that_take_turns_cost_little)
{
	enum { TURNS = 600 };
	struct ts_plan_hold holds[TURNS];
	struct ts_page_plan_input in = {
	        .n_ops = TURNS, .holds = holds, .n_holds = TURNS};
	struct ts_page_plan plan;

	for (uint32_t i = 0; i < TURNS; i++)
		holds[i] = hold((i % 2) << 21, 1 << 20, i, i + 1);
	find(&in, &plan);
	ck_assert_uint_eq(plan.n_chunks, 1 << 20);
	ts_page_plan_finish(&plan);
}
END_TEST

static void pages_of(
        const struct ts_profile *p, uint64_t limit, struct ts_pages *pages)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_plan plan;

	options.search_evaluations = 0;
	ck_assert_int_eq(ts_plan_make(p, limit, &options, &plan, NULL), 0);
	ck_assert_int_eq(ts_pages_of_plan(p, &plan, pages), 0);
	ck_assert_uint_eq(plan.page_chunks, pages->chunks);
	ck_assert_uint_eq(plan.page_remaps, pages->remaps);
	ck_assert_uint_eq(plan.page_static_chunks, pages->static_chunks);
	ts_plan_finish(&plan);
}

START_TEST(reference_workloads_need_few_chunks_beyond_the_peak)
{
	static const char *const names[] = {
	        "bert-large", "gpt2-xl", "llama-7b"};

	for (size_t i = 0; i < 3; i++) {
		struct ts_pages pages;
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
		pages_of(&p, limit, &pages);
		printf("%s: %u chunks, %u without remaps, peak %u pages, %llu "
		       "remaps\n",
		        names[i], pages.chunks, pages.static_chunks, pages.peak,
		        (unsigned long long)pages.remaps);
		ck_assert_double_le(
		        (double)pages.chunks, 1.01 * (double)pages.peak);
		ck_assert_uint_ge(pages.static_chunks, pages.peak);
		ts_profile_finish(&p);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {random_runs_never_meet,
	        pages_that_come_back_find_their_own_chunk,
	        where_the_peak_does_not_suffice_otherwise_a_page_moves,
	        what_is_too_much_is_refused,
	        ranges_over_one_another_take_bounded_memory,
	        large_storages_that_take_turns_cost_little,
	        reference_workloads_need_few_chunks_beyond_the_peak};

	return ts_run_suite(
	        "planner pages", tests, sizeof(tests) / sizeof(tests[0]), 300);
}
