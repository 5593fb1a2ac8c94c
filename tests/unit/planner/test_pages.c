/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Static page assignment: every stay has a chunk for all its pages, no chunk
 * is in two places at once, links and counts are right, and few chunks do.
 */
#include "tests/unit/planner/suite.h"

#include <errno.h>
#include <string.h>

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

/* Every op of every chunk has one tenant at most; links follow the time. */
static void check_chunks(const struct ts_pages *pages, uint32_t n_ops)
{
	uint32_t *tenant = malloc(n_ops * sizeof(*tenant));
	uint32_t *first = calloc(pages->n_chunks + 1, sizeof(*first));
	uint32_t seen = 0;

	for (uint32_t i = 0; i < pages->n_tenancies; i++) {
		const struct ts_tenancy *t = &pages->tenancies[i];

		must(t->chunk < pages->n_chunks, "no such chunk", i);
		must(t->from_op < n_ops && t->from_op <= t->to_op &&
		                t->to_op - t->from_op < n_ops,
		        "a tenancy outside the step", i);
		first[t->chunk] = i + 1;
	}
	for (uint32_t c = 0; c < pages->n_chunks; c++) {
		uint32_t i = first[c] - 1;

		must(first[c], "chunk without tenant", c);
		memset(tenant, 0xff, n_ops * sizeof(*tenant));
		do {
			const struct ts_tenancy *t = &pages->tenancies[i];

			seen++;
			must(t->chunk == c, "a link to another chunk", c);
			must(pages->tenancies[t->next].previous == i,
			        "links that do not agree", i);
			for (uint32_t op = t->from_op; op <= t->to_op; op++) {
				must(tenant[op % n_ops] == TS_NONE,
				        "chunk taken twice", c);
				tenant[op % n_ops] = i;
			}
			i = t->next;
		} while (i != first[c] - 1);
		/* Nobody else between a tenant and the next. */
		do {
			const struct ts_tenancy *t = &pages->tenancies[i];
			uint32_t next = pages->tenancies[t->next].from_op;

			for (uint32_t op = (t->to_op + 1) % n_ops;
			        t->next != i && op != next;
			        op = (op + 1) % n_ops)
				must(tenant[op] == TS_NONE, "wrong order", i);
			i = t->next;
		} while (i != first[c] - 1);
	}
	must(seen == pages->n_tenancies, "tenancies without a chunk", seen);
	free(tenant);
	free(first);
}

static void check_remaps(const struct ts_pages *pages, uint32_t n_ops)
{
	uint32_t remaps = 0, moves = 0, moved_at = TS_NONE;

	for (uint32_t p = 0; p < pages->n_places; p++) {
		const struct ts_page_place *place = &pages->places[p];
		const struct ts_tenancy *all =
		        pages->tenancies + place->first_tenancy;

		must(place->n_tenancies, "a page without tenancy", p);
		for (uint32_t k = 0; k < place->n_tenancies; k++) {
			uint32_t before = k ? k - 1 : place->n_tenancies - 1;

			must(all[k].page == p, "not the page's own", p);
			must(!k || all[k].from_op > all[k - 1].to_op,
			        "page in two chunks", p);
			must(all[k].remap ==
			                (all[k].chunk != all[before].chunk),
			        "remap not told", p);
			remaps += all[k].remap;
			must(all[k].moved == (all[k].remap &&
			                             (all[before].to_op + 1) %
			                                             n_ops ==
			                                     all[k].from_op),
			        "move not told", p);
			if (!all[k].moved)
				continue;
			moves++;
			must(moved_at == TS_NONE || moved_at == all[k].from_op,
			        "moves at two ops", p);
			moved_at = all[k].from_op;
		}
		must(!p || place->address > pages->places[p - 1].address,
		        "pages not in order", p);
	}
	ck_assert_uint_eq(remaps, pages->remaps);
	ck_assert_uint_eq(moves, pages->moves);
}

static const struct ts_page_place *place_of(
        const struct ts_pages *pages, uint64_t address)
{
	uint32_t low = 0, high = pages->n_places;

	while (low + 1 < high) {
		uint32_t mid = low + (high - low) / 2;

		if (pages->places[mid].address <= address)
			low = mid;
		else
			high = mid;
	}
	must(pages->places[low].address == address, "no such page", address);
	return &pages->places[low];
}

/* Ops from @op on that @tenancy holds its page. */
static uint32_t held_from(
        const struct ts_tenancy *tenancy, uint32_t op, uint32_t n_ops)
{
	if (op < tenancy->from_op)
		op += n_ops;
	return op <= tenancy->to_op ? tenancy->to_op - op + 1 : 0;
}

/* One tenancy of each page holds the whole of @stay, or two with a move. */
static void check_stay(const struct ts_paging *paging,
        const struct ts_stay *stay, const struct ts_pages *pages)
{
	uint64_t mask = ~(paging->page_bytes - 1);
	uint32_t n = paging->n_ops, length = stay->to_op - stay->from_op + 1;

	if (length > n)
		length = n;
	for (uint64_t at = stay->address & mask;
	        at < stay->address + stay->size_bytes;
	        at += paging->page_bytes) {
		const struct ts_page_place *place = place_of(pages, at);
		bool held = false;

		for (uint32_t k = 0; !held && k < place->n_tenancies; k++) {
			const struct ts_tenancy *t =
			        &pages->tenancies[place->first_tenancy + k];
			const struct ts_tenancy *after =
			        &pages->tenancies[place->first_tenancy +
			                          (k + 1) % place->n_tenancies];
			uint32_t ops = held_from(t, stay->from_op, n);

			if (!ops)
				continue;
			held = ops >= length || t->to_op - t->from_op >= n - 1;
			if (!held && after->moved)
				held = held_from(after, after->from_op, n) >=
				       length - ops;
		}
		must(held, "a page is not held from this op on", stay->from_op);
	}
}

static void check(const struct ts_paging *paging, const struct ts_pages *pages)
{
	check_chunks(pages, paging->n_ops);
	check_remaps(pages, paging->n_ops);
	for (uint32_t i = 0; i < paging->n_stays; i++)
		check_stay(paging, &paging->stays[i], pages);
	for (uint32_t i = 0; i < paging->n_resident; i++) {
		struct ts_stay always = paging->resident[i];

		always.from_op = 0;
		always.to_op = paging->n_ops - 1;
		check_stay(paging, &always, pages);
	}
	ck_assert_uint_ge(pages->n_chunks, pages->peak_pages);
	ck_assert_uint_le(100 * (uint64_t)pages->n_chunks,
	        101 * (uint64_t)pages->peak_pages);
	if (paging->most_chunks > pages->peak_pages)
		ck_assert_uint_le(pages->n_chunks, paging->most_chunks);
	else if (paging->most_chunks)
		ck_assert_uint_eq(pages->n_chunks, pages->peak_pages);
}

#define STAYS 60

START_TEST(random_stays_are_held_and_never_meet)
{
	uint64_t chunks = 0, peaks = 0, remaps = 0, moves = 0;

	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct ts_stay stays[STAYS], resident[2];
		struct ts_paging paging = {.page_bytes = 4096,
		        .stays = stays,
		        .resident = resident};
		struct ts_pages pages;
		struct ts_random r;

		ts_random_seed(&r, seed);
		paging.n_ops = 1 + ts_random_below(&r, 40);
		paging.n_stays = 1 + ts_random_below(&r, STAYS);
		paging.n_resident = ts_random_below(&r, 3);
		paging.most_chunks = ts_random_below(&r, 200);
		for (uint32_t i = 0; i < paging.n_stays; i++) {
			uint32_t most =
			        ts_random_below(&r, 8) ? 8 : paging.n_ops + 3;

			stays[i] = (struct ts_stay){
			        .address = ts_random_below(&r, 100) * 1024,
			        .size_bytes = 1 + ts_random_below(&r, 20000),
			        .from_op = ts_random_below(&r, paging.n_ops)};
			stays[i].to_op =
			        stays[i].from_op + ts_random_below(&r, most);
		}
		for (uint32_t i = 0; i < paging.n_resident; i++)
			resident[i] = (struct ts_stay){
			        .address = ts_random_below(&r, 100) * 1024,
			        .size_bytes = 1 + ts_random_below(&r, 5000)};
		ck_assert_int_eq(ts_pages_place(&paging, &pages), 0);
		check(&paging, &pages);
		chunks += pages.n_chunks;
		peaks += pages.peak_pages;
		remaps += pages.remaps;
		moves += pages.moves;
		ts_pages_finish(&pages);
	}
	ck_assert_uint_gt(moves, 0);
	printf("random stays: %.2f %% more chunks than the peak, "
	       "remaps %.2f %%, moves %.2f %%\n",
	        100.0 * (double)(chunks - peaks) / (double)peaks,
	        100.0 * (double)remaps / (double)peaks,
	        100.0 * (double)moves / (double)peaks);
}
END_TEST

/* Nested stays that come back: what a stack of swapped layers makes. */
START_TEST(pages_that_come_back_find_their_own_chunk)
{
	enum { LAYERS = 50, OPS = 4 * LAYERS };
	struct ts_stay stays[2 * LAYERS];
	struct ts_paging paging = {.n_ops = OPS,
	        .page_bytes = TS_PAGE_BYTES,
	        .stays = stays,
	        .n_stays = 2 * LAYERS};
	struct ts_pages pages;

	for (uint32_t i = 0; i < LAYERS; i++) {
		struct ts_stay stay = {.address = i * 10 * TS_PAGE_BYTES,
		        .size_bytes = 10 * TS_PAGE_BYTES,
		        .from_op = 2 * i,
		        .to_op = 2 * i + 3};

		stays[2 * i] = stay;
		stay.from_op = OPS - 4 - 2 * i;
		stay.to_op = stay.from_op + 3;
		stays[2 * i + 1] = stay;
	}
	ck_assert_int_eq(ts_pages_place(&paging, &pages), 0);
	check(&paging, &pages);
	ck_assert_uint_eq(pages.n_chunks, pages.peak_pages);
	ck_assert_uint_eq(pages.remaps, 0);
	ts_pages_finish(&pages);
}
END_TEST

START_TEST(what_wraps_keeps_its_chunk_over_the_end_of_the_step)
{
	/* Three stays of a third of the step each, one of them wrapping. */
	static const struct ts_stay stays[] = {{0, TS_PAGE_BYTES, 2, 4},
	        {TS_PAGE_BYTES, TS_PAGE_BYTES, 5, 7},
	        {2 * TS_PAGE_BYTES, TS_PAGE_BYTES, 8, 10}};
	const struct ts_paging paging = {.n_ops = 9,
	        .page_bytes = TS_PAGE_BYTES,
	        .stays = stays,
	        .n_stays = 3};
	struct ts_pages pages;

	ck_assert_int_eq(ts_pages_place(&paging, &pages), 0);
	check(&paging, &pages);
	ck_assert_uint_eq(pages.n_chunks, 1);
	ck_assert_uint_eq(pages.n_tenancies, 3);
	ck_assert_uint_eq(pages.tenancies[2].from_op, 8);
	ck_assert_uint_eq(pages.tenancies[2].to_op, 10);
	ck_assert_uint_eq(pages.tenancies[2].next, 0);
	ts_pages_finish(&pages);
}
END_TEST

/* Three stays around the step, any two of which meet, two at a time. */
START_TEST(where_the_peak_does_not_suffice_otherwise_a_page_moves)
{
	static const struct ts_stay stays[] = {{0, TS_PAGE_BYTES, 0, 5},
	        {TS_PAGE_BYTES, TS_PAGE_BYTES, 4, 9},
	        {2 * TS_PAGE_BYTES, TS_PAGE_BYTES, 8, 13}};
	const struct ts_paging paging = {.n_ops = 12,
	        .page_bytes = TS_PAGE_BYTES,
	        .stays = stays,
	        .n_stays = 3};
	struct ts_pages pages;

	ck_assert_int_eq(ts_pages_place(&paging, &pages), 0);
	check(&paging, &pages);
	ck_assert_uint_eq(pages.peak_pages, 2);
	ck_assert_uint_eq(pages.n_chunks, 2);
	ck_assert_uint_eq(pages.moves, 1);
	ck_assert_uint_eq(pages.remaps, 2);
	ts_pages_finish(&pages);
}
END_TEST

START_TEST(malformed_input_is_refused)
{
	struct ts_stay stay = {0, TS_PAGE_BYTES, 0, 0};
	struct ts_paging paging = {.n_ops = 2,
	        .page_bytes = TS_PAGE_BYTES,
	        .stays = &stay,
	        .n_stays = 1};
	struct ts_pages pages;

	stay.from_op = 2;
	stay.to_op = 2;
	ck_assert_int_eq(ts_pages_place(&paging, &pages), -EINVAL);
	stay.from_op = 1;
	stay.to_op = 0;
	ck_assert_int_eq(ts_pages_place(&paging, &pages), -EINVAL);
	stay.to_op = 1;
	stay.size_bytes = 0;
	ck_assert_int_eq(ts_pages_place(&paging, &pages), -EINVAL);
	stay.size_bytes = TS_MAX_BYTES;
	ck_assert_int_eq(ts_pages_place(&paging, &pages), -E2BIG);
	stay.address = UINT64_MAX - 5;
	ck_assert_int_eq(ts_pages_place(&paging, &pages), -EINVAL);
	stay = (struct ts_stay){0, 1, 1, 1};
	paging.n_ops = 0;
	ck_assert_int_eq(ts_pages_place(&paging, &pages), -EINVAL);
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
	check_chunks(pages, p->n_ops);
	check_remaps(pages, p->n_ops);
	ts_plan_finish(&plan);
}

START_TEST(pages_of_random_tapes_do_not_meet)
{
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct ts_pages pages;
		struct ts_profile p;
		struct ts_graph g;
		uint64_t limit;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		limit = (g.floor_bytes + g.peak_bytes) / 2;
		ts_graph_finish(&g);
		pages_of(&p, limit, &pages);
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
		struct ts_pages pages, again;
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
		pages_of(&p, limit, &again);
		printf("%s: %u chunks, peak %u pages, %u remaps\n", names[i],
		        pages.n_chunks, pages.peak_pages, pages.remaps);
		ck_assert_double_le((double)pages.n_chunks,
		        1.01 * (double)pages.peak_pages);
		ck_assert_uint_eq(pages.n_tenancies, again.n_tenancies);
		ck_assert_int_eq(
		        memcmp(pages.tenancies, again.tenancies,
		                pages.n_tenancies * sizeof(*pages.tenancies)),
		        0);
		ts_pages_finish(&again);
		ts_pages_finish(&pages);
		ts_profile_finish(&p);
	}
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {random_stays_are_held_and_never_meet,
	        pages_that_come_back_find_their_own_chunk,
	        what_wraps_keeps_its_chunk_over_the_end_of_the_step,
	        where_the_peak_does_not_suffice_otherwise_a_page_moves,
	        malformed_input_is_refused, pages_of_random_tapes_do_not_meet,
	        reference_workloads_need_few_chunks_beyond_the_peak};

	return ts_run_suite(
	        "planner pages", tests, sizeof(tests) / sizeof(tests[0]), 300);
}
