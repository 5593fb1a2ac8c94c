/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Content that need not be kept, since it is made again. */
#include "runtime/pager_internal.h"

/* No block but that in [@address, @end) lives in @page. */
static bool is_alone(const struct ts_pager *pager, const struct ts_page *page,
        uint64_t address, uint64_t end)
{
	for (size_t i = 0; i < page->count; i++) {
		uint64_t from = page->address + i * pager->unit_bytes;
		uint64_t to = from + pager->unit_bytes;

		if (from < address)
			from = address;
		if (to > end)
			to = end;
		if (page->units[i].live_bytes != (to > from ? to - from : 0))
			return false;
	}
	return true;
}

void ts_pager_discard(struct ts_pager *pager, uint64_t address, uint64_t bytes)
{
	const struct ts_range range = {
	        .address = address, .bytes = bytes, .device = pager->device};
	uint64_t end = address + bytes;
	struct ts_cursor cursor;
	struct ts_page *page;

	ts_mutex_lock(&pager->lock);
	cursor = ts_cursor_at(&range, 1);
	while ((page = ts_cursor_next(pager, &cursor))) {
		bool whole = page->address >= address &&
		             page->address + page->bytes <= end;

		/* What lies beside it is another block's. */
		if (page->pins ||
		        (!whole && !is_alone(pager, page, address, end)))
			continue;
		for (size_t i = 0; i < page->count; i++)
			ts_unit_forget(pager, &page->units[i]);
		page->written = false;
		if (!page->resident)
			ts_list_remove(&page->list);
	}
	ts_mutex_unlock(&pager->lock);
}
