/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/adopt.h"

#include "runtime/pager_internal.h"

bool ts_pager_adopt(struct ts_pager *pager, uint64_t base, uint64_t bytes)
{
	struct ts_segment *segment;

	if (base % pager->unit_bytes || bytes % pager->unit_bytes ||
	        ts_segment_adopt(base, bytes, pager->unit_bytes,
	                pager->page_bytes, &segment))
		return false;
	ts_mutex_lock(&pager->lock);
	ts_map_insert(&pager->segments, &segment->node, segment->base);
	ts_mutex_unlock(&pager->lock);
	return true;
}

bool ts_pager_could_map(struct ts_pager *pager, uint64_t bytes,
        struct ts_shortage *ret_shortage)
{
	/* What is in use is asked of the current context's device. */
	bool entered = ts_pager_enter_context(pager), fits;

	*ret_shortage = (struct ts_shortage){0};
	fits = ts_pager_can_ever_fit(pager, bytes, ret_shortage);
	ts_pager_leave_context(pager, entered);
	return fits;
}

/* Waits for everything, as cuMemFree does. Gate held. */
static CUresult wait_for_all(struct ts_pager *pager)
{
	uint64_t number = ts_pager_last_op(pager);
	CUresult rc = pager->ops->ctx_synchronize();

	if (rc == CUDA_SUCCESS)
		ts_pager_synchronized(pager, ts_stream_whole(NULL), number);
	return rc;
}

/* A page that blocks beside the range use too stays as it is. */
static bool is_left(const struct ts_page *page)
{
	return !page->live_units && !page->busy && !page->pins &&
	       (page->resident || page->mapping);
}

static CUresult strip_range(struct ts_pager *pager, struct ts_range range)
{
	struct ts_cursor cursor = ts_cursor_at(&range, 1);
	CUresult rc = CUDA_SUCCESS;
	struct ts_page *page;

	while (rc == CUDA_SUCCESS && (page = ts_cursor_next(pager, &cursor)))
		if (is_left(page))
			rc = ts_pager_strip_page(pager, page);
	/* To the driver, as the program expects. */
	if (rc == CUDA_SUCCESS)
		rc = ts_pager_release_idle(pager, UINT64_MAX);
	pager->no_room = false;
	return rc;
}

CUresult ts_pager_unmapped(struct ts_pager *pager, uint64_t address,
        uint64_t bytes, unsigned int flags)
{
	const struct ts_range range = {
	        .address = address, .bytes = bytes, .device = pager->device};
	bool entered;
	CUresult rc;

	if (flags & TS_BEGIN_ANY_CAPTURE)
		return CUDA_SUCCESS;
	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_context(pager);
	rc = wait_for_all(pager);
	ts_mutex_lock(&pager->lock);
	if (rc == CUDA_SUCCESS)
		rc = strip_range(pager, range);
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_context(pager, entered);
	ts_mutex_unlock(&pager->gate);
	return rc;
}

CUresult ts_pager_abandon(struct ts_pager *pager, uint64_t base)
{
	struct ts_segment *segment;
	CUresult rc = CUDA_SUCCESS;
	bool entered;

	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_context(pager);
	rc = wait_for_all(pager);
	ts_mutex_lock(&pager->lock);
	segment = ts_segment_of(&pager->segments, base);
	if (!segment || !segment->adopted || segment->base != base)
		rc = CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		rc = ts_pager_strip(pager, segment);
	if (rc == CUDA_SUCCESS) {
		ts_pager_remove_segment(pager, segment);
		ts_segment_destroy(pager->ops, segment, true);
	}
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_context(pager, entered);
	ts_mutex_unlock(&pager->gate);
	return rc;
}
