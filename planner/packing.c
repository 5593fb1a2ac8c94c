/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which chunk for which page: a sweep over the step. What arrives takes the
 * free chunk whose next tenant comes soonest after it has gone, among those
 * that suit all its later stays too. Where none does, chunks are added up to
 * the peak and a little more; then a stay that is still to come, of one page
 * or the other, is sent elsewhere, and the page is mapped anew for it. What
 * goes on over the cut is sent last: its page has to move there.
 */
#include "planner/packing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Groups of free chunks that are looked at for one arrival, either way. With
 * 64 twice as many pages of GPT-2 XL at 30 % are mapped anew, with more no
 * fewer.
 */
#define CANDIDATES 2048

/* What a stay that has to move at the cut weighs, in pages mapped anew. */
#define MOVE_COST 64
#define MOST_COST 255

/* Stays that groups may hold in all, and how many may be looked at. */
#define MAX_HELD (UINT32_C(1) << 22)
#define MAX_WORK (UINT64_C(1) << 30)

#define NOBODY UINT32_MAX

/* A stay of neighbouring pages of a run. */
struct stay {
	uint32_t from;
	uint32_t to;
	uint32_t run;
	uint32_t span;   /* of the run */
	uint32_t offset; /* of the first page in the run */
	bool loose;      /* goes over the cut, but changes its chunk there */
};

/* Chunks that are busy over the same ops. */
struct group {
	uint32_t first_chunk;
	uint32_t count;
	struct stay *stays; /* ascending, disjoint */
	uint32_t n_stays;
	uint32_t room;
	uint32_t key;      /* while free: op of the next stay */
	uint32_t upcoming; /* and its index in stays */
	uint32_t next;
	uint32_t before; /* in the list of free groups */
};

/* Pages that want a chunk from their first stay on. */
struct arrival {
	uint32_t count;
	uint32_t first_stay; /* slice of sweep.stays */
	uint32_t n_stays;
	uint32_t next;
};

/* A set of ops: bits, and above them bits that say where bits are. */
struct op_set {
	uint64_t *level[5];
	uint32_t n_levels;
};

struct candidate {
	uint32_t group;
	uint32_t cost; /* pages mapped anew, up to MOST_COST */
};

/* Free groups for one arrival. */
struct choice {
	struct candidate list[2 * CANDIDATES];
	uint32_t n;
	uint32_t wanted; /* pages */
	/* A cost from which on there are pages enough. */
	uint32_t enough;
	uint64_t sum;                  /* pages listed of less cost than that */
	uint64_t pages[MOST_COST + 1]; /* by cost */
};

struct sweep {
	const struct ts_pack_input *input;
	uint32_t n_chunks;
	uint64_t work;   /* stays looked at */
	uint64_t held;   /* stays of groups, those that left among them */
	uint64_t sent;   /* pages that had to give up their chunks */
	uint32_t budget; /* no more chunks than these */
	struct group *groups;
	uint32_t n_groups;
	uint32_t groups_room;
	struct arrival *arrivals;
	uint32_t n_arrivals;
	uint32_t arrivals_room;
	struct stay *stays;
	uint32_t n_stays;
	uint32_t stays_room;
	/* By op, heads of lists: what arrives, what gets free, what is free
	 * until then. */
	uint32_t *arriving;
	uint32_t *leaving;
	uint32_t *free_until;
	struct op_set keys;
	struct choice choice;
	/* Of one op. */
	uint32_t *order;
	uint32_t order_room;
};

static int room_for(
        void *array_pointer, uint64_t count, uint32_t *room, size_t size)
{
	void **array = array_pointer, *more;
	uint64_t next = count < 32 ? 64 : 2 * count;

	if (count <= *room)
		return 0;
	if (next > UINT32_MAX)
		return -ENOMEM;
	more = realloc(*array, next * size);
	if (!more)
		return -ENOMEM;
	*array = more;
	*room = (uint32_t)next;
	return 0;
}

static int set_init(struct op_set *set, uint64_t n)
{
	do {
		n = (n + 63) / 64;
		/* A word to spare: looking up may step past the end. */
		set->level[set->n_levels] = calloc(n + 1, sizeof(uint64_t));
		if (!set->level[set->n_levels++])
			return -ENOMEM;
	} while (n > 1);
	return 0;
}

static void set_finish(struct op_set *set)
{
	for (uint32_t i = 0; i < set->n_levels; i++)
		free(set->level[i]);
}

static void set_add(struct op_set *set, uint32_t op)
{
	for (uint32_t i = 0; i < set->n_levels; i++) {
		set->level[i][op / 64] |= UINT64_C(1) << op % 64;
		op /= 64;
	}
}

static void set_remove(struct op_set *set, uint32_t op)
{
	for (uint32_t i = 0; i < set->n_levels; i++) {
		set->level[i][op / 64] &= ~(UINT64_C(1) << op % 64);
		if (set->level[i][op / 64])
			return;
		op /= 64;
	}
}

/* The first member from @op on, or the last one below it; else NOBODY. */
static uint32_t set_find(const struct op_set *set, uint32_t op, bool up)
{
	for (uint32_t i = 0; i < set->n_levels; i++) {
		uint64_t mask = UINT64_MAX << op % 64;
		uint64_t word = set->level[i][op / 64] & (up ? mask : ~mask);

		if (!word) {
			op = op / 64 + up;
			continue;
		}
		op = op / 64 * 64;
		for (;;) {
			op += (uint32_t)(up ? __builtin_ctzll(word)
			                    : 63 - __builtin_clzll(word));
			if (!i--)
				return op;
			word = set->level[i][op];
			op *= 64;
		}
	}
	return NOBODY;
}

static void free_list_add(struct sweep *w, uint32_t index, uint32_t key)
{
	struct group *group = &w->groups[index];
	uint32_t head = w->free_until[key];

	group->key = key;
	group->before = NOBODY;
	group->next = head;
	if (head != NOBODY)
		w->groups[head].before = index;
	else
		set_add(&w->keys, key);
	w->free_until[key] = index;
}

static void free_list_remove(struct sweep *w, uint32_t index)
{
	struct group *group = &w->groups[index];

	if (group->next != NOBODY)
		w->groups[group->next].before = group->before;
	if (group->before != NOBODY)
		w->groups[group->before].next = group->next;
	else
		w->free_until[group->key] = group->next;
	if (w->free_until[group->key] == NOBODY)
		set_remove(&w->keys, group->key);
}

/* Index, @low at least, of the first stay that ends at or after @op. */
static uint32_t first_from(const struct group *group, uint32_t low, uint32_t op)
{
	uint32_t high = group->n_stays;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (group->stays[mid].to < op)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint32_t first_after(const struct group *group, uint32_t op)
{
	return first_from(group, 0, op);
}

static bool meets(const struct group *group, const struct stay *stay)
{
	uint32_t at = first_after(group, stay->from);

	return at < group->n_stays && group->stays[at].from <= stay->to;
}

/* The end of a residency whose beginning, after the cut, has its chunk. */
static bool is_tied(const struct sweep *w, const struct stay *stay)
{
	const struct ts_pack_run *run = &w->input->runs[stay->run];

	return run->wraps && stay->span + 1 == run->n_spans && !stay->loose;
}

/*
 * Pages that would be mapped anew if @arrival went into free @group; @enough
 * or more: too many.
 */
static uint32_t cost_of(struct sweep *w, const struct group *group,
        const struct arrival *arrival, uint32_t enough)
{
	const struct stay *stays = &w->stays[arrival->first_stay];
	uint32_t cost = 0;

	for (uint32_t k = group->upcoming;
	        cost < enough && k < group->n_stays &&
	        group->stays[k].from <= stays->to;
	        k++)
		cost += is_tied(w, &group->stays[k]) ? MOVE_COST : 1;
	w->work += 1 + cost + arrival->n_stays;
	for (uint32_t k = 1, at = group->upcoming;
	        k < arrival->n_stays && cost < enough; k++) {
		at = first_from(group, at, stays[k].from);
		cost += at < group->n_stays &&
		        group->stays[at].from <= stays[k].to;
	}
	return cost < MOST_COST ? cost : MOST_COST;
}

/* Lists free group @index if it is better than what is needed so far. */
static void consider(struct choice *choice, struct sweep *w, uint32_t index,
        const struct arrival *arrival)
{
	const struct group *group = &w->groups[index];
	uint32_t cost = cost_of(w, group, arrival, choice->enough);

	if (cost >= choice->enough)
		return;
	choice->list[choice->n++] = (struct candidate){index, cost};
	choice->pages[cost] += group->count;
	choice->sum += group->count;
	while (choice->enough && choice->sum >= choice->wanted)
		choice->sum -= choice->pages[--choice->enough];
}

/*
 * Lists the free groups that suit @count pages of @arrival best. Those that
 * are free for long enough come first, the tightest at the front; from the
 * others somebody has to go.
 */
static void find_groups(struct sweep *w, const struct arrival *arrival,
        uint32_t count, uint32_t enough)
{
	struct choice *choice = &w->choice;
	uint32_t to = w->stays[arrival->first_stay].to;

	memset(choice->pages, 0, sizeof(choice->pages));
	choice->n = 0;
	choice->sum = 0;
	choice->wanted = count;
	choice->enough = enough;
	for (int up = 1; up >= 0; up--) {
		uint32_t left = CANDIDATES, lowest = !up;
		uint32_t key = set_find(&w->keys, to + 1, up);

		while (key != NOBODY && left && choice->enough > lowest) {
			for (uint32_t i = w->free_until[key];
			        i != NOBODY && left && choice->enough > lowest;
			        i = w->groups[i].next, left--)
				consider(choice, w, i, arrival);
			key = set_find(&w->keys, key + up, up);
		}
	}
}

/* A group of @count new chunks, which is in no list. */
static int add_group(struct sweep *w, uint32_t first_chunk, uint32_t count)
{
	int err = room_for(&w->groups, w->n_groups + UINT64_C(1),
	        &w->groups_room, sizeof(*w->groups));

	if (!err)
		w->groups[w->n_groups++] = (struct group){
		        .first_chunk = first_chunk, .count = count};
	return err;
}

/* Leaves @count chunks in free group @index; the rest is a new free group. */
static int split(struct sweep *w, uint32_t index, uint32_t count)
{
	struct group *from, *rest;
	int err = add_group(w, w->groups[index].first_chunk + count,
	        w->groups[index].count - count);

	if (err)
		return err;
	from = &w->groups[index];
	rest = &w->groups[w->n_groups - 1];
	w->held += from->n_stays;
	if (w->held > MAX_HELD)
		return -E2BIG;
	err = room_for(
	        &rest->stays, from->n_stays, &rest->room, sizeof(*rest->stays));
	if (err)
		return err;
	from->count = count;
	rest->n_stays = from->n_stays;
	rest->upcoming = from->upcoming;
	for (uint32_t k = 0; k < from->n_stays; k++) {
		rest->stays[k] = from->stays[k];
		rest->stays[k].offset += count;
	}
	free_list_add(w, w->n_groups - 1, from->key);
	return 0;
}

static int add_stay(struct sweep *w, const struct stay *stay)
{
	int err = room_for(&w->stays, w->n_stays + UINT64_C(1), &w->stays_room,
	        sizeof(*w->stays));

	if (!err)
		w->stays[w->n_stays++] = *stay;
	return w->n_stays > 2 * MAX_HELD ? -E2BIG : err;
}

/* @count pages arrive, for the stays listed from @first_stay on. */
static int add_arrival(struct sweep *w, uint32_t first_stay, uint32_t count)
{
	uint32_t op = w->stays[first_stay].from;
	int err = room_for(&w->arrivals, w->n_arrivals + UINT64_C(1),
	        &w->arrivals_room, sizeof(*w->arrivals));

	if (err)
		return err;
	w->arrivals[w->n_arrivals] = (struct arrival){.count = count,
	        .first_stay = first_stay,
	        .n_stays = w->n_stays - first_stay,
	        .next = w->arriving[op]};
	w->arriving[op] = w->n_arrivals++;
	return 0;
}

/*
 * Takes the stays out of @index that meet @stay, and the later ones of the
 * same pages, which arrive anew.
 */
static int send_away(struct sweep *w, uint32_t index, const struct stay *stay)
{
	uint32_t first = first_after(&w->groups[index], stay->from);

	while (first < w->groups[index].n_stays &&
	        w->groups[index].stays[first].from <= stay->to) {
		struct group *group = &w->groups[index];
		struct stay sent = group->stays[first];
		uint32_t kept = first, at = w->n_stays;
		int err;

		sent.loose |= is_tied(w, &sent);
		err = add_stay(w, &sent);
		for (uint32_t k = first + 1; !err && k < group->n_stays; k++) {
			if (group->stays[k].run == sent.run &&
			        group->stays[k].offset == sent.offset &&
			        !is_tied(w, &group->stays[k]))
				err = add_stay(w, &group->stays[k]);
			else
				group->stays[kept++] = group->stays[k];
		}
		group->n_stays = kept;
		if (!err)
			err = add_arrival(w, at, group->count);
		w->sent += w->groups[index].count;
		if (err)
			return err;
	}
	return 0;
}

static int insert(struct sweep *w, struct group *group, const struct stay *stay)
{
	uint32_t at = first_after(group, stay->from);
	int err = room_for(&group->stays, group->n_stays + UINT64_C(1),
	        &group->room, sizeof(*group->stays));

	if (err)
		return err;
	memmove(group->stays + at + 1, group->stays + at,
	        (group->n_stays - at) * sizeof(*group->stays));
	group->stays[at] = *stay;
	group->n_stays++;
	w->held++;
	return w->held > MAX_HELD ? -E2BIG : 0;
}

/*
 * Puts the first pages of @arrival, from page @offset of it on, into group
 * @index, which is in no list; stays that do not fit arrive anew.
 */
static int move_in(struct sweep *w, uint32_t index,
        const struct arrival *arrival, uint32_t offset)
{
	uint32_t count = w->groups[index].count, again = w->n_stays;
	struct stay first = w->stays[arrival->first_stay];
	int err;

	first.offset += offset;
	err = send_away(w, index, &first);
	again = w->n_stays;
	for (uint32_t k = 0; !err && k < arrival->n_stays; k++) {
		struct stay stay = w->stays[arrival->first_stay + k];

		stay.offset += offset;
		if (w->n_stays > again || meets(&w->groups[index], &stay))
			err = add_stay(w, &stay);
		else
			err = insert(w, &w->groups[index], &stay);
	}
	if (!err && w->n_stays > again) {
		err = add_arrival(w, again, count);
		w->sent += count;
	}
	w->groups[index].next = w->leaving[first.to + 1];
	w->leaving[first.to + 1] = index;
	return err;
}

/* Places pages of @arrival in the listed groups of cost @cost. */
static int take_groups(struct sweep *w, const struct arrival *arrival,
        uint32_t cost, uint32_t *offset)
{
	int err = 0;

	for (uint32_t k = 0; k < w->choice.n; k++) {
		uint32_t left = arrival->count - *offset;
		uint32_t at = w->choice.list[k].group;

		if (w->choice.list[k].cost != cost)
			continue;
		if (err || !left)
			break;
		if (w->groups[at].count > left)
			err = split(w, at, left);
		free_list_remove(w, at);
		left = w->groups[at].count;
		if (!err)
			err = move_in(w, at, arrival, *offset);
		*offset += left;
	}
	return err;
}

/* Places pages of @arrival in new chunks, as far as there may be some. */
static int take_new(
        struct sweep *w, const struct arrival *arrival, uint32_t *offset)
{
	uint32_t count = arrival->count - *offset;
	int err;

	if (count > w->budget - w->n_chunks)
		count = w->budget - w->n_chunks;
	if (!count)
		return 0;
	err = add_group(w, w->n_chunks, count);
	w->n_chunks += count;
	if (!err)
		err = move_in(w, w->n_groups - 1, arrival, *offset);
	*offset += count;
	return err;
}

/*
 * There is a chunk for each page: no more pages than the peak's are there at
 * once, and there may be as many chunks.
 */
static int place(struct sweep *w, uint32_t index)
{
	struct arrival arrival = w->arrivals[index];
	uint32_t offset = 0;
	int err = 0;

	while (!err && offset < arrival.count) {
		uint32_t left = arrival.count - offset;
		bool may_grow = w->budget - w->n_chunks >= left;

		if (w->work > MAX_WORK)
			return -E2BIG;
		find_groups(w, &arrival, left, may_grow ? 1 : MOST_COST + 1);
		err = take_groups(w, &arrival, 0, &offset);
		if (!err && offset < arrival.count)
			err = take_new(w, &arrival, &offset);
		for (uint32_t cost = 1;
		        !err && offset < arrival.count && cost <= MOST_COST;
		        cost++) {
			if (w->choice.pages[cost])
				err = take_groups(w, &arrival, cost, &offset);
		}
	}
	return err;
}

/* Groups whose tenant has gone: free, or the next one comes at once. */
static void let_go(struct sweep *w, uint32_t op)
{
	uint32_t next;

	for (uint32_t i = w->leaving[op]; i != NOBODY; i = next) {
		struct group *group = &w->groups[i];
		uint32_t at = first_after(group, op);

		next = group->next;
		group->upcoming = at;
		free_list_add(w, i,
		        at < group->n_stays ? group->stays[at].from
		                            : w->input->n_slots);
	}
}

/* Groups that are free until @op: whose stay is it that begins? */
static void begin_stays(struct sweep *w, uint32_t op)
{
	while (w->free_until[op] != NOBODY) {
		uint32_t i = w->free_until[op], end;
		struct group *group = &w->groups[i];

		free_list_remove(w, i);
		end = group->stays[first_after(group, op)].to + 1;
		group->next = w->leaving[end];
		w->leaving[end] = i;
	}
}

static int by_weight(const void *a, const void *b, void *data)
{
	const struct sweep *w = data;
	const struct arrival *x = &w->arrivals[*(const uint32_t *)a];
	const struct arrival *y = &w->arrivals[*(const uint32_t *)b];
	uint32_t tx = w->stays[x->first_stay].to;
	uint32_t ty = w->stays[y->first_stay].to;

	if (x->n_stays != y->n_stays)
		return x->n_stays > y->n_stays ? -1 : 1;
	if (tx != ty)
		return tx > ty ? -1 : 1;
	return x->first_stay < y->first_stay ? -1 : 1;
}

/* All arrivals of one op; those with many stays are hardest to place. */
static int place_all(struct sweep *w, uint32_t op)
{
	uint32_t n = 0;
	int err = 0;

	for (uint32_t i = w->arriving[op]; !err && i != NOBODY;
	        i = w->arrivals[i].next) {
		err = room_for(&w->order, n + UINT64_C(1), &w->order_room,
		        sizeof(*w->order));
		if (!err)
			w->order[n++] = i;
	}
	if (!err && n > 1)
		qsort_r(w->order, n, sizeof(*w->order), by_weight, w);
	for (uint32_t k = 0; !err && k < n; k++)
		err = place(w, w->order[k]);
	return err;
}

static int add_runs(struct sweep *w)
{
	int err = 0;

	for (uint32_t r = 0; !err && r < w->input->n_runs; r++) {
		const struct ts_pack_run *run = &w->input->runs[r];
		uint32_t first = w->n_stays;

		for (uint32_t k = 0; !err && k < run->n_spans; k++) {
			struct ts_pack_span span =
			        w->input->spans[run->first_span + k];

			err = add_stay(w, &(struct stay){.from = span.from,
			                          .to = span.to,
			                          .run = r,
			                          .span = k});
		}
		if (!err)
			err = add_arrival(w, first, run->count);
	}
	return err;
}

static int by_place(const void *a, const void *b)
{
	const struct ts_pack_piece *x = a, *y = b;

	if (x->run != y->run)
		return x->run < y->run ? -1 : 1;
	if (x->span != y->span)
		return x->span < y->span ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int list_pieces(const struct sweep *w, struct ts_packing *packing)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < w->n_groups; i++)
		n += w->groups[i].n_stays;
	packing->pieces = malloc((n + 1) * sizeof(*packing->pieces));
	if (!packing->pieces)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_groups; i++) {
		const struct group *group = &w->groups[i];

		for (uint32_t k = 0; k < group->n_stays; k++)
			packing->pieces[packing->n_pieces++] =
			        (struct ts_pack_piece){group->stays[k].run,
			                group->stays[k].span,
			                group->stays[k].offset, group->count,
			                group->first_chunk};
	}
	qsort(packing->pieces, packing->n_pieces, sizeof(*packing->pieces),
	        by_place);
	return 0;
}

/* Pages of a run whose chunks in two of its spans are not the same. */
static uint64_t differences(const struct ts_pack_piece *a,
        const struct ts_pack_piece *b, uint32_t count)
{
	uint64_t n = 0;
	uint32_t at = 0;

	while (at < count) {
		uint32_t end_a = a->offset + a->count;
		uint32_t end_b = b->offset + b->count;
		uint32_t end = end_a < end_b ? end_a : end_b;

		if (a->first_chunk - a->offset != b->first_chunk - b->offset)
			n += end - at;
		at = end;
		a += end == end_a;
		b += end == end_b;
	}
	return n;
}

/* Each span of a run against the one before it, around the step. */
static void count_remaps(
        const struct ts_pack_input *input, struct ts_packing *packing)
{
	const struct ts_pack_piece *at = packing->pieces;
	const struct ts_pack_piece *end = at + packing->n_pieces;

	while (at < end) {
		const struct ts_pack_run *run = &input->runs[at->run];
		const struct ts_pack_piece *first = at, *before = NULL;
		uint64_t n;

		while (at < end && at->run == first->run) {
			const struct ts_pack_piece *span = at;

			if (before)
				packing->remaps +=
				        differences(before, span, run->count);
			before = span;
			while (at < end && at->run == span->run &&
			        at->span == span->span)
				at++;
		}
		n = differences(before, first, run->count);
		packing->remaps += n;
		packing->moves += run->wraps ? n : 0;
	}
}

void ts_packing_finish(struct ts_packing *packing)
{
	free(packing->pieces);
	memset(packing, 0, sizeof(*packing));
}

int ts_pack(const struct ts_pack_input *input, struct ts_packing *ret_packing)
{
	uint64_t slots = input->n_slots + UINT64_C(1);
	struct sweep w = {.input = input,
	        .budget = input->most_chunks,
	        .arriving = malloc(slots * sizeof(uint32_t)),
	        .leaving = malloc(slots * sizeof(uint32_t)),
	        .free_until = malloc(slots * sizeof(uint32_t))};
	struct ts_packing packing = {0};
	int err = set_init(&w.keys, slots);

	if (!w.arriving || !w.leaving || !w.free_until)
		err = -ENOMEM;
	if (!err) {
		memset(w.arriving, 0xff, slots * sizeof(uint32_t));
		memset(w.leaving, 0xff, slots * sizeof(uint32_t));
		memset(w.free_until, 0xff, slots * sizeof(uint32_t));
		err = add_runs(&w);
	}
	for (uint32_t slot = 0; !err && slot < input->n_slots; slot++) {
		let_go(&w, slot);
		begin_stays(&w, slot);
		err = place_all(&w, slot);
		if (!err && w.sent > input->most_sent)
			err = -ECANCELED;
	}
	packing.n_chunks = w.n_chunks;
	if (!err)
		err = list_pieces(&w, &packing);
	if (!err) {
		count_remaps(input, &packing);
		*ret_packing = packing;
	}
	for (uint32_t i = 0; i < w.n_groups; i++)
		free(w.groups[i].stays);
	free(w.groups);
	free(w.arrivals);
	free(w.stays);
	free(w.order);
	free(w.arriving);
	free(w.leaving);
	free(w.free_until);
	set_finish(&w.keys);
	return err;
}
