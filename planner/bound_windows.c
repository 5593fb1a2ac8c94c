/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Uses looked at in all. */
#define MAX_USES 3000000

struct cuts {
	const struct ts_graph *graph;
	double room;    /* bytes that may be on the device */
	bool *hard;     /* by object: nothing can replay any of its versions */
	uint32_t *seen; /* by object: last window that touched it */
	uint8_t *written;
	uint32_t ops[TS_BOUND_CUTS + 1];
	uint32_t n;
	double more_ns[TS_BOUND_CUTS + 1][TS_BOUND_CUTS + 1];
};

static void find_hard(struct cuts *c)
{
	const struct ts_graph *g = c->graph;

	for (uint32_t o = 0; o < g->n_objects; o++)
		c->hard[o] = true;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (g->gaps[i].replay_ns != TS_NEVER)
			c->hard[g->gaps[i].object] = false;
	}
}

/*
 * Can some window ask for anything? What one has to copy in was there when it
 * began, and what it has to copy out is there when it ends: most that hard
 * objects take at one op.
 */
static bool may_exceed(const struct cuts *c, double *change)
{
	const struct ts_graph *g = c->graph;
	double bytes = 0;

	for (uint32_t o = 0; o < g->n_objects; o++) {
		const struct ts_object *info = &g->objects[o];
		double size = (double)info->size_bytes;

		if (!c->hard[o])
			continue;
		if (info->persistent) {
			bytes += size;
		} else if (info->last_op != TS_NONE) {
			change[info->first_op == TS_NONE ? 0
			                                 : info->first_op] +=
			        size;
			change[info->last_op + 1] -= size;
		}
	}
	for (uint32_t i = 0; i < g->n_ops; i++) {
		bytes += change[i];
		if (bytes > c->room)
			return true;
	}
	return false;
}

static double touched_bytes(const struct cuts *c, uint32_t op)
{
	const struct ts_graph *g = c->graph;
	const struct ts_profile_op *info = &g->profile->ops[op];
	double bytes = 0;

	for (uint32_t k = 0; k < info->n_reads; k++) {
		uint32_t v = g->profile->uses[info->first_read + k];
		uint32_t o = g->object_of[v];

		if (c->hard[o])
			bytes += (double)g->objects[o].size_bytes;
	}
	return bytes;
}

/* Cuts after equal numbers of bytes that nothing can replay. */
static void place_cuts(struct cuts *c, uint32_t wanted)
{
	const struct ts_graph *g = c->graph;
	double total = 0, sum = 0;

	for (uint32_t i = 0; i < g->n_ops; i++)
		total += touched_bytes(c, i);
	c->ops[0] = 0;
	c->n = 1;
	for (uint32_t i = 1; i < g->n_ops && c->n < wanted; i++) {
		sum += touched_bytes(c, i - 1);
		if (sum * wanted >= total * c->n)
			c->ops[c->n++] = i;
	}
	c->ops[c->n++] = g->n_ops;
}

/* What is in a window so far. */
struct traffic {
	double in_bytes;
	double out_bytes;
};

/* Will the content that @op leaves in the object be wanted again? */
static bool wanted_after(const struct ts_graph *g, uint32_t object, uint32_t op)
{
	const struct ts_object *info = &g->objects[object];

	return info->persistent ||
	       (info->last_op != TS_NONE && info->last_op > op);
}

static void add_op(
        struct cuts *c, uint32_t op, uint32_t window, struct traffic *t)
{
	const struct ts_graph *g = c->graph;
	const struct ts_profile_op *info = &g->profile->ops[op];
	const uint32_t *uses = g->profile->uses;

	for (uint32_t k = 0; k < info->n_reads; k++) {
		uint32_t v = uses[info->first_read + k], o = g->object_of[v];

		if (!c->hard[o] || c->seen[o] == window)
			continue;
		c->seen[o] = window;
		c->written[o] = 0;
		/* Inputs arrive by themselves. */
		if (g->objects[o].persistent || g->writer[v] != TS_NONE)
			t->in_bytes += (double)g->objects[o].size_bytes;
	}
	for (uint32_t k = 0; k < info->n_writes; k++) {
		uint32_t o = g->object_of[uses[info->first_write + k]];

		if (!c->hard[o])
			continue;
		if (c->seen[o] != window)
			c->written[o] = 0;
		c->seen[o] = window;
		if (!c->written[o] && wanted_after(g, o, op)) {
			c->written[o] = 1;
			t->out_bytes += (double)g->objects[o].size_bytes;
		}
	}
	/* What ends here is wanted no more. */
	for (uint32_t k = 0; k < info->n_reads + info->n_writes; k++) {
		uint32_t v = uses[k < info->n_reads ? info->first_read + k
		                                    : info->first_write + k -
		                                              info->n_reads];
		uint32_t o = g->object_of[v];

		if (c->hard[o] && c->seen[o] == window && c->written[o] &&
		        !wanted_after(g, o, op)) {
			c->written[o] = 0;
			t->out_bytes -= (double)g->objects[o].size_bytes;
		}
	}
}

static double window_ns(const struct cuts *c, uint32_t from, uint32_t to,
        const struct traffic *t)
{
	const struct ts_graph *g = c->graph;
	const struct ts_device *d = &g->profile->device;
	double in = t->in_bytes - c->room, out = t->out_bytes - c->room;
	double ns = (double)(g->start_ns[to] - g->start_ns[from]), both;

	in = in > 0 ? in : 0;
	out = out > 0 ? out : 0;
	both = (double)d->d2h_both_bytes_per_s +
	       (double)d->h2d_both_bytes_per_s;
	if (both < (double)d->d2h_bytes_per_s)
		both = (double)d->d2h_bytes_per_s;
	if (both < (double)d->h2d_bytes_per_s)
		both = (double)d->h2d_bytes_per_s;
	if (in / (double)d->h2d_bytes_per_s * 1e9 > ns)
		ns = in / (double)d->h2d_bytes_per_s * 1e9;
	if (out / (double)d->d2h_bytes_per_s * 1e9 > ns)
		ns = out / (double)d->d2h_bytes_per_s * 1e9;
	if ((in + out) / both * 1e9 > ns)
		ns = (in + out) / both * 1e9;
	return ns - (double)(g->start_ns[to] - g->start_ns[from]);
}

/* What windows between the cuts take beyond their ops, from cut to cut. */
static void weigh_all(struct cuts *c)
{
	uint32_t window = 0;

	for (uint32_t i = 0; i + 1 < c->n; i++) {
		struct traffic t = {0, 0};
		uint32_t op = c->ops[i];

		window++;
		for (uint32_t k = i + 1; k < c->n; k++) {
			for (; op < c->ops[k]; op++)
				add_op(c, op, window, &t);
			c->more_ns[i][k] = window_ns(c, c->ops[i], op, &t);
		}
	}
}

/* Best chains of disjoint windows, from the beginning and to the end. */
static void chain(const struct cuts *c, struct ts_bound_windows *w)
{
	w->n = c->n;
	for (uint32_t i = 0; i < c->n; i++) {
		w->ops[i] = c->ops[i];
		w->before_ns[i] = w->after_ns[i] = 0;
	}
	for (uint32_t i = 0; i + 1 < c->n; i++) {
		for (uint32_t k = i + 1; k < c->n; k++) {
			double ns = w->before_ns[i] + c->more_ns[i][k];

			if (ns > w->before_ns[k])
				w->before_ns[k] = ns;
		}
	}
	for (uint32_t i = c->n - 1; i-- > 0;) {
		for (uint32_t k = i + 1; k < c->n; k++) {
			double ns = w->after_ns[k] + c->more_ns[i][k];

			if (ns > w->after_ns[i])
				w->after_ns[i] = ns;
		}
	}
}

double ts_bound_before_ns(const struct ts_bound_windows *w, uint32_t op)
{
	uint32_t k = w->n;

	while (k > 0 && w->ops[k - 1] > op)
		k--;
	return k ? w->before_ns[k - 1] : 0;
}

double ts_bound_after_ns(const struct ts_bound_windows *w, uint32_t op)
{
	uint32_t k = 0;

	while (k < w->n && w->ops[k] < op)
		k++;
	return k < w->n ? w->after_ns[k] : 0;
}

int ts_bound_windows(const struct ts_graph *g, uint64_t limit_bytes,
        struct ts_bound_windows *ret_windows)
{
	struct cuts *c = calloc(1, sizeof(*c));
	uint64_t objects = g->n_objects + UINT64_C(1);
	uint32_t wanted = MAX_USES / (g->profile->n_uses + 1);
	double *change = NULL;
	int err = 0;

	ret_windows->n = 0;
	if (!c)
		return -ENOMEM;
	if (wanted < 2)
		goto out_free;
	c->graph = g;
	c->room = (double)limit_bytes - (double)g->profile->resident_bytes;
	c->hard = calloc(objects, sizeof(*c->hard));
	c->seen = calloc(objects, sizeof(*c->seen));
	c->written = calloc(objects, sizeof(*c->written));
	change = calloc(g->n_ops + UINT64_C(1), sizeof(*change));
	if (!c->hard || !c->seen || !c->written || !change) {
		err = -ENOMEM;
		goto out_free;
	}
	find_hard(c);
	if (!may_exceed(c, change))
		goto out_free;
	place_cuts(c, wanted < TS_BOUND_CUTS ? wanted : TS_BOUND_CUTS);
	weigh_all(c);
	chain(c, ret_windows);
out_free:
	free(c->hard);
	free(c->seen);
	free(c->written);
	free(change);
	free(c);
	return err;
}
