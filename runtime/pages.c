/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pages of an op's ranges, and how segments are cut into pages. */
#include <errno.h>

#include "agent/base/log.h"
#include "runtime/pager_internal.h"

struct ts_cursor ts_cursor_at(const struct ts_range *ranges, size_t count)
{
	return (struct ts_cursor){.range = ranges, .end = ranges + count};
}

static bool enter_range(const struct ts_pager *pager, struct ts_cursor *cursor)
{
	const struct ts_range *range = cursor->range;
	uint64_t offset, last;

	if (range->device != pager->device || !range->bytes)
		return false;
	cursor->segment = ts_segment_of(&pager->segments, range->address);
	if (!cursor->segment)
		return false;
	offset = range->address - cursor->segment->base;
	last = offset + range->bytes - 1;
	if (last >= cursor->segment->bytes)
		last = cursor->segment->bytes - 1;
	cursor->unit = offset / pager->unit_bytes;
	cursor->last = last / pager->unit_bytes;
	return true;
}

struct ts_page *ts_cursor_next(
        const struct ts_pager *pager, struct ts_cursor *cursor)
{
	if (cursor->segment) {
		const struct ts_page *page =
		        cursor->segment->units[cursor->unit].page;

		cursor->unit = ts_page_first(page) + page->count;
		if (cursor->unit > cursor->last) {
			cursor->segment = NULL;
			cursor->range++;
		}
	}
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
	ret_shortage->short_of = TS_SHORT_DRIVER;
	ret_shortage->result = result;
	return ts_gpu_errno(result);
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
	if (page->resident || ts_page_first(page) == at)
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

/* To one size: pages that were larger once, and smaller ones to join. */
static int shape(struct ts_pager *pager, struct ts_segment *segment,
        size_t first, size_t end, struct ts_shortage *ret_shortage)
{
	size_t most = pager->page_bytes / pager->unit_bytes;
	size_t at = first;
	int rc = 0;

	while (at < end && !rc) {
		struct ts_page *page = segment->units[at].page, *next;

		if (!page->resident && page->count > most)
			rc = cut_before(
			        pager, segment, at + most, ret_shortage);
		next = segment->units[at].page->count + at < end
		               ? ts_page_after(page)
		               : NULL;
		if (!rc && next && is_blank(page) && is_blank(next) &&
		        page->count + next->count <= most &&
		        at + page->count + next->count <= end) {
			ts_page_join(page);
			continue;
		}
		at += segment->units[at].page->count;
	}
	return rc;
}

int ts_pager_cut(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, struct ts_shortage *ret_shortage)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		struct ts_cursor cursor = ts_cursor_at(&ranges[i], 1);
		size_t first, end;

		if (!ts_cursor_next(pager, &cursor))
			continue;
		first = cursor.unit;
		end = cursor.last + 1;
		rc = cut_before(pager, cursor.segment, first, ret_shortage);
		if (!rc)
			rc = cut_before(
			        pager, cursor.segment, end, ret_shortage);
		if (!rc) {
			/* One resident may begin before the range. */
			first = ts_page_first(
			        cursor.segment->units[first].page);
			rc = shape(pager, cursor.segment, first, end,
			        ret_shortage);
		}
	}
	return rc;
}
