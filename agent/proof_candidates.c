/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/proof_candidates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/proof_closure_internal.h"
#include "agent/remake.h"

static int put(struct ts_replay_candidates *to, uint32_t number)
{
	if (to->pool_count == to->pool_room) {
		uint32_t room = 2 * to->pool_room + 256;
		void *more = realloc(to->pool, room * sizeof(*to->pool));

		if (!more)
			return -ENOMEM;
		to->pool = more;
		to->pool_room = room;
	}
	to->pool[to->pool_count++] = number;
	return 0;
}

static bool has(const uint32_t *list, uint32_t count, uint32_t what)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i] == what)
			return true;
	return false;
}

/* What the closure's ops read and none of them makes. */
static int add_reads(const struct ts_closures *closures,
        const struct ts_closure *closure, struct ts_replay_candidates *to,
        struct ts_replay_candidate *candidate)
{
	const struct ts_profile *profile = &closures->profile;
	uint32_t made[TS_CLOSURE_MAX], n;
	int rc = 0;

	n = ts_graph_closure(
	        &closures->graph, closure->value, closure->to_op, made);
	candidate->first_read = to->pool_count;
	for (uint32_t i = 0; i < closure->op_count && !rc; i++) {
		const struct ts_profile_op *op =
		        &profile->ops[closures->op_list[closure->first_op + i]];

		for (uint32_t k = 0; k < op->n_reads && !rc; k++) {
			uint32_t read = profile->uses[op->first_read + k];

			if (!has(made, n, read) &&
			        !has(&to->pool[candidate->first_read],
			                to->pool_count - candidate->first_read,
			                read))
				rc = put(to, read);
		}
	}
	candidate->n_reads = to->pool_count - candidate->first_read;
	return rc;
}

/* What its ops took in the step that is planned for, not when it was proved. */
static int add(const struct ts_closures *closures, uint32_t index,
        const struct ts_profile *timed, struct ts_replay_candidates *to)
{
	const struct ts_closure *closure = &closures->list[index];
	const struct ts_profile *profile = &closures->profile;
	struct ts_replay_candidate *candidate = &to->list[to->count];
	struct ts_places places;
	int rc;

	*candidate = (struct ts_replay_candidate){.value = closure->value,
	        .closure = index,
	        .first_op = to->pool_count,
	        .n_ops = closure->op_count};
	rc = ts_places_find(profile, &closures->op_list[closure->first_op],
	        closure->op_count, &closure->value, 1, &places);
	candidate->scratch_bytes = places.bytes;
	ts_places_finish(&places);
	for (uint32_t i = 0; i < closure->op_count && !rc; i++) {
		uint32_t at = closures->op_list[closure->first_op + i];

		rc = put(to, at);
		candidate->duration_ns += timed->ops[at].duration_ns;
	}
	if (!rc)
		rc = add_reads(closures, closure, to, candidate);
	to->count += !rc;
	return rc;
}

/* By value: the last op that ends a gap of it within the step; 0: none. */
static uint32_t *last_ends(const struct ts_graph *g)
{
	uint32_t *last = calloc(g->profile->n_values + 1ull, sizeof(*last));

	for (uint32_t i = 0; last && i < g->n_gaps; i++)
		if (g->gaps[i].to_op > last[g->gaps[i].version])
			last[g->gaps[i].version] = g->gaps[i].to_op;
	return last;
}

static int by_value(const void *a, const void *b)
{
	const struct ts_replay_candidate *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

static int list_all(const struct ts_closures *closures,
        const struct ts_profile *timed, struct ts_replay_candidates *to)
{
	uint32_t *last = last_ends(&closures->graph);
	int rc = 0;

	to->list = calloc(closures->count + 1ull, sizeof(*to->list));
	if (!last || !to->list)
		rc = -ENOMEM;
	for (uint32_t i = 0; i < closures->count && !rc; i++) {
		const struct ts_closure *closure = &closures->list[i];

		if (closure->verdict == TS_VERDICT_PROVED &&
		        closure->to_op == last[closure->value] &&
		        ts_closure_is_on_one_stream(closures, closure))
			rc = add(closures, i, timed, to);
	}
	free(last);
	if (!rc)
		qsort(to->list, to->count, sizeof(*to->list), by_value);
	return rc;
}

/* What op @at of both uses for sure; words left over may differ. */
static bool has_same_uses(
        const struct ts_observed *a, const struct ts_observed *b, size_t at)
{
	const struct ts_values *x = &a->devices[0].values;
	const struct ts_values *y = &b->devices[0].values;
	const struct ts_rec_op *of = &a->step.ops[at], *to = &b->step.ops[at];
	uint64_t i = of->first_use - a->step.first_use;
	uint64_t k = to->first_use - b->step.first_use;

	return of->use_count == to->use_count &&
	       !memcmp(&x->use_read[i], &y->use_read[k],
	               of->use_count * sizeof(*x->use_read)) &&
	       !memcmp(&x->use_write[i], &y->use_write[k],
	               of->use_count * sizeof(*x->use_write));
}

/* Recordings of the same ops may differ in what blocks they found. */
static bool has_same_values(
        const struct ts_observed *a, const struct ts_observed *b)
{
	bool same = a->hash == b->hash &&
	            a->step.op_count == b->step.op_count &&
	            a->devices[0].device == b->devices[0].device &&
	            a->devices[0].profile.n_values ==
	                    b->devices[0].profile.n_values;

	for (size_t i = 0; a != b && same && i < a->step.op_count; i++)
		same = has_same_uses(a, b, i);
	return same;
}

int ts_proof_candidates(const struct ts_observed *step,
        struct ts_replay_candidates *ret_candidates)
{
	struct ts_replay_candidates found = {0};
	int rc = 0;

	*ret_candidates = found;
	if (!ts_proof.on)
		return 0;
	ts_mutex_lock(&ts_proof.lock);
	if (ts_proof.closures && !ts_proof_is_pending() &&
	        has_same_values(ts_proof.step, step))
		rc = list_all(
		        ts_proof.closures, &step->devices[0].profile, &found);
	ts_mutex_unlock(&ts_proof.lock);
	if (rc)
		ts_proof_candidates_finish(&found);
	else
		*ret_candidates = found;
	return rc;
}

void ts_proof_candidates_finish(struct ts_replay_candidates *candidates)
{
	free(candidates->list);
	free(candidates->pool);
	memset(candidates, 0, sizeof(*candidates));
}
