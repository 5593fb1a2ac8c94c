/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/bound_replays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/program.h"

/*
 * What replays at places may make: for a gap that is over by the op; only for
 * one that is open there (which is then back, and not off at the op); or as
 * one more output of a launch for others.
 */
enum {
	MADE_FOR_ENDED = 1,
	MADE_FOR_OPEN = 2,
	MADE_BESIDE = 4,
};

/* Less than any scratch costs, and more than a gap can owe. */
#define DEBT_NO_SCRATCH (-1.0)
#define DEBT_NONE       1e300

int ts_bound_replays_init(
        struct ts_bound_replays *r, const struct ts_graph *graph)
{
	uint64_t ops = graph->n_ops + UINT64_C(1);
	uint64_t values = graph->profile->n_values + UINT64_C(1);

	memset(r, 0, sizeof(*r));
	r->graph = graph;
	r->share_until = calloc(ops, sizeof(*r->share_until));
	r->sharers = calloc(ops, sizeof(*r->sharers));
	r->rebuilt_ns = calloc(ops, sizeof(*r->rebuilt_ns));
	r->wanting = calloc(values, sizeof(*r->wanting));
	r->open = calloc(values, sizeof(*r->open));
	r->through = calloc(values, sizeof(*r->through));
	r->made = calloc(values, sizeof(*r->made));
	/* Once for each way of being made, and once more for several gaps. */
	r->marked = calloc(4 * values, sizeof(*r->marked));
	if (!r->share_until || !r->sharers || !r->rebuilt_ns || !r->wanting ||
	        !r->open || !r->through || !r->made || !r->marked) {
		ts_bound_replays_finish(r);
		return -ENOMEM;
	}
	ts_program_share_until(graph, r->share_until);
	return 0;
}

void ts_bound_replays_finish(struct ts_bound_replays *r)
{
	free(r->share_until);
	free(r->sharers);
	free(r->rebuilt_ns);
	free(r->wanting);
	free(r->open);
	free(r->through);
	free(r->made);
	free(r->marked);
	memset(r, 0, sizeof(*r));
}

/* The launch that makes @value; TS_NONE: a rebuild, of this value alone. */
static uint32_t launch_of(const struct ts_graph *g, uint32_t value)
{
	return g->profile->values[value].rebuild == TS_NONE ? g->writer[value]
	                                                    : TS_NONE;
}

/*
 * May a value that has a rebuild come back without it, as one more output of
 * the op that wrote it, when that is launched for another?
 */
static bool comes_beside(const struct ts_graph *g, uint32_t value)
{
	const struct ts_profile *p = g->profile;
	const struct ts_profile_op *op = &p->ops[g->writer[value]];
	struct ts_producer producer;

	if (p->values[value].rebuild == TS_NONE)
		return false;
	for (uint32_t k = 0; k < op->n_writes; k++) {
		if (ts_graph_producer(
		            g, p->uses[op->first_write + k], &producer) &&
		        producer.op != TS_NONE)
			return true;
	}
	return false;
}

static double rebuild_ns(const struct ts_graph *g, uint32_t value)
{
	const struct ts_profile *p = g->profile;

	return (double)p->rebuilds[p->values[value].rebuild].duration_ns;
}

/* Was there before @op, and is no more. */
static bool is_gone(const struct ts_graph *g, uint32_t value, uint32_t op)
{
	return g->writer[value] < op && !ts_graph_alive(g, value, op);
}

static bool contains(const uint32_t *values, uint32_t n, uint32_t value)
{
	for (uint32_t i = 0; i < n; i++) {
		if (values[i] == value)
			return true;
	}
	return false;
}

static bool counts_launch(const struct ts_graph *g, const uint32_t *values,
        uint32_t n, uint32_t launch)
{
	for (uint32_t i = 0; i < n; i++) {
		if (launch_of(g, values[i]) == launch)
			return true;
	}
	return false;
}

static bool ends_in_replay(const struct ts_graph *g, uint32_t op)
{
	for (uint32_t k = g->to_first[op]; k < g->to_first[op + 1]; k++) {
		if (g->gaps[g->by_to[k]].replay_ns != TS_NEVER)
			return true;
	}
	return false;
}

static void find_places(struct ts_bound_replays *r)
{
	const struct ts_graph *g = r->graph;
	uint32_t next = r->op + 1;

	r->first_place = r->last_place = TS_NONE;
	while (next < g->n_ops && !ends_in_replay(g, next))
		next++;
	for (uint32_t i = 0; i <= r->op && next < g->n_ops; i++) {
		if (r->share_until[i] < next || !ends_in_replay(g, i))
			continue;
		if (r->first_place == TS_NONE)
			r->first_place = i;
		r->last_place = i;
	}
}

/* @through: the open gap's version that it is made for; TS_NONE: several. */
static void mark(struct ts_bound_replays *r, uint32_t value, uint8_t way,
        uint32_t through)
{
	if (r->made[value] & MADE_FOR_ENDED)
		return;
	if (r->made[value] & way) {
		if (way != MADE_FOR_OPEN || r->through[value] == TS_NONE ||
		        r->through[value] == through)
			return;
		through = TS_NONE;
	}
	r->made[value] |= way;
	if (way == MADE_FOR_OPEN)
		r->through[value] = through;
	r->marked[r->n_marked++] = value;
}

/* What has to be there for @value, made @way, is made as well. */
static void mark_reads(struct ts_bound_replays *r, uint32_t value, uint8_t way)
{
	const struct ts_graph *g = r->graph;
	const struct ts_profile_op *op;
	struct ts_producer producer;

	if (!ts_graph_producer(g, value, &producer))
		return;
	for (uint32_t k = 0; k < producer.n_reads; k++) {
		uint32_t read = producer.reads[k];

		/* Leaves are never made. */
		if (g->writer[read] == TS_NONE)
			continue;
		if (is_gone(g, read, r->last_place))
			mark(r, read, way, r->through[value]);
		else if (r->open[read])
			mark(r, read, MADE_FOR_OPEN, read);
	}
	if (producer.op == TS_NONE)
		return;
	op = &g->profile->ops[producer.op];
	for (uint32_t k = 0; k < op->n_writes; k++) {
		uint32_t v = g->profile->uses[op->first_write + k];

		if (v != value && is_gone(g, v, r->last_place))
			mark(r, v, MADE_BESIDE, TS_NONE);
	}
}

/* All that replays from the first place on may have made before the op. */
static void mark_made(struct ts_bound_replays *r)
{
	const struct ts_graph *g = r->graph;

	r->n_marked = 0;
	if (r->first_place == TS_NONE)
		return;
	for (uint32_t i = g->to_first[r->first_place];
	        i < g->to_first[r->op + 1]; i++) {
		const struct ts_gap *gap = &g->gaps[g->by_to[i]];

		if (gap->replay_ns != TS_NEVER)
			mark(r, gap->version, MADE_FOR_ENDED, TS_NONE);
	}
	/* First all that is made for gaps that end: the others add less. */
	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint32_t at = 0; at < r->n_marked; at++) {
			uint32_t value = r->marked[at];

			if (r->made[value] & MADE_FOR_ENDED)
				mark_reads(r, value, MADE_FOR_ENDED);
			else if (turn && (r->made[value] & MADE_FOR_OPEN))
				mark_reads(r, value, MADE_FOR_OPEN);
		}
	}
}

void ts_bound_replays_begin(struct ts_bound_replays *r, uint32_t op,
        const uint32_t *gaps, uint32_t n_gaps)
{
	const struct ts_graph *g = r->graph;
	uint32_t values[TS_CLOSURE_MAX];

	r->op = op;
	find_places(r);
	for (uint32_t k = 0; k < n_gaps; k++) {
		const struct ts_gap *gap = &g->gaps[gaps[k]];
		double bytes = (double)gap->size_bytes;
		uint32_t n = ts_graph_closure(g, gap->version, op + 1, values);

		r->open[gap->version] = 1;
		if (comes_beside(g, gap->version))
			r->rebuilt_ns[g->writer[gap->version]] +=
			        rebuild_ns(g, gap->version);
		for (uint32_t i = 0; i < n; i++) {
			struct ts_bound_wanting *w = &r->wanting[values[i]];
			uint32_t launch = launch_of(g, values[i]);

			if (!w->n++ || bytes < w->least_bytes)
				w->least_bytes = bytes;
			w->bytes += bytes;
			if (launch != TS_NONE &&
			        !counts_launch(g, values, i, launch))
				r->sharers[launch] += bytes;
		}
	}
	mark_made(r);
}

void ts_bound_replays_end(
        struct ts_bound_replays *r, const uint32_t *gaps, uint32_t n_gaps)
{
	const struct ts_graph *g = r->graph;
	uint32_t values[TS_CLOSURE_MAX];

	for (uint32_t k = 0; k < n_gaps; k++) {
		uint32_t version = g->gaps[gaps[k]].version;
		uint32_t n = ts_graph_closure(g, version, r->op + 1, values);

		r->open[version] = 0;
		r->rebuilt_ns[g->writer[version]] = 0;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t launch = launch_of(g, values[i]);

			r->wanting[values[i]] = (struct ts_bound_wanting){0};
			if (launch != TS_NONE)
				r->sharers[launch] = 0;
		}
	}
	for (uint32_t i = 0; i < r->n_marked; i++)
		r->made[r->marked[i]] = 0;
}

/*
 * Bytes of scratch that the gap of @version, which reads @value after the op,
 * would be in debt for, for each byte of its own, had an earlier replay made
 * that; DEBT_NO_SCRATCH: none can have.
 */
static double debt(
        const struct ts_bound_replays *r, uint32_t version, uint32_t value)
{
	const struct ts_bound_wanting *w = &r->wanting[value];
	const struct ts_value *all = r->graph->profile->values;
	double bytes = w->bytes;

	if (!r->made[value] || !is_gone(r->graph, value, r->last_place))
		return DEBT_NO_SCRATCH;
	/* One of those that want it is back then, and not off at the op. */
	if (r->made[value] == MADE_FOR_OPEN) {
		uint32_t through = r->through[value];

		if (w->n < 2 || through == version)
			return DEBT_NO_SCRATCH;
		bytes -= through == TS_NONE ? w->least_bytes
		                            : (double)all[through].size_bytes;
	}
	return (double)all[value].size_bytes / bytes;
}

/*
 * Appends reads of @value that are gone by @gone_op and not there yet, but for
 * those that cost no more than @most_debt; values[0] is what is off.
 */
static uint32_t add_reads(const struct ts_bound_replays *r, uint32_t value,
        uint32_t gone_op, double most_debt, uint32_t *values, uint32_t n)
{
	struct ts_producer producer;

	if (comes_beside(r->graph, value) ||
	        !ts_graph_producer(r->graph, value, &producer))
		return n;
	for (uint32_t k = 0; k < producer.n_reads; k++) {
		uint32_t read = producer.reads[k];
		double owed;

		if (!is_gone(r->graph, read, gone_op) ||
		        contains(values, n, read))
			continue;
		owed = debt(r, values[0], read);
		if (owed < 0 || owed > most_debt)
			values[n++] = read;
	}
	return n;
}

/*
 * Of the launch that makes @value, what is not charged to rebuilds that it
 * would save.
 */
static double launch_ns(const struct ts_bound_replays *r, uint32_t value)
{
	uint32_t op = r->graph->writer[value];
	double ns = (double)r->graph->profile->ops[op].duration_ns;

	return ns > r->rebuilt_ns[op] ? ns - r->rebuilt_ns[op] : 0;
}

/* Time of a rebuild, or its part of the launch that makes the same beside. */
static double own_rebuild_ns(const struct ts_bound_replays *r, uint32_t value)
{
	const struct ts_graph *g = r->graph;
	double ns = rebuild_ns(g, value), all, launch;

	if (!comes_beside(g, value))
		return ns;
	all = r->rebuilt_ns[g->writer[value]];
	launch = (double)g->profile->ops[g->writer[value]].duration_ns;
	return all > launch ? ns * launch / all : ns;
}

/* The gap's share of the launches of @n values. */
static double shares(const struct ts_bound_replays *r, const struct ts_gap *gap,
        const uint32_t *values, uint32_t n)
{
	const struct ts_graph *g = r->graph;
	double ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t launch = launch_of(g, values[i]);

		if (launch != TS_NONE && !counts_launch(g, values, i, launch))
			ns += launch_ns(r, values[i]) *
			      (double)gap->size_bytes / r->sharers[launch];
	}
	/* Of others' rebuilds nobody knows who shares them. */
	if (launch_of(g, values[0]) == TS_NONE)
		ns += own_rebuild_ns(r, values[0]);
	return ns;
}

/* The least of @n debts above @debt; DEBT_NONE: there is none. */
static double next_debt(const double *debts, uint32_t n, double debt)
{
	double next = DEBT_NONE;

	for (uint32_t i = 0; i < n; i++) {
		if (debts[i] > debt && debts[i] < next)
			next = debts[i];
	}
	return next;
}

/*
 * What has to be made after the op for values[0] where all scratch serves that
 * costs no more than @most_debt. Returns the number of values.
 */
static uint32_t made_after(const struct ts_bound_replays *r, double most_debt,
        uint32_t values[TS_CLOSURE_MAX])
{
	uint32_t n = 1;

	for (uint32_t at = 0; at < n; at++)
		n = add_reads(r, values[at], r->op + 1, most_debt, values, n);
	return n;
}

struct ts_bound_price ts_bound_replays_price(
        const struct ts_bound_replays *r, uint32_t gap_index)
{
	const struct ts_gap *gap = &r->graph->gaps[gap_index];
	double bytes = (double)gap->size_bytes, debts[TS_CLOSURE_MAX], ns;
	uint32_t values[TS_CLOSURE_MAX] = {gap->version}, n_after, n_debts = 0;
	uint32_t n = made_after(r, DEBT_NO_SCRATCH, values);
	struct ts_bound_price price;

	ns = shares(r, gap, values, n) / bytes;
	price = (struct ts_bound_price){ns, ns};
	if (r->first_place == TS_NONE)
		return price;
	for (uint32_t i = 1; i < n; i++)
		debts[n_debts++] = debt(r, gap->version, values[i]);
	/* If the dearest scratch that serves for it costs so much. */
	for (double owed = next_debt(debts, n_debts, DEBT_NO_SCRATCH); owed < 1;
	        owed = next_debt(debts, n_debts, owed)) {
		n = made_after(r, owed, values);
		ns = shares(r, gap, values, n) / bytes / (1 - owed);
		if (ns < price.after_ns)
			price.after_ns = ns;
	}
	/* What scratch serves for has run as well, and what that reads. */
	n_after = n = made_after(r, DEBT_NONE, values);
	for (uint32_t at = 0; at < n; at++)
		n = add_reads(r, values[at],
		        at < n_after ? r->op + 1 : r->first_place,
		        DEBT_NO_SCRATCH, values, n);
	price.whole_ns = shares(r, gap, values, n) / bytes;
	return price;
}
