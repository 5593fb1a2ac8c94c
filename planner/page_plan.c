/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/page_plan.h"
#include "planner/given_chunks.h"
#include "planner/packing.h"
#include "planner/tenants.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More would be 16 TiB of address range in one step. */
#define MAX_PAGES (UINT32_C(1) << 23)
/* Holds by strip: what address ranges of one step never come near. */
#define MAX_COVERS (UINT32_C(1) << 22)
/* Chunks that may be added to the peak's to save remaps: one in so many. */
#define SPARE_SHARE 104
/*
 * A packing may send as many pages elsewhere on the way as the best one so far
 * maps anew, and one in so many more: some find their way back.
 */
#define SENT_SHARE 4
/* From so many slots on the step is cut open in one place only. */
#define MANY_SLOTS 100000

/* Ticks [from, end). */
struct span {
	uint32_t from, end;
};

struct work {
	const struct ts_page_plan_input *in;
	struct ts_page_plan *plan;
	uint64_t *cuts; /* page-aligned addresses at which strips may begin */
	uint64_t *held; /* by cut: which holds there are from it to the next */
	uint32_t n_cuts;
	/* Strips with the same spans one after the other. */
	struct ts_pack_run *runs;
	uint32_t *first_page; /* by run */
	uint32_t n_runs;
	struct span *spans; /* of the runs; slots, once they are numbered */
	/* The same of a static plan: slots of ops, and ticks of copies. */
	struct ts_tenant_span *tenants;
	uint32_t n_spans;
	uint32_t n_slots;
	/* The runs as packing sees them, the step cut open somewhere. */
	struct ts_pack_run *turned;
	struct ts_pack_span *turned_spans;
};

void ts_page_plan_finish(struct ts_page_plan *plan)
{
	free(plan->strips);
	free(plan->stays);
	free(plan->chunk_of);
	free(plan->apart);
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
static bool pages_of(const struct ts_page_plan_input *in,
        const struct ts_plan_hold *hold, uint64_t *ret_first, uint64_t *ret_end)
{
	uint64_t page_bytes = in->page_bytes, offset, last;
	const struct ts_plan_segment *segment;

	if (!hold->bytes)
		return false;
	if (in->anywhere) {
		*ret_first = hold->address / page_bytes * page_bytes;
		last = hold->address + hold->bytes - 1;
		*ret_end = (last / page_bytes + 1) * page_bytes;
		return true;
	}
	segment = ts_plan_segment_at(
	        in->segments, in->n_segments, hold->address, page_bytes);
	if (!segment)
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
static int find_cuts(struct work *work)
{
	const struct ts_page_plan_input *in = work->in;
	uint64_t page_bytes = in->page_bytes, first, end;
	uint32_t n = 0, kept = 0;

	work->cuts =
	        malloc(((uint64_t)in->n_holds * 4 + in->n_segments * 2ull + 1) *
	                sizeof(*work->cuts));
	if (!work->cuts)
		return -ENOMEM;
	for (uint32_t i = 0; i < in->n_segments; i++) {
		work->cuts[n++] = in->segments[i].base;
		work->cuts[n++] = in->segments[i].base +
		                  in->segments[i].pages * page_bytes;
	}
	for (uint32_t i = 0; i < in->n_holds; i++) {
		if (!pages_of(in, &in->holds[i], &first, &end))
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

/* A number for hold @index that sums of others are not. */
static uint64_t mark_of(uint32_t index)
{
	uint64_t mark = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

	mark = (mark ^ mark >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mark = (mark ^ mark >> 27) * UINT64_C(0x94d049bb133111eb);
	return mark ^ mark >> 31;
}

static bool begins_segment(
        const struct ts_page_plan_input *in, uint64_t address)
{
	return !in->anywhere && ts_plan_segment_at(in->segments, in->n_segments,
	                                address, in->page_bytes)
	                                        ->base == address;
}

/* What @cut begins goes on as the last strip does, which ends there. */
static bool goes_on(const struct work *work, uint32_t cut)
{
	const struct ts_page_plan *plan = work->plan;
	const struct ts_plan_strip *last;

	if (!plan->n_strips || work->held[cut] != work->held[cut - 1])
		return false;
	last = &plan->strips[plan->n_strips - 1];
	return last->address + last->pages * plan->page_bytes ==
	               work->cuts[cut] &&
	       !begins_segment(work->in, work->cuts[cut]);
}

/* Strips between cuts that something holds, with their stays. */
static int make_strips(struct work *work)
{
	const struct ts_page_plan_input *in = work->in;
	struct ts_page_plan *plan = work->plan;
	uint32_t *first = calloc(work->n_cuts + 2ull, sizeof(*first));
	uint64_t from, end, total = 0;
	uint32_t made = 0;

	work->held = calloc(work->n_cuts + 1ull, sizeof(*work->held));
	if (!first || !work->held) {
		free(first);
		return -ENOMEM;
	}
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < in->n_holds; i++) {
			const struct ts_plan_hold *hold = &in->holds[i];
			uint32_t cut;

			if (!pages_of(in, hold, &from, &end))
				continue;
			cut = cut_at(work, from);
			for (; work->cuts[cut] < end; cut++) {
				if (!pass) {
					first[cut + 2]++;
					work->held[cut] += mark_of(i);
					total++;
					continue;
				}
				plan->stays[first[cut + 1]++] =
				        (struct ts_plan_stay){hold->take_op,
				                hold->release_op,
				                hold->from_tick,
				                hold->free_tick};
			}
			if (total > MAX_COVERS) {
				free(first);
				return -E2BIG;
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
		uint64_t pages;

		if (!n)
			continue;
		pages = (work->cuts[c + 1] - work->cuts[c]) / plan->page_bytes;
		if (pages > MAX_PAGES - plan->n_pages) {
			free(first);
			return -E2BIG;
		}
		if (goes_on(work, c)) {
			plan->strips[plan->n_strips - 1].pages +=
			        (uint32_t)pages;
			plan->n_pages += (uint32_t)pages;
			continue;
		}
		n = join(plan->stays + first[c], n);
		memmove(plan->stays + made, plan->stays + first[c],
		        n * sizeof(*plan->stays));
		plan->strips[plan->n_strips++] =
		        (struct ts_plan_strip){.address = work->cuts[c],
		                .pages = (uint32_t)pages,
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

/* Do pages wait for one another where there are not chunks enough? */
static bool may_wait(const struct ts_page_plan_input *in)
{
	return !in->may_remap && in->most_chunks;
}

/* The same where they do: the ops that they are there for. */
static uint32_t stays_of(
        const struct work *work, const struct ts_plan_strip *strip, uint32_t at)
{
	for (uint32_t i = 0; i < strip->n_stays; i++) {
		const struct ts_plan_stay *stay =
		        &work->plan->stays[strip->first_stay + i];

		work->spans[at + i] =
		        (struct span){stay->take_op, stay->release_op};
		work->tenants[at + i] =
		        (struct ts_tenant_span){.from_tick = stay->from_tick,
		                .free_tick = stay->free_tick};
	}
	return strip->n_stays;
}

/* As the last run has them? */
static bool same_spans(const struct work *work, uint32_t n)
{
	const struct ts_pack_run *last = &work->runs[work->n_runs - 1];

	return work->n_runs && last->n_spans == n &&
	       !memcmp(work->spans + last->first_span,
	               work->spans + work->n_spans, n * sizeof(struct span)) &&
	       !memcmp(work->tenants + last->first_span,
	               work->tenants + work->n_spans,
	               n * sizeof(struct ts_tenant_span));
}

static int make_runs(struct work *work)
{
	const struct ts_page_plan *plan = work->plan;
	uint64_t strips = plan->n_strips + 1ull;
	/* A stay that reaches into the next step makes two spans. */
	uint64_t spans = plan->n_stays + strips;

	work->runs = malloc(strips * sizeof(*work->runs));
	work->turned = malloc(strips * sizeof(*work->turned));
	work->first_page = malloc(strips * sizeof(*work->first_page));
	work->spans = malloc(spans * sizeof(*work->spans));
	work->tenants = calloc(spans, sizeof(*work->tenants));
	/* Where the step is cut open one span of each run may become two. */
	work->turned_spans =
	        malloc((spans + strips) * sizeof(*work->turned_spans));
	if (!work->runs || !work->turned || !work->first_page || !work->spans ||
	        !work->tenants || !work->turned_spans)
		return -ENOMEM;
	for (uint32_t s = 0; s < plan->n_strips; s++) {
		const struct ts_plan_strip *strip = &plan->strips[s];
		struct span *own = work->spans + work->n_spans;
		uint32_t n = may_wait(work->in)
		                     ? stays_of(work, strip, work->n_spans)
		                     : spans_of(plan, strip, own);

		if (same_spans(work, n)) {
			work->runs[work->n_runs - 1].count += strip->pages;
			continue;
		}
		work->first_page[work->n_runs] = strip->first_page;
		work->runs[work->n_runs++] =
		        (struct ts_pack_run){.count = strip->pages,
		                .first_span = work->n_spans,
		                .n_spans = n};
		work->n_spans += n;
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint32_t slot_of(const uint32_t *ticks, uint32_t n, uint32_t tick)
{
	uint32_t low = 0, high = n - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ticks[middle] < tick)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Only the ticks at which something begins or ends matter. */
static int number_slots(struct work *work)
{
	uint64_t room = 2ull * work->n_spans + 2;
	uint32_t *ticks = malloc(room * sizeof(*ticks)), n = 0, kept = 1;

	if (!ticks)
		return -ENOMEM;
	ticks[n++] = 0;
	ticks[n++] =
	        may_wait(work->in) ? work->plan->n_ops : work->plan->n_ticks;
	for (uint32_t i = 0; i < work->n_spans; i++) {
		ticks[n++] = work->spans[i].from;
		ticks[n++] = work->spans[i].end;
	}
	qsort(ticks, n, sizeof(*ticks), by_number);
	for (uint32_t i = 1; i < n; i++)
		if (ticks[i] != ticks[kept - 1])
			ticks[kept++] = ticks[i];
	work->n_slots = kept - 1;
	for (uint32_t i = 0; i < work->n_spans; i++) {
		struct span *span = &work->spans[i];

		span->from = slot_of(ticks, kept, span->from);
		span->end = slot_of(ticks, kept, span->end);
		work->tenants[i].from = span->from;
		work->tenants[i].end = span->end;
	}
	free(ticks);
	return 0;
}

static int find_peak(struct work *work)
{
	int64_t *change = calloc(work->n_slots + 1ull, sizeof(*change));
	int64_t pages = 0;

	if (!change)
		return -ENOMEM;
	for (uint32_t r = 0; r < work->n_runs; r++) {
		const struct ts_pack_run *run = &work->runs[r];

		for (uint32_t k = 0; k < run->n_spans; k++) {
			const struct span *span =
			        &work->spans[run->first_span + k];

			change[span->from] += run->count;
			change[span->end] -= run->count;
		}
	}
	for (uint32_t i = 0; i < work->n_slots; i++) {
		pages += change[i];
		if (pages > work->plan->peak_pages)
			work->plan->peak_pages = (uint32_t)pages;
	}
	free(change);
	return 0;
}

/* Adds [from, end), joined with what it touches. */
static void add_span(
        struct ts_pack_span *to, uint32_t *n, uint32_t from, uint32_t end)
{
	if (*n && to[*n - 1].to + 1 == from)
		to[*n - 1].to = end - 1;
	else
		to[(*n)++] = (struct ts_pack_span){from, end - 1};
}

/* The spans of run @r as seen from slot @cut on; into @to. Their number. */
static uint32_t turn(const struct work *work, uint32_t r, uint32_t cut,
        struct ts_pack_span *to)
{
	const struct ts_pack_run *run = &work->runs[r];
	const struct span *spans = work->spans + run->first_span;
	uint32_t n = 0, ahead = work->n_slots - cut;

	for (uint32_t k = 0; k < run->n_spans; k++) {
		uint32_t from = spans[k].from > cut ? spans[k].from : cut;

		if (spans[k].end > cut)
			add_span(to, &n, from - cut, spans[k].end - cut);
	}
	for (uint32_t k = 0; k < run->n_spans; k++) {
		uint32_t end = spans[k].end < cut ? spans[k].end : cut;

		if (spans[k].from < cut)
			add_span(to, &n, spans[k].from + ahead, end + ahead);
	}
	return n;
}

static void turn_all(struct work *work, uint32_t cut)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < work->n_runs; r++) {
		struct ts_pack_run *run = &work->turned[r];
		struct ts_pack_span *spans = work->turned_spans + n;

		*run = work->runs[r];
		run->first_span = n;
		run->n_spans = turn(work, r, cut, spans);
		run->wraps = run->n_spans > 1 && !spans[0].from &&
		             spans[run->n_spans - 1].to + 1 == work->n_slots;
		n += run->n_spans;
	}
}

static uint32_t most_chunks(const struct work *work)
{
	uint64_t peak = work->plan->peak_pages,
	         most = peak + peak / SPARE_SHARE;

	if (!work->in->may_remap)
		return TS_PACK_STATIC;
	if (most > work->in->most_chunks)
		most = work->in->most_chunks;
	return (uint32_t)(most > peak ? most : peak);
}

/* What a packing is judged by: chunks, or pages that are mapped anew. */
static uint64_t cost_of(
        const struct work *work, const struct ts_packing *packing)
{
	return work->in->may_remap ? packing->remaps + packing->moves
	                           : packing->n_chunks - work->plan->peak_pages;
}

/*
 * What is resident at the cut is placed first, so where the step is cut open
 * decides how well the rest fits: in the forward, when activations pile up,
 * it does well; other places are tried while there is something to gain, and
 * left when they begin to look worse.
 */
static int find_packing(struct work *work, struct ts_packing *ret_packing)
{
	static const uint32_t tenths[] = {2, 5, 3, 0, 1};
	struct ts_pack_input input = {.runs = work->turned,
	        .n_runs = work->n_runs,
	        .spans = work->turned_spans,
	        .n_slots = work->n_slots,
	        .most_chunks = most_chunks(work),
	        .most_sent = UINT64_MAX};
	struct ts_packing best = {0};
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < sizeof(tenths) / sizeof(tenths[0]); i++) {
		struct ts_packing packing;
		int err;

		turn_all(work,
		        (uint32_t)((uint64_t)work->n_slots * tenths[i] / 10));
		err = ts_pack(&input, &packing);
		if (err == -ECANCELED || (err == -E2BIG && best.pieces))
			continue;
		if (err) {
			ts_packing_finish(&best);
			return err;
		}
		if (cost_of(work, &packing) < least) {
			ts_packing_finish(&best);
			best = packing;
			least = cost_of(work, &packing);
		} else {
			ts_packing_finish(&packing);
		}
		if (!least || work->n_slots > MANY_SLOTS)
			break;
		if (work->in->may_remap)
			input.most_sent = least + least / SENT_SHARE;
	}
	*ret_packing = best;
	return 0;
}

/* Where no strip has a chunk and the one before it side by side. */
static int find_joints(struct ts_page_plan *plan)
{
	plan->apart = calloc(plan->n_chunks + 1ull, sizeof(*plan->apart));
	if (!plan->apart)
		return -ENOMEM;
	for (uint32_t s = 0; s < plan->n_strips; s++) {
		const struct ts_plan_strip *strip = &plan->strips[s];
		const uint32_t *chunks = plan->chunk_of + strip->first_page;

		for (uint32_t i = 0; i < strip->pages; i++) {
			if (!i || chunks[i - 1] + 1 != chunks[i])
				plan->apart[chunks[i]] = true;
			if (i + 1 == strip->pages ||
			        chunks[i] + 1 != chunks[i + 1])
				plan->apart[chunks[i] + 1] = true;
		}
	}
	return 0;
}

static int take_places(struct work *work)
{
	int rc = ts_given_chunks_take(work->in, work->plan);

	return rc ? rc : find_joints(work->plan);
}

static int assign_all(struct work *work)
{
	struct ts_page_plan *plan = work->plan;
	struct ts_tenants_input input = {.runs = work->runs,
	        .n_runs = work->n_runs,
	        .spans = work->tenants,
	        .n_slots = work->n_slots,
	        .n_ticks = plan->n_ticks,
	        .most_chunks = UINT32_MAX};
	struct ts_packing packing;
	int err;

	if (work->in->most_chunks < UINT32_MAX)
		input.most_chunks = (uint32_t)work->in->most_chunks;
	err = may_wait(work->in) ? ts_tenants_pack(&input, &packing)
	                         : find_packing(work, &packing);

	if (err)
		return err;
	plan->n_chunks = packing.n_chunks;
	plan->remaps = packing.remaps;
	plan->moves = packing.moves;
	if (!work->in->may_remap)
		plan->chunk_of =
		        malloc((plan->n_pages + 1ull) * sizeof(uint32_t));
	for (uint32_t i = 0; plan->chunk_of && i < packing.n_pieces; i++) {
		const struct ts_pack_piece *piece = &packing.pieces[i];
		uint32_t *chunks = plan->chunk_of +
		                   work->first_page[piece->run] + piece->offset;

		for (uint32_t k = 0; !piece->span && k < piece->count; k++)
			chunks[k] = piece->first_chunk + k;
	}
	ts_packing_finish(&packing);
	if (work->in->may_remap)
		return 0;
	return plan->chunk_of ? find_joints(plan) : -ENOMEM;
}

static bool well_formed(const struct ts_page_plan_input *in)
{
	if (!in->page_bytes || !in->n_ops || !in->n_ticks ||
	        in->n_ticks > UINT32_MAX / 2)
		return false;
	for (uint32_t i = 0; i < in->n_holds; i++) {
		const struct ts_plan_hold *hold = &in->holds[i];

		if (hold->take_op >= hold->release_op ||
		        hold->release_op > in->n_ops ||
		        hold->from_tick >= hold->free_tick ||
		        hold->from_tick >= in->n_ticks ||
		        hold->address >
		                UINT64_MAX - hold->bytes - in->page_bytes)
			return false;
	}
	return true;
}

int ts_page_plan_find(
        const struct ts_page_plan_input *in, struct ts_page_plan *ret_plan)
{
	struct work work = {.in = in, .plan = ret_plan};
	int err;

	memset(ret_plan, 0, sizeof(*ret_plan));
	if (!well_formed(in))
		return -EINVAL;
	ret_plan->n_ops = in->n_ops;
	ret_plan->n_ticks = in->n_ticks;
	ret_plan->page_bytes = in->page_bytes;
	err = find_cuts(&work);
	if (!err)
		err = make_strips(&work);
	if (!err)
		err = make_runs(&work);
	if (!err)
		err = number_slots(&work);
	if (!err)
		err = find_peak(&work);
	if (!err)
		err = in->places ? take_places(&work) : assign_all(&work);
	free(work.cuts);
	free(work.held);
	free(work.runs);
	free(work.first_page);
	free(work.spans);
	free(work.tenants);
	free(work.turned);
	free(work.turned_spans);
	if (err)
		ts_page_plan_finish(ret_plan);
	return err;
}

int ts_page_plan_make(const struct ts_plan_segment *segments,
        uint32_t n_segments, const struct ts_plan_hold *holds, uint32_t n_holds,
        uint64_t page_bytes, uint32_t n_ops, uint32_t n_ticks,
        struct ts_page_plan *ret_plan)
{
	return ts_page_plan_find(
	        &(struct ts_page_plan_input){.segments = segments,
	                .n_segments = n_segments,
	                .holds = holds,
	                .n_holds = n_holds,
	                .page_bytes = page_bytes,
	                .n_ops = n_ops,
	                .n_ticks = n_ticks},
	        ret_plan);
}
