/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/cover.h"

#include <string.h>

/* Least share of the time above the limit that a gap counts as spanning. */
#define LEAST_SHARE 1e-3
/* What it takes to price a gap, in looks. */
#define PRICE_LOOKS 8

struct work {
	struct ts_cover *cover;
	const struct ts_cover_options *options;
	struct ts_choice *choice;
	struct ts_pass *pass;
	const struct ts_graph *graph;
	struct ts_absence absence;
	const uint32_t *share_until;
	int64_t limit;
	double step_ns;
	double out_rate, in_rate, latency; /* bytes per ns, ns */
	uint32_t next_gap;
};

/* Start of an op that may lie in the next step. */
static double start_of(const struct work *w, uint64_t op)
{
	const struct ts_graph *g = w->graph;

	return op < g->n_ops ? w->cover->time_ns[op]
	                     : w->step_ns + w->cover->time_ns[op - g->n_ops];
}

static bool needs_copy(const struct work *w, uint32_t gap)
{
	const struct ts_graph *g = w->graph;
	const struct ts_gap *info = &g->gaps[gap];
	const struct ts_object *object = &g->objects[info->object];
	uint32_t wrap;

	for (uint32_t e = info->earlier; e != TS_NONE; e = g->gaps[e].earlier) {
		if (w->choice->action[e] == TS_SWAP)
			return false;
	}
	/* The copy that a later gap needs anyway is made early. */
	for (uint32_t l = w->cover->later[gap]; l != TS_NONE;
	        l = w->cover->later[l]) {
		if (w->choice->action[l] == TS_SWAP)
			return false;
	}
	if (!object->persistent || info->born_op != TS_NONE)
		return true;
	if (g->overwriter[info->version] == TS_NONE)
		return false;
	wrap = g->object_gaps[g->object_first[info->object + 1] - 1];
	return g->gaps[wrap].to_op < g->n_ops ||
	       w->choice->action[wrap] != TS_SWAP;
}

/* The copies of a swap whose value has to be away at one op. */
struct copies {
	double out_from, out_to, out_ns;
	double in_from, in_to, in_ns;
	/* What nothing hides. */
	double exposed_ns;
};

static void weigh_copies(
        const struct work *w, uint32_t gap, uint32_t op, struct copies *c)
{
	const struct ts_graph *g = w->graph;
	const struct ts_gap *info = &g->gaps[gap];
	uint32_t own = ts_absence_own_op(&w->absence, gap, op);
	double out, in;

	c->in_ns = (double)info->size_bytes / w->in_rate + w->latency;
	c->out_ns =
	        needs_copy(w, gap)
	                ? (double)info->size_bytes / w->out_rate + w->latency
	                : 0;
	c->out_to = start_of(w, own);
	c->out_from = info->born_op == TS_NONE
	                      ? 0
	                      : w->cover->time_ns[info->born_op + 1];
	if (c->out_to - c->out_from > w->step_ns)
		c->out_from = c->out_to - w->step_ns;
	c->in_from = start_of(w, own + 1);
	c->in_to = start_of(w, ts_absence_end(&w->absence, gap));
	out = c->out_ns ? c->out_ns - ts_slots_free(&w->cover->out, c->out_from,
	                                      c->out_to)
	                : 0;
	in = c->in_ns - ts_slots_free(&w->cover->in, c->in_from, c->in_to);
	c->exposed_ns = out > in ? out : in;
	if (c->exposed_ns < 0)
		c->exposed_ns = 0;
}

/* First op (in an unwrapped count from @low) that starts at @ns or later. */
static uint32_t op_at(
        const struct work *w, uint32_t low, uint32_t high, double ns)
{
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (start_of(w, mid) >= ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Swaps @gap so that it is away at @op; takes the link's time for it. */
static void mark_swap(struct work *w, uint32_t gap, uint32_t op)
{
	const struct ts_gap *info = &w->graph->gaps[gap];
	uint32_t own = ts_absence_own_op(&w->absence, gap, op),
	         end = ts_absence_end(&w->absence, gap);
	uint32_t away = info->from_op + 1, back = end;
	struct copies c;
	double done, begun, left;

	weigh_copies(w, gap, op, &c);
	done = c.out_from;
	begun = c.in_to;
	if (c.out_ns) {
		left = ts_slots_take_early(
		        &w->cover->out, c.out_from, c.out_to, c.out_ns, &done);
		if (left <= 0)
			away = op_at(w, away, own, done);
		else
			away = own;
	}
	left = ts_slots_take_late(
	        &w->cover->in, c.in_from, c.in_to, c.in_ns, &begun);
	/* Where nothing hides the copy, compute waits for it at the use. */
	if (left <= 0 && w->options->reserve) {
		back = op_at(w, own + 1, end, begun);
		if (back > own + 1 && start_of(w, back) > begun)
			back--;
	}
	w->choice->action[gap] = TS_SWAP;
	ts_absence_set(&w->absence, gap, away, back);
}

/* Highest memory over the inside of the gap, and where. */
static int64_t highest(const struct work *w, uint32_t gap, uint32_t *ret_op)
{
	const struct ts_gap *info = &w->graph->gaps[gap];
	const struct ts_segtree *memory = &w->cover->memory;
	uint32_t n = w->graph->n_ops, at = 0, at2 = 0;
	int64_t most, wrapped = INT64_MIN;

	most = ts_segtree_range_max(memory, info->from_op + 1,
	        info->to_op < n ? info->to_op : n, &at);
	if (info->to_op > n)
		wrapped =
		        ts_segtree_range_max(memory, 0, info->to_op - n, &at2);
	*ret_op = wrapped > most ? at2 : at;
	return wrapped > most ? wrapped : most;
}

/* Too short for its copies, whatever else the link does. */
static bool hopeless(const struct work *w, uint32_t gap)
{
	const struct ts_gap *info = &w->graph->gaps[gap];

	return start_of(w, info->to_op) - start_of(w, info->from_op + 1) <
	       (double)info->size_bytes / w->in_rate + w->latency;
}

/* Swaps that the link hides altogether, dearest replay first. */
static void take_free_copies(struct work *w)
{
	const struct ts_graph *g = w->graph;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		uint32_t gap = w->pass->order_by_cost[i], op;
		struct copies c;

		if (w->choice->action[gap] != TS_KEEP || hopeless(w, gap) ||
		        highest(w, gap, &op) <= w->limit)
			continue;
		weigh_copies(w, gap, op, &c);
		if (c.exposed_ns <= 0)
			mark_swap(w, gap, op);
	}
}

/* Share of the time above the limit from @op on that the gap spans. */
static double area(const struct work *w, uint32_t gap, uint32_t op)
{
	const double *over = w->cover->over_ns;
	uint32_t n = w->graph->n_ops,
	         own = ts_absence_own_op(&w->absence, gap, op);
	double all = over[n] - over[own < n ? own : own - n], inside;

	inside = over[w->graph->gaps[gap].to_op] - over[own];
	if (all <= 0 || inside >= all)
		return 1;
	return inside > LEAST_SHARE * all ? inside / all : LEAST_SHARE;
}

/*
 * Time that the replay of the gap adds: what a replay of the same stretch
 * runs anyway is paid already.
 */
static double replay_cost(const struct work *w, uint32_t gap)
{
	const struct ts_cover *c = w->cover;
	double ns = (double)w->pass->price_ns[gap];
	uint32_t to = w->graph->gaps[gap].to_op;

	if (to >= w->graph->n_ops)
		return ns;
	for (uint32_t k = c->closure_first[gap]; k < c->closure_first[gap + 1];
	        k++) {
		uint32_t op = c->closure_ops[k];

		if (c->paid_until[op] == w->share_until[to] + 1)
			ns -= (double)w->graph->profile->ops[op].duration_ns;
	}
	return ns > 0 ? ns : 0;
}

/* Cost per byte that the gap takes off at @op; what it would be done. */
static double price(const struct work *w, uint32_t gap, uint32_t op,
        int64_t excess, enum ts_action *ret_action)
{
	const struct ts_gap *info = &w->graph->gaps[gap];
	double size = (double)info->size_bytes, cost = 1e300, own = 1;
	uint32_t end = ts_absence_end(&w->absence, gap);
	struct copies c;

	*ret_action = TS_KEEP;
	w->pass->looks += PRICE_LOOKS;
	if (end <= ts_absence_own_op(&w->absence, gap, op))
		return 1e300;
	if (!w->options->no_replays && w->pass->price_ns[gap] != TS_NEVER &&
	        ts_absence_may_pull(&w->absence, gap, end, w->cover->time_ns,
	                w->options->pull_ns)) {
		cost = replay_cost(w, gap);
		*ret_action = TS_REPLAY;
	}
	if (!w->options->no_swaps) {
		weigh_copies(w, gap, op, &c);
		if (c.exposed_ns < cost) {
			cost = c.exposed_ns;
			*ret_action = TS_SWAP;
		}
	}
	if (*ret_action == TS_KEEP)
		return 1e300;
	if (size > (double)excess)
		size = (double)excess;
	if (w->options->by_area)
		own = area(w, gap, op);
	return cost / (size * own);
}

static bool sooner(const void *data, uint32_t a, uint32_t b)
{
	const struct work *w = data;
	const double *key = w->cover->key;
	uint32_t x, y;

	if (key[a] != key[b])
		return key[a] < key[b];
	/* Belady: furthest next use first. */
	x = w->graph->gaps[a].to_op;
	y = w->graph->gaps[b].to_op;
	return x != y ? x > y : a < b;
}

static void offer(struct work *w, uint32_t gap, uint32_t op, int64_t excess)
{
	struct ts_heap *heap = &w->cover->heap;
	enum ts_action action;

	if (w->choice->action[gap] != TS_KEEP ||
	        !w->graph->gaps[gap].size_bytes)
		return;
	w->cover->key[gap] = price(w, gap, op, excess, &action);
	/* What wraps may stand there since the beginning of the step. */
	if (heap->place_of[gap] != TS_NONE)
		ts_heap_remove(heap, heap->place_of[gap], sooner, w);
	ts_heap_push(heap, gap, sooner, w);
}

/* The cheapest of what is open at @op. TS_NONE: nothing is left. */
static uint32_t cheapest(
        struct work *w, uint32_t op, int64_t excess, enum ts_action *ret_action)
{
	struct ts_cover *c = w->cover;

	while (c->heap.n) {
		uint32_t gap = c->heap.items[0];
		double key;

		if (w->choice->action[gap] != TS_KEEP ||
		        w->graph->gaps[gap].to_op <=
		                ts_absence_own_op(&w->absence, gap, op)) {
			ts_heap_pop(&c->heap, sooner, w);
			continue;
		}
		key = price(w, gap, op, excess, ret_action);
		if (key > c->key[gap] * (1 + 1e-9) + 1e-12) {
			c->key[gap] = key;
			ts_heap_down(&c->heap, 0, gap, sooner, w);
			continue;
		}
		ts_heap_pop(&c->heap, sooner, w);
		if (*ret_action == TS_KEEP)
			continue;
		return gap;
	}
	return TS_NONE;
}

/* Gaps that wrap are open when the step begins; others from their op on. */
static void offer_until(struct work *w, uint32_t op, int64_t excess)
{
	const struct ts_graph *g = w->graph;

	while (w->next_gap < g->n_gaps && g->gaps[w->next_gap].from_op < op)
		offer(w, w->next_gap++, op, excess);
}

/* What shares launches with the replay of @gap has become cheaper. */
static void pay(struct work *w, uint32_t gap, uint32_t op, int64_t excess)
{
	struct ts_cover *c = w->cover;
	uint32_t to = w->graph->gaps[gap].to_op;

	if (to >= w->graph->n_ops)
		return;
	for (uint32_t k = c->closure_first[gap]; k < c->closure_first[gap + 1];
	        k++) {
		uint32_t run = c->closure_ops[k];

		if (c->paid_until[run] == w->share_until[to] + 1)
			continue;
		c->paid_until[run] = w->share_until[to] + 1;
		for (uint32_t i = c->user_first[run];
		        i < c->user_first[run + 1]; i++) {
			uint32_t user = c->users[i];
			enum ts_action action;
			double key;

			if (c->heap.place_of[user] == TS_NONE ||
			        w->choice->action[user] != TS_KEEP)
				continue;
			key = price(w, user, op, excess, &action);
			if (key >= c->key[user])
				continue;
			c->key[user] = key;
			ts_heap_up(&c->heap, c->heap.place_of[user], user,
			        sooner, w);
		}
	}
}

static void mark_replay(
        struct work *w, uint32_t gap, uint32_t op, int64_t excess)
{
	uint32_t end = ts_absence_end(&w->absence, gap);

	w->choice->action[gap] = TS_REPLAY;
	ts_absence_set(&w->absence, gap, w->graph->gaps[gap].from_op + 1, end);
	ts_absence_pull(&w->absence, gap);
	pay(w, gap, op, excess);
}

/*
 * What is cheap to replay and stands over the peak goes first: every byte that
 * is kept there is one more to move out and back, and copies that the link
 * hides still take memory when they come back.
 */
static void replay_at_peak(struct work *w)
{
	const struct ts_graph *g = w->graph;
	uint32_t op = g->peak_op;

	for (uint32_t i = g->n_gaps; i-- > 0;) {
		uint32_t gap = w->pass->order_by_cost[i];
		const struct ts_gap *info = &g->gaps[gap];

		if (info->from_op >= op || info->to_op <= op ||
		        !info->size_bytes || w->pass->price_ns[gap] == TS_NEVER)
			continue;
		if ((double)w->pass->price_ns[gap] * w->in_rate >
		        w->options->peak_price * (double)info->size_bytes)
			continue;
		if (ts_absence_may_pull(&w->absence, gap,
		            ts_absence_end(&w->absence, gap), w->cover->time_ns,
		            w->options->pull_ns))
			mark_replay(w, gap, op, INT64_MAX);
	}
}

static void cover_all(struct work *w)
{
	const struct ts_graph *g = w->graph;
	uint32_t op = 0;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (g->gaps[i].to_op > g->n_ops)
			offer(w, i, 0, INT64_MAX);
	}
	for (;;) {
		enum ts_action action;
		int64_t excess;
		uint32_t gap;

		op = ts_segtree_first_above(&w->cover->memory, op, w->limit);
		if (op >= g->n_ops)
			return;
		excess = ts_segtree_max(&w->cover->memory) - w->limit;
		offer_until(w, op, excess);
		gap = cheapest(w, op, excess, &action);
		if (gap == TS_NONE) {
			op++;
		} else if (action == TS_REPLAY) {
			mark_replay(w, gap, op, excess);
		} else {
			mark_swap(w, gap, op);
		}
	}
}

int ts_cover_run(struct ts_cover *c, const struct ts_cover_options *options,
        const uint32_t *share_until, struct ts_choice *choice)
{
	const struct ts_graph *g = c->pass->graph;
	const struct ts_device *d = &g->profile->device;
	struct work w = {.cover = c,
	        .options = options,
	        .choice = choice,
	        .pass = c->pass,
	        .graph = g,
	        .absence = {g, c->pass, choice, &c->memory, c->stack,
	                ts_absence_most_pulled(g)},
	        .share_until = share_until,
	        .limit = (int64_t)options->limit_bytes,
	        .step_ns = c->time_ns[g->n_ops],
	        .out_rate =
	                (double)d->d2h_bytes_per_s * 1e-9 * options->link_share,
	        .in_rate =
	                (double)d->h2d_bytes_per_s * 1e-9 * options->link_share,
	        .latency = (double)d->copy_latency_ns};
	int err;

	for (uint32_t i = 0; i < g->n_ops; i++)
		c->start_bytes[i] = g->mem_bytes[i] + c->extra_bytes[i];
	ts_segtree_finish(&c->memory);
	err = ts_segtree_init(&c->memory, c->start_bytes, g->n_ops);
	if (err)
		return err;
	for (uint32_t i = 0; i < 2 * g->n_ops; i++) {
		uint32_t op = i % g->n_ops;
		bool over = (int64_t)c->start_bytes[op] > w.limit;

		c->over_ns[i + 1] =
		        c->over_ns[i] +
		        (over ? (double)g->profile->ops[op].duration_ns : 0);
	}
	ts_slots_clear(&c->out, w.step_ns);
	ts_slots_clear(&c->in, w.step_ns);
	memset(c->paid_until, 0, g->n_ops * sizeof(*c->paid_until));
	memset(c->heap.place_of, 0xff, g->n_gaps * sizeof(*c->heap.place_of));
	c->heap.n = 0;
	memset(c->pass->pos, 0, g->n_gaps * sizeof(*c->pass->pos));
	memset(c->pass->away, 0, g->n_gaps * sizeof(*c->pass->away));
	memset(choice->action, TS_KEEP, g->n_gaps);
	memset(choice->late, 0, g->n_gaps);
	if (options->peak_price > 0 && !options->no_replays)
		replay_at_peak(&w);
	if (!options->no_swaps)
		take_free_copies(&w);
	cover_all(&w);
	return 0;
}
