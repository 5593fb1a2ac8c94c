/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ops [from, to] during which something is resident. */
struct span {
	uint32_t from;
	uint32_t to;
};

/* Chunks that are busy during the same ops. */
struct group {
	uint32_t first_chunk;
	uint32_t count;
	struct span *busy; /* ascending, disjoint */
	uint32_t n_busy;
	uint32_t room;
};

struct paging {
	const struct ts_graph *graph;
	struct ts_pages *pages;
	struct group *groups;
	uint32_t n_groups;
	uint32_t groups_room;
	uint32_t residencies_room;
	uint32_t runs_room;
};

static int room_for(
        void *array_pointer, uint32_t count, uint32_t *room, size_t size)
{
	void **array = array_pointer, *more;
	uint32_t next = *room ? 2 * *room : 64;

	if (count < *room)
		return 0;
	more = realloc(*array, next * size);
	if (!more)
		return -ENOMEM;
	*array = more;
	*room = next;
	return 0;
}

void ts_pages_finish(struct ts_pages *pages)
{
	free(pages->residencies);
	free(pages->runs);
	memset(pages, 0, sizeof(*pages));
}

static uint32_t pages_of(const struct ts_graph *g, uint32_t object)
{
	uint64_t bytes = g->objects[object].size_bytes;

	return (uint32_t)((bytes + TS_PAGE_BYTES - 1) / TS_PAGE_BYTES);
}

/* Index of the first busy span that ends at or after @from. */
static uint32_t first_after(const struct group *group, uint32_t from)
{
	uint32_t low = 0, high = group->n_busy;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (group->busy[mid].to < from)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * How badly @spans fill the holes they go into, in ops left over after them;
 * UINT64_MAX where one does not fit.
 */
static uint64_t misfit(
        const struct group *group, const struct span *spans, uint32_t n)
{
	uint64_t slack = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = first_after(group, spans[i].from);

		if (at < group->n_busy && group->busy[at].from <= spans[i].to)
			return UINT64_MAX;
		slack += at < group->n_busy ? group->busy[at].from - spans[i].to
		                            : UINT32_MAX;
	}
	return slack;
}

static int make_busy(struct group *group, const struct span *spans, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = first_after(group, spans[i].from);
		int err = room_for(&group->busy, group->n_busy, &group->room,
		        sizeof(*group->busy));

		if (err)
			return err;
		memmove(group->busy + at + 1, group->busy + at,
		        (group->n_busy - at) * sizeof(*group->busy));
		group->busy[at] = spans[i];
		group->n_busy++;
	}
	return 0;
}

/* Cuts @count chunks off group @index; the rest becomes a new group. */
static int split(struct paging *p, uint32_t index, uint32_t count)
{
	struct group *from, *rest;
	int err = room_for(
	        &p->groups, p->n_groups, &p->groups_room, sizeof(*p->groups));

	if (err)
		return err;
	from = &p->groups[index];
	rest = &p->groups[p->n_groups];
	*rest = (struct group){.first_chunk = from->first_chunk + count,
	        .count = from->count - count,
	        .n_busy = from->n_busy,
	        .room = from->n_busy};
	if (from->n_busy) {
		rest->busy = malloc(from->n_busy * sizeof(*rest->busy));
		if (!rest->busy)
			return -ENOMEM;
		memcpy(rest->busy, from->busy,
		        from->n_busy * sizeof(*rest->busy));
	}
	from->count = count;
	p->n_groups++;
	return 0;
}

/* New chunks that nobody uses yet. */
static int add_chunks(struct paging *p, uint32_t count)
{
	int err = room_for(
	        &p->groups, p->n_groups, &p->groups_room, sizeof(*p->groups));

	if (err)
		return err;
	p->groups[p->n_groups++] = (struct group){
	        .first_chunk = p->pages->n_chunks, .count = count};
	p->pages->n_chunks += count;
	return 0;
}

static int add_run(struct paging *p, const struct group *group)
{
	struct ts_pages *pages = p->pages;
	int err = room_for(&pages->runs, pages->n_runs, &p->runs_room,
	        sizeof(*pages->runs));

	if (!err)
		pages->runs[pages->n_runs++] =
		        (struct ts_page_run){group->first_chunk, group->count};
	return err;
}

/* The group with the best holes for @spans; n_groups where none fits. */
static uint32_t best_group(
        const struct paging *p, const struct span *spans, uint32_t n)
{
	uint32_t best = p->n_groups;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < p->n_groups; i++) {
		uint64_t slack = misfit(&p->groups[i], spans, n);

		if (slack < least) {
			least = slack;
			best = i;
		}
	}
	return best;
}

/* Chunks that are free over all @spans, were @most chunks in all. */
static uint32_t free_chunks(const struct paging *p, const struct span *spans,
        uint32_t n, uint32_t most)
{
	uint32_t chunks =
	        most > p->pages->n_chunks ? most - p->pages->n_chunks : 0;

	for (uint32_t i = 0; i < p->n_groups; i++) {
		if (misfit(&p->groups[i], spans, n) != UINT64_MAX)
			chunks += p->groups[i].count;
	}
	return chunks;
}

/* Gives @count pages chunks for all @spans; adds chunks where it must. */
static int take(
        struct paging *p, const struct span *spans, uint32_t n, uint32_t count)
{
	while (count) {
		uint32_t index = best_group(p, spans, n);
		int err = 0;

		if (index == p->n_groups)
			err = add_chunks(p, count);
		if (!err && p->groups[index].count > count)
			err = split(p, index, count);
		if (!err)
			err = make_busy(&p->groups[index], spans, n);
		if (!err)
			err = add_run(p, &p->groups[index]);
		if (err)
			return err;
		count -= p->groups[index].count;
	}
	return 0;
}

static int add_residency(struct paging *p, uint32_t object,
        const struct span *span, uint32_t first_run)
{
	struct ts_pages *pages = p->pages;
	int err = room_for(&pages->residencies, pages->n_residencies,
	        &p->residencies_room, sizeof(*pages->residencies));

	if (!err)
		pages->residencies[pages->n_residencies++] =
		        (struct ts_residency){object, span->from, span->to,
		                first_run, pages->n_runs - first_run};
	return err;
}

static int place(
        struct paging *p, uint32_t object, const struct span *spans, uint32_t n)
{
	uint32_t count = pages_of(p->graph, object);
	uint32_t first = p->pages->n_runs, fits;
	int err = 0;

	fits = n > 1 ? free_chunks(p, spans, n, p->pages->peak_pages) : count;
	if (fits >= count) {
		err = take(p, spans, n, count);
		for (uint32_t i = 0; !err && i < n; i++)
			err = add_residency(p, object, &spans[i], first);
		return err;
	}
	/* No chunks for all of it: what is missing is mapped anew each time. */
	for (uint32_t i = 0; !err && i < n; i++) {
		first = p->pages->n_runs;
		err = take(p, &spans[i], 1, count);
		if (!err)
			err = add_residency(p, object, &spans[i], first);
	}
	p->pages->remaps += (n - 1) * count;
	return err;
}

/* Residencies of @object, in time order; how many. */
static uint32_t spans_of(const struct ts_graph *g,
        const struct ts_choice *choice, uint32_t object, const uint32_t *left,
        const uint32_t *back, struct span *spans)
{
	const struct ts_object *o = &g->objects[object];
	uint32_t from = o->first_op == TS_NONE ? 0 : o->first_op;
	uint32_t to = o->persistent ? g->n_ops - 1 : o->last_op, n = 0;

	for (uint32_t k = g->object_first[object];
	        k < g->object_first[object + 1]; k++) {
		uint32_t gap = g->object_gaps[k];

		if (choice->action[gap] == TS_KEEP || left[gap] == TS_NONE ||
		        back[gap] == TS_NONE)
			continue;
		if (g->gaps[gap].to_op >= g->n_ops) {
			/* Away at the end of the step and at its start. */
			if (back[gap] < g->gaps[gap].from_op) {
				if (n)
					spans[0].from = back[gap];
				else
					from = back[gap];
				to = g->gaps[gap].from_op;
			}
			continue;
		}
		if (left[gap] + 1 >= back[gap])
			continue;
		spans[n++] = (struct span){from, left[gap]};
		from = back[gap];
	}
	if (from <= to)
		spans[n++] = (struct span){from, to};
	return n;
}

struct job {
	uint32_t object;
	uint32_t first_span;
	uint32_t n;
};

static int by_difficulty(const void *a, const void *b, void *spans)
{
	const struct job *x = a, *y = b;
	const struct span *all = spans;
	uint32_t fx = all[x->first_span].from, fy = all[y->first_span].from;

	/* Pages that come back first; then in order of arrival. */
	if ((x->n > 1) != (y->n > 1))
		return x->n > 1 ? -1 : 1;
	if (fx != fy)
		return fx < fy ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

static int measure_peak(struct paging *p, const struct job *jobs, uint32_t n,
        const struct span *spans)
{
	const struct ts_graph *g = p->graph;
	int64_t *change = calloc(g->n_ops + UINT64_C(2), sizeof(*change));
	int64_t pages = 0;

	if (!change)
		return -ENOMEM;
	for (uint32_t j = 0; j < n; j++) {
		uint32_t count = pages_of(g, jobs[j].object);

		for (uint32_t i = 0; i < jobs[j].n; i++) {
			change[spans[jobs[j].first_span + i].from] += count;
			change[spans[jobs[j].first_span + i].to + 1] -= count;
		}
	}
	for (uint32_t i = 0; i < g->n_ops; i++) {
		pages += change[i];
		if (pages > p->pages->peak_pages)
			p->pages->peak_pages = (uint32_t)pages;
	}
	free(change);
	return 0;
}

int ts_pages_assign(const struct ts_graph *g, const struct ts_choice *choice,
        const uint32_t *left, const uint32_t *back, struct ts_pages *ret_pages)
{
	struct paging p = {.graph = g, .pages = ret_pages};
	struct job *jobs = calloc(g->n_objects + UINT64_C(1), sizeof(*jobs));
	struct span *spans =
	        calloc(g->n_objects + (uint64_t)g->n_gaps + 1, sizeof(*spans));
	uint32_t n = 0, n_spans = 0;
	int err = jobs && spans ? 0 : -ENOMEM;

	memset(ret_pages, 0, sizeof(*ret_pages));
	for (uint32_t o = 0; !err && o < g->n_objects; o++) {
		const struct ts_object *object = &g->objects[o];
		uint32_t count;

		if (object->size_bytes < TS_PAGE_BYTES ||
		        (object->last_op == TS_NONE && !object->persistent))
			continue;
		count = spans_of(g, choice, o, left, back, spans + n_spans);
		if (!count)
			continue;
		jobs[n++] = (struct job){o, n_spans, count};
		n_spans += count;
	}
	if (!err)
		err = measure_peak(&p, jobs, n, spans);
	if (!err)
		qsort_r(jobs, n, sizeof(*jobs), by_difficulty, spans);
	for (uint32_t j = 0; !err && j < n; j++)
		err = place(&p, jobs[j].object, spans + jobs[j].first_span,
		        jobs[j].n);
	for (uint32_t i = 0; i < p.n_groups; i++)
		free(p.groups[i].busy);
	free(p.groups);
	free(jobs);
	free(spans);
	if (err)
		ts_pages_finish(ret_pages);
	return err;
}
