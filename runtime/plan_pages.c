/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/plan_pages.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MASK_WORDS 4
#define MASK_BITS  (64 * MASK_WORDS)

/* Ticks [from, end). */
struct span {
	uint32_t from, end;
};

/* Stretches of the step, one bit each. */
struct mask {
	uint64_t words[MASK_WORDS];
};

/* Chunks that are taken over the same spans. */
struct group {
	uint32_t first_chunk, count;
	struct span *busy; /* ascending, apart */
	uint32_t n_busy;
	struct mask full; /* stretches that are taken all the time */
};

struct work {
	struct ts_page_plan *plan;
	uint64_t *cuts; /* page-aligned addresses at which strips begin */
	uint32_t n_cuts;
	struct span *spans; /* of the strip at hand */
	struct group *groups;
	uint32_t n_groups, groups_room;
};

void ts_page_plan_finish(struct ts_page_plan *plan)
{
	free(plan->strips);
	free(plan->stays);
	free(plan->chunk_of);
	memset(plan, 0, sizeof(*plan));
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

const struct ts_plan_segment *ts_plan_segment_at(
        const struct ts_plan_segment *segments, uint32_t n, uint64_t address,
        uint64_t page_bytes)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (segments[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - segments[low - 1].base >=
	                    segments[low - 1].pages * page_bytes)
		return NULL;
	return &segments[low - 1];
}

/* First and one past the last page of a hold, as addresses. */
static bool pages_of(const struct ts_plan_segment *segments, uint32_t n,
        const struct ts_plan_hold *hold, uint64_t page_bytes,
        uint64_t *ret_first, uint64_t *ret_end)
{
	const struct ts_plan_segment *segment =
	        ts_plan_segment_at(segments, n, hold->address, page_bytes);
	uint64_t offset, last;

	if (!segment || !hold->bytes)
		return false;
	offset = hold->address - segment->base;
	last = offset + hold->bytes - 1;
	if (last >= segment->pages * page_bytes)
		last = segment->pages * page_bytes - 1;
	*ret_first = segment->base + offset / page_bytes * page_bytes;
	*ret_end = segment->base + (last / page_bytes + 1) * page_bytes;
	return true;
}

/* Pages at the ends of a hold may be shared with others: strips of their own.
 */
static int find_cuts(struct work *work, const struct ts_plan_segment *segments,
        uint32_t n_segments, const struct ts_plan_hold *holds, uint32_t n_holds)
{
	uint64_t page_bytes = work->plan->page_bytes, first, end;
	uint32_t n = 0, kept = 0;

	work->cuts = malloc(((uint64_t)n_holds * 4 + n_segments * 2ull + 1) *
	                    sizeof(*work->cuts));
	if (!work->cuts)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_segments; i++) {
		work->cuts[n++] = segments[i].base;
		work->cuts[n++] =
		        segments[i].base + segments[i].pages * page_bytes;
	}
	for (uint32_t i = 0; i < n_holds; i++) {
		if (!pages_of(segments, n_segments, &holds[i], page_bytes,
		            &first, &end))
			continue;
		work->cuts[n++] = first;
		work->cuts[n++] = first + page_bytes;
		work->cuts[n++] = end - page_bytes;
		work->cuts[n++] = end;
	}
	qsort(work->cuts, n, sizeof(*work->cuts), by_address);
	for (uint32_t i = 0; i < n; i++)
		if (!kept || work->cuts[kept - 1] != work->cuts[i])
			work->cuts[kept++] = work->cuts[i];
	work->n_cuts = kept;
	return 0;
}

static uint32_t cut_at(const struct work *work, uint64_t address)
{
	uint32_t low = 0, high = work->n_cuts;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->cuts[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_take(const void *a, const void *b)
{
	const struct ts_plan_stay *x = a, *y = b;

	return x->take_op < y->take_op ? -1 : x->take_op > y->take_op;
}

/* Sorts @stays and joins those that touch; how many are left. */
static uint32_t join(struct ts_plan_stay *stays, uint32_t n)
{
	uint32_t kept = 0;

	qsort(stays, n, sizeof(*stays), by_take);
	for (uint32_t i = 0; i < n; i++) {
		struct ts_plan_stay *last = kept ? &stays[kept - 1] : NULL;

		if (!last || stays[i].take_op > last->release_op) {
			stays[kept++] = stays[i];
			continue;
		}
		if (stays[i].from_tick < last->from_tick)
			last->from_tick = stays[i].from_tick;
		if (stays[i].free_tick > last->free_tick)
			last->free_tick = stays[i].free_tick;
		if (stays[i].release_op > last->release_op)
			last->release_op = stays[i].release_op;
	}
	return kept;
}

/* Strips between cuts that something holds, with their stays. */
static int make_strips(struct work *work,
        const struct ts_plan_segment *segments, uint32_t n_segments,
        const struct ts_plan_hold *holds, uint32_t n_holds)
{
	struct ts_page_plan *plan = work->plan;
	uint32_t *first = calloc(work->n_cuts + 2ull, sizeof(*first));
	uint64_t from, end, total = 0;
	uint32_t made = 0;

	if (!first)
		return -ENOMEM;
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < n_holds; i++) {
			uint32_t cut;

			if (!pages_of(segments, n_segments, &holds[i],
			            plan->page_bytes, &from, &end))
				continue;
			cut = cut_at(work, from);
			for (; work->cuts[cut] < end; cut++) {
				if (!pass) {
					first[cut + 2]++;
					total++;
					continue;
				}
				plan->stays[first[cut + 1]++] =
				        (struct ts_plan_stay){holds[i].take_op,
				                holds[i].release_op,
				                holds[i].from_tick,
				                holds[i].free_tick};
			}
		}
		if (pass)
			break;
		for (uint32_t c = 2; c < work->n_cuts + 2; c++)
			first[c] += first[c - 1];
		plan->stays = malloc((total + 1) * sizeof(*plan->stays));
		plan->strips =
		        malloc((work->n_cuts + 1ull) * sizeof(*plan->strips));
		if (!plan->stays || !plan->strips) {
			free(first);
			return -ENOMEM;
		}
	}
	for (uint32_t c = 0; c + 1 < work->n_cuts; c++) {
		uint32_t n = first[c + 1] - first[c];

		if (!n)
			continue;
		n = join(plan->stays + first[c], n);
		memmove(plan->stays + made, plan->stays + first[c],
		        n * sizeof(*plan->stays));
		plan->strips[plan->n_strips++] = (struct ts_plan_strip){
		        .address = work->cuts[c],
		        .pages =
		                (uint32_t)((work->cuts[c + 1] - work->cuts[c]) /
		                           plan->page_bytes),
		        .first_page = plan->n_pages,
		        .first_stay = made,
		        .n_stays = n};
		plan->n_pages += plan->strips[plan->n_strips - 1].pages;
		made += n;
	}
	plan->n_stays = made;
	free(first);
	return 0;
}

/* When a strip's chunks are taken; a stay may reach into the next step. */
static uint32_t spans_of(const struct ts_page_plan *plan,
        const struct ts_plan_strip *strip, struct span *spans)
{
	uint32_t n = 0, kept = 0, wrapped = 0;

	for (uint32_t i = 0; i < strip->n_stays; i++) {
		const struct ts_plan_stay *stay =
		        &plan->stays[strip->first_stay + i];
		uint32_t end = stay->free_tick;

		if (end > plan->n_ticks && end - plan->n_ticks > wrapped)
			wrapped = end - plan->n_ticks;
		if (end > plan->n_ticks)
			end = plan->n_ticks;
		spans[n++] = (struct span){stay->from_tick, end};
	}
	if (wrapped) {
		memmove(spans + 1, spans, n * sizeof(*spans));
		spans[0] = (struct span){
		        0, wrapped < plan->n_ticks ? wrapped : plan->n_ticks};
		n++;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (kept && spans[i].from <= spans[kept - 1].end) {
			if (spans[i].end > spans[kept - 1].end)
				spans[kept - 1].end = spans[i].end;
		} else {
			spans[kept++] = spans[i];
		}
	}
	return kept;
}

/* Stretches that @spans touch, or fill. */
static struct mask mask_of(
        const struct span *spans, uint32_t n, uint32_t n_ticks, bool full)
{
	struct mask mask = {0};

	for (uint32_t i = 0; i < n; i++) {
		uint64_t from = (uint64_t)spans[i].from * MASK_BITS;
		uint64_t end = (uint64_t)spans[i].end * MASK_BITS;
		uint64_t up = n_ticks - 1;
		uint64_t bit = (full ? from + up : from) / n_ticks;
		uint64_t last = (full ? end : end + up) / n_ticks;

		for (; bit < last; bit++)
			mask.words[bit / 64] |= 1ull << bit % 64;
	}
	return mask;
}

static bool meet(const struct mask *a, const struct mask *b)
{
	for (int i = 0; i < MASK_WORDS; i++)
		if (a->words[i] & b->words[i])
			return true;
	return false;
}

/* Ticks left idle beside @spans in the gaps they go to; UINT64_MAX: no room. */
static uint64_t misfit(const struct group *group, const struct span *spans,
        uint32_t n, uint32_t n_ticks)
{
	uint64_t idle = 0;
	uint32_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t from, end;

		while (at < group->n_busy &&
		        group->busy[at].end <= spans[i].from)
			at++;
		end = at < group->n_busy ? group->busy[at].from : n_ticks;
		from = at ? group->busy[at - 1].end : 0;
		if (end < spans[i].end)
			return UINT64_MAX;
		idle += (spans[i].from - from) + (end - spans[i].end);
	}
	return idle;
}

static struct group *new_group(struct work *work)
{
	if (work->n_groups == work->groups_room) {
		uint32_t room = 2 * work->groups_room + 64;
		struct group *more =
		        realloc(work->groups, room * sizeof(*more));

		if (!more)
			return NULL;
		work->groups = more;
		work->groups_room = room;
	}
	return &work->groups[work->n_groups++];
}

/* @group keeps @count chunks, a new one gets the others. */
static int split(struct work *work, uint32_t index, uint32_t count)
{
	struct group *rest = new_group(work), *from = &work->groups[index];

	if (!rest)
		return -ENOMEM;
	from = &work->groups[index];
	*rest = *from;
	rest->first_chunk += count;
	rest->count -= count;
	from->count = count;
	rest->busy = malloc((from->n_busy + 1ull) * sizeof(*rest->busy));
	if (!rest->busy) {
		work->n_groups--;
		return -ENOMEM;
	}
	memcpy(rest->busy, from->busy, from->n_busy * sizeof(*rest->busy));
	return 0;
}

static int by_from(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static int make_busy(struct group *group, const struct span *spans, uint32_t n,
        uint32_t n_ticks)
{
	uint32_t total = group->n_busy + n, kept = 0;
	struct span *busy =
	        realloc(group->busy, (total + 1ull) * sizeof(*busy));

	if (!busy)
		return -ENOMEM;
	group->busy = busy;
	memcpy(busy + group->n_busy, spans, n * sizeof(*busy));
	qsort(busy, total, sizeof(*busy), by_from);
	for (uint32_t i = 0; i < total; i++) {
		if (kept && busy[kept - 1].end == busy[i].from)
			busy[kept - 1].end = busy[i].end;
		else
			busy[kept++] = busy[i];
	}
	group->n_busy = kept;
	group->full = mask_of(busy, kept, n_ticks, true);
	return 0;
}

static uint32_t best_group(
        const struct work *work, const struct span *spans, uint32_t n)
{
	struct mask touched = mask_of(spans, n, work->plan->n_ticks, false);
	uint32_t best = work->n_groups;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < work->n_groups; i++) {
		uint64_t idle;

		if (meet(&touched, &work->groups[i].full))
			continue;
		idle = misfit(&work->groups[i], spans, n, work->plan->n_ticks);
		if (idle < least) {
			least = idle;
			best = i;
		}
	}
	return best;
}

static int assign(struct work *work, const struct ts_plan_strip *strip)
{
	struct ts_page_plan *plan = work->plan;
	uint32_t n = spans_of(plan, strip, work->spans);
	uint32_t at = strip->first_page, left = strip->pages;

	while (left) {
		uint32_t index = best_group(work, work->spans, n);
		struct group *group;
		int rc = 0;

		if (index == work->n_groups) {
			group = new_group(work);
			if (!group)
				return -ENOMEM;
			*group = (struct group){
			        .first_chunk = plan->n_chunks, .count = left};
			plan->n_chunks += left;
		}
		if (work->groups[index].count > left)
			rc = split(work, index, left);
		group = &work->groups[index];
		if (!rc)
			rc = make_busy(group, work->spans, n, plan->n_ticks);
		if (rc)
			return rc;
		for (uint32_t i = 0; i < group->count; i++)
			plan->chunk_of[at++] = group->first_chunk + i;
		left -= group->count;
	}
	return 0;
}

static uint64_t busy_ticks(
        const struct ts_page_plan *plan, const struct ts_plan_strip *strip)
{
	uint64_t ticks = 0;

	for (uint32_t i = 0; i < strip->n_stays; i++) {
		const struct ts_plan_stay *stay =
		        &plan->stays[strip->first_stay + i];

		ticks += stay->free_tick - stay->from_tick;
	}
	return ticks;
}

/* What is resident longest finds room hardest. */
static int by_difficulty(const void *a, const void *b, void *data)
{
	const struct ts_page_plan *plan = data;
	const struct ts_plan_strip *x = &plan->strips[*(const uint32_t *)a];
	const struct ts_plan_strip *y = &plan->strips[*(const uint32_t *)b];
	uint64_t bx = busy_ticks(plan, x), by = busy_ticks(plan, y);

	if (bx != by)
		return bx > by ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

struct change {
	uint32_t tick;
	int32_t pages;
};

/* What goes before what comes at the same time. */
static int by_tick(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->tick != y->tick)
		return x->tick < y->tick ? -1 : 1;
	return x->pages < y->pages ? -1 : x->pages > y->pages;
}

static int find_peak(struct work *work)
{
	struct ts_page_plan *plan = work->plan;
	struct change *changes =
	        malloc((2ull * plan->n_stays + 2ull * plan->n_strips + 1) *
	                sizeof(*changes));
	size_t n_changes = 0;
	int64_t pages = 0;

	if (!changes)
		return -ENOMEM;
	for (uint32_t s = 0; s < plan->n_strips; s++) {
		uint32_t n = spans_of(plan, &plan->strips[s], work->spans);
		int32_t count = (int32_t)plan->strips[s].pages;

		for (uint32_t i = 0; i < n; i++) {
			changes[n_changes++] =
			        (struct change){work->spans[i].from, count};
			changes[n_changes++] =
			        (struct change){work->spans[i].end, -count};
		}
	}
	qsort(changes, n_changes, sizeof(*changes), by_tick);
	for (size_t i = 0; i < n_changes; i++) {
		pages += changes[i].pages;
		if (pages > plan->peak_pages)
			plan->peak_pages = (uint32_t)pages;
	}
	free(changes);
	return 0;
}

static int assign_all(struct work *work)
{
	struct ts_page_plan *plan = work->plan;
	uint32_t *order = malloc((plan->n_strips + 1ull) * sizeof(*order));
	int rc;

	work->spans = malloc((plan->n_stays + 2ull) * sizeof(*work->spans));
	plan->chunk_of = malloc((plan->n_pages + 1ull) * sizeof(uint32_t));
	rc = order && work->spans && plan->chunk_of ? find_peak(work) : -ENOMEM;
	for (uint32_t i = 0; !rc && i < plan->n_strips; i++)
		order[i] = i;
	if (!rc)
		qsort_r(order, plan->n_strips, sizeof(*order), by_difficulty,
		        plan);
	for (uint32_t i = 0; !rc && i < plan->n_strips; i++)
		rc = assign(work, &plan->strips[order[i]]);
	for (uint32_t i = 0; i < work->n_groups; i++)
		free(work->groups[i].busy);
	free(work->groups);
	free(order);
	return rc;
}

int ts_page_plan_make(const struct ts_plan_segment *segments,
        uint32_t n_segments, const struct ts_plan_hold *holds, uint32_t n_holds,
        uint64_t page_bytes, uint32_t n_ops, uint32_t n_ticks,
        struct ts_page_plan *ret_plan)
{
	struct work work = {.plan = ret_plan};
	int rc;

	memset(ret_plan, 0, sizeof(*ret_plan));
	ret_plan->n_ops = n_ops;
	ret_plan->n_ticks = n_ticks;
	ret_plan->page_bytes = page_bytes;
	for (uint32_t i = 0; i < n_holds; i++)
		if (holds[i].take_op >= holds[i].release_op ||
		        holds[i].release_op > n_ops ||
		        holds[i].from_tick >= holds[i].free_tick ||
		        holds[i].from_tick >= n_ticks)
			return -EINVAL;
	rc = find_cuts(&work, segments, n_segments, holds, n_holds);
	if (!rc)
		rc = make_strips(&work, segments, n_segments, holds, n_holds);
	if (!rc)
		rc = assign_all(&work);
	free(work.cuts);
	free(work.spans);
	if (rc)
		ts_page_plan_finish(ret_plan);
	return rc;
}
