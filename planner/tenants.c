/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs of pages take chunks one after the other, in several orders, the best of
 * which counts: those that suit without anybody waiting, the tightest first,
 * then new ones, then those that wait least. Where all are there, each then
 * looks for a better one among the others.
 */
#include "planner/tenants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/grow.h"

/* What may be looked at for one order, and when there is no next one: spans,
 * groups that are sorted, tenants that may have to go. */
#define MAX_WORK    (UINT64_C(1) << 25)
#define ENOUGH_WORK (UINT64_C(1) << 23)

/* So often everyone looks for a better place. */
#define ROUNDS 4

/* Chunks side by side with the same tenants. */
struct group {
	uint32_t first_chunk, count;
	struct tenant *tenants; /* ascending, apart */
	uint32_t n, room;
};

struct tenant {
	uint32_t span;        /* index into the input's */
	uint32_t run, offset; /* pages of which run, from which on */
};

struct candidate {
	uint32_t group;
	uint64_t wait;  /* ticks that somebody waits for somebody else */
	uint64_t loose; /* slots for which it is nobody's, beside the spans */
};

struct work {
	const struct ts_tenants_input *in;
	struct group *groups;
	uint32_t n_groups, groups_room, n_chunks;
	struct candidate *list;
	uint32_t list_room;
	uint64_t looked, most; /* as MAX_WORK counts */
	/* The tightest chunks are taken, however long somebody waits. */
	bool tight;
};

/* By which runs take their turn. */
struct key {
	uint64_t key;
	uint32_t run;
};

static const struct ts_tenant_span *span_of(
        const struct work *w, const struct group *group, uint32_t index)
{
	return &w->in->spans[group->tenants[index].span];
}

/* The first tenant that is there after slot @from begins. */
static uint32_t first_after(
        const struct work *w, const struct group *group, uint32_t from)
{
	uint32_t low = 0, high = group->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (span_of(w, group, middle)->end <= from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t above(int64_t more, int64_t less)
{
	return more > less ? (uint64_t)(more - less) : 0;
}

/*
 * What @span would wait for the tenant before the one at @at, and that one for
 * it; around the step.
 */
static void weigh(const struct work *w, const struct group *group, uint32_t at,
        const struct ts_tenant_span *span, struct candidate *to)
{
	int64_t slots = w->in->n_slots, ticks = w->in->n_ticks;
	const struct ts_tenant_span *before, *after;
	bool first = !at, last = at == group->n;

	if (!group->n) {
		to->loose += w->in->n_slots;
		return;
	}
	before = span_of(w, group, first ? group->n - 1 : at - 1);
	after = span_of(w, group, last ? 0 : at);
	to->wait += above(
	        (int64_t)before->free_tick - first * ticks, span->from_tick);
	to->wait += above(span->free_tick, after->from_tick + last * ticks);
	to->loose += (uint64_t)(span->from + first * slots - before->end);
	to->loose += (uint64_t)(after->from + last * slots - span->end);
}

/* False where somebody is there for an op that @run is there for. */
static bool suits(struct work *w, const struct group *group,
        const struct ts_pack_run *run, struct candidate *ret)
{
	const struct ts_tenant_span *spans = w->in->spans + run->first_span;

	ret->wait = 0;
	ret->loose = 0;
	for (uint32_t k = 0; k < run->n_spans; k++) {
		uint32_t at = first_after(w, group, spans[k].from);

		w->looked++;
		if (at < group->n && span_of(w, group, at)->from < spans[k].end)
			return false;
		weigh(w, group, at, &spans[k], ret);
	}
	return true;
}

static int by_wait(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->wait != y->wait)
		return x->wait < y->wait ? -1 : 1;
	if (x->loose != y->loose)
		return x->loose < y->loose ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

static int by_room(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->loose != y->loose)
		return x->loose < y->loose ? -1 : 1;
	return by_wait(a, b);
}

/* The groups that suit @run, the best first, into w->list. Their number, or
 * -ENOMEM. */
static int64_t find_groups(struct work *w, const struct ts_pack_run *run)
{
	uint32_t n = 0;

	if (!ts_grow(&w->list, w->n_groups + 1ull, &w->list_room,
	            sizeof(*w->list)))
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_groups; i++) {
		w->list[n].group = i;
		n += suits(w, &w->groups[i], run, &w->list[n]);
	}
	w->looked += n;
	qsort(w->list, n, sizeof(*w->list), w->tight ? by_room : by_wait);
	return n;
}

/* A group of @count chunks, with the tenants of @like, @after pages on. */
static int add_group(struct work *w, uint32_t first_chunk, uint32_t count,
        uint32_t like, uint32_t after)
{
	struct group *made;
	const struct group *from;

	if (!ts_grow(&w->groups, w->n_groups + 1ull, &w->groups_room,
	            sizeof(*w->groups)))
		return -ENOMEM;
	made = &w->groups[w->n_groups];
	*made = (struct group){.first_chunk = first_chunk, .count = count};
	from = like < w->n_groups ? &w->groups[like] : NULL;
	if (from && !ts_grow(&made->tenants, from->n, &made->room,
	                    sizeof(*made->tenants)))
		return -ENOMEM;
	for (uint32_t i = 0; from && i < from->n; i++) {
		made->tenants[i] = from->tenants[i];
		made->tenants[i].offset += after;
		made->n++;
	}
	w->n_groups++;
	return 0;
}

/* Pages of @run from @offset on, at most @count, into @index. */
static int move_in(struct work *w, uint32_t index, uint32_t run_index,
        uint32_t offset, uint32_t count)
{
	const struct ts_pack_run *run = &w->in->runs[run_index];
	struct group *group = &w->groups[index];

	if (group->count > count) {
		int rc = add_group(w, group->first_chunk + count,
		        group->count - count, index, count);

		if (rc)
			return rc;
		group = &w->groups[index];
		group->count = count;
	}
	if (!ts_grow(&group->tenants, (uint64_t)group->n + run->n_spans,
	            &group->room, sizeof(*group->tenants)))
		return -ENOMEM;
	for (uint32_t k = 0; k < run->n_spans; k++) {
		uint32_t span = run->first_span + k;
		uint32_t at = first_after(w, group, w->in->spans[span].from);

		memmove(group->tenants + at + 1, group->tenants + at,
		        (group->n - at) * sizeof(*group->tenants));
		group->tenants[at] = (struct tenant){span, run_index, offset};
		group->n++;
	}
	return 0;
}

/* New chunks for pages of @run from *@offset on, @most in all. */
static int take_new(
        struct work *w, uint32_t run, uint32_t *offset, uint32_t most)
{
	uint32_t count = w->in->runs[run].count - *offset;
	int rc;

	if (w->n_chunks >= most || !count)
		return 0;
	if (count > most - w->n_chunks)
		count = most - w->n_chunks;
	rc = add_group(w, w->n_chunks, count, UINT32_MAX, 0);
	w->n_chunks += count;
	if (!rc)
		rc = move_in(w, w->n_groups - 1, run, *offset, count);
	*offset += count;
	return rc;
}

static int place(struct work *w, uint32_t index)
{
	const struct ts_pack_run *run = &w->in->runs[index];
	int64_t n = find_groups(w, run);
	uint32_t offset = 0;
	int rc = n < 0 ? (int)n : 0;
	bool anew = false;

	if (w->looked > w->most)
		return -E2BIG;
	for (int64_t i = 0; !rc && i < n && offset < run->count; i++) {
		const struct candidate *to = &w->list[i];

		if (to->wait && !anew && !w->tight) {
			rc = take_new(w, index, &offset, w->in->most_chunks);
			anew = true;
			if (rc || offset == run->count)
				break;
		}
		rc = move_in(w, to->group, index, offset, run->count - offset);
		offset += w->groups[to->group].count;
	}
	return rc ? rc : take_new(w, index, &offset, UINT32_MAX);
}

static void empty(struct work *w)
{
	for (uint32_t i = 0; i < w->n_groups; i++)
		free(w->groups[i].tenants);
	w->n_groups = 0;
	w->n_chunks = 0;
}

/* ------------------------------------------------------------- improvement */

/* Ticks that pages wait for whoever had their chunk before. */
static uint64_t wait_of_all(const struct work *w)
{
	uint64_t wait = 0;

	for (uint32_t i = 0; i < w->n_groups; i++) {
		const struct group *group = &w->groups[i];

		for (uint32_t k = 0; k < group->n; k++) {
			const struct ts_tenant_span *before, *span;

			before = span_of(w, group, k ? k - 1 : group->n - 1);
			span = span_of(w, group, k);
			wait += group->count *
			        above((int64_t)before->free_tick -
			                        (k ? 0
			                           : (int64_t)w->in->n_ticks),
			                span->from_tick);
		}
	}
	return wait;
}

static void take_out(struct work *w, uint32_t run)
{
	for (uint32_t i = 0; i < w->n_groups; i++) {
		struct group *group = &w->groups[i];
		uint32_t kept = 0;

		for (uint32_t k = 0; k < group->n; k++)
			if (group->tenants[k].run != run)
				group->tenants[kept++] = group->tenants[k];
		w->looked += group->n;
		group->n = kept;
	}
}

/* Every run once more, now that all others have their chunks. */
static int improve(struct work *w)
{
	int rc = 0;

	w->tight = false;
	for (int round = 0; round < ROUNDS && !rc; round++) {
		uint64_t before = wait_of_all(w);

		for (uint32_t r = 0; r < w->in->n_runs && !rc; r++) {
			if (w->looked > ENOUGH_WORK)
				return 0;
			take_out(w, r);
			rc = place(w, r);
		}
		if (wait_of_all(w) >= before)
			break;
	}
	return rc;
}

/* ------------------------------------------------------------------ orders */

static const uint32_t tenths[] = {2, 5, 3, 0, 1};
#define CUTS   (sizeof(tenths) / sizeof(tenths[0]))
#define ORDERS (CUTS + 2)

/* When @run comes first, seen from slot @cut on. */
static uint32_t arrival(
        const struct work *w, const struct ts_pack_run *run, uint32_t cut)
{
	const struct ts_tenant_span *spans = w->in->spans + run->first_span;

	for (uint32_t k = 0; k < run->n_spans; k++)
		if (spans[k].end > cut)
			return spans[k].from > cut ? spans[k].from - cut : 0;
	return spans[0].from + w->in->n_slots - cut;
}

static uint64_t slots_of(const struct work *w, const struct ts_pack_run *run)
{
	const struct ts_tenant_span *spans = w->in->spans + run->first_span;
	uint64_t slots = 0;

	for (uint32_t k = 0; k < run->n_spans; k++)
		slots += spans[k].end - spans[k].from;
	return slots;
}

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->run < y->run ? -1 : x->run > y->run;
}

static void order_runs(const struct work *w, uint32_t order, struct key *keys)
{
	for (uint32_t r = 0; r < w->in->n_runs; r++) {
		const struct ts_pack_run *run = &w->in->runs[r];
		uint64_t slots = UINT32_MAX - slots_of(w, run);

		keys[r].run = r;
		if (order < CUTS)
			keys[r].key =
			        (uint64_t)arrival(w, run,
			                (uint32_t)((uint64_t)w->in->n_slots *
			                           tenths[order] / 10))
			                << 32 |
			        (UINT32_MAX - run->n_spans);
		else if (order == CUTS)
			keys[r].key = slots;
		else
			keys[r].key = (uint64_t)(UINT32_MAX - run->n_spans)
			                      << 32 |
			              slots;
	}
	qsort(keys, w->in->n_runs, sizeof(*keys), by_key);
}

static int by_place(const void *a, const void *b)
{
	const struct ts_pack_piece *x = a, *y = b;

	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int list_pieces(const struct work *w, struct ts_packing *to)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < w->n_groups; i++)
		n += w->groups[i].n;
	to->pieces = malloc((n + 1) * sizeof(*to->pieces));
	if (!to->pieces)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_groups; i++) {
		const struct group *group = &w->groups[i];

		for (uint32_t k = 0; k < group->n; k++) {
			const struct tenant *tenant = &group->tenants[k];

			if (tenant->span == w->in->runs[tenant->run].first_span)
				to->pieces[to->n_pieces++] =
				        (struct ts_pack_piece){
				                .run = tenant->run,
				                .offset = tenant->offset,
				                .count = group->count,
				                .first_chunk =
				                        group->first_chunk};
		}
	}
	to->n_chunks = w->n_chunks;
	if (to->n_pieces)
		qsort(to->pieces, to->n_pieces, sizeof(*to->pieces), by_place);
	return 0;
}

/* All runs in one order, and then each of them once more. */
static int pack(struct work *w, uint32_t order, struct key *keys)
{
	int rc = 0;

	order_runs(w, order % ORDERS, keys);
	w->tight = order >= ORDERS;
	for (uint32_t i = 0; i < w->in->n_runs && !rc; i++)
		rc = place(w, keys[i].run);
	if (!rc && w->n_chunks <= w->in->most_chunks)
		rc = improve(w);
	return rc;
}

int ts_tenants_pack(
        const struct ts_tenants_input *input, struct ts_packing *ret_packing)
{
	struct key *keys = malloc((input->n_runs + 1ull) * sizeof(*keys));
	struct work w = {.in = input, .most = MAX_WORK};
	struct ts_packing best = {0};
	uint64_t least_over = UINT64_MAX, least_wait = UINT64_MAX;
	int rc = keys ? 0 : -ENOMEM;

	for (uint32_t order = 0; !rc && order < 2 * ORDERS; order++) {
		uint64_t over = 0, wait;

		rc = pack(&w, order, keys);
		if (w.n_chunks > input->most_chunks)
			over = w.n_chunks - input->most_chunks;
		wait = wait_of_all(&w);
		if (!rc && (over < least_over ||
		                   (over == least_over && wait < least_wait))) {
			ts_packing_finish(&best);
			rc = list_pieces(&w, &best);
			least_over = over;
			least_wait = wait;
		}
		empty(&w);
		w.most = ENOUGH_WORK;
		if ((!least_over && !least_wait) || w.looked > w.most)
			break;
	}
	/* Enough was looked at for one that is as good as it is. */
	if (rc == -E2BIG && best.pieces)
		rc = 0;
	if (rc)
		ts_packing_finish(&best);
	else
		*ret_packing = best;
	free(w.groups);
	free(w.list);
	free(keys);
	return rc;
}
