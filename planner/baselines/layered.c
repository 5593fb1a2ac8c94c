/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The timing of vDNN's per-layer barriers, for vdnn.c and barriers.c. */
#include "planner/baselines/baseline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What one layer offloaded: comes back together. */
struct group {
	uint32_t layer;
	uint32_t need_op;
	uint64_t bytes;
	double in_ns;
	uint32_t back_op; /* op at whose start its copy in begins */
};

struct layered {
	const struct ts_graph *graph;
	const struct ts_program *program;
	const struct ts_choice *choice;
	uint32_t *layer_of; /* by op: first op of its layer */
	struct group *groups;
	uint32_t n_groups;
	double *out_ns;  /* by layer: copies out that start with it */
	int64_t *change; /* by op: bytes that come or go before it */
};

static double copy_ns(const struct ts_graph *g, uint64_t bytes, uint64_t rate)
{
	return (double)bytes / (double)rate * 1e9 +
	       (double)g->profile->device.copy_latency_ns;
}

/* Ops that write nothing (weight gradients) belong to the layer before. */
static void find_layers(struct layered *l)
{
	const struct ts_profile *p = l->graph->profile;

	for (uint32_t i = 0; i < p->n_ops; i++)
		l->layer_of[i] =
		        i && !p->ops[i].n_writes ? l->layer_of[i - 1] : i;
}

static int by_need(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->need_op != y->need_op)
		return x->need_op < y->need_op ? -1 : 1;
	return x->layer < y->layer ? -1 : x->layer > y->layer;
}

static void find_groups(struct layered *l)
{
	const struct ts_graph *g = l->graph;
	const struct ts_device *d = &g->profile->device;
	struct group *group = NULL;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];
		uint32_t layer = l->layer_of[gap->from_op];

		if (l->choice->action[i] != TS_SWAP)
			continue;
		if (!group || group->layer != layer) {
			group = &l->groups[l->n_groups++];
			*group = (struct group){
			        .layer = layer, .need_op = TS_NONE};
		}
		if (l->program->need_op[i] < group->need_op)
			group->need_op = l->program->need_op[i];
		group->bytes += gap->size_bytes;
		group->in_ns += copy_ns(g, gap->size_bytes, d->h2d_bytes_per_s);
		l->out_ns[layer] +=
		        copy_ns(g, gap->size_bytes, d->d2h_bytes_per_s);
		l->change[gap->from_op + 1] -= (int64_t)gap->size_bytes;
	}
	qsort(l->groups, l->n_groups, sizeof(*l->groups), by_need);
}

/*
 * What the last op of the forward reads and the first of the backward needs
 * is copied out as any layer's input; the barrier holds the backward until
 * then. It is needed at once, so it stays.
 */
static double edge_ns(const struct ts_graph *g, uint64_t *ret_bytes)
{
	const struct ts_profile *p = g->profile;
	const struct ts_profile_op *first, *last;

	*ret_bytes = 0;
	if (!p->n_turns || !p->turns[0])
		return 0;
	first = &p->ops[p->turns[0]];
	last = &p->ops[p->turns[0] - 1];
	for (uint32_t i = 0; i < first->n_reads; i++) {
		for (uint32_t k = 0; k < last->n_reads; k++) {
			uint32_t v = p->uses[last->first_read + k];

			if (v == p->uses[first->first_read + i])
				*ret_bytes += p->values[v].size_bytes;
		}
	}
	return *ret_bytes ? copy_ns(g, *ret_bytes, p->device.d2h_bytes_per_s)
	                  : 0;
}

static void take_back(
        struct layered *l, struct group *group, uint32_t op, uint64_t *in_bytes)
{
	group->back_op = op;
	l->change[op] += (int64_t)group->bytes;
	*in_bytes += group->bytes;
}

static void walk(struct layered *l, double edge, struct ts_outcome *out)
{
	const struct ts_graph *g = l->graph;
	const struct ts_profile *p = g->profile;
	uint32_t next = 0, seen = 0, k = 0;
	double total = 0, forward = -1;
	double ideal = 0;

	for (uint32_t i = 0; i < g->n_ops;) {
		uint32_t end = i + 1;
		double busy = 0, in = 0, exposed = 0, most;
		bool used;

		while (end < g->n_ops && l->layer_of[end] == i)
			end++;
		for (; k < l->program->n_instrs &&
		        l->program->instrs[k].op < end;
		        k++)
			busy += (double)l->program->instrs[k].duration_ns;
		if (forward < 0 && p->n_turns && i >= p->turns[0])
			forward = total - ideal;
		/* Only a layer that had offloaded looks for the one ahead. */
		while (seen < next && l->groups[seen].need_op < i)
			seen++;
		used = seen < next && l->groups[seen].need_op < end;
		/* What nobody fetched ahead comes while the layer waits. */
		while (next < l->n_groups && l->groups[next].need_op < end) {
			exposed += l->groups[next].in_ns;
			take_back(l, &l->groups[next++], i, &out->h2d_bytes);
			used = true;
		}
		if (used && next < l->n_groups && l->groups[next].layer < i &&
		        (!p->n_turns || i >= p->turns[0])) {
			in = l->groups[next].in_ns;
			take_back(l, &l->groups[next++], i, &out->h2d_bytes);
		}
		most = busy > l->out_ns[i] ? busy : l->out_ns[i];
		most = most > in ? most : in;
		total += exposed + most;
		if (p->n_turns && i == p->turns[0])
			total += edge;
		ideal += busy;
		i = end;
	}
	out->step_ns = (uint64_t)(total + 0.5);
	out->wait_in_ns = (uint64_t)(total - ideal);
	out->wait_forward_ns = forward > 0 ? (uint64_t)forward : 0;
}

static void measure(struct layered *l, uint64_t limit, struct ts_outcome *out)
{
	const struct ts_graph *g = l->graph;
	int64_t off = 0;

	/* Replays come on top of what is kept. */
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (l->choice->action[i] != TS_REPLAY)
			continue;
		l->change[g->gaps[i].from_op + 1] -=
		        (int64_t)g->gaps[i].size_bytes;
		l->change[l->program->need_op[i]] +=
		        (int64_t)g->gaps[i].size_bytes;
	}
	for (uint32_t i = 0; i < g->n_ops; i++) {
		int64_t used;

		off += l->change[i];
		used = (int64_t)g->mem_bytes[i] + off;
		if (used > (int64_t)out->peak_bytes) {
			out->peak_bytes = (uint64_t)used;
			out->stuck_op = i;
		}
	}
	out->fits = out->peak_bytes <= limit;
}

int ts_baseline_layered(
        struct ts_search *search, struct ts_baseline_result *result, bool all)
{
	const struct ts_graph *g = search->graph;
	struct ts_outcome out = {0};
	uint64_t edge_bytes = 0;
	struct ts_program program;
	struct layered l = {
	        .graph = g, .program = &program, .choice = &result->choice};
	int err = ts_program_init(&program, g);

	if (err)
		return err;
	l.layer_of = calloc(g->n_ops + UINT64_C(1), sizeof(*l.layer_of));
	l.groups = calloc(g->n_gaps + UINT64_C(1), sizeof(*l.groups));
	l.out_ns = calloc(g->n_ops + UINT64_C(1), sizeof(*l.out_ns));
	l.change = calloc(g->n_ops + UINT64_C(2), sizeof(*l.change));
	if (!l.layer_of || !l.groups || !l.out_ns || !l.change)
		err = -ENOMEM;
	if (!err)
		err = ts_program_compile(&program, &result->choice);
	/* Barriers are about one step: what wraps has no layer ahead. */
	if (!err && program.cyclic)
		err = -EINVAL;
	if (!err) {
		find_layers(&l);
		find_groups(&l);
		walk(&l, all ? edge_ns(g, &edge_bytes) : 0, &out);
		measure(&l, search->limit_bytes, &out);
		out.replay_ns = program.replay_ns;
		for (uint32_t i = 0; i < l.n_groups; i++)
			out.d2h_bytes += l.groups[i].bytes;
		out.d2h_bytes += edge_bytes;
	}
	if (err == -EINVAL) {
		out.step_ns = TS_NEVER;
		err = 0;
	}
	result->outcome = out;
	result->plain = false;
	ts_program_finish(&program);
	free(l.layer_of);
	free(l.groups);
	free(l.out_ns);
	free(l.change);
	return err;
}
