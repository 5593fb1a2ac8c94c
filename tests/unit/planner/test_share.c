/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who shares a chunk with whom, and who is away for that. */
#include "planner/share.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/planner/random_tape.h"
#include "tests/unit/planner/suite.h"

#define OPS      100
#define TICKS    1000
#define RUNS     40
#define SPANS    6
#define MOST_GAP 50

static struct ts_share_tenancy tenancies[RUNS * SPANS];
static struct ts_share_gap gaps[RUNS * SPANS];
static struct ts_pack_run runs[RUNS];
static struct ts_share_input in;

static void begin(uint32_t most_chunks)
{
	in = (struct ts_share_input){.runs = runs,
	        .tenancies = tenancies,
	        .gaps = gaps,
	        .n_ops = OPS,
	        .n_ticks = TICKS,
	        .most_chunks = most_chunks,
	        .wait_part = TICKS};
}

static void add_run(uint32_t count)
{
	const struct ts_pack_run *last = &runs[in.n_runs];
	uint32_t first = in.n_runs ? last[-1].first_span + last[-1].n_spans : 0;

	runs[in.n_runs++] =
	        (struct ts_pack_run){.count = count, .first_span = first};
}

/* Of the last run; a gap of so much cost after it, 0: it is empty then. */
static void add(uint32_t from, uint32_t end, uint64_t cost)
{
	struct ts_pack_run *run = &runs[in.n_runs - 1];
	uint32_t gap = TS_SHARE_EMPTY;

	if (cost) {
		gap = in.n_gaps++;
		gaps[gap] = (struct ts_share_gap){.cost = cost};
	}
	tenancies[run->first_span + run->n_spans++] = (struct ts_share_tenancy){
	        from, end, from * TICKS / OPS, end * TICKS / OPS, gap};
}

START_TEST(who_costs_least_is_away)
{
	struct ts_sharing made;

	begin(2);
	add_run(1);
	add(0, 10, 500);
	add(80, 90, 0);
	add_run(1);
	add(0, 10, 5);
	add(80, 90, 0);
	add_run(1);
	add(40, 43, 0);
	ck_assert_int_eq(ts_share(&in, 0, &made), 0);
	ck_assert_uint_eq(made.packing.n_chunks, 2);
	ck_assert_uint_eq(made.cost, 5);
	/* The dear one stays; the other's chunk is free again from 43 on. */
	ck_assert_uint_eq(made.free_op[0], 0);
	ck_assert_uint_eq(made.free_op[1], 43);
	ts_sharing_finish(&made);
}
END_TEST

START_TEST(nobody_is_away_where_chunks_are_enough)
{
	struct ts_sharing made;

	begin(3);
	for (int i = 0; i < 3; i++) {
		add_run(1);
		add(i, 10 + i, 500);
		add(80, 90, 0);
		/* However it was thought of before. */
		gaps[i].away = true;
	}
	ck_assert_int_eq(ts_share(&in, 0, &made), 0);
	ck_assert_uint_eq(made.cost, 0);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(made.free_op[i], 0);
	ts_sharing_finish(&made);
}
END_TEST

START_TEST(a_gap_around_the_step_counts_on)
{
	struct ts_sharing made;

	begin(1);
	add_run(1);
	add(50, 60, 7);
	gaps[0].wraps = true;
	add_run(1);
	add(20, 30, 0);
	ck_assert_int_eq(ts_share(&in, 0, &made), 0);
	ck_assert_uint_eq(made.cost, 7);
	ck_assert_uint_eq(made.free_op[0], OPS + 30);
	ck_assert_uint_eq(made.n_handovers, 2);
	ts_sharing_finish(&made);
}
END_TEST

START_TEST(who_is_there_for_the_same_op_shares_nothing)
{
	struct ts_sharing made;

	begin(1);
	add_run(1);
	add(0, 10, 1);
	add_run(1);
	add(9, 12, 1);
	for (uint32_t order = 0; order < TS_SHARE_ORDERS; order++)
		ck_assert_int_eq(ts_share(&in, order, &made), -ENOSPC);
	in.most_chunks = 2;
	ck_assert_int_eq(ts_share(&in, 0, &made), 0);
	ck_assert_uint_eq(made.packing.n_chunks, 2);
	ts_sharing_finish(&made);
}
END_TEST

/* --------------------------------------------------------- all of the rules */

static void make_random(struct ts_random *r)
{
	uint32_t n_runs = 2 + ts_random_below(r, RUNS - 2);

	begin(0);
	while (in.n_runs < n_runs) {
		uint32_t n = 1 + ts_random_below(r, SPANS - 1);
		uint32_t from = ts_random_below(r, OPS / 2), least_gap;
		bool first = true;

		add_run(1 + ts_random_below(r, 5));
		least_gap = in.n_gaps;
		while (n-- && (first || from < OPS - 10)) {
			uint32_t end = from + 1 + ts_random_below(r, 4);

			add(from, end,
			        ts_random_below(r, 4)
			                ? 1 + ts_random_below(r, MOST_GAP)
			                : 0);
			from = end + 1 + ts_random_below(r, OPS / 5);
			first = false;
		}
		if (in.n_gaps > least_gap)
			gaps[in.n_gaps - 1].wraps =
			        tenancies[runs[in.n_runs - 1].first_span +
			                  runs[in.n_runs - 1].n_spans - 1]
			                .gap == in.n_gaps - 1;
		for (uint32_t g = least_gap; g < in.n_gaps; g++)
			gaps[g].away = ts_random_below(r, 2);
	}
	in.most_chunks = 0;
	for (uint32_t i = 0; i < n_runs; i++)
		in.most_chunks += runs[i].count;
	in.most_chunks =
	        in.most_chunks / 4 + ts_random_below(r, in.most_chunks);
}

/* Who is in a chunk before each op, by chunk; the tenancy's number plus one. */
static uint32_t there[RUNS * 5 + 1][OPS];

static void lay_out(const struct ts_packing *packing)
{
	uint32_t pages = 0, wanted = 0;

	memset(there, 0, sizeof(there));
	for (uint32_t i = 0; i < packing->n_pieces; i++) {
		const struct ts_pack_piece *piece = &packing->pieces[i];
		const struct ts_pack_run *run = &runs[piece->run];

		pages += piece->count;
		for (uint32_t c = 0; c < piece->count; c++)
			for (uint32_t k = 0; k < run->n_spans; k++) {
				uint32_t t = run->first_span + k;
				uint32_t *at = there[piece->first_chunk + c];

				ck_assert_uint_lt(piece->first_chunk + c,
				        packing->n_chunks);
				for (uint32_t op = tenancies[t].from;
				        op < tenancies[t].end; op++) {
					ck_assert_uint_eq(at[op], 0);
					at[op] = t + 1;
				}
			}
	}
	for (uint32_t i = 0; i < in.n_runs; i++)
		wanted += runs[i].count;
	ck_assert_uint_eq(pages, wanted);
}

/* When @gap, after tenancy @t until @next, is over; 0: nobody came. */
static uint32_t over(const uint32_t *at, uint32_t t, uint32_t next)
{
	uint32_t until = tenancies[next].from, last = 0;
	uint32_t n = (until + OPS - tenancies[t].end) % OPS;

	if (next == t)
		n = OPS - (tenancies[t].end - tenancies[t].from);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t op = (tenancies[t].end + k) % OPS;

		if (at[op])
			last = tenancies[t].end + k + 1;
	}
	return last;
}

static void check_gaps(const struct ts_sharing *made)
{
	uint32_t free_op[RUNS * SPANS] = {0};
	uint64_t cost = 0;

	for (uint32_t i = 0; i < made->packing.n_pieces; i++) {
		const struct ts_pack_piece *piece = &made->packing.pieces[i];
		const struct ts_pack_run *run = &runs[piece->run];

		for (uint32_t k = 0; k < run->n_spans; k++) {
			uint32_t t = run->first_span + k;
			uint32_t next =
			        run->first_span + (k + 1) % run->n_spans;
			uint32_t gap = tenancies[t].gap, op;

			if (gap == TS_SHARE_EMPTY)
				continue;
			op = over(there[piece->first_chunk], t, next);
			if (op > free_op[gap])
				free_op[gap] = op;
		}
	}
	for (uint32_t g = 0; g < in.n_gaps; g++) {
		ck_assert_uint_eq(made->free_op[g], free_op[g]);
		cost += free_op[g] ? gaps[g].cost : 0;
	}
	ck_assert_uint_eq(made->cost, cost);
}

START_TEST(random_pages_keep_all_rules)
{
	struct ts_random r = {.state = 17};
	uint32_t placed = 0;

	for (int i = 0; i < 2000; i++) {
		struct ts_sharing made;
		int rc;

		make_random(&r);
		rc = ts_share(&in, (uint32_t)i % TS_SHARE_ORDERS, &made);
		if (rc == -ENOSPC)
			continue;
		ck_assert_int_eq(rc, 0);
		ck_assert_uint_le(made.packing.n_chunks, in.most_chunks);
		lay_out(&made.packing);
		check_gaps(&made);
		ts_sharing_finish(&made);
		placed++;
	}
	ck_assert_uint_gt(placed, 500);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {who_costs_least_is_away,
	        nobody_is_away_where_chunks_are_enough,
	        a_gap_around_the_step_counts_on,
	        who_is_there_for_the_same_op_shares_nothing,
	        random_pages_keep_all_rules};

	return ts_run_suite(
	        "share", tests, sizeof(tests) / sizeof(tests[0]), 60);
}
