/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Placing allocations in address ranges, and taking them away again. */
#include <errno.h>

#include "runtime/pager_internal.h"

/* More no device has; with what else is in use it can still be counted. */
#define NEED_BYTES_MAX (UINT64_MAX / 2)

/* Of a page in what PyTorch cuts into blocks. */
#define SHARED_UNITS 2

CUresult ts_pager_strip_page(struct ts_pager *pager, struct ts_page *page)
{
	CUresult rc;

	pager->moved++;
	for (size_t i = 0; i < page->count; i++)
		ts_unit_forget(pager, &page->units[i]);
	if (page->resident)
		ts_page_delist(pager, page);
	ts_list_remove(&page->list);
	page->resident = false;
	rc = ts_pager_wait_fence(pager, &page->fence);
	if (rc == CUDA_SUCCESS && page->mapping)
		rc = ts_move_unmap(pager, page);
	if (rc == CUDA_SUCCESS && page->chunk) {
		page->chunk->fence = page->fence;
		ts_chunks_put(&pager->chunks, page->chunk);
		page->chunk = NULL;
	} else if (page->chunk) {
		page->resident = true;
		ts_page_enlist(pager, page);
	}
	return rc;
}

CUresult ts_pager_strip(struct ts_pager *pager, struct ts_segment *segment)
{
	CUresult rc = CUDA_SUCCESS;
	size_t i = 0;

	while (i < segment->unit_count && rc == CUDA_SUCCESS) {
		struct ts_page *page = segment->units[i].page;

		i += page->count;
		rc = ts_pager_strip_page(pager, page);
	}
	return rc;
}

static CUresult place(
        struct ts_pager *pager, uint64_t bytes, uint64_t *ret_address)
{
	struct ts_segment *segment;
	uint64_t address = 0, page_bytes;
	bool slab = bytes < pager->unit_bytes;
	CUresult rc;

	ts_mutex_lock(&pager->lock);
	page_bytes = pager->page_bytes;
	/* One block that stays shall not keep the others' memory. */
	if (bytes == TS_PAGER_CUT_BYTES &&
	        page_bytes > SHARED_UNITS * pager->unit_bytes)
		page_bytes = SHARED_UNITS * pager->unit_bytes;
	for (struct ts_list *at = pager->slabs.next;
	        slab && !address && at != &pager->slabs; at = at->next)
		address = ts_slab_take(
		        ts_container_of(at, struct ts_segment, slabs), bytes);
	ts_mutex_unlock(&pager->lock);
	if (!address) {
		rc = ts_segment_create(pager->ops, bytes, pager->unit_bytes,
		        page_bytes, slab, &segment);
		if (rc != CUDA_SUCCESS)
			return rc;
		ts_mutex_lock(&pager->lock);
		ts_map_insert(&pager->segments, &segment->node, segment->base);
		if (slab)
			ts_list_append(&pager->slabs, &segment->slabs);
		address = slab ? ts_slab_take(segment, bytes) : segment->base;
		ts_mutex_unlock(&pager->lock);
	}
	*ret_address = address;
	return CUDA_SUCCESS;
}

bool ts_pager_can_ever_fit(struct ts_pager *pager, uint64_t bytes,
        struct ts_shortage *ret_shortage)
{
	uint64_t need = NEED_BYTES_MAX, used;
	bool fits;

	if (bytes < NEED_BYTES_MAX - pager->unit_bytes)
		need = (bytes + pager->unit_bytes - 1) / pager->unit_bytes *
		       pager->unit_bytes;
	ts_mutex_lock(&pager->lock);
	for (int tries = 0;; tries++) {
		fits = need + pager->other_bytes <= pager->account.limit_bytes;
		/* What others use may have become less since last asked. */
		if (fits || tries ||
		        ts_pager_measure(pager, &used, ret_shortage))
			break;
	}
	if (!fits)
		ts_pager_describe(pager, need, TS_NO_MARK, ret_shortage);
	ts_mutex_unlock(&pager->lock);
	return fits;
}

int ts_pager_alloc(struct ts_pager *pager, uint64_t bytes, unsigned int flags,
        uint64_t *ret_address, struct ts_shortage *ret_shortage)
{
	struct ts_range range = {.bytes = bytes,
	        .access = TS_ACCESS_READ,
	        .device = pager->device};
	uint64_t in = 0, out = 0;
	CUresult result;
	int rc;

	*ret_shortage = (struct ts_shortage){0};
	if (!ts_pager_can_ever_fit(pager, bytes, ret_shortage) &&
	        bytes > TS_PAGER_CUT_BYTES)
		return -ENOMEM;
	result = place(pager, bytes, &range.address);
	if (result != CUDA_SUCCESS) {
		ts_short_of_driver(ret_shortage, result);
		return ts_gpu_errno(result);
	}
	ts_pager_live(pager, range.address, bytes);
	/* While memory lasts it behaves as plain memory does. */
	rc = ts_pager_begin(pager, &range, 1, flags | TS_BEGIN_NO_EVICT,
	        TS_STREAM_HOST, &in, &out, ret_shortage);
	if (!rc)
		ts_pager_end(pager, &range, 1, TS_STREAM_HOST, false);
	/* A lost context refuses an allocation as anything else. */
	if (rc && ret_shortage->short_of == TS_SHORT_DRIVER &&
	        ret_shortage->result != CUDA_ERROR_OUT_OF_MEMORY) {
		ts_pager_dead(pager, range.address, bytes);
		ts_pager_free(pager, range.address, bytes, flags);
		return rc;
	}
	*ret_address = range.address;
	return 0;
}

static bool is_busy(const struct ts_segment *segment, uint64_t *last_op)
{
	for (size_t i = 0; i < segment->unit_count;
	        i += segment->units[i].page->count) {
		const struct ts_page *page = segment->units[i].page;

		if (page->busy)
			return true;
		if (page->fence.op > *last_op)
			*last_op = page->fence.op;
	}
	return false;
}

/*
 * Until no op uses @segment. Its blocks are gone, but another thread may have
 * found them before that and be just about to issue its op. Lock held.
 */
static CUresult wait_unused(struct ts_pager *pager, struct ts_segment *segment)
{
	uint64_t last_op = 0;

	while (is_busy(segment, &last_op))
		ts_cond_wait(&pager->idle, &pager->lock);
	return ts_streams_wait(&pager->streams, last_op, &pager->lock);
}

/*
 * Takes the first segment of @freed away from the driver too, once no op uses
 * it. It leaves the list only where that succeeds. Gate held.
 */
static CUresult retire_first(struct ts_pager *pager, struct ts_list *freed)
{
	struct ts_segment *segment =
	        ts_container_of(freed->next, struct ts_segment, slabs);
	CUresult rc;

	ts_mutex_lock(&pager->lock);
	rc = wait_unused(pager, segment);
	if (rc == CUDA_SUCCESS)
		rc = ts_pager_strip(pager, segment);
	if (rc == CUDA_SUCCESS) {
		ts_list_remove(&segment->slabs);
		ts_pager_remove_segment(pager, segment);
	}
	ts_mutex_unlock(&pager->lock);
	if (rc != CUDA_SUCCESS)
		return rc;
	ts_segment_destroy(pager->ops, segment, true);
	return CUDA_SUCCESS;
}

/*
 * Under the lock: what is to be retired for this free, and whatever waited for
 * the end of a capture. A slab is off its list before anyone can take of it.
 */
static void collect_freed(struct ts_pager *pager, uint64_t address,
        uint64_t bytes, struct ts_list *freed)
{
	struct ts_segment *segment = ts_segment_of(&pager->segments, address);

	while (!ts_list_empty(&pager->deferred)) {
		struct ts_list *first = pager->deferred.next;

		ts_list_remove(first);
		ts_list_append(freed, first);
	}
	if (segment->taken && !ts_slab_put(segment, address, bytes))
		return;
	ts_list_remove(&segment->slabs);
	ts_list_append(freed, &segment->slabs);
}

/* While something captures nothing can be waited for: later, then. */
static void defer_free(struct ts_pager *pager, uint64_t address, uint64_t bytes)
{
	struct ts_segment *segment;

	ts_mutex_lock(&pager->lock);
	segment = ts_segment_of(&pager->segments, address);
	if (segment->taken)
		ts_slab_put(segment, address, bytes);
	else
		ts_list_append(&pager->deferred, &segment->slabs);
	ts_mutex_unlock(&pager->lock);
}

CUresult ts_pager_free(struct ts_pager *pager, uint64_t address, uint64_t bytes,
        unsigned int flags)
{
	struct ts_list freed;
	uint64_t number;
	bool entered;
	CUresult rc;

	if (flags & TS_BEGIN_ANY_CAPTURE) {
		defer_free(pager, address, bytes);
		return CUDA_SUCCESS;
	}
	ts_list_init(&freed);
	/* As cuMemFree does: afterwards nobody uses the memory any more. */
	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_context(pager);
	number = ts_pager_last_op(pager);
	rc = pager->ops->ctx_synchronize();
	if (rc == CUDA_SUCCESS)
		ts_pager_synchronized(pager, ts_stream_whole(NULL), number);
	/* The program will not free it again, whatever is answered. */
	ts_mutex_lock(&pager->lock);
	collect_freed(pager, address, bytes, &freed);
	ts_mutex_unlock(&pager->lock);
	while (!ts_list_empty(&freed) && rc == CUDA_SUCCESS)
		rc = retire_first(pager, &freed);
	ts_mutex_lock(&pager->lock);
	/* What the driver would not take away is tried again later. */
	while (!ts_list_empty(&freed)) {
		struct ts_list *left = freed.next;

		ts_list_remove(left);
		ts_list_append(&pager->deferred, left);
	}
	/* To the driver, as the program expects of a free. */
	ts_pager_release_idle(pager, UINT64_MAX);
	pager->no_room = false;
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_context(pager, entered);
	ts_mutex_unlock(&pager->gate);
	return rc;
}
