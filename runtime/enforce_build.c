/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a step by a page plan does before each op, made of that plan. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/enforce_internal.h"

void ts_enforce_destroy(struct ts_enforce *enforce)
{
	if (!enforce)
		return;
	free(enforce->moves);
	free(enforce->first_move);
	free(enforce->strips);
	free(enforce->stays);
	free(enforce->first_stay);
	free(enforce->gaps);
	free(enforce->due);
	free(enforce->displaced);
	free(enforce);
}

/* Moves of one strip: counts them by op in @at, or puts them there. */
static void add_moves(const struct ts_page_plan *plan,
        const struct ts_plan_strip *strip, bool take, uint32_t *at,
        struct ts_plan_move *moves)
{
	const struct ts_plan_stay *stays = &plan->stays[strip->first_stay];
	const struct ts_plan_stay *last = &stays[strip->n_stays - 1];
	bool begins = !stays[0].take_op;
	bool lasts = last->release_op == plan->n_ops;
	uint32_t end = strip->first_stay + strip->n_stays - 1;
	struct ts_plan_move move = {
	        .address = strip->address, .pages = strip->pages, .take = take};

	for (uint32_t i = 0; i <= strip->n_stays; i++) {
		uint32_t op;

		/* What changes between the end of a step and its start. */
		if (i == strip->n_stays) {
			if (begins == lasts || begins != take)
				break;
			op = 0;
			move.tick = take ? stays[0].from_tick : last->free_tick;
			move.gap = end;
		} else {
			op = take ? stays[i].take_op : stays[i].release_op;
			if (op == 0 || op == plan->n_ops)
				continue;
			move.tick =
			        take ? stays[i].from_tick : stays[i].free_tick;
			move.gap = strip->first_stay + i - take;
			if (take && !i)
				move.gap = end;
		}
		if (moves)
			moves[at[op]] = move;
		at[op]++;
	}
}

/* Those that leave first; then as the plan has them one after the other. */
static int by_turn(const void *a, const void *b)
{
	const struct ts_plan_move *x = a, *y = b;

	if (x->take != y->take)
		return x->take ? 1 : -1;
	if (x->tick != y->tick)
		return x->tick < y->tick ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int make_moves(
        struct ts_enforce *enforce, const struct ts_page_plan *plan)
{
	uint32_t *at = calloc(plan->n_ops + 1ull, sizeof(*at));
	uint32_t total = 0;

	enforce->first_move = calloc(plan->n_ops + 1ull, sizeof(uint32_t));
	enforce->due = calloc(plan->n_ops + 1ull, sizeof(uint32_t));
	if (!at || !enforce->first_move || !enforce->due)
		goto out_memory;
	for (uint32_t s = 0; s < plan->n_strips; s++) {
		add_moves(plan, &plan->strips[s], false, at, NULL);
		add_moves(plan, &plan->strips[s], true, at, NULL);
	}
	for (uint32_t op = 0; op < plan->n_ops; op++) {
		enforce->first_move[op] = total;
		total += at[op];
		at[op] = enforce->first_move[op];
	}
	enforce->first_move[plan->n_ops] = total;
	enforce->moves = calloc(total + 1ull, sizeof(*enforce->moves));
	if (!enforce->moves)
		goto out_memory;
	for (int take = 0; take < 2; take++)
		for (uint32_t s = 0; s < plan->n_strips; s++)
			add_moves(plan, &plan->strips[s], take, at,
			        enforce->moves);
	memcpy(enforce->due, at, plan->n_ops * sizeof(*at));
	for (uint32_t op = 0; op < plan->n_ops; op++)
		enforce->due[op] -= enforce->first_move[op];
	for (uint32_t op = 0; op < plan->n_ops; op++)
		qsort(&enforce->moves[enforce->first_move[op]],
		        enforce->first_move[op + 1] - enforce->first_move[op],
		        sizeof(*enforce->moves), by_turn);
	free(at);
	return 0;

out_memory:
	free(at);
	return -ENOMEM;
}

/* In the order in which they begin. */
struct turn {
	uint32_t take_op, strip, stay;
};

static int by_take(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->take_op != y->take_op)
		return x->take_op < y->take_op ? -1 : 1;
	return x->strip < y->strip ? -1 : x->strip > y->strip;
}

/* True where the chunks of @strip were its own before; they are now. */
static bool take_turn(
        const struct ts_page_plan *plan, uint32_t strip, uint32_t *last)
{
	const uint32_t *chunks =
	        &plan->chunk_of[plan->strips[strip].first_page];
	bool own = true;

	for (uint32_t i = 0; i < plan->strips[strip].pages; i++) {
		own &= last[chunks[i]] == strip;
		last[chunks[i]] = strip;
	}
	return own;
}

/* In which gaps a strip's chunks are nobody else's. */
static int find_alone(
        struct ts_enforce *enforce, const struct ts_page_plan *plan)
{
	struct turn *turns = malloc((plan->n_stays + 1ull) * sizeof(*turns));
	uint32_t *last = calloc(plan->n_chunks + 1ull, sizeof(*last));
	uint32_t n = 0;

	if (!turns || !last) {
		free(turns);
		free(last);
		return -ENOMEM;
	}
	for (uint32_t s = 0; s < plan->n_strips; s++)
		for (uint32_t i = 0; i < plan->strips[s].n_stays; i++) {
			uint32_t stay = plan->strips[s].first_stay + i;

			turns[n++] = (struct turn){
			        plan->stays[stay].take_op, s, stay};
		}
	if (n)
		qsort(turns, n, sizeof(*turns), by_take);
	/* In the first round one sees who has them at the end of a step. */
	for (uint32_t i = 0; i < 2 * n; i++) {
		const struct turn *turn = &turns[i % n];
		const struct ts_plan_strip *strip = &plan->strips[turn->strip];
		uint32_t before = turn->stay - 1;

		if (turn->stay == strip->first_stay)
			before += strip->n_stays;
		enforce->gaps[before].alone =
		        take_turn(plan, turn->strip, last) && i >= n;
	}
	free(turns);
	free(last);
	return 0;
}

/* Between which ops each strip is away. */
static int make_gaps(
        struct ts_enforce *enforce, const struct ts_page_plan *plan)
{
	enforce->gaps = calloc(plan->n_stays + 1ull, sizeof(*enforce->gaps));
	if (!enforce->gaps)
		return -ENOMEM;
	for (uint32_t op = 0; op < plan->n_ops; op++)
		for (uint32_t i = enforce->first_move[op];
		        i < enforce->first_move[op + 1]; i++) {
			const struct ts_plan_move *move = &enforce->moves[i];
			struct ts_plan_gap *gap = &enforce->gaps[move->gap];

			*(move->take ? &gap->come_op : &gap->leave_op) = op;
		}
	return find_alone(enforce, plan);
}

int ts_enforce_build(
        const struct ts_page_plan *plan, struct ts_enforce **ret_enforce)
{
	struct ts_enforce *enforce = calloc(1, sizeof(*enforce));
	int rc = -ENOMEM;

	if (!enforce)
		return rc;
	enforce->n_ops = plan->n_ops;
	enforce->n_strips = plan->n_strips;
	enforce->strips =
	        calloc(plan->n_strips + 1ull, sizeof(*enforce->strips));
	enforce->stays = malloc((plan->n_stays + 1ull) * sizeof(*plan->stays));
	enforce->first_stay =
	        malloc((plan->n_strips + 1ull) * sizeof(uint32_t));
	if (enforce->strips && enforce->stays && enforce->first_stay)
		rc = make_moves(enforce, plan);
	if (!rc)
		rc = make_gaps(enforce, plan);
	if (rc) {
		ts_enforce_destroy(enforce);
		return rc;
	}
	for (uint32_t s = 0; s < plan->n_strips; s++) {
		const struct ts_plan_strip *strip = &plan->strips[s];

		enforce->strips[s] =
		        (struct ts_plan_move){.address = strip->address,
		                .pages = strip->pages,
		                .gap = TS_NO_GAP};
		enforce->first_stay[s] = strip->first_stay;
	}
	enforce->first_stay[plan->n_strips] = plan->n_stays;
	if (plan->n_stays)
		memcpy(enforce->stays, plan->stays,
		        plan->n_stays * sizeof(*plan->stays));
	*ret_enforce = enforce;
	return 0;
}
