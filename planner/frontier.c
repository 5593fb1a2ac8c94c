/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/frontier.h"
#include "planner/knapsack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Values that one region's replay may have to make. */
#define MAX_MADE 512

/* Gaps of region @r that its own backward ends: made inside, read there. */
static bool belongs(const struct ts_graph *g, const struct ts_gap *gap,
        const struct ts_region *region)
{
	return gap->born_op != TS_NONE && gap->born_op >= region->first_op &&
	       gap->born_op < region->end_op &&
	       gap->to_op >= region->backward_first_op &&
	       gap->to_op < region->backward_end_op;
}

/* What the replay of one region has to run: values, each once. */
struct replay {
	const struct ts_graph *graph;
	const uint8_t *kept;
	uint32_t made[MAX_MADE];
	uint32_t n;
};

static bool is_made(const struct replay *r, uint32_t value)
{
	for (uint32_t i = 0; i < r->n; i++) {
		if (r->made[i] == value)
			return true;
	}
	return false;
}

/* On hand at @op without a replay, given what is kept. */
static bool available(const struct replay *r, uint32_t value, uint32_t op)
{
	uint32_t gap;

	if (!ts_graph_alive(r->graph, value, op))
		return false;
	gap = ts_graph_gap_at(r->graph, value, op);
	return gap == TS_NONE || r->kept[gap] ||
	       r->graph->gaps[gap].replay_ns == TS_NEVER;
}

/* Adds @value and all that its producer needs. False: cannot be made. */
static bool require(struct replay *r, uint32_t value, uint32_t op)
{
	uint32_t at = r->n;

	if (available(r, value, op) || is_made(r, value))
		return true;
	if (r->n == MAX_MADE)
		return false;
	r->made[r->n++] = value;
	for (; at < r->n; at++) {
		struct ts_producer producer;

		if (!ts_graph_producer(r->graph, r->made[at], &producer))
			return false;
		for (uint32_t k = 0; k < producer.n_reads; k++) {
			uint32_t read = producer.reads[k];

			if (available(r, read, op) || is_made(r, read))
				continue;
			if (r->n == MAX_MADE)
				return false;
			r->made[r->n++] = read;
		}
	}
	return true;
}

uint64_t ts_region_replay_ns(const struct ts_graph *g, uint32_t region_index,
        const uint8_t *kept, uint32_t *ret_dead_ops)
{
	const struct ts_region *region = &g->profile->regions[region_index];
	struct replay r = {.graph = g, .kept = kept};
	uint32_t ran = 0, end = region->end_op;
	uint64_t ns = 0;

	for (uint32_t k = g->from_first[region->first_op];
	        k < g->from_first[end]; k++) {
		const struct ts_gap *gap = &g->gaps[k];

		if (belongs(g, gap, region) &&
		        !require(&r, gap->version, gap->to_op))
			return TS_NEVER;
	}
	for (uint32_t i = 0; i < r.n; i++) {
		struct ts_producer producer;
		bool counted = false;

		if (!ts_graph_producer(g, r.made[i], &producer))
			return TS_NEVER;
		for (uint32_t k = 0; k < i && !counted; k++)
			counted = producer.op != TS_NONE &&
			          g->writer[r.made[k]] == producer.op &&
			          g->profile->values[r.made[k]].rebuild ==
			                  TS_NONE;
		if (counted)
			continue;
		ns += producer.duration_ns;
		ran += producer.op != TS_NONE;
	}
	if (ret_dead_ops)
		*ret_dead_ops = end - region->first_op > ran
		                        ? end - region->first_op - ran
		                        : 0;
	return ns;
}

/* Values of one op that only pay together become one candidate as well. */
static void find_candidates(const struct ts_graph *g, struct ts_frontier *f)
{
	const struct ts_region *region = &g->profile->regions[f->region];
	const uint32_t room = sizeof(f->candidates) / sizeof(f->candidates[0]);
	uint32_t singles;

	for (uint32_t k = g->from_first[region->first_op];
	        k < g->from_first[region->end_op] && f->n_candidates < room;
	        k++) {
		const struct ts_gap *gap = &g->gaps[k];

		if (!belongs(g, gap, region) || gap->replay_ns == TS_NEVER ||
		        !gap->size_bytes)
			continue;
		f->candidates[f->n_candidates++] = (struct ts_candidate){
		        .gaps = {k}, .n = 1, .bytes = gap->size_bytes};
	}
	singles = f->n_candidates;
	for (uint32_t i = 0; i < singles && f->n_candidates < room; i++) {
		struct ts_candidate group = f->candidates[i];
		uint32_t born = g->gaps[group.gaps[0]].born_op;

		for (uint32_t k = i + 1; k < singles; k++) {
			uint32_t gap = f->candidates[k].gaps[0];

			if (g->gaps[gap].born_op != born ||
			        group.n == TS_GROUP_MAX)
				continue;
			group.gaps[group.n++] = gap;
			group.bytes += g->gaps[gap].size_bytes;
		}
		if (group.n > 1)
			f->candidates[f->n_candidates++] = group;
	}
}

static void keep_set(
        const struct ts_frontier *f, uint32_t set, uint8_t *kept, uint8_t value)
{
	for (uint32_t i = 0; i < f->n_candidates; i++) {
		if (!(set & (UINT32_C(1) << i)))
			continue;
		for (uint32_t k = 0; k < f->candidates[i].n; k++)
			kept[f->candidates[i].gaps[k]] = value;
	}
}

/* Bytes and removed time of @set; storages count once. */
static struct ts_point price(const struct ts_graph *g,
        const struct ts_frontier *f, uint32_t set, uint8_t *kept)
{
	struct ts_point point = {.set = set};
	uint64_t ns;

	keep_set(f, set, kept, 1);
	for (uint32_t i = 0; i < f->n_candidates; i++) {
		for (uint32_t k = 0; (set >> i & 1) && k < f->candidates[i].n;
		        k++) {
			uint32_t gap = f->candidates[i].gaps[k];

			/* Groups overlap their singles. */
			if (kept[gap] == 1) {
				point.bytes += g->gaps[gap].size_bytes;
				kept[gap] = 2;
			}
		}
	}
	ns = ts_region_replay_ns(g, f->region, kept, NULL);
	if (ns < f->must_only_ns)
		point.saved_ns = f->must_only_ns - ns;
	keep_set(f, set, kept, 0);
	return point;
}

static int by_bytes(const void *a, const void *b)
{
	const struct ts_point *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->saved_ns != y->saved_ns)
		return x->saved_ns > y->saved_ns ? -1 : 1;
	return x->set < y->set ? -1 : x->set > y->set;
}

/* Sorts and leaves what no other point beats in both. The new count. */
static uint32_t prune(struct ts_point *points, uint32_t n)
{
	uint32_t kept = 0;

	qsort(points, n, sizeof(*points), by_bytes);
	for (uint32_t i = 0; i < n; i++) {
		if (!kept || points[i].saved_ns > points[kept - 1].saved_ns)
			points[kept++] = points[i];
	}
	return kept;
}

/* At most TS_BEAM of @n points, spread over bytes. */
static uint32_t thin(struct ts_point *points, uint32_t n)
{
	if (n <= TS_BEAM)
		return n;
	for (uint32_t i = 0; i < TS_BEAM; i++)
		points[i] = points[(uint64_t)i * (n - 1) / (TS_BEAM - 1)];
	return TS_BEAM;
}

/* The same set is reached in any order of its candidates. */
static bool priced(const struct ts_point *points, uint32_t n, uint32_t set)
{
	for (uint32_t i = 0; i < n; i++) {
		if (points[i].set == set)
			return true;
	}
	return false;
}

int ts_frontier_make(
        const struct ts_graph *g, uint32_t region, struct ts_frontier *f)
{
	struct ts_point beam[TS_BEAM], next[TS_BEAM * 33];
	uint8_t *kept = calloc(g->n_gaps + UINT64_C(1), 1);
	uint32_t n_beam = 1;

	if (!kept)
		return -ENOMEM;
	memset(f, 0, sizeof(*f));
	f->region = region;
	find_candidates(g, f);
	f->must_only_ns = ts_region_replay_ns(g, region, kept, &f->dead_ops);
	f->n_points = 1;
	beam[0] = f->points[0];
	for (uint32_t round = 0; round < TS_SET_MAX && n_beam; round++) {
		uint32_t n = 0;

		for (uint32_t i = 0; i < n_beam; i++) {
			for (uint32_t c = 0; c < f->n_candidates; c++) {
				uint32_t set = beam[i].set | UINT32_C(1) << c;

				if (set != beam[i].set && !priced(next, n, set))
					next[n++] = price(g, f, set, kept);
			}
		}
		n = thin(next, prune(next, n));
		memcpy(beam, next, n * sizeof(*next));
		n_beam = n;
		memcpy(f->points + f->n_points, next, n * sizeof(*next));
		f->n_points = prune(f->points, f->n_points + n);
	}
	free(kept);
	return 0;
}

/* Do two regions consist of the same ops, so that one frontier serves both? */
static bool alike(const struct ts_graph *g, uint32_t a, uint32_t b)
{
	const struct ts_profile *p = g->profile;
	const struct ts_region *x = &p->regions[a], *y = &p->regions[b];

	if (x->type != y->type ||
	        x->end_op - x->first_op != y->end_op - y->first_op)
		return false;
	for (uint32_t i = 0; i < x->end_op - x->first_op; i++) {
		if (p->ops[x->first_op + i].signature !=
		        p->ops[y->first_op + i].signature)
			return false;
	}
	return true;
}

/* Gaps of @region that stand where those of the reference @set stand. */
static void apply(const struct ts_graph *g, const struct ts_frontier *f,
        uint32_t set, uint32_t region_index, struct ts_choice *choice)
{
	const struct ts_region *here = &g->profile->regions[region_index];
	const struct ts_region *there = &g->profile->regions[f->region];

	for (uint32_t k = g->from_first[here->first_op];
	        k < g->from_first[here->end_op]; k++) {
		const struct ts_gap *gap = &g->gaps[k];
		bool saved = false;

		if (!belongs(g, gap, here) || gap->replay_ns == TS_NEVER)
			continue;
		for (uint32_t i = 0; i < f->n_candidates; i++) {
			for (uint32_t j = 0;
			        (set >> i & 1) && j < f->candidates[i].n; j++) {
				const struct ts_gap *same =
				        &g->gaps[f->candidates[i].gaps[j]];

				saved |=
				        same->born_op - there->first_op ==
				                gap->born_op - here->first_op &&
				        g->profile->values[same->version]
				                        .output ==
				                g->profile->values[gap->version]
				                        .output;
			}
		}
		choice->action[k] = saved ? TS_KEEP : TS_REPLAY;
	}
}

struct ts_frontiers {
	const struct ts_graph *graph;
	struct ts_frontier *kinds; /* one a type of regions */
	uint32_t n_kinds;
	struct ts_knapsack_item *items; /* of all kinds, one after another */
	uint32_t *first_item;           /* by kind */
	uint32_t *kind_of;              /* by region */
	/* By region: the point it had last, and how much above capacity's. */
	uint32_t *taken;
	uint32_t *raised;
};

void ts_frontiers_destroy(struct ts_frontiers *fs)
{
	if (!fs)
		return;
	free(fs->kinds);
	free(fs->items);
	free(fs->first_item);
	free(fs->kind_of);
	free(fs->taken);
	free(fs->raised);
	free(fs);
}

static int find_kinds(struct ts_frontiers *fs)
{
	const struct ts_graph *g = fs->graph;
	uint32_t n = g->profile->n_regions, total = 0;

	for (uint32_t r = 0; r < n; r++) {
		struct ts_frontier *more;
		uint32_t k = 0;
		int err;

		while (k < fs->n_kinds && !alike(g, fs->kinds[k].region, r))
			k++;
		fs->kind_of[r] = k;
		if (k < fs->n_kinds)
			continue;
		more = realloc(fs->kinds, (k + UINT64_C(1)) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		fs->kinds = more;
		err = ts_frontier_make(g, r, &more[k]);
		if (err)
			return err;
		fs->n_kinds++;
		fs->first_item[k] = total;
		total += more[k].n_points;
	}
	fs->items = calloc(total + UINT64_C(1), sizeof(*fs->items));
	if (!fs->items)
		return -ENOMEM;
	for (uint32_t k = 0; k < fs->n_kinds; k++) {
		for (uint32_t i = 0; i < fs->kinds[k].n_points; i++)
			fs->items[fs->first_item[k] + i] =
			        (struct ts_knapsack_item){
			                fs->kinds[k].points[i].bytes,
			                fs->kinds[k].points[i].saved_ns};
	}
	return 0;
}

int ts_frontiers_create(
        const struct ts_graph *g, struct ts_frontiers **ret_frontiers)
{
	uint32_t n = g->profile->n_regions;
	struct ts_frontiers *fs;
	int err;

	for (uint32_t r = 0; r < n; r++) {
		if (g->profile->regions[r].backward_first_op == TS_NONE)
			return -ENOENT;
	}
	if (!n)
		return -ENOENT;
	fs = calloc(1, sizeof(*fs));
	if (!fs)
		return -ENOMEM;
	fs->graph = g;
	fs->kind_of = calloc(n, sizeof(*fs->kind_of));
	fs->first_item = calloc(n, sizeof(*fs->first_item));
	fs->taken = calloc(n, sizeof(*fs->taken));
	fs->raised = calloc(n, sizeof(*fs->raised));
	err = fs->kind_of && fs->first_item && fs->taken && fs->raised
	              ? find_kinds(fs)
	              : -ENOMEM;
	if (err)
		ts_frontiers_destroy(fs);
	else
		*ret_frontiers = fs;
	return err;
}

/* Within one kind the later blocks get the larger sets: they free first. */
static void sort_points(
        const struct ts_frontiers *fs, uint32_t n, uint32_t *taken)
{
	for (uint32_t i = 1; i < n; i++) {
		for (uint32_t k = i; k > 0; k--) {
			uint32_t swap = taken[k];

			if (fs->kind_of[k] != fs->kind_of[k - 1] ||
			        taken[k] >= taken[k - 1])
				break;
			taken[k] = taken[k - 1];
			taken[k - 1] = swap;
		}
	}
}

int ts_frontiers_choose(const struct ts_frontiers *fs, uint64_t capacity_bytes,
        struct ts_choice *choice)
{
	uint32_t n = fs->graph->profile->n_regions;
	struct ts_knapsack_class *classes = calloc(n, sizeof(*classes));
	uint32_t *taken = fs->taken;
	int err = classes ? 0 : -ENOMEM;

	for (uint32_t r = 0; !err && r < n; r++) {
		uint32_t k = fs->kind_of[r];

		classes[r] = (struct ts_knapsack_class){
		        fs->items + fs->first_item[k], fs->kinds[k].n_points};
	}
	if (!err)
		err = ts_knapsack_solve(classes, n, capacity_bytes, taken);
	if (!err)
		sort_points(fs, n, taken);
	for (uint32_t r = 0; !err && r < n; r++) {
		const struct ts_frontier *f = &fs->kinds[fs->kind_of[r]];

		taken[r] += fs->raised[r];
		if (taken[r] >= f->n_points)
			taken[r] = f->n_points - 1;
		apply(fs->graph, f, f->points[taken[r]].set, r, choice);
	}
	free(classes);
	return err;
}

bool ts_frontiers_raise(struct ts_frontiers *fs, uint32_t op)
{
	const struct ts_profile *p = fs->graph->profile;

	for (uint32_t r = 0; r < p->n_regions; r++) {
		if (op < p->regions[r].backward_first_op ||
		        op >= p->regions[r].backward_end_op)
			continue;
		if (fs->taken[r] + 1 >= fs->kinds[fs->kind_of[r]].n_points)
			return false;
		fs->raised[r]++;
		return true;
	}
	return false;
}

void ts_frontiers_lower(struct ts_frontiers *fs)
{
	memset(fs->raised, 0,
	        fs->graph->profile->n_regions * sizeof(*fs->raised));
}
