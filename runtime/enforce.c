/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A step by the plan: pages leave and come before ops. */
#include "runtime/enforce.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/enforce_internal.h"

static bool may_leave(const struct ts_page *page)
{
	return page->resident && !page->busy && !page->pins;
}

/* The chunk that waits under @page, if what is in it can go. */
static bool may_come(
        struct ts_pager *pager, struct ts_page *page, struct ts_pages *leaving)
{
	struct ts_page *tenant;

	if (!page->mapping)
		return false;
	tenant = page->mapping->tenant;
	if (!tenant)
		return true;
	/*
	 * Its blocks are gone, though the plan has not let it go yet, or what
	 * is not in the plan had it come back: the plan has it away. It makes
	 * way for one: chunks may have changed hands, so that two want it.
	 */
	if (tenant->chosen || !may_leave(tenant) ||
	        ts_pages_add(leaving, tenant))
		return false;
	tenant->chosen = true;
	return true;
}

/* Segments are gone since, and what the moves were in may be among them. */
static void forget_segments(struct ts_pager *pager, struct ts_enforce *enforce)
{
	for (uint32_t i = 0; i < enforce->first_move[enforce->n_ops]; i++)
		enforce->moves[i].segment = NULL;
	for (uint32_t i = 0; i < enforce->n_strips; i++)
		enforce->strips[i].segment = NULL;
	enforce->removed = pager->removed;
}

/* What ts_enforce_op() has to do with @move; NULL: it is of no gap. */
static struct ts_plan_gap *gap_of(
        struct ts_enforce *enforce, const struct ts_plan_move *move)
{
	return move->gap == TS_NO_GAP ? NULL : &enforce->gaps[move->gap];
}

/* True where nothing lives in the pages from unit @at up to @end. */
static bool is_empty(const struct ts_segment *segment, size_t at, size_t end)
{
	while (at < end && at < segment->unit_count) {
		const struct ts_page *page = segment->units[at].page;

		if (!page->resident || page->live_units)
			return false;
		at = page->end;
	}
	return true;
}

/* It stays, in this step and in those to come, whatever is in it then. */
static void keep(struct ts_enforce *enforce, struct ts_plan_gap *gap)
{
	gap->kept = true;
	enforce->due[gap->leave_op]--;
	enforce->due[gap->come_op]--;
}

/* Notes pages of one move: to leave in victims, to come in missing. */
static void collect(struct ts_pager *pager, struct ts_enforce *enforce,
        struct ts_plan_move *move)
{
	struct ts_plan_gap *gap = gap_of(enforce, move);
	struct ts_segment *segment;
	size_t at, end;

	if (gap && gap->kept)
		return;
	if (enforce->removed != pager->removed)
		forget_segments(pager, enforce);
	if (!move->segment)
		move->segment = ts_segment_of(&pager->segments, move->address);
	segment = move->segment;

	if (!segment)
		return;
	at = (move->address - segment->base) / pager->unit_bytes;
	end = at + move->pages;
	if (gap && gap->alone && !move->take && is_empty(segment, at, end)) {
		keep(enforce, gap);
		return;
	}
	while (at < end && at < segment->unit_count) {
		struct ts_page *page = segment->units[at].page;
		bool whole =
		        ts_page_first(page) == at && at + page->count <= end;

		at = ts_page_first(page) + page->count;
		if (page->resident == move->take)
			continue;
		if (!move->take) {
			if (!whole || !may_leave(page) ||
			        ts_pages_add(&pager->victims, page))
				enforce->uneven = true;
		} else if (!whole || !may_come(pager, page, &pager->victims) ||
		           ts_pages_add(&pager->missing, page)) {
			enforce->astray++;
			enforce->uneven = true;
		}
	}
}

/* What was noted goes, and comes. Gate and lock held, let go meanwhile. */
static int flush(struct ts_pager *pager, struct ts_enforce *enforce)
{
	struct ts_shortage shortage = {0};
	int rc = 0;

	for (size_t i = 0; i < pager->victims.count; i++)
		pager->victims.items[i]->chosen = false;
	enforce->moved += pager->victims.count + pager->missing.count;
	enforce->departures += pager->victims.count > 0;
	if (pager->victims.count)
		rc = ts_pager_evict(pager, &shortage);
	/* What lies in a chunk without a copy out is over at these points. */
	if (!rc && pager->victims.count)
		ts_streams_mark_all(&pager->streams, &pager->lock);
	if (!rc && pager->missing.count)
		rc = ts_pager_bring(pager, &pager->missing, 0, &shortage);
	pager->victims.count = 0;
	pager->missing.count = 0;
	return rc;
}

int ts_enforce_move(struct ts_pager *pager, struct ts_enforce *enforce,
        struct ts_plan_move *moves, uint32_t count, bool take)
{
	const struct ts_pages *pages = take ? &pager->missing : &pager->victims;
	uint64_t bytes = 0;
	int rc = 0;

	pager->victims.count = 0;
	pager->missing.count = 0;
	for (uint32_t i = 0; i < count && !rc; i++) {
		size_t before = pages->count;

		if (moves[i].take != take)
			continue;
		collect(pager, enforce, &moves[i]);
		for (size_t k = before; k < pages->count; k++)
			bytes += pages->items[k]->bytes;
		/* What moves at once is one value: who needs it waits for no
		 * other. */
		if ((i + 1 == count || moves[i + 1].tick != moves[i].tick) &&
		        bytes >= TS_ENFORCE_BATCH_BYTES) {
			rc = flush(pager, enforce);
			bytes = 0;
		}
	}
	return rc ? rc : flush(pager, enforce);
}

/* ------------------------------------------------------------- off the plan */

const struct ts_plan_move *ts_enforce_strip_at(
        const struct ts_enforce *enforce, uint64_t unit_bytes, uint64_t address)
{
	uint32_t low = 0, high = enforce->n_strips;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct ts_plan_move *strip = &enforce->strips[middle];

		if (address < strip->address)
			high = middle;
		else if (address - strip->address >= strip->pages * unit_bytes)
			low = middle + 1;
		else
			return strip;
	}
	return NULL;
}

/* The strip of the plan in force that the page at @address is in, or NULL. */
static const struct ts_plan_move *strip_of(
        const struct ts_pager *pager, uint64_t address)
{
	return ts_enforce_strip_at(pager->enforce, pager->unit_bytes, address);
}

/* Whether the strip stays for the gap after @stay, and op @index is in it. */
static bool is_kept(const struct ts_enforce *enforce, uint32_t strip,
        uint32_t stay, uint32_t index)
{
	const struct ts_plan_stay *stays = enforce->stays;
	uint32_t next = stay + 1, from = stays[stay].release_op;

	if (!enforce->gaps[stay].kept)
		return false;
	if (next < enforce->first_stay[strip + 1])
		return from <= index && index < stays[next].take_op;
	next = enforce->first_stay[strip];
	return from <= index || index < stays[next].take_op;
}

/* Whether the plan has strip @strip resident before op @index. */
static bool is_there(
        const struct ts_enforce *enforce, uint32_t strip, uint32_t index)
{
	bool there = false;

	for (uint32_t i = enforce->first_stay[strip];
	        i < enforce->first_stay[strip + 1]; i++)
		there |= (enforce->stays[i].take_op <= index &&
		                 index < enforce->stays[i].release_op) ||
		         is_kept(enforce, strip, i, index);
	return there;
}

static int note_displaced(
        struct ts_enforce *enforce, const struct ts_page *page)
{
	size_t n = atomic_load(&enforce->n_displaced);

	if (n == enforce->displaced_room) {
		size_t room = 2 * n + 64;
		struct ts_plan_move *more = realloc(
		        enforce->displaced, room * sizeof(*enforce->displaced));

		if (!more)
			return -ENOMEM;
		enforce->displaced = more;
		enforce->displaced_room = room;
	}
	enforce->displaced[n] = (struct ts_plan_move){.address = page->address,
	        .pages = (uint32_t)page->count,
	        .gap = TS_NO_GAP,
	        .take = true};
	atomic_store(&enforce->n_displaced, n + 1);
	return 0;
}

/* True where an op uses for certain what is not there. */
static bool misses(
        struct ts_pager *pager, const struct ts_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ts_cursor cursor = ts_cursor_at(&ranges[i], 1);
		struct ts_page *page;

		while (!ranges[i].doubtful &&
		        (page = ts_cursor_next(pager, &cursor)))
			if (!page->resident)
				return true;
	}
	return false;
}

void ts_enforce_make_way(
        struct ts_pager *pager, const struct ts_range *ranges, size_t count)
{
	struct ts_enforce *enforce = pager->enforce;
	struct ts_shortage shortage = {0};
	uint64_t room = ts_pager_room(pager);
	int rc = 0;

	enforce->missed += misses(pager, ranges, count);
	pager->victims.count = 0;
	for (size_t i = 0; i < pager->missing.count && !rc; i++) {
		struct ts_page *page = pager->missing.items[i];
		struct ts_page *tenant =
		        page->mapping ? page->mapping->tenant : NULL;

		/* Two of them may have one chunk between them. */
		if (!tenant || !may_leave(tenant) || tenant->chosen)
			continue;
		/* What the plan does not move gets a chunk of its own. */
		if (!strip_of(pager, page->address) && room >= page->bytes) {
			room -= page->bytes;
			continue;
		}
		rc = ts_pages_add(&pager->victims, tenant);
		tenant->chosen = !rc;
		if (!rc && strip_of(pager, tenant->address))
			rc = note_displaced(enforce, tenant);
	}
	for (size_t i = 0; i < pager->victims.count; i++)
		pager->victims.items[i]->chosen = false;
	/* What stays where it is is passed by later, too. */
	if (!rc && pager->victims.count)
		ts_pager_evict(pager, &shortage);
	pager->victims.count = 0;
}

/*
 * True once of each page of those that have made way. One is there twice where
 * the pager brought it back for an op beside the step, and it made way once
 * more before the next op of the step.
 */
static bool is_first(struct ts_pager *pager, uint64_t address)
{
	struct ts_segment *segment = ts_segment_of(&pager->segments, address);
	struct ts_page *page;

	if (!segment)
		return false;
	page = segment->units[(address - segment->base) / pager->unit_bytes]
	               .page;
	if (page->mark == pager->slow_number)
		return false;
	page->mark = pager->slow_number;
	return true;
}

/* What had made way comes back, where the plan has it before op @index. */
static int bring_back(
        struct ts_pager *pager, struct ts_enforce *enforce, uint32_t index)
{
	size_t n = atomic_exchange(&enforce->n_displaced, 0);

	pager->victims.count = 0;
	pager->missing.count = 0;
	pager->slow_number++;
	for (size_t i = 0; i < n; i++) {
		struct ts_plan_move *move = &enforce->displaced[i];
		const struct ts_plan_move *strip =
		        strip_of(pager, move->address);

		if (is_first(pager, move->address) &&
		        is_there(enforce, (uint32_t)(strip - enforce->strips),
		                index))
			collect(pager, enforce, move);
	}
	return flush(pager, enforce);
}

/* ------------------------------------------------------------ by the plan */

/* Op @index comes next. */
static void move_all(struct ts_pager *pager, struct ts_enforce *enforce,
        uint32_t index, struct ts_plan_move *moves, uint32_t count)
{
	bool entered;
	int rc;

	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_context(pager);
	ts_mutex_lock(&pager->lock);
	/* The pager moved something since the last time. */
	enforce->uneven |= enforce->seen != pager->moved;
	rc = bring_back(pager, enforce, index);
	if (!rc)
		rc = ts_enforce_move(pager, enforce, moves, count, false);
	if (!rc)
		rc = ts_enforce_move(pager, enforce, moves, count, true);
	/* The pager brings what is missing then. */
	enforce->astray += rc != 0;
	enforce->uneven |= rc != 0;
	enforce->seen = pager->moved;
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_context(pager, entered);
	ts_mutex_unlock(&pager->gate);
}

bool ts_enforce_op(struct ts_pager *pager, uint32_t index)
{
	struct ts_enforce *enforce = pager->enforce;
	uint32_t first, count;

	if (!enforce)
		return false;
	enforce->next = index + 1 < enforce->n_ops ? index + 1 : 0;
	first = enforce->first_move[index];
	count = enforce->first_move[index + 1] - first;
	if (!enforce->due[index] && !atomic_load_explicit(&enforce->n_displaced,
	                                    memory_order_relaxed))
		return false;
	move_all(pager, enforce, index, &enforce->moves[first], count);
	return true;
}

void ts_enforce_state(struct ts_enforce *enforce, uint32_t index)
{
	for (uint32_t s = 0; s < enforce->n_strips; s++)
		enforce->strips[s].take = is_there(enforce, s, index);
}

/* True where nothing has moved since the op before @index but by the plan. */
static bool is_as_left(struct ts_pager *pager, uint32_t index)
{
	const struct ts_enforce *enforce = pager->enforce;
	bool as_left;

	ts_mutex_lock(&pager->lock);
	as_left = enforce->next == index && enforce->seen == pager->moved &&
	          !enforce->uneven && !atomic_load(&enforce->n_displaced);
	ts_mutex_unlock(&pager->lock);
	return as_left;
}

void ts_enforce_resume(struct ts_pager *pager, uint32_t index)
{
	struct ts_enforce *enforce = pager->enforce;

	if (!enforce || is_as_left(pager, index))
		return;
	enforce->next = index;
	enforce->uneven = false;
	ts_enforce_state(enforce, index);
	move_all(pager, enforce, index, enforce->strips, enforce->n_strips);
}

/* What was counted since it was last taken. */
static uint64_t take(struct ts_pager *pager, uint64_t *count)
{
	uint64_t taken;

	ts_mutex_lock(&pager->lock);
	taken = *count;
	*count = 0;
	ts_mutex_unlock(&pager->lock);
	return taken;
}

void ts_enforce_work(struct ts_pager *pager, struct ts_enforce_work *ret_work)
{
	const struct ts_pager_stats *stats = &pager->stats;

	ts_mutex_lock(&pager->lock);
	*ret_work = (struct ts_enforce_work){
	        .pages = pager->enforce ? pager->enforce->moved : 0,
	        .copies = stats->copies_out + stats->copies_in,
	        .copied_bytes = stats->out_bytes + stats->in_bytes,
	        .batches = pager->out.issued + pager->in.issued,
	        .departures = pager->enforce ? pager->enforce->departures : 0,
	};
	ts_mutex_unlock(&pager->lock);
	ts_driver_calls(&ret_work->calls);
}

uint64_t ts_enforce_astray(struct ts_pager *pager)
{
	return pager->enforce ? take(pager, &pager->enforce->astray) : 0;
}

bool ts_enforce_is_on(struct ts_pager *pager)
{
	bool is_on;

	ts_mutex_lock(&pager->lock);
	is_on = pager->enforce != NULL;
	ts_mutex_unlock(&pager->lock);
	return is_on;
}

uint64_t ts_enforce_missed(struct ts_pager *pager)
{
	return pager->enforce ? take(pager, &pager->enforce->missed) : 0;
}

uint64_t ts_enforce_disturbed(struct ts_pager *pager)
{
	uint64_t disturbed;

	ts_mutex_lock(&pager->gate);
	disturbed = pager->enforce ? pager->enforce->disturbed : 0;
	ts_mutex_unlock(&pager->gate);
	return disturbed;
}

void ts_enforce_disturb(struct ts_pager *pager)
{
	if (pager->enforce)
		pager->enforce->disturbed++;
}
