/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD, TAIL, EDGES };

enum { READS = 1, WRITES = 2 };

/* The part of a page at one end of a block. */
struct edge {
	uint64_t page;
	uint32_t block;
	uint32_t first, end; /* as the block's range */
	uint8_t which;
};

struct work {
	const struct ts_recording *step;
	const struct ts_profile *from;
	const struct ts_values *values;
	const struct ts_enforce_survey *survey;
	struct ts_planned_view *view;
	uint32_t n_ops;
	struct edge *edges;
	uint32_t n_edges;
	/* By block: the shared ranges at its ends, or TS_NONE. */
	uint32_t (*shared)[EDGES];
	/* By shared range. */
	uint32_t *current; /* its value now, or TS_NONE */
	/* By range: the value in it now, and by op those that linger to it. */
	uint32_t *now, *lingering, *next_lingering;
	uint32_t
	        *seen; /* by range: after the last op whose uses it is one of */
	uint8_t *touch;    /* what the op at hand does to it */
	uint32_t *touched; /* those that it touches */
	uint32_t n_touched;
	uint32_t values_room, uses_room;
};

/* ------------------------------------------------------------------- lives */

static uint32_t op_in_step(const struct work *work, uint64_t number)
{
	if (number <= work->step->first_op)
		return 0;
	number -= work->step->first_op;
	return number < work->n_ops ? (uint32_t)number : work->n_ops;
}

static void find_lives(struct work *work)
{
	const struct ts_recording *step = work->step;

	for (size_t i = 0; i < step->block_count; i++) {
		const struct ts_rec_block *block = &step->blocks[i];
		struct ts_planned_range *range = &work->view->ranges[i];

		range->address = block->address;
		range->before = block->born <= step->first_op;
		range->first = range->before ? 0 : work->n_ops;
		range->end = block->died == TS_NEVER
		                     ? work->n_ops
		                     : op_in_step(work, block->died);
	}
	for (uint32_t i = 0; i < work->n_ops; i++) {
		const struct ts_rec_op *op = &step->ops[i];

		for (uint32_t k = 0; k < op->use_count + op->doubt_count; k++) {
			struct ts_planned_range *range =
			        &work->view->ranges
			                 [ts_recording_use(step, op, k)->block];

			range->used = true;
			range->idle = i + 1;
			if (i < range->first)
				range->first = i;
			/* Freed by another thread while it was issued. */
			if (range->end <= i)
				range->end = i + 1;
		}
	}
}

/* ------------------------------------------------------------------- pages */

static void add_edge(
        struct work *work, uint32_t block, uint64_t page, uint8_t which)
{
	const struct ts_planned_range *range = &work->view->ranges[block];

	work->edges[work->n_edges++] =
	        (struct edge){page, block, range->first, range->end, which};
}

/* Whole pages of a block; its ends are edges where they are parts of some. */
static void cut_block(struct work *work, uint32_t index)
{
	const struct ts_rec_block *block = &work->step->blocks[index];
	struct ts_planned_range *range = &work->view->ranges[index];
	uint64_t page = work->survey->page_bytes, first, last, end;
	const struct ts_plan_segment *segment;

	if (block->device != work->values->device || !block->bytes ||
	        (!range->used && !range->before) || range->end <= range->first)
		return;
	segment = ts_plan_segment_at(work->survey->segments,
	        work->survey->n_segments, block->address, page);
	if (!segment)
		return;
	end = segment->base + segment->pages * page;
	if (block->address + block->bytes < end)
		end = block->address + block->bytes;
	first = block->address - (block->address - segment->base) % page;
	last = end - 1 - (end - 1 - segment->base) % page;
	range->address = first;
	range->bytes = last + page - first;
	if (first < block->address || (first == last && end < last + page)) {
		add_edge(work, index, first, HEAD);
		range->address += page;
		range->bytes -= page;
	}
	if (last > first && end < last + page) {
		add_edge(work, index, last, TAIL);
		range->bytes -= page;
	}
}

static int by_page(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->block < y->block ? -1 : x->block > y->block;
}

/* A page that one block alone has as long as it lives is the block's own. */
static void give_page(struct work *work, const struct edge *edge)
{
	struct ts_planned_range *range = &work->view->ranges[edge->block];
	uint64_t page = work->survey->page_bytes;

	if (edge->which == HEAD)
		range->address -= page;
	range->bytes += page;
}

/* The page that @count edges have parts of, from @edge on, is a range. */
static void share_page(struct work *work, const struct edge *edge,
        uint32_t count, uint32_t end)
{
	struct ts_planned_view *view = work->view;
	uint32_t index = view->n_ranges++;
	struct ts_planned_range *range = &view->ranges[index];

	*range = (struct ts_planned_range){.address = edge->page,
	        .bytes = work->survey->page_bytes,
	        .first = edge->first,
	        .end = end};
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_planned_range *of =
		        &view->ranges[edge[i].block];

		range->used |= of->used;
		range->before |= of->before;
		if (of->idle > range->idle)
			range->idle = of->idle;
		work->shared[edge[i].block][edge[i].which] = index;
	}
}

static void sort_out_edges(struct work *work)
{
	uint32_t count;

	qsort(work->edges, work->n_edges, sizeof(*work->edges), by_page);
	for (uint32_t i = 0; i < work->n_edges; i += count) {
		const struct edge *edge = &work->edges[i];
		uint32_t end = edge->end;

		for (count = 1; i + count < work->n_edges; count++) {
			if (edge[count].page != edge->page ||
			        edge[count].first >= end)
				break;
			if (edge[count].end > end)
				end = edge[count].end;
		}
		if (count == 1)
			give_page(work, edge);
		else
			share_page(work, edge, count, end);
	}
}

static int find_ranges(struct work *work)
{
	uint32_t blocks = (uint32_t)work->step->block_count;
	struct ts_planned_view *view = work->view;

	view->ranges = calloc(3ull * blocks + 1, sizeof(*view->ranges));
	work->edges = malloc((2ull * blocks + 1) * sizeof(*work->edges));
	work->shared = malloc((blocks + 1ull) * sizeof(*work->shared));
	if (!view->ranges || !work->edges || !work->shared)
		return -ENOMEM;
	memset(work->shared, 0xff, (blocks + 1ull) * sizeof(*work->shared));
	view->n_ranges = blocks;
	view->n_blocks = blocks;
	find_lives(work);
	for (uint32_t i = 0; i < blocks; i++)
		cut_block(work, i);
	sort_out_edges(work);
	return 0;
}

/* --------------------------------------------------------------- letting go */

/* Of the limit so much may leave before one op. */
#define LEAVING_PART 16

/* Lives on after its last use, with an op at least between that and its end. */
static bool lingers(const struct work *work, uint32_t index)
{
	const struct ts_planned_range *range = &work->view->ranges[index];

	return range->used && range->bytes && range->idle + 1 < range->end &&
	       !(range->before && range->end == work->n_ops);
}

/* The op before which @range leaves: soon, with not too much else. */
static uint32_t leaving_op(const struct work *work,
        const struct ts_planned_range *range, const uint64_t *leaving)
{
	uint64_t most = work->survey->limit_bytes / LEAVING_PART;
	uint32_t best = range->idle + 1;

	for (uint32_t op = best; op < range->end; op++) {
		if (leaving[op] + range->bytes <= most)
			return op;
		if (leaving[op] < leaving[best])
			best = op;
	}
	return best;
}

static int let_go(struct work *work)
{
	uint32_t blocks = (uint32_t)work->step->block_count;
	uint64_t *leaving = calloc(work->n_ops + 1ull, sizeof(*leaving));

	if (!leaving)
		return -ENOMEM;
	for (uint32_t i = 0; i < blocks; i++) {
		struct ts_planned_range *range = &work->view->ranges[i];

		/* Left in the step before. */
		if (!range->used && range->end < work->n_ops)
			range->bytes = 0;
		if (!lingers(work, i))
			continue;
		range->end = leaving_op(work, range, leaving);
		range->leaves = true;
		leaving[range->end] += range->bytes;
	}
	free(leaving);
	return 0;
}

/* ------------------------------------------------------------------ values */

static int copy_values(struct work *work)
{
	const struct ts_profile *from = work->from;
	struct ts_planned_view *view = work->view;

	work->values_room = from->n_values;
	view->profile.values =
	        malloc((from->n_values + 1ull) * sizeof(struct ts_value));
	view->range_of = malloc((from->n_values + 1ull) * sizeof(uint32_t));
	if (!view->profile.values || !view->range_of)
		return -ENOMEM;
	if (from->n_values)
		memcpy(view->profile.values, from->values,
		        from->n_values * sizeof(struct ts_value));
	for (uint32_t v = 0; v < from->n_values; v++) {
		view->range_of[v] = work->values->block_of[v];
		view->profile.values[v].size_bytes =
		        view->ranges[view->range_of[v]].bytes;
	}
	return 0;
}

/* A new value of a shared range; TS_NONE without memory. */
static uint32_t new_value(struct work *work, uint32_t range, uint32_t old)
{
	struct ts_planned_view *view = work->view;
	struct ts_profile *profile = &view->profile;

	if (profile->n_values == work->values_room) {
		uint32_t room = 2 * work->values_room + 64;
		void *values = realloc(profile->values,
		        (room + 1ull) * sizeof(struct ts_value));
		void *range_of;

		if (values)
			profile->values = values;
		range_of = realloc(
		        view->range_of, (room + 1ull) * sizeof(uint32_t));
		if (range_of)
			view->range_of = range_of;
		if (!values || !range_of)
			return TS_NONE;
		work->values_room = room;
	}
	view->range_of[profile->n_values] = range;
	profile->values[profile->n_values] =
	        (struct ts_value){.size_bytes = view->ranges[range].bytes,
	                .signature = TS_NONE,
	                .kind = TS_KIND_OTHER,
	                .no_replay = true,
	                .in_place_of = old,
	                .address = view->ranges[range].address,
	                .rebuild = TS_NONE};
	return profile->n_values++;
}

static void note_touch(struct work *work, uint32_t value, uint8_t how)
{
	uint32_t blocks = (uint32_t)work->step->block_count;
	const uint32_t *shared = work->shared[work->values->block_of[value]];

	for (int i = 0; i < EDGES; i++) {
		if (shared[i] == TS_NONE)
			continue;
		if (!work->touch[shared[i] - blocks])
			work->touched[work->n_touched++] = shared[i];
		work->touch[shared[i] - blocks] |= how;
	}
}

/* @how: READS, where the runtime is told so, or WRITES. */
static bool add_use(struct work *work, uint32_t value, uint8_t how)
{
	struct ts_planned_view *view = work->view;
	struct ts_profile *profile = &view->profile;

	if (profile->n_uses == work->uses_room) {
		uint32_t room = 2 * work->uses_room + 1024;
		uint32_t *more = realloc(profile->uses, room * sizeof(*more));
		uint8_t *dirties;

		if (more)
			profile->uses = more;
		dirties = realloc(view->dirties, room * sizeof(*dirties));
		if (dirties)
			view->dirties = dirties;
		if (!more || !dirties)
			return false;
		work->uses_room = room;
	}
	view->dirties[profile->n_uses] = how != READS;
	profile->uses[profile->n_uses++] = value;
	return true;
}

/* What an op finds in a shared range; TS_NONE: nothing, it is the first. */
static int find_content(struct work *work, uint32_t range, uint32_t *ret_value)
{
	uint32_t *current = &work->current[range - work->step->block_count];
	const struct ts_planned_range *at = &work->view->ranges[range];

	if (*current == TS_NONE && at->before) {
		*current = new_value(work, range, TS_NONE);
		if (*current == TS_NONE)
			return -ENOMEM;
		work->view->profile.values[*current].persistent =
		        at->before && at->end == work->n_ops;
	}
	*ret_value = *current;
	return 0;
}

/* What is in the blocks before any op, of what ops read. */
static int find_leaves(struct work *work)
{
	const struct ts_profile *from = work->from;
	bool *made = calloc(from->n_values + 1ull, sizeof(*made));

	if (!made)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_ops; i++)
		for (uint32_t k = 0; k < from->ops[i].n_writes; k++)
			made[from->uses[from->ops[i].first_write + k]] = true;
	for (uint32_t v = 0; v < from->n_values; v++)
		if (!made[v] && from->values[v].in_place_of == TS_NONE)
			work->now[work->values->block_of[v]] = v;
	free(made);
	return 0;
}

/* What lives on after its last use, but not from step to step. */
static int list_lingering(struct work *work)
{
	uint32_t n = work->view->n_ranges;

	work->now = malloc((n + 1ull) * sizeof(*work->now));
	work->seen = calloc(n + 1ull, sizeof(*work->seen));
	work->next_lingering =
	        malloc((n + 1ull) * sizeof(*work->next_lingering));
	work->lingering =
	        malloc((work->n_ops + 1ull) * sizeof(*work->lingering));
	if (!work->now || !work->seen || !work->next_lingering ||
	        !work->lingering)
		return -ENOMEM;
	memset(work->now, 0xff, (n + 1ull) * sizeof(*work->now));
	memset(work->lingering, 0xff,
	        (work->n_ops + 1ull) * sizeof(*work->lingering));
	for (uint32_t i = 0; i < n; i++) {
		const struct ts_planned_range *range = &work->view->ranges[i];

		if (!range->used || !range->bytes || range->idle >= range->end)
			continue;
		if (range->before && range->end == work->n_ops)
			continue;
		work->next_lingering[i] = work->lingering[range->end - 1];
		work->lingering[range->end - 1] = i;
	}
	return find_leaves(work);
}

/* A read of what is in @range, by an op that the profile tells nothing of. */
static bool read_range(
        struct work *work, uint32_t index, uint32_t range, uint8_t how)
{
	uint32_t value = work->now[range];

	if (work->seen[range] > index)
		return true;
	if (range >= work->step->block_count &&
	        find_content(work, range, &value))
		return false;
	work->seen[range] = index + 1;
	return value == TS_NONE || add_use(work, value, how);
}

/*
 * As if the op read what doubtful words lead to, and what lives for no longer
 * than it does: both have to be there.
 */
static bool read_others(struct work *work, uint32_t index)
{
	const struct ts_rec_op *op = &work->step->ops[index];
	bool ok = true;

	for (uint32_t k = 0; k < op->doubt_count; k++) {
		uint32_t block =
		        ts_recording_use(work->step, op, op->use_count + k)
		                ->block;

		ok &= read_range(work, index, block, WRITES);
		for (int i = 0; i < EDGES; i++)
			if (work->shared[block][i] != TS_NONE)
				ok &= read_range(work, index,
				        work->shared[block][i], WRITES);
	}
	for (uint32_t i = work->lingering[index]; i != TS_NONE;
	        i = work->next_lingering[i])
		ok &= read_range(work, index, i, READS);
	return ok;
}

/* What the profile tells that an op touches. */
static void see_value(
        struct work *work, uint32_t index, uint32_t value, uint8_t how)
{
	uint32_t block = work->values->block_of[value];

	note_touch(work, value, how);
	work->now[block] = value;
	work->seen[block] = index + 1;
}

/*
 * READS where the runtime is told that the op only reads @value; what launches
 * are declared to read is for the tape alone.
 */
static uint8_t told_of(struct work *work, uint32_t index, uint32_t value)
{
	const struct ts_rec_op *op = &work->step->ops[index];
	uint32_t block = work->values->block_of[value];

	for (uint32_t k = 0; op->kind == TS_REC_COPY && k < op->use_count;
	        k++) {
		const struct ts_rec_use *use =
		        ts_recording_use(work->step, op, k);

		if (use->block == block && use->role == TS_ROLE_READ)
			return READS;
	}
	return WRITES;
}

/* Who writes a part of a page leaves the other parts as they were. */
static int add_op(struct work *work, uint32_t index)
{
	const struct ts_profile *from = work->from;
	const struct ts_profile_op *was = &from->ops[index];
	struct ts_profile *profile = &work->view->profile;
	struct ts_profile_op *op = &profile->ops[index];
	uint32_t blocks = (uint32_t)work->step->block_count;
	bool ok = true;

	*op = *was;
	work->n_touched = 0;
	op->first_read = profile->n_uses;
	for (uint32_t k = 0; k < was->n_reads; k++) {
		uint32_t value = from->uses[was->first_read + k];
		uint8_t how = told_of(work, index, value);

		see_value(work, index, value, READS);
		ok &= add_use(work, value, how);
	}
	for (uint32_t k = 0; k < was->n_writes; k++)
		see_value(
		        work, index, from->uses[was->first_write + k], WRITES);
	for (uint32_t k = 0; k < work->n_touched; k++) {
		uint32_t found;

		if (find_content(work, work->touched[k], &found))
			return -ENOMEM;
		if (found != TS_NONE)
			ok &= add_use(work, found, WRITES);
		work->seen[work->touched[k]] = index + 1;
	}
	ok &= read_others(work, index);
	op->n_reads = profile->n_uses - op->first_read;
	op->first_write = profile->n_uses;
	for (uint32_t k = 0; k < was->n_writes; k++)
		ok &= add_use(work, from->uses[was->first_write + k], WRITES);
	for (uint32_t k = 0; k < work->n_touched; k++) {
		uint32_t range = work->touched[k];
		uint32_t *current = &work->current[range - blocks];

		if (*current == TS_NONE ||
		        work->touch[range - blocks] & WRITES) {
			*current = new_value(work, range, *current);
			ok &= *current != TS_NONE &&
			      add_use(work, *current, WRITES);
		}
		work->touch[range - blocks] = 0;
	}
	op->n_writes = profile->n_uses - op->first_write;
	return ok ? 0 : -ENOMEM;
}

/* What rebuilds values reads too: those of the profile come along. */
static int copy_rebuilds(struct work *work)
{
	const struct ts_profile *from = work->from;
	struct ts_profile *profile = &work->view->profile;
	bool ok = true;

	profile->rebuilds =
	        malloc((from->n_rebuilds + 1ull) * sizeof(struct ts_rebuild));
	if (!profile->rebuilds)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_rebuilds; i++) {
		profile->rebuilds[i] = from->rebuilds[i];
		profile->rebuilds[i].first_read = profile->n_uses;
		for (uint32_t k = 0; k < from->rebuilds[i].n_reads; k++)
			ok &= add_use(work,
			        from->uses[from->rebuilds[i].first_read + k],
			        READS);
	}
	return ok ? 0 : -ENOMEM;
}

/* Shared ranges that no op touched, but that are there all the time. */
static int add_idle(struct work *work)
{
	uint32_t blocks = (uint32_t)work->step->block_count, ignored;

	for (uint32_t i = blocks; i < work->view->n_ranges; i++) {
		const struct ts_planned_range *range = &work->view->ranges[i];

		if (range->before && range->end == work->n_ops &&
		        find_content(work, i, &ignored))
			return -ENOMEM;
	}
	return 0;
}

static int make_profile(struct work *work)
{
	struct ts_profile *profile = &work->view->profile;
	uint32_t n = work->view->n_ranges - (uint32_t)work->step->block_count;
	int rc;

	profile->resident_bytes = 0;
	profile->uses = NULL;
	profile->n_uses = 0;
	profile->ops = malloc((work->n_ops + 1ull) * sizeof(*profile->ops));
	work->current = malloc((n + 1ull) * sizeof(*work->current));
	work->touch = calloc(n + 1ull, sizeof(*work->touch));
	work->touched = malloc((n + 1ull) * sizeof(*work->touched));
	if (!profile->ops || !work->current || !work->touch || !work->touched)
		return -ENOMEM;
	memset(work->current, 0xff, (n + 1ull) * sizeof(*work->current));
	rc = copy_values(work);
	if (!rc)
		rc = list_lingering(work);
	for (uint32_t i = 0; i < work->n_ops && !rc; i++)
		rc = add_op(work, i);
	if (!rc)
		rc = copy_rebuilds(work);
	return rc ? rc : add_idle(work);
}

int ts_planned_view_make(const struct ts_recording *step,
        const struct ts_profile *profile, const struct ts_values *values,
        const struct ts_enforce_survey *survey, bool lets_go,
        struct ts_planned_view *ret_view)
{
	struct work work = {.step = step,
	        .from = profile,
	        .values = values,
	        .survey = survey,
	        .view = ret_view,
	        .n_ops = (uint32_t)step->op_count};
	int rc;

	memset(ret_view, 0, sizeof(*ret_view));
	ret_view->profile = *profile;
	ret_view->profile.ops = NULL;
	ret_view->profile.values = NULL;
	ret_view->profile.rebuilds = NULL;
	ret_view->profile.uses = NULL;
	rc = find_ranges(&work);
	if (!rc && lets_go)
		rc = let_go(&work);
	if (!rc)
		rc = make_profile(&work);
	free(work.edges);
	ret_view->shared = work.shared;
	free(work.current);
	free(work.now);
	free(work.seen);
	free(work.lingering);
	free(work.next_lingering);
	free(work.touch);
	free(work.touched);
	if (rc)
		ts_planned_view_finish(ret_view);
	return rc;
}

void ts_planned_view_finish(struct ts_planned_view *view)
{
	free(view->profile.ops);
	free(view->profile.values);
	free(view->profile.rebuilds);
	free(view->profile.uses);
	free(view->ranges);
	free(view->shared);
	free(view->range_of);
	free(view->dirties);
	memset(view, 0, sizeof(*view));
}
