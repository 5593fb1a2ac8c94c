/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Page assignment against the best there is: on small random tapes all
 * assignments are looked at, for the fewest chunks without remaps and for the
 * fewest remaps with a given number of chunks.
 */
#include "tests/unit/planner/suite.h"

#include <string.h>

#include "planner/page_plan.h"
#include "planner/pages.h"
#include "tests/unit/planner/random_tape.h"

#define CASES     4000
#define PAGES     6
#define STAYS     3
#define OPS       14
#define MOST_COST UINT32_MAX
/* Remaps are the least in so many cases, and this near to it in all. */
#define LEAST_SAME       3800
#define MOST_REMAPS_MORE 4
#define MOST_TIMES       1.08

/* A page each, and the ops that it is resident at, by stay. */
struct tape {
	struct ts_plan_hold holds[PAGES * STAYS];
	uint32_t n_holds;
	uint32_t n_pages;
	uint32_t first[PAGES + 1]; /* of a page, into holds */
	uint32_t peak;
};

/*
 * Stays of each page, apart by an op at least: the last may go on in the first
 * of the next step.
 */
static void make_tape(struct ts_random *r, struct tape *t)
{
	uint32_t resident[OPS] = {0};

	memset(t, 0, sizeof(*t));
	t->n_pages = 2 + ts_random_below(r, PAGES - 1);
	for (uint32_t p = 0; p < t->n_pages; p++) {
		uint32_t at = ts_random_below(r, OPS / 2);

		t->first[p] = t->n_holds;
		for (uint32_t k = 0; k < STAYS && at < OPS; k++) {
			uint32_t end = at + 1 + ts_random_below(r, 5);

			end = end < OPS ? end : OPS;
			t->holds[t->n_holds++] =
			        (struct ts_plan_hold){p * TS_PAGE_BYTES,
			                TS_PAGE_BYTES, at, end, at, end};
			for (uint32_t op = at; op < end; op++)
				resident[op]++;
			at = end + 1 + ts_random_below(r, 4);
		}
	}
	t->first[t->n_pages] = t->n_holds;
	for (uint32_t op = 0; op < OPS; op++)
		t->peak = resident[op] > t->peak ? resident[op] : t->peak;
}

/* All assignments of so many chunks. */
struct search {
	const struct tape *tape;
	uint32_t n_chunks;
	uint32_t chunk[PAGES * STAYS];
	uint32_t least; /* pages that are mapped anew, moved ones twice */
};

static uint32_t page_of(const struct search *s, uint32_t hold)
{
	return (uint32_t)(s->tape->holds[hold].address / TS_PAGE_BYTES);
}

static bool is_free(const struct search *s, uint32_t hold, uint32_t chunk)
{
	const struct ts_plan_hold *a = &s->tape->holds[hold];

	for (uint32_t i = 0; i < hold; i++) {
		const struct ts_plan_hold *b = &s->tape->holds[i];

		if (s->chunk[i] == chunk && a->take_op < b->release_op &&
		        b->take_op < a->release_op)
			return false;
	}
	return true;
}

/* What the page of @hold costs where that has @chunk, against those before. */
static uint32_t cost_of(const struct search *s, uint32_t hold, uint32_t chunk)
{
	const struct tape *t = s->tape;
	uint32_t page = page_of(s, hold), first = t->first[page], cost = 0;
	bool last = hold + 1 == t->first[page + 1];

	if (hold > first)
		cost += s->chunk[hold - 1] != chunk;
	if (last && hold > first && s->chunk[first] != chunk)
		/* Resident around the step: its content moves as well. */
		cost += 1 + (!t->holds[first].take_op &&
		                    t->holds[hold].release_op == OPS);
	return cost;
}

static void look(struct search *s, uint32_t hold, uint32_t used, uint32_t cost)
{
	if (cost >= s->least)
		return;
	if (hold == s->tape->n_holds) {
		s->least = cost;
		return;
	}
	/* Chunks that nobody has had yet are all alike. */
	for (uint32_t c = 0; c < s->n_chunks && c <= used; c++) {
		if (!is_free(s, hold, c))
			continue;
		s->chunk[hold] = c;
		look(s, hold + 1, c == used ? used + 1 : used,
		        cost + cost_of(s, hold, c));
	}
}

/* Fewest pages mapped anew with so many chunks; MOST_COST: too few chunks. */
static uint32_t fewest(const struct tape *t, uint32_t n_chunks)
{
	struct search s = {.tape = t, .n_chunks = n_chunks, .least = MOST_COST};

	look(&s, 0, 0, 0);
	return s.least;
}

static void find(const struct tape *t, bool may_remap, uint32_t most_chunks,
        struct ts_page_plan *plan)
{
	struct ts_page_plan_input in = {.anywhere = true,
	        .holds = t->holds,
	        .n_holds = t->n_holds,
	        .page_bytes = TS_PAGE_BYTES,
	        .n_ops = OPS,
	        .n_ticks = OPS,
	        .may_remap = may_remap,
	        .most_chunks = most_chunks};

	ck_assert_int_eq(ts_page_plan_find(&in, plan), 0);
}

START_TEST(static_plans_take_the_fewest_chunks)
{
	uint32_t more = 0;

	for (uint64_t seed = 0; seed < CASES; seed++) {
		struct ts_page_plan plan;
		struct ts_random r;
		struct tape t;

		ts_random_seed(&r, seed);
		make_tape(&r, &t);
		find(&t, false, 0, &plan);
		ck_assert_uint_eq(plan.remaps, 0);
		ck_assert_uint_eq(fewest(&t, plan.n_chunks), 0);
		if (plan.n_chunks > t.peak)
			ck_assert_uint_gt(fewest(&t, plan.n_chunks - 1), 0);
		ck_assert_uint_ge(plan.n_chunks, t.peak);
		more += plan.n_chunks - t.peak;
		ts_page_plan_finish(&plan);
	}
	printf("static: the fewest chunks in all of %u, %u beyond the peaks\n",
	        CASES, more);
	ck_assert_uint_gt(more, 0);
}
END_TEST

START_TEST(remaps_are_nearly_as_few_as_can_be)
{
	uint32_t ours = 0, least = 0, worst = 0, same = 0, none = 0, idle = 0;
	uint32_t moved = 0;

	for (uint64_t seed = 0; seed < CASES; seed++) {
		struct ts_page_plan plan;
		struct ts_random r;
		uint32_t n, cost;
		struct tape t;

		ts_random_seed(&r, seed);
		make_tape(&r, &t);
		find(&t, true, t.peak, &plan);
		n = fewest(&t, plan.n_chunks);
		cost = (uint32_t)(plan.remaps + plan.moves);
		ck_assert_uint_eq(plan.peak_pages, t.peak);
		/* Here no page moves in mid-stay, which may be better. */
		ck_assert(plan.moves || cost >= n);
		moved += cost < n;
		n = cost < n ? cost : n;
		ours += cost;
		least += n;
		same += cost == n;
		none += !n;
		idle += !n && !cost;
		if (cost - n > worst)
			worst = cost - n;
		ts_page_plan_finish(&plan);
	}
	printf("remaps: %u, least %u; as few as can be in %u of %u, none in %u "
	       "of the %u that need none, at most %u more; a move in mid-stay "
	       "did better in %u\n",
	        ours, least, same, CASES, idle, none, worst, moved);
	/* Where pages need not change chunks, none does. */
	ck_assert_uint_gt(none, 0);
	ck_assert_uint_eq(idle, none);
	ck_assert_uint_le(worst, MOST_REMAPS_MORE);
	ck_assert_uint_ge(same, LEAST_SAME);
	ck_assert_double_le(ours, MOST_TIMES * least);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {static_plans_take_the_fewest_chunks,
	        remaps_are_nearly_as_few_as_can_be};

	return ts_run_suite(
	        "planner fewest", tests, sizeof(tests) / sizeof(tests[0]), 600);
}
