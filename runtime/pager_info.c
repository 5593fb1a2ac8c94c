/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pager's other half: room for others, what it says of itself, the time. */
#include <errno.h>

#include "runtime/pager_internal.h"

/* What has to go so that @bytes more fit; 0 where they fit. */
static int bytes_over(struct ts_pager *pager, uint64_t bytes,
        uint64_t *ret_bytes, struct ts_shortage *ret_shortage)
{
	uint64_t used, limit = pager->account.limit_bytes;
	int rc = ts_pager_measure(pager, &used, ret_shortage);

	*ret_bytes = 0;
	if (!rc && used + bytes > limit)
		*ret_bytes = used + bytes - limit;
	return rc;
}

static int make_room(struct ts_pager *pager, uint64_t bytes, unsigned int flags,
        struct ts_shortage *ret_shortage)
{
	for (;;) {
		uint64_t over, taken;
		CUresult result;
		int rc = bytes_over(pager, bytes, &over, ret_shortage);

		if (rc || !over)
			return rc;
		pager->no_room = true;
		if (!pager->chunks.idle_bytes) {
			rc = ts_pager_take_pages(pager,
			        &(struct ts_take){over, NULL, 0}, flags, &taken,
			        ret_shortage);
			if (rc)
				return rc;
			if (!taken)
				return -ENOMEM;
		}
		result = ts_pager_release_idle(pager, over);
		if (result != CUDA_SUCCESS) {
			ts_short_of_driver(ret_shortage, result);
			return ts_gpu_errno(result);
		}
	}
}

int ts_pager_make_room(struct ts_pager *pager, uint64_t bytes,
        unsigned int flags, struct ts_shortage *ret_shortage)
{
	CUstreamCaptureMode mode;
	bool entered;
	int rc;

	*ret_shortage = (struct ts_shortage){0};
	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_moving(pager, flags, &mode);
	ts_mutex_lock(&pager->lock);
	rc = make_room(pager, bytes, flags, ret_shortage);
	/* Others take it now. */
	pager->no_room = false;
	if (rc) {
		ts_pager_describe(pager, bytes, TS_NO_MARK, ret_shortage);
		/* It stays there, beside every op. */
		if (bytes < pager->most_bytes)
			ret_shortage->least_limit_bytes += bytes;
		else
			ret_shortage->least_limit_bytes += pager->most_bytes;
	}
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_moving(pager, flags, mode, entered);
	ts_mutex_unlock(&pager->gate);
	return rc;
}

void ts_pager_room_changed(struct ts_pager *pager)
{
	ts_mutex_lock(&pager->lock);
	pager->no_room = false;
	ts_mutex_unlock(&pager->lock);
}

bool ts_pager_owns(struct ts_pager *pager, uint64_t address)
{
	bool owns;

	ts_mutex_lock(&pager->lock);
	owns = ts_segment_of(&pager->segments, address) != NULL;
	ts_mutex_unlock(&pager->lock);
	return owns;
}

uint64_t ts_pager_last_op(struct ts_pager *pager)
{
	uint64_t number;

	ts_mutex_lock(&pager->lock);
	number = pager->op_number;
	ts_mutex_unlock(&pager->lock);
	return number;
}

CUresult ts_pager_wait_op(struct ts_pager *pager, uint64_t number)
{
	bool entered = ts_pager_enter_context(pager);
	CUresult rc = CUDA_SUCCESS;

	ts_mutex_lock(&pager->lock);
	if (!ts_streams_done(&pager->streams, number))
		rc = ts_streams_wait(&pager->streams, number, &pager->lock);
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_context(pager, entered);
	return rc;
}

void ts_pager_synchronized(
        struct ts_pager *pager, ts_stream_key stream, uint64_t number)
{
	ts_mutex_lock(&pager->lock);
	if (stream & TS_STREAM_PER_THREAD)
		ts_streams_ask_contexts(&pager->streams, &pager->lock);
	ts_streams_synchronized(&pager->streams, stream, number);
	ts_mutex_unlock(&pager->lock);
}

void ts_pager_stream_destroyed(
        struct ts_pager *pager, ts_stream_key stream, CUcontext context)
{
	/* The mover, if at work, is done with its handle. */
	ts_mutex_lock(&pager->gate);
	ts_mutex_lock(&pager->lock);
	ts_streams_destroyed(&pager->streams, stream, context);
	ts_mutex_unlock(&pager->lock);
	ts_mutex_unlock(&pager->gate);
}

/* So many ops other threads may issue before a capture that begins is known. */
#define CAPTURE_BEGINS 256

void ts_pager_capture_begins(struct ts_pager *pager)
{
	/* The helper, if at work, is done with the streams. */
	ts_mutex_lock(&pager->gate);
	ts_mutex_lock(&pager->lock);
	pager->near_capture = pager->op_number + CAPTURE_BEGINS;
	ts_streams_mark_all(&pager->streams, &pager->lock);
	ts_mutex_unlock(&pager->lock);
	ts_mutex_unlock(&pager->gate);
}

int ts_pager_mem_info(struct ts_pager *pager, uint64_t *ret_free_bytes,
        uint64_t *ret_total_bytes)
{
	uint64_t used, total, limit, own;

	if (ts_account_measure(&pager->account, &used, &total) != CUDA_SUCCESS)
		return -EIO;
	ts_mutex_lock(&pager->lock);
	ts_account_note(&pager->account, used);
	limit = pager->account.limit_bytes;
	/* What a new allocation could have without anything being moved. */
	own = pager->chunks.idle_bytes + pager->spare_bytes;
	ts_mutex_unlock(&pager->lock);
	*ret_total_bytes = limit;
	*ret_free_bytes = own + (used < limit ? limit - used : 0);
	if (*ret_free_bytes > limit)
		*ret_free_bytes = limit;
	return 0;
}

static uint64_t pinned_in(const struct ts_list *list)
{
	uint64_t bytes = 0;

	for (const struct ts_list *at = list->next; at != list; at = at->next) {
		const struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		bytes += page->pins ? page->bytes : 0;
	}
	return bytes;
}

uint64_t ts_pager_plain_bytes(struct ts_pager *pager)
{
	uint64_t bytes;

	ts_mutex_lock(&pager->lock);
	bytes = pager->host.plain_bytes;
	ts_mutex_unlock(&pager->lock);
	return bytes;
}

void ts_pager_stats(struct ts_pager *pager, struct ts_pager_stats *ret_stats)
{
	ts_mutex_lock(&pager->lock);
	*ret_stats = pager->stats;
	ret_stats->total_bytes = pager->account.total_bytes;
	ret_stats->limit_bytes = pager->account.limit_bytes;
	ret_stats->page_bytes = pager->unit_bytes;
	ret_stats->peak_bytes = pager->account.peak_bytes;
	ret_stats->pinned_bytes =
	        pinned_in(&pager->used) + pinned_in(&pager->spare);
	ret_stats->host_pinned_bytes = pager->host.pinned_bytes;
	ret_stats->host_peak_bytes = pager->host.peak_bytes;
	ret_stats->host_limit_bytes = pager->host.limit_bytes;
	ts_mutex_unlock(&pager->lock);
}

void ts_pager_tell_time(struct ts_pager *pager, uint64_t now, uint64_t period)
{
	atomic_store_explicit(&pager->foresee.now, now, memory_order_relaxed);
	atomic_store_explicit(
	        &pager->foresee.period, period, memory_order_relaxed);
}
