/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pages of an op's ranges, and how segments are cut into pages. */
#include <errno.h>

#include "agent/base/log.h"
#include "runtime/pager_internal.h"

static struct ts_segment **recent_of(struct ts_pager *pager, uint64_t address)
{
	return &pager->recent[ts_pager_units(pager, address) %
	                      TS_SEGMENTS_RECENT];
}

static struct ts_segment *find_segment(struct ts_pager *pager, uint64_t address)
{
	struct ts_segment **recent = recent_of(pager, address);

	if (!*recent || address - (*recent)->base >= (*recent)->bytes)
		*recent = ts_segment_of(&pager->segments, address);
	return *recent;
}

void ts_pager_remove_segment(struct ts_pager *pager, struct ts_segment *segment)
{
	ts_map_remove(&pager->segments, segment->base);
	pager->removed++;
	for (size_t i = 0; i < TS_SEGMENTS_RECENT; i++)
		if (pager->recent[i] == segment)
			pager->recent[i] = NULL;
}

static bool enter_range(struct ts_pager *pager, struct ts_cursor *cursor)
{
	const struct ts_range *range = cursor->range;
	uint64_t offset, last;

	if (range->device != pager->device || !range->bytes)
		return false;
	cursor->segment = find_segment(pager, range->address);
	if (!cursor->segment)
		return false;
	offset = range->address - cursor->segment->base;
	last = offset + range->bytes - 1;
	if (last >= cursor->segment->bytes)
		last = cursor->segment->bytes - 1;
	cursor->unit = ts_pager_units(pager, offset);
	cursor->last = ts_pager_units(pager, last);
	return true;
}

struct ts_page *ts_cursor_enter(
        struct ts_pager *pager, struct ts_cursor *cursor)
{
	while (!cursor->segment) {
		if (cursor->range == cursor->end)
			return NULL;
		if (!enter_range(pager, cursor))
			cursor->range++;
	}
	return cursor->segment->units[cursor->unit].page;
}

/* Unmaps @page, which is not resident, so that it can be cut. */
static int unmap_old(struct ts_pager *pager, struct ts_page *page,
        struct ts_shortage *ret_shortage)
{
	CUresult result;

	if (!page->mapping)
		return 0;
	result = ts_pager_wait_fence(pager, &page->fence);
	if (result == CUDA_SUCCESS)
		result = ts_move_unmap(pager, page);
	if (result == CUDA_SUCCESS)
		return 0;
	ts_short_of_driver(ret_shortage, result);
	return ts_gpu_errno(result);
}

/*
 * It is as the plan in force has it: cut, it could not come by that any more.
 * But where all is to be had by units it is in the way.
 */
static bool is_kept(const struct ts_pager *pager, const struct ts_page *page)
{
	return page->planned && pager->enforce &&
	       pager->page_bytes > pager->unit_bytes;
}

/* So that a page begins at unit @at where the one there is not resident. */
static int cut_before(struct ts_pager *pager, struct ts_segment *segment,
        size_t at, struct ts_shortage *ret_shortage)
{
	struct ts_page *page;
	int rc;

	if (at >= segment->unit_count)
		return 0;
	page = segment->units[at].page;
	if (page->resident || ts_page_first(page) == at || is_kept(pager, page))
		return 0;
	rc = unmap_old(pager, page, ret_shortage);
	if (rc)
		return rc;
	rc = ts_page_cut(page, at);
	if (rc)
		return rc;
	/* The new one lies where its content does. */
	page = segment->units[at].page;
	if (ts_page_has_slots(page))
		ts_list_append(&pager->away, &page->list);
	return 0;
}

static bool is_blank(const struct ts_page *page)
{
	return !page->resident && !page->mapping && !page->pins;
}

/* The largest power of two up to @count and @most. */
static size_t piece_of(size_t count, size_t most)
{
	size_t piece = 1;

	while (piece * 2 <= count && piece * 2 <= most)
		piece *= 2;
	return piece;
}

/* Of a page. */
static size_t most_units(
        const struct ts_pager *pager, const struct ts_segment *segment)
{
	size_t most = pager->page_bytes / pager->unit_bytes;

	return most < segment->page_units ? most : segment->page_units;
}

/*
 * So that the page at unit @at, not mapped, has @count units. Stops short where
 * the next one cannot be joined.
 */
static int resize(struct ts_pager *pager, struct ts_segment *segment, size_t at,
        size_t count, struct ts_shortage *ret_shortage)
{
	struct ts_page *page = segment->units[at].page, *next;
	int rc = 0;

	while (page->count < count && !rc) {
		next = ts_page_after(page);
		if (!next || !is_blank(next))
			break;
		if (page->count + next->count > count)
			rc = cut_before(
			        pager, segment, at + count, ret_shortage);
		if (!rc)
			ts_page_join(page);
	}
	if (!rc && page->count > count)
		rc = cut_before(pager, segment, at + count, ret_shortage);
	return rc;
}

/*
 * As piece_of(). Beside a plan that leaves no room for a chunk of that, what
 * has none takes chunks of a unit, which it shares with whoever took its own:
 * else the two would make theirs of each other's in every step.
 */
static size_t fitting_piece(
        const struct ts_pager *pager, size_t count, size_t most)
{
	size_t piece = piece_of(count, most);

	return pager->enforce &&
	                       ts_pager_room(pager) < piece * pager->unit_bytes
	               ? 1
	               : piece;
}

/*
 * Pages of few sizes: then chunks fit where others were. What is still mapped
 * somewhere stays as it is, unless pages have become smaller since.
 */
static int shape(struct ts_pager *pager, struct ts_segment *segment,
        size_t first, size_t end, struct ts_shortage *ret_shortage)
{
	size_t most = most_units(pager, segment);
	size_t at = first;
	int rc = 0;

	while (at < end && !rc) {
		struct ts_page *page = segment->units[at].page;

		if (is_blank(page) || (!page->resident && page->count > most &&
		                              !is_kept(pager, page)))
			rc = resize(pager, segment, at,
			        fitting_piece(pager, end - at, most),
			        ret_shortage);
		page = segment->units[at].page;
		/* What could not be joined. */
		if (!rc && is_blank(page))
			rc = resize(pager, segment, at,
			        fitting_piece(pager, page->count, most),
			        ret_shortage);
		at += segment->units[at].page->count;
	}
	return rc;
}

static void mark_pages(
        struct ts_pager *pager, const struct ts_range *ranges, size_t count)
{
	struct ts_cursor cursor = ts_cursor_at(ranges, count);
	struct ts_page *page;

	pager->slow_number++;
	while ((page = ts_cursor_next(pager, &cursor)))
		page->mark = pager->slow_number;
}

/* Blocks side by side that one op uses come and go together. */
static int join_blocks(struct ts_pager *pager, const struct ts_range *range,
        struct ts_shortage *ret_shortage)
{
	struct ts_cursor cursor = ts_cursor_at(range, 1);
	struct ts_page *page = ts_cursor_next(pager, &cursor), *next = page;
	size_t most, sum;

	if (!page || !is_blank(page))
		return 0;
	most = most_units(pager, page->segment);
	for (sum = 0; next && sum < most; next = ts_page_after(next)) {
		if (!is_blank(next) || next->mark != pager->slow_number)
			break;
		sum += next->count;
	}
	sum = fitting_piece(pager, sum, most);
	if (sum <= page->count)
		return 0;
	return resize(
	        pager, page->segment, ts_page_first(page), sum, ret_shortage);
}

static int cut_range(struct ts_pager *pager, const struct ts_range *range,
        struct ts_shortage *ret_shortage)
{
	struct ts_cursor cursor = ts_cursor_at(range, 1);
	size_t first, end;
	int rc;

	if (!ts_cursor_next(pager, &cursor))
		return 0;
	first = cursor.unit;
	end = cursor.last + 1;
	rc = cut_before(pager, cursor.segment, first, ret_shortage);
	if (!rc)
		rc = cut_before(pager, cursor.segment, end, ret_shortage);
	if (rc)
		return rc;
	/* One that is resident may begin before the range. */
	first = ts_page_first(cursor.segment->units[first].page);
	return shape(pager, cursor.segment, first, end, ret_shortage);
}

int ts_pager_cut(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, struct ts_shortage *ret_shortage)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = cut_range(pager, &ranges[i], ret_shortage);
	mark_pages(pager, ranges, count);
	for (size_t i = 0; i < count && !rc; i++)
		rc = join_blocks(pager, &ranges[i], ret_shortage);
	return rc;
}
