/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs of pages take chunks one after the other, where they cost least; then
 * each looks for a better place once more, as long as that makes it cheaper.
 */
#include "planner/share.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/grow.h"

/* What may be looked at in all: tenancies. */
#define MAX_WORK    (UINT64_C(1) << 27)
#define ENOUGH_WORK (UINT64_C(1) << 26)

/* Ops whose bits are looked at in the time of one tenancy. */
#define WORDS_LOOKED 1024

/* What it takes to know what it costs, against knowing that it fits. */
#define COST_LOOKS 4

#define ROUNDS 6

/* Steps of more ops go without bits, which take a chunk so many bytes. */
#define MOST_BITS (UINT32_C(1) << 15)

/* Chunks side by side with the same tenants. */
struct group {
	uint32_t first_chunk, count;
	uint64_t *bits;         /* by op: somebody is there; NULL: not told */
	struct tenant *tenants; /* ascending, apart */
	uint32_t n, room;
};

struct tenant {
	uint32_t tenancy;     /* index into the input's */
	uint32_t run, offset; /* pages of which run, from which on */
};

struct candidate {
	uint32_t group;
	uint64_t cost;
	uint64_t wait;  /* ticks that somebody waits for somebody else */
	uint64_t loose; /* ops for which it is nobody's, beside the tenancies */
};

struct work {
	const struct ts_share_input *in;
	struct group *groups;
	uint32_t n_groups, groups_room, n_chunks;
	struct candidate *list;
	uint32_t list_room;
	uint32_t *needed; /* by gap: groups in which somebody comes into it */
	uint32_t *marked; /* by gap: the look at which it was counted */
	uint32_t look;
	bool at_first; /* gaps in which pages are away anyway cost nothing */
	uint64_t looked;
};

struct key {
	uint64_t key;
	uint32_t run;
};

static uint32_t words_of(const struct work *w)
{
	return w->in->n_ops / 64 + 1;
}

static void set_bits(
        uint64_t *bits, const struct ts_share_tenancy *tenancy, bool to)
{
	for (uint32_t op = tenancy->from; op < tenancy->end; op++) {
		uint64_t bit = UINT64_C(1) << op % 64;

		bits[op / 64] = to ? bits[op / 64] | bit : bits[op / 64] & ~bit;
	}
}

/* Is a bit set of those that @tenancy is there for? */
static bool has_bits(
        const uint64_t *bits, const struct ts_share_tenancy *tenancy)
{
	uint32_t first = tenancy->from / 64, last = (tenancy->end - 1) / 64;
	uint64_t from = UINT64_MAX << tenancy->from % 64;
	uint64_t to = UINT64_MAX >> (63 - (tenancy->end - 1) % 64);

	if (first == last)
		return bits[first] & from & to;
	if ((bits[first] & from) || (bits[last] & to))
		return true;
	for (uint32_t i = first + 1; i < last; i++)
		if (bits[i])
			return true;
	return false;
}

static const struct ts_share_tenancy *at(
        const struct work *w, const struct group *group, uint32_t index)
{
	return &w->in->tenancies[group->tenants[index].tenancy];
}

/* The first tenant that is there after op @from begins. */
static uint32_t first_after(
        const struct work *w, const struct group *group, uint32_t from)
{
	uint32_t low = 0, high = group->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (at(w, group, middle)->end <= from)
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

static uint32_t next_of(const struct work *w, const struct tenant *tenant)
{
	const struct ts_pack_run *run = &w->in->runs[tenant->run];
	uint32_t next = tenant->tenancy + 1;

	return next == run->first_span + run->n_spans ? run->first_span : next;
}

/* Adds @more to what the gaps of @group count, in which somebody else comes. */
static void count_needs(struct work *w, const struct group *group, int more)
{
	for (uint32_t k = 0; k < group->n; k++) {
		const struct tenant *tenant = &group->tenants[k];
		const struct tenant *after =
		        &group->tenants[k + 1 == group->n ? 0 : k + 1];
		uint32_t gap = w->in->tenancies[tenant->tenancy].gap;

		if (gap != TS_SHARE_EMPTY &&
		        after->tenancy != next_of(w, tenant))
			w->needed[gap] += (uint32_t)more;
	}
}

static uint64_t cost_of_gap(struct work *w, uint32_t gap)
{
	const struct ts_share_gap *info = &w->in->gaps[gap];

	if (w->needed[gap] || w->marked[gap] == w->look ||
	        (w->at_first && info->away))
		return 0;
	w->marked[gap] = w->look;
	return info->cost;
}

/* @second comes right after @first in a chunk, around the step or not. */
static void weigh(struct work *w, const struct ts_share_tenancy *first,
        const struct ts_share_tenancy *second, struct candidate *to)
{
	bool around = second->from < first->end;

	if (first->gap != TS_SHARE_EMPTY)
		to->cost += cost_of_gap(w, first->gap);
	to->wait += above(first->free_tick,
	        second->from_tick + (int64_t)around * w->in->n_ticks);
	to->loose +=
	        second->from + (uint64_t)around * w->in->n_ops - first->end;
}

/*
 * What it costs that @run comes into @group; false where that is more than
 * @most, or somebody is there for an op that it is there for.
 */
static bool suits(struct work *w, const struct group *group,
        const struct ts_pack_run *run, uint64_t most, struct candidate *ret)
{
	const struct ts_share_tenancy *own = w->in->tenancies + run->first_span;
	const struct ts_share_tenancy *last = &own[run->n_spans - 1];
	uint32_t first_place = 0, place = 0;

	ret->cost = ret->wait = ret->loose = 0;
	w->looked++;
	w->look++;
	for (uint32_t k = 0; group->bits && k < run->n_spans; k++) {
		w->looked += (own[k].end - own[k].from) / WORDS_LOOKED;
		if (has_bits(group->bits, &own[k]))
			return false;
	}
	if (!group->n) {
		ret->loose = w->in->n_ops;
		return true;
	}
	for (uint32_t k = 0; k < run->n_spans; k++) {
		uint32_t before = place;

		place = first_after(w, group, own[k].from);
		w->looked += COST_LOOKS;
		if (place < group->n && at(w, group, place)->from < own[k].end)
			return false;
		if (!k)
			first_place = place;
		/* Nobody of the group is between it and its last one. */
		if (k && place == before)
			continue;
		if (k) {
			weigh(w, &own[k - 1], at(w, group, before), ret);
			weigh(w, at(w, group, place - 1), &own[k], ret);
		}
		if (ret->cost > most)
			return false;
	}
	/* From the last one around to the first there may be nobody, too. */
	if (first_place || place < group->n) {
		uint32_t before = first_place ? first_place : group->n;

		weigh(w, at(w, group, before - 1), own, ret);
		weigh(w, last, at(w, group, place == group->n ? 0 : place),
		        ret);
	}
	ret->cost += ret->wait / w->in->wait_part;
	return ret->cost <= most;
}

static int by_cost(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	if (x->loose != y->loose)
		return x->loose < y->loose ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

static int64_t find_groups(struct work *w, const struct ts_pack_run *run)
{
	uint64_t most = UINT64_MAX, free_pages = 0;
	uint32_t n = 0;

	if (!ts_grow(&w->list, w->n_groups + 1ull, &w->list_room,
	            sizeof(*w->list)))
		return -ENOMEM;
	/* Of those that cost something the cheapest is all that is wanted. */
	for (uint32_t i = 0; i < w->n_groups; i++) {
		w->list[n].group = i;
		if (!suits(w, &w->groups[i], run, most, &w->list[n]))
			continue;
		if (!w->list[n].cost) {
			free_pages += w->groups[i].count;
			if (free_pages >= run->count)
				most = 0;
		} else {
			most = w->list[n].cost;
		}
		n++;
	}
	w->looked += n;
	qsort(w->list, n, sizeof(*w->list), by_cost);
	return n;
}

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
	if (w->in->n_ops <= MOST_BITS) {
		made->bits = calloc(words_of(w), sizeof(*made->bits));
		if (!made->bits)
			return -ENOMEM;
	}
	if (from && made->bits)
		memcpy(made->bits, from->bits,
		        words_of(w) * sizeof(*made->bits));
	if (from && !ts_grow(&made->tenants, from->n, &made->room,
	                    sizeof(*made->tenants)))
		return -ENOMEM;
	for (uint32_t i = 0; from && i < from->n; i++) {
		made->tenants[i] = from->tenants[i];
		made->tenants[i].offset += after;
		made->n++;
	}
	w->n_groups++;
	count_needs(w, made, 1);
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
	w->looked += group->n + run->n_spans;
	count_needs(w, group, -1);
	for (uint32_t k = 0; k < run->n_spans; k++) {
		uint32_t tenancy = run->first_span + k;
		uint32_t place =
		        first_after(w, group, w->in->tenancies[tenancy].from);

		memmove(group->tenants + place + 1, group->tenants + place,
		        (group->n - place) * sizeof(*group->tenants));
		group->tenants[place] =
		        (struct tenant){tenancy, run_index, offset};
		group->n++;
		if (group->bits)
			set_bits(group->bits, &w->in->tenancies[tenancy], true);
	}
	count_needs(w, group, 1);
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

/* As long as there was no more to look at than @most_work in all. */
static int place(struct work *w, uint32_t index, uint64_t most_work)
{
	const struct ts_pack_run *run = &w->in->runs[index];
	uint32_t offset = 0;
	int rc = 0;
	bool again = true;

	while (!rc && again && offset < run->count) {
		int64_t n = find_groups(w, run);
		bool anew = false;

		if (n < 0)
			return (int)n;
		if (w->looked > most_work)
			return -E2BIG;
		again = false;
		for (int64_t i = 0; !rc && i < n && offset < run->count; i++) {
			const struct candidate *to = &w->list[i];

			if (to->cost && !anew) {
				rc = take_new(
				        w, index, &offset, w->in->most_chunks);
				anew = true;
				if (rc || offset == run->count)
					break;
			}
			rc = move_in(w, to->group, index, offset,
			        run->count - offset);
			offset += w->groups[to->group].count;
			/* What was paid for once costs nothing any more. */
			again = to->cost > 0;
			if (again)
				break;
		}
	}
	return rc ? rc : take_new(w, index, &offset, UINT32_MAX);
}

static void empty(struct work *w)
{
	for (uint32_t i = 0; i < w->n_groups; i++) {
		free(w->groups[i].tenants);
		free(w->groups[i].bits);
	}
	w->n_groups = 0;
	w->n_chunks = 0;
	memset(w->needed, 0, w->in->n_gaps * sizeof(*w->needed));
}

/* ------------------------------------------------------------- improvement */

static uint64_t cost_of_all(const struct work *w)
{
	uint64_t cost = 0;

	for (uint32_t i = 0; i < w->in->n_gaps; i++)
		if (w->needed[i])
			cost += w->in->gaps[i].cost;
	return cost;
}

/* Ticks that pages wait for whoever had their chunk before. */
static uint64_t wait_of_all(const struct work *w)
{
	uint64_t wait = 0;

	for (uint32_t i = 0; i < w->n_groups; i++) {
		const struct group *group = &w->groups[i];

		for (uint32_t k = 0; k < group->n; k++) {
			uint32_t b = k ? k - 1 : group->n - 1;

			if (next_of(w, &group->tenants[b]) ==
			        group->tenants[k].tenancy)
				continue;
			wait += above((int64_t)at(w, group, b)->free_tick -
			                      (k ? 0 : (int64_t)w->in->n_ticks),
			        at(w, group, k)->from_tick);
		}
	}
	return wait;
}

static void take_out(struct work *w, uint32_t run)
{
	for (uint32_t i = 0; i < w->n_groups; i++) {
		struct group *group = &w->groups[i];
		uint32_t kept = 0;
		bool has = false;

		for (uint32_t k = 0; k < group->n && !has; k++)
			has = group->tenants[k].run == run;
		w->looked += group->n;
		if (!has)
			continue;
		count_needs(w, group, -1);
		for (uint32_t k = 0; k < group->n; k++)
			if (group->tenants[k].run != run)
				group->tenants[kept++] = group->tenants[k];
			else if (group->bits)
				set_bits(group->bits, at(w, group, k), false);
		group->n = kept;
		count_needs(w, group, 1);
	}
}

/* Every run once more, now that all others have their chunks. */
static int improve(struct work *w)
{
	int rc = 0;

	for (int round = 0; round < ROUNDS && !rc; round++) {
		uint64_t before =
		        cost_of_all(w) + wait_of_all(w) / w->in->wait_part;

		for (uint32_t r = 0; r < w->in->n_runs && !rc; r++) {
			if (w->looked > ENOUGH_WORK)
				return 0;
			take_out(w, r);
			/* Without its chunks there would be nothing. */
			rc = place(w, r, UINT64_MAX);
		}
		if (cost_of_all(w) + wait_of_all(w) / w->in->wait_part >=
		        before)
			break;
	}
	return rc;
}

/* ------------------------------------------------------------------ orders */

static const uint32_t tenths[] = {2, 0, 3, 5, 1};
#define CUTS (sizeof(tenths) / sizeof(tenths[0]))
static_assert(CUTS + 2 == TS_SHARE_ORDERS, "all orders are told");

/* When @run comes first, seen from op @cut on. */
static uint32_t arrival(
        const struct work *w, const struct ts_pack_run *run, uint32_t cut)
{
	const struct ts_share_tenancy *own = w->in->tenancies + run->first_span;

	for (uint32_t k = 0; k < run->n_spans; k++)
		if (own[k].end > cut)
			return own[k].from > cut ? own[k].from - cut : 0;
	return own[0].from + w->in->n_ops - cut;
}

/* Ops for which it is there, if it stays where it is not away anyway. */
static uint64_t ops_of(const struct work *w, const struct ts_pack_run *run)
{
	const struct ts_share_tenancy *own = w->in->tenancies + run->first_span;
	uint64_t ops = 0;

	for (uint32_t k = 0; k < run->n_spans; k++) {
		bool last = k + 1 == run->n_spans;
		const struct ts_share_tenancy *next = &own[last ? 0 : k + 1];

		ops += own[k].end - own[k].from;
		if (own[k].gap != TS_SHARE_EMPTY &&
		        !w->in->gaps[own[k].gap].away)
			ops += next->from + last * w->in->n_ops - own[k].end;
	}
	return ops;
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
		uint64_t ops = UINT32_MAX - ops_of(w, run);

		keys[r].run = r;
		if (order < CUTS)
			keys[r].key =
			        (uint64_t)arrival(w, run,
			                (uint32_t)((uint64_t)w->in->n_ops *
			                           tenths[order] / 10))
			                << 32 |
			        (UINT32_MAX - run->n_spans);
		else if (order == CUTS)
			keys[r].key = ops;
		else
			keys[r].key = (uint64_t)(UINT32_MAX - run->n_spans)
			                      << 32 |
			              ops;
	}
	qsort(keys, w->in->n_runs, sizeof(*keys), by_key);
}

/* ------------------------------------------------------------------- whole */

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

			if (tenant->tenancy ==
			        w->in->runs[tenant->run].first_span)
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

/* When the chunks are free in which pages come back after each gap. */
static void note_free_ops(
        const struct work *w, const struct group *group, uint32_t *free_op)
{
	for (uint32_t k = 0; k < group->n; k++) {
		const struct tenant *tenant = &group->tenants[k];
		uint32_t next = next_of(w, tenant), op, gap, place;

		gap = w->in->tenancies[tenant->tenancy].gap;
		if (gap == TS_SHARE_EMPTY)
			continue;
		place = first_after(w, group, w->in->tenancies[next].from);
		op = at(w, group, place ? place - 1 : group->n - 1)->end;
		if (group->tenants[place ? place - 1 : group->n - 1].tenancy ==
		        tenant->tenancy)
			continue;
		if (w->in->gaps[gap].wraps && place)
			op += w->in->n_ops;
		if (op > free_op[gap])
			free_op[gap] = op;
	}
}

static int by_tenancies(const void *a, const void *b)
{
	const struct ts_share_handover *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static int list_handovers(const struct work *w, struct ts_sharing *to)
{
	uint64_t n = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->n_groups; i++)
		n += w->groups[i].n;
	to->handovers = malloc((n + 1) * sizeof(*to->handovers));
	if (!to->handovers)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_groups; i++) {
		const struct group *group = &w->groups[i];

		for (uint32_t k = 0; k < group->n; k++) {
			uint32_t b = k ? k - 1 : group->n - 1;

			if (next_of(w, &group->tenants[b]) !=
			        group->tenants[k].tenancy)
				to->handovers[to->n_handovers++] =
				        (struct ts_share_handover){
				                group->tenants[b].tenancy,
				                group->tenants[k].tenancy};
		}
	}
	if (to->n_handovers)
		qsort(to->handovers, to->n_handovers, sizeof(*to->handovers),
		        by_tenancies);
	for (uint32_t i = 0; i < to->n_handovers; i++)
		if (!kept || by_tenancies(&to->handovers[kept - 1],
		                     &to->handovers[i]))
			to->handovers[kept++] = to->handovers[i];
	to->n_handovers = kept;
	return 0;
}

static int tell(const struct work *w, struct ts_sharing *to)
{
	int rc;

	ts_sharing_finish(to);
	to->free_op = calloc(w->in->n_gaps + 1ull, sizeof(*to->free_op));
	if (!to->free_op)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_groups; i++)
		note_free_ops(w, &w->groups[i], to->free_op);
	to->cost = cost_of_all(w);
	to->wait = wait_of_all(w);
	rc = list_pieces(w, &to->packing);
	return rc ? rc : list_handovers(w, to);
}

void ts_sharing_finish(struct ts_sharing *sharing)
{
	ts_packing_finish(&sharing->packing);
	free(sharing->free_op);
	free(sharing->handovers);
	memset(sharing, 0, sizeof(*sharing));
}

int ts_share(const struct ts_share_input *input, uint32_t order,
        struct ts_sharing *ret)
{
	struct key *keys = malloc((input->n_runs + 1ull) * sizeof(*keys));
	struct work w = {.in = input,
	        .at_first = true,
	        .needed = calloc(input->n_gaps + 1ull, sizeof(uint32_t)),
	        .marked = calloc(input->n_gaps + 1ull, sizeof(uint32_t))};
	int rc = keys && w.needed && w.marked ? 0 : -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	if (!rc)
		order_runs(&w, order % TS_SHARE_ORDERS, keys);
	for (uint32_t i = 0; i < input->n_runs && !rc; i++)
		rc = place(&w, keys[i].run, MAX_WORK);
	w.at_first = false;
	if (!rc && w.n_chunks > input->most_chunks)
		rc = -ENOSPC;
	if (!rc)
		rc = improve(&w);
	if (!rc)
		rc = tell(&w, ret);
	if (rc)
		ts_sharing_finish(ret);
	ret->work = w.looked;
	empty(&w);
	free(w.groups);
	free(w.list);
	free(w.needed);
	free(w.marked);
	free(keys);
	return rc;
}
