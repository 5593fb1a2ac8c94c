/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/bound_replays.h"

/* Ops that are looked at: each gives a valid bound, the highest counts. */
#define MAX_OPS 48
/* Gaps that are looked at over all ops. */
#define MAX_WORK 1000000
/* Share of the changed bytes that are let off for being changed early. */
#define EARLY_SHARE 0.02
/* Turns of the search for what to drop; it ends at 1 byte anyway. */
#define MAX_TURNS 100

struct byte_cost {
	double ns_per_byte;
	double bytes;
	double ns;
	uint32_t gap;
	bool late; /* does not end before ends_op */
};

/* What can be off the device at one op. */
struct offer {
	/*
	 * Replays: running sums, the cheapest first. In all of the step, after
	 * the op, and between that and ends_op.
	 */
	struct byte_cost *whole;
	struct byte_cost *after;
	struct byte_cost *early;
	uint32_t n;
	uint32_t ends_op;
	/* What in all of the step costs the same; what ends late. */
	bool same;
	bool any_late;
	/* Ops up to the op with the windows there; windows from ends_op on. */
	double before_ns;
	double windows_ns;
	/*
	 * May come back in the next step; comes back after the op and was
	 * not changed for a step or more; was changed in the step before, at
	 * tail_op or later; was written in this step.
	 */
	double late_bytes;
	double clean_bytes;
	double dirty_bytes;
	double own_bytes;
	uint32_t tail_op;
};

struct scratch {
	const struct ts_graph *graph;
	struct offer offer;
	struct ts_bound_replays replays;
	uint32_t *gaps; /* that are open and can be replayed */
	uint32_t n_gaps;
	/*
	 * All that can be replayed, by what it cost at the ops before: that
	 * changes little from op to op.
	 */
	uint32_t *order;
	uint32_t n_order;
	struct byte_cost *spare;
	/*
	 * What the step before changed: when, as a cost, and how much of it;
	 * by op the sum.
	 */
	struct byte_cost *dirty;
	double *dirty_bytes;
	struct ts_bound_windows windows;
};

static int by_cost(const void *a, const void *b)
{
	const struct byte_cost *x = a, *y = b;

	if (x->ns_per_byte != y->ns_per_byte)
		return x->ns_per_byte < y->ns_per_byte ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/*
 * Sorts what is nearly in order: what is not, and what stands before it, is
 * taken out, sorted and merged in again.
 */
static void sort_costs(
        struct byte_cost *costs, uint32_t n, struct byte_cost *spare)
{
	uint32_t kept = 0, out = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!kept || by_cost(&costs[kept - 1], &costs[i]) <= 0) {
			costs[kept++] = costs[i];
			continue;
		}
		spare[out++] = costs[--kept];
		spare[out++] = costs[i];
	}
	qsort(spare, out, sizeof(*spare), by_cost);
	while (out) {
		bool from_kept =
		        kept && by_cost(&costs[kept - 1], &spare[out - 1]) > 0;

		costs[kept + out - 1] =
		        from_kept ? costs[kept - 1] : spare[out - 1];
		kept -= from_kept;
		out -= !from_kept;
	}
}

static bool open_at(
        const struct ts_graph *g, const struct ts_gap *gap, uint32_t op)
{
	return (gap->from_op < op && gap->to_op > op) ||
	       gap->to_op > g->n_ops + op;
}

/*
 * Op of the step before that wrote what is there at the beginning of this one
 * and is away in @gap; TS_NONE: none did.
 */
static uint32_t birth_before(const struct ts_graph *g, const struct ts_gap *gap)
{
	const struct ts_gap *last;

	if (gap->born_op != TS_NONE)
		return gap->born_op;
	if (!g->objects[gap->object].persistent)
		return TS_NONE;
	last = &g->gaps[g->object_gaps[g->object_first[gap->object + 1] - 1]];
	return last->to_op >= g->n_ops ? last->born_op : TS_NONE;
}

/* Of @n changed values those that the op at @ns_per_byte made, smallest first.
 */
static uint32_t sort_of_op(struct scratch *s, uint32_t n, double ns_per_byte)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (s->dirty[i].ns_per_byte == ns_per_byte)
			s->dirty[found++] = s->dirty[i];
	}
	qsort(s->dirty, found, sizeof(*s->dirty), by_cost);
	return found;
}

/* The few bytes born long before the others count as unchanged. */
static void find_tail(struct scratch *s, uint32_t n)
{
	struct offer *offer = &s->offer;
	uint32_t n_ops = s->graph->n_ops, op = 0, found;
	double total = 0, early = 0, most;

	memset(s->dirty_bytes, 0, n_ops * sizeof(*s->dirty_bytes));
	for (uint32_t i = 0; i < n; i++) {
		s->dirty_bytes[(uint32_t)s->dirty[i].ns_per_byte] +=
		        s->dirty[i].bytes;
		total += s->dirty[i].bytes;
	}
	most = EARLY_SHARE * total;
	while (op < n_ops && early + s->dirty_bytes[op] <= most)
		early += s->dirty_bytes[op++];
	found = op < n_ops ? sort_of_op(s, n, op) : 0;
	for (uint32_t i = 0; i < found && early + s->dirty[i].bytes <= most;
	        i++)
		early += s->dirty[i].bytes;
	offer->dirty_bytes = total - early;
	offer->clean_bytes += early;
	offer->tail_op = op;
}

/*
 * From which op on replays of what is off at @op do not count: where copies
 * begin of what the step before changed, or up to where windows still have all
 * of what they take beyond their ops after @op.
 */
static uint32_t ends_op(const struct scratch *s, uint32_t op)
{
	const struct ts_bound_windows *w = &s->windows;
	double all = ts_bound_after_ns(w, op);
	uint32_t k = w->n;

	if (s->offer.dirty_bytes > 0 && s->offer.tail_op > op)
		return s->offer.tail_op;
	while (k > 0 && w->after_ns[k - 1] < all)
		k--;
	return k && w->ops[k - 1] > op ? w->ops[k - 1] : s->graph->n_ops;
}

/* Total bytes and total time up to each. */
static void sum_up(struct byte_cost *costs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		costs[i].ns = costs[i].ns_per_byte * costs[i].bytes;
		if (i) {
			costs[i].ns += costs[i - 1].ns;
			costs[i].bytes += costs[i - 1].bytes;
		}
	}
}

/* The same as after, but what ends late costs nothing and comes first. */
static void list_early(struct offer *offer)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < offer->n; i++) {
		if (!offer->after[i].late)
			continue;
		offer->early[at] = offer->after[i];
		offer->early[at++].ns_per_byte = 0;
	}
	for (uint32_t i = 0; i < offer->n; i++) {
		if (!offer->after[i].late)
			offer->early[at++] = offer->after[i];
	}
}

/* Gaps that are open take the places of such, in the order of their costs. */
static void remember_order(struct scratch *s, uint32_t op)
{
	const struct ts_graph *g = s->graph;
	const struct offer *offer = &s->offer;
	uint32_t at = 0;

	for (uint32_t i = 0; at < offer->n; i++) {
		const struct ts_gap *gap = &g->gaps[s->order[i]];

		if (gap->size_bytes && open_at(g, gap, op))
			s->order[i] = offer->after[at++].gap;
	}
}

/* What it costs not to have the gaps' bytes at @op, cheapest first. */
static void price_replays(struct scratch *s, uint32_t op)
{
	struct offer *offer = &s->offer;
	uint32_t n = 0;

	offer->same = true;
	offer->any_late = false;
	ts_bound_replays_begin(&s->replays, op, s->gaps, s->n_gaps);
	for (uint32_t i = 0; i < s->n_gaps; i++) {
		const struct ts_gap *gap = &s->graph->gaps[s->gaps[i]];
		struct ts_bound_price price;
		double bytes = (double)gap->size_bytes;

		if (!gap->size_bytes)
			continue;
		price = ts_bound_replays_price(&s->replays, s->gaps[i]);
		offer->whole[n] = (struct byte_cost){
		        .ns_per_byte = price.whole_ns, .bytes = bytes};
		offer->after[n] =
		        (struct byte_cost){.ns_per_byte = price.after_ns,
		                .bytes = bytes,
		                .gap = s->gaps[i],
		                .late = gap->to_op > offer->ends_op};
		offer->same &= price.whole_ns == price.after_ns;
		offer->any_late |= offer->after[n].late;
		n++;
	}
	ts_bound_replays_end(&s->replays, s->gaps, s->n_gaps);
	offer->n = n;
	sort_costs(offer->after, n, s->spare);
	remember_order(s, op);
	if (offer->any_late) {
		list_early(offer);
		sum_up(offer->early, n);
	}
	if (!offer->same) {
		sort_costs(offer->whole, n, s->spare);
		sum_up(offer->whole, n);
	}
	sum_up(offer->after, n);
}

/* Everything that may be off at @op, cheapest to replay first. */
static void make_offer(struct scratch *s, uint32_t op)
{
	const struct ts_graph *g = s->graph;
	struct offer *offer = &s->offer;
	uint32_t n_dirty;

	s->n_gaps = 0;
	offer->own_bytes = offer->dirty_bytes = offer->clean_bytes = 0;
	offer->late_bytes = 0;
	n_dirty = 0;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];
		double bytes = (double)gap->size_bytes;

		if (!open_at(g, gap, op))
			continue;
		if (gap->from_op < op && gap->to_op > g->n_ops)
			offer->late_bytes += bytes;
		else if (gap->born_op != TS_NONE && gap->from_op < op)
			offer->own_bytes += bytes;
		else if (birth_before(g, gap) == TS_NONE)
			offer->clean_bytes += bytes;
		else
			s->dirty[n_dirty++] = (struct byte_cost){
			        .ns_per_byte = (double)birth_before(g, gap),
			        .bytes = bytes};
	}
	for (uint32_t i = 0; i < s->n_order; i++) {
		if (open_at(g, &g->gaps[s->order[i]], op))
			s->gaps[s->n_gaps++] = s->order[i];
	}
	find_tail(s, n_dirty);
	offer->ends_op = ends_op(s, op);
	offer->before_ns =
	        (double)g->start_ns[op] + ts_bound_before_ns(&s->windows, op);
	offer->windows_ns = ts_bound_after_ns(&s->windows, offer->ends_op);
	price_replays(s, op);
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double most(double a, double b)
{
	return a > b ? a : b;
}

/* Time of the cheapest replays of @bytes. */
static double replay_ns(const struct byte_cost *costs, uint32_t n, double bytes)
{
	uint32_t low = 0, high = n;
	double before_bytes, before_ns;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (costs[mid].bytes < bytes)
			low = mid + 1;
		else
			high = mid;
	}
	before_bytes = low ? costs[low - 1].bytes : 0;
	before_ns = low ? costs[low - 1].ns : 0;
	if (low == n)
		return before_ns;
	return before_ns + (bytes - before_bytes) * costs[low].ns_per_byte;
}

/*
 * Least time of a step in which @dropped bytes are replayed after the op and
 * the rest of the deficit crosses the link: own bytes go out before the op,
 * and all but late ones come in after it. TS_NEVER as a double: impossible.
 */
static double step_ns(
        const struct scratch *s, uint32_t op, double deficit, double dropped)
{
	const struct ts_graph *g = s->graph;
	const struct ts_device *d = &g->profile->device;
	const struct offer *offer = &s->offer;
	double out = (double)d->d2h_bytes_per_s * 1e-9;
	double in = (double)d->h2d_bytes_per_s * 1e-9;
	double all = (double)g->start_ns[g->n_ops];
	double moved = most(deficit - dropped, 0), rest = moved;
	double replays = replay_ns(offer->after, offer->n, dropped);
	double whole = offer->same ? replays
	                           : replay_ns(offer->whole, offer->n, dropped);
	double early = offer->any_late
	                       ? replay_ns(offer->early, offer->n, dropped)
	                       : replays;
	double dirty, own, late, end, after, ns;

	late = least(rest, offer->late_bytes);
	rest -= late;
	rest -= least(rest, offer->clean_bytes);
	dirty = least(rest, offer->dirty_bytes);
	own = rest - dirty;
	if (own > offer->own_bytes + 0.5)
		return 1e300;
	/* Windows that replays cannot hide in. */
	after = all - (double)g->start_ns[op] +
	        most(replays, early + offer->windows_ns);
	ns = most(offer->before_ns, own / out) +
	     most(after, (moved - late) / in);
	/*
	 * Copies out of what the step before changed begin in its tail; ops
	 * and replays between this op and the tail come on top.
	 */
	if (offer->tail_op > op && offer->tail_op == offer->ends_op) {
		end = (double)g->start_ns[offer->tail_op];
		ns = most(ns, end - (double)g->start_ns[op] + early +
		                      (own + dirty) / out);
	} else {
		ns = most(ns, (own + dirty) / out);
	}
	return most(most(ns, moved / in), all + whole);
}

/*
 * The function is convex in what is dropped: ever smaller thirds. Where some
 * of it is no more than @enough_ns, so is the least: that will do. Below 0:
 * impossible.
 */
static double bound_at(
        struct scratch *s, uint32_t op, double deficit, double enough_ns)
{
	double low = 0, high, can, low_ns, high_ns;

	make_offer(s, op);
	high = s->offer.n ? s->offer.after[s->offer.n - 1].bytes : 0;
	high = least(high, deficit);
	/* Where less cannot be dropped. */
	can = deficit - s->offer.own_bytes - s->offer.dirty_bytes -
	      s->offer.clean_bytes - s->offer.late_bytes;
	low = most(low, can);
	if (low > high + 0.5)
		return -1;
	for (uint32_t turn = 0; turn < MAX_TURNS && high - low > 1; turn++) {
		double a = low + (high - low) / 3, b = high - (high - low) / 3;

		low_ns = step_ns(s, op, deficit, a);
		high_ns = step_ns(s, op, deficit, b);
		if (least(low_ns, high_ns) <= enough_ns)
			return most(least(low_ns, high_ns), 0);
		if (low_ns <= high_ns)
			high = b;
		else
			low = a;
	}
	low_ns = step_ns(s, op, deficit, low);
	high_ns = step_ns(s, op, deficit, high);
	return most(least(low_ns, high_ns) - 1, 0);
}

/* The ops where most has to be dropped, and the peak. */
static uint32_t pick_ops(
        const struct ts_graph *g, uint64_t limit, uint32_t ops[MAX_OPS])
{
	double keys[MAX_OPS];
	uint32_t n = 0;
	double out = (double)g->profile->device.d2h_bytes_per_s * 1e-9;
	/* Only the best op of each stretch: neighbours say the same. */
	uint32_t stretch = g->n_ops / (4 * MAX_OPS) + 1;

	for (uint32_t from = 0; from < g->n_ops; from += stretch) {
		double key = -1e300;
		uint32_t best = from, at;

		for (uint32_t i = from; i < g->n_ops && i < from + stretch;
		        i++) {
			double k = (double)g->mem_bytes[i] - (double)limit -
			           out * (double)g->start_ns[i];

			if (g->mem_bytes[i] > limit && k > key) {
				key = k;
				best = i;
			}
		}
		if (key == -1e300 || (n == MAX_OPS && key <= keys[n - 1]))
			continue;
		if (n < MAX_OPS)
			n++;
		for (at = n - 1; at > 0 && keys[at - 1] < key; at--) {
			keys[at] = keys[at - 1];
			ops[at] = ops[at - 1];
		}
		keys[at] = key;
		ops[at] = best;
	}
	if (n && g->mem_bytes[g->peak_op] > limit)
		ops[n < MAX_OPS ? n++ : MAX_OPS - 1] = g->peak_op;
	return n;
}

int ts_bound_step(
        const struct ts_graph *g, uint64_t limit_bytes, uint64_t *ret_step_ns)
{
	struct scratch s = {.graph = g};
	uint32_t ops[MAX_OPS], n, few;
	double best = (double)g->start_ns[g->n_ops];
	int err = 0;

	if (limit_bytes < g->floor_bytes) {
		*ret_step_ns = TS_NEVER;
		return 0;
	}
	s.offer.whole = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.offer.whole));
	s.offer.after = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.offer.after));
	s.offer.early = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.offer.early));
	s.gaps = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.gaps));
	s.order = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.order));
	s.spare = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.spare));
	s.dirty = calloc(g->n_gaps + UINT64_C(1), sizeof(*s.dirty));
	s.dirty_bytes = calloc(g->n_ops + UINT64_C(1), sizeof(*s.dirty_bytes));
	if (!s.offer.whole || !s.offer.after || !s.offer.early || !s.gaps ||
	        !s.order || !s.spare || !s.dirty || !s.dirty_bytes)
		err = -ENOMEM;
	if (!err)
		err = ts_bound_replays_init(&s.replays, g);
	if (!err)
		err = ts_bound_windows(g, limit_bytes, &s.windows);
	if (err)
		goto out_free;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (g->gaps[i].replay_ns != TS_NEVER)
			s.order[s.n_order++] = i;
	}
	best += most(ts_bound_before_ns(&s.windows, g->n_ops) - 1, 0);
	n = pick_ops(g, limit_bytes, ops);
	few = MAX_WORK / (g->n_gaps + 1) + 1;
	for (uint32_t i = 0; i < n; i++) {
		/* Long tapes: the first ones, and the peak, which is last. */
		if (i >= few && i + 1 < n)
			continue;
		double deficit =
		        (double)g->mem_bytes[ops[i]] - (double)limit_bytes;
		double ns = bound_at(&s, ops[i], deficit, best);

		if (ns < 0) {
			best = -1;
			break;
		}
		if (ns > best)
			best = ns;
	}
	*ret_step_ns = best < 0 ? TS_NEVER : (uint64_t)best;
out_free:
	free(s.offer.whole);
	free(s.offer.after);
	free(s.offer.early);
	free(s.gaps);
	free(s.order);
	free(s.spare);
	free(s.dirty);
	free(s.dirty_bytes);
	ts_bound_replays_finish(&s.replays);
	return err;
}
