/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/pager.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/base/log.h"
#include "runtime/pager_internal.h"

/* Walks the pages of an op's ranges; pages of two ranges come twice. */
struct cursor {
	const struct ts_range *range, *end;
	struct ts_segment *segment;
	size_t page, last;
};

static struct cursor cursor_at(const struct ts_range *ranges, size_t count)
{
	return (struct cursor){.range = ranges, .end = ranges + count};
}

static bool enter_range(const struct ts_pager *pager, struct cursor *cursor)
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
	cursor->page = offset / pager->page_bytes;
	cursor->last = last / pager->page_bytes;
	return true;
}

/* The next page, with its range in cursor->range; NULL at the end. */
static struct ts_page *next_page(
        const struct ts_pager *pager, struct cursor *cursor)
{
	if (cursor->segment && cursor->page == cursor->last) {
		cursor->segment = NULL;
		cursor->range++;
	} else if (cursor->segment) {
		cursor->page++;
	}
	while (!cursor->segment) {
		if (cursor->range == cursor->end)
			return NULL;
		if (!enter_range(pager, cursor))
			cursor->range++;
	}
	return &cursor->segment->pages[cursor->page];
}

void ts_page_forget_host(struct ts_pager *pager, struct ts_page *page)
{
	if (page->host)
		ts_hostpool_put(&pager->host, page->host);
	page->host = NULL;
}

int ts_pager_create(const struct ts_gpu_ops *ops,
        const struct ts_pager_options *options, struct ts_pager **ret_pager)
{
	struct ts_pager *pager = calloc(1, sizeof(*pager));
	uint64_t used, total;
	int rc = -ENOMEM;

	if (!pager)
		return rc;
	pager->ops = ops;
	pager->device = options->device;
	pager->account.ops = ops;
	rc = ts_gpu_errno(ops->ctx_get_current(&pager->context));
	if (!rc)
		rc = ts_gpu_errno(
		        ts_account_measure(&pager->account, &used, &total));
	if (!rc)
		rc = ts_chunks_init(&pager->chunks, ops, options->device,
		        options->page_bytes);
	if (rc) {
		free(pager);
		return rc;
	}
	pager->account.total_bytes = total;
	pager->account.limit_bytes =
	        options->limit_bytes && options->limit_bytes < total
	                ? options->limit_bytes
	                : total;
	ts_account_note(&pager->account, used);
	pager->other_bytes = used;
	pager->page_bytes = pager->chunks.chunk_bytes;
	ts_mutex_init(&pager->lock, TS_RANK_PAGER);
	ts_mutex_init(&pager->gate, TS_RANK_GATE);
	pthread_cond_init(&pager->idle, NULL);
	ts_map_init(&pager->segments);
	ts_list_init(&pager->slabs);
	ts_list_init(&pager->deferred);
	ts_list_init(&pager->used);
	ts_list_init(&pager->spare);
	ts_streams_init(&pager->streams, ops, pager->context);
	ts_hostpool_init(&pager->host, ops, pager->page_bytes,
	        options->host_limit_bytes);
	*ret_pager = pager;
	return 0;
}

void ts_pager_destroy(struct ts_pager *pager, bool driver_alive)
{
	if (!pager)
		return;
	if (driver_alive)
		pager->ops->ctx_synchronize();
	while (pager->segments.root) {
		struct ts_segment *segment = ts_container_of(
		        pager->segments.root, struct ts_segment, node);

		if (driver_alive && !ts_chunks_reserve(&pager->chunks,
		                            pager->chunks.created))
			ts_pager_strip(pager, segment);
		ts_map_remove(&pager->segments, segment->base);
		ts_segment_destroy(pager->ops, segment, driver_alive);
	}
	if (pager->stream && driver_alive)
		pager->ops->stream_destroy(pager->stream);
	ts_hostpool_finish(&pager->host, driver_alive);
	ts_chunks_finish(&pager->chunks, driver_alive);
	ts_streams_finish(&pager->streams);
	free(pager->missing.items);
	free(pager->victims.items);
	pthread_cond_destroy(&pager->idle);
	ts_mutex_finish(&pager->gate);
	ts_mutex_finish(&pager->lock);
	free(pager);
}

static void change_live(
        struct ts_pager *pager, uint64_t address, uint64_t bytes, bool live)
{
	const struct ts_range range = {
	        .address = address, .bytes = bytes, .device = pager->device};
	struct cursor cursor = cursor_at(&range, 1);
	struct ts_page *page;

	while ((page = next_page(pager, &cursor))) {
		uint64_t from = page->address, to = from + pager->page_bytes;
		bool listed = page->handle != 0;

		if (from < address)
			from = address;
		if (to > address + bytes)
			to = address + bytes;
		if (listed)
			ts_page_delist(pager, page);
		if (live) {
			page->live_bytes += (uint32_t)(to - from);
		} else {
			ts_assert(page->live_bytes >= to - from);
			page->live_bytes -= (uint32_t)(to - from);
		}
		if (!page->live_bytes) {
			page->life++;
			page->written = false;
			page->pins &= ~TS_PIN_ESCAPED;
			ts_page_forget_host(pager, page);
		}
		if (listed)
			ts_page_enlist(pager, page);
	}
}

void ts_pager_live(struct ts_pager *pager, uint64_t address, uint64_t bytes)
{
	ts_mutex_lock(&pager->lock);
	change_live(pager, address, bytes, true);
	ts_mutex_unlock(&pager->lock);
}

void ts_pager_dead(struct ts_pager *pager, uint64_t address, uint64_t bytes)
{
	ts_mutex_lock(&pager->lock);
	change_live(pager, address, bytes, false);
	ts_mutex_unlock(&pager->lock);
}

/* What an op does to a page it finds resident. Lock held. */
static void touch(struct ts_pager *pager, struct ts_page *page,
        enum ts_access access, unsigned int flags)
{
	if (access != TS_ACCESS_READ) {
		page->written = true;
		ts_page_forget_host(pager, page);
	}
	if (flags & TS_BEGIN_CAPTURING)
		page->pins |= TS_PIN_CAPTURED;
	ts_foresee_use(&pager->foresee, page);
	ts_page_delist(pager, page);
	ts_page_enlist(pager, page);
}

static void hold(struct ts_pager *pager, struct ts_page *page)
{
	page->busy++;
	pager->busy_count++;
}

static void let_go(struct ts_pager *pager, struct ts_page *page)
{
	ts_assert(page->busy);
	page->busy--;
	pager->busy_count--;
}

static void touch_all(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags)
{
	struct cursor cursor = cursor_at(ranges, count);
	struct ts_page *page;

	while ((page = next_page(pager, &cursor)))
		touch(pager, page, cursor.range->access, flags);
}

static bool begin_resident(struct ts_pager *pager,
        const struct ts_range *ranges, size_t count, unsigned int flags)
{
	struct cursor cursor = cursor_at(ranges, count);
	struct ts_page *page;

	while ((page = next_page(pager, &cursor)))
		if (!page->handle)
			return false;
	cursor = cursor_at(ranges, count);
	while ((page = next_page(pager, &cursor)))
		hold(pager, page);
	touch_all(pager, ranges, count, flags);
	return true;
}

struct need {
	size_t pages; /* distinct */
	size_t held;  /* how often a page was made busy */
};

/* Makes every page busy and notes those that are missing. Lock held. */
static int collect(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, struct need *need)
{
	struct cursor cursor = cursor_at(ranges, count);
	struct ts_page *page;

	*need = (struct need){0};
	pager->missing.count = 0;
	pager->slow_number++;
	while ((page = next_page(pager, &cursor))) {
		struct ts_move *move;

		hold(pager, page);
		need->held++;
		if (page->mark == pager->slow_number)
			continue;
		page->mark = pager->slow_number;
		need->pages++;
		if (page->handle)
			continue;
		move = ts_moves_add(&pager->missing);
		if (!move)
			return -ENOMEM;
		*move = (struct ts_move){.page = page,
		        .address = page->address,
		        .host = page->host,
		        .life = page->life,
		        .copy = page->host != NULL};
	}
	return 0;
}

/* Undoes what collect held. Lock held. */
static void release(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, size_t held)
{
	struct cursor cursor = cursor_at(ranges, count);

	while (held--)
		let_go(pager, next_page(pager, &cursor));
	pthread_cond_broadcast(&pager->idle);
}

static int move_missing_in(
        struct ts_pager *pager, struct ts_shortage *ret_shortage)
{
	struct ts_moves *missing = &pager->missing;
	CUresult result;

	for (size_t i = 0; i < missing->count; i++)
		missing->items[i].handle = ts_chunks_take(&pager->chunks);
	ts_mutex_unlock(&pager->lock);
	result = ts_move_in(pager, missing);
	ts_mutex_lock(&pager->lock);
	for (size_t i = 0; i < missing->count; i++) {
		struct ts_move *move = &missing->items[i];

		if (result != CUDA_SUCCESS) {
			ts_chunks_put(&pager->chunks, move->handle);
			continue;
		}
		move->page->handle = move->handle;
		ts_page_enlist(pager, move->page);
	}
	if (result == CUDA_SUCCESS)
		return 0;
	ret_shortage->short_of = TS_SHORT_DRIVER;
	ret_shortage->result = result;
	return ts_gpu_errno(result);
}

void ts_pager_describe(const struct ts_pager *pager, uint64_t need_bytes,
        struct ts_shortage *shortage)
{
	shortage->need_bytes = need_bytes;
	shortage->other_bytes = pager->other_bytes;
	shortage->limit_bytes = pager->account.limit_bytes;
	shortage->least_limit_bytes = need_bytes + pager->other_bytes;
}

/* With something missing: moves, as the only mover. Gate and lock held. */
static int begin_missing(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, struct ts_shortage *ret_shortage)
{
	struct need need;
	int rc = collect(pager, ranges, count, &need);

	if (!rc)
		rc = ts_pager_gather(pager, pager->missing.count, need.held,
		        flags, ret_shortage);
	if (!rc)
		rc = move_missing_in(pager, ret_shortage);
	if (!rc) {
		touch_all(pager, ranges, count, flags);
		return 0;
	}
	release(pager, ranges, count, need.held);
	ts_pager_describe(pager, need.pages * pager->page_bytes, ret_shortage);
	return rc;
}

bool ts_pager_enter_moving(
        struct ts_pager *pager, unsigned int flags, CUstreamCaptureMode *mode)
{
	*mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	if (flags & TS_BEGIN_ANY_CAPTURE)
		pager->ops->exchange_capture_mode(mode);
	return ts_pager_enter_context(pager);
}

void ts_pager_leave_moving(struct ts_pager *pager, unsigned int flags,
        CUstreamCaptureMode mode, bool entered)
{
	ts_pager_leave_context(pager, entered);
	if (flags & TS_BEGIN_ANY_CAPTURE)
		pager->ops->exchange_capture_mode(&mode);
}

int ts_pager_begin(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, unsigned int flags, uint64_t *ret_in_bytes,
        uint64_t *ret_out_bytes, struct ts_shortage *ret_shortage)
{
	CUstreamCaptureMode mode;
	uint64_t in, out;
	bool resident, entered;
	int rc = 0;

	ts_mutex_lock(&pager->lock);
	resident = begin_resident(pager, ranges, count, flags);
	ts_mutex_unlock(&pager->lock);
	if (resident)
		return 0;
	*ret_shortage = (struct ts_shortage){0};
	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_moving(pager, flags, &mode);
	ts_mutex_lock(&pager->lock);
	in = pager->stats.in_bytes;
	out = pager->stats.out_bytes;
	rc = begin_missing(pager, ranges, count, flags, ret_shortage);
	*ret_in_bytes += pager->stats.in_bytes - in;
	*ret_out_bytes += pager->stats.out_bytes - out;
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_moving(pager, flags, mode, entered);
	ts_mutex_unlock(&pager->gate);
	return rc;
}

void ts_pager_end(struct ts_pager *pager, const struct ts_range *ranges,
        size_t count, ts_stream_key stream, bool issued)
{
	struct cursor cursor = cursor_at(ranges, count);
	struct ts_page *page;
	uint64_t number;
	bool noted = true;

	ts_mutex_lock(&pager->lock);
	number = issued ? ++pager->op_number : 0;
	while ((page = next_page(pager, &cursor))) {
		let_go(pager, page);
		if (issued)
			page->last_op = number;
	}
	if (issued)
		noted = !ts_streams_issued(&pager->streams, stream, number);
	pthread_cond_broadcast(&pager->idle);
	ts_mutex_unlock(&pager->lock);
	/* Nobody could wait for it later. */
	if (!noted)
		pager->ops->ctx_synchronize();
}

void ts_pager_pin(
        struct ts_pager *pager, const struct ts_range *range, enum ts_pin pin)
{
	struct cursor cursor = cursor_at(range, 1);
	struct ts_page *page;

	ts_mutex_lock(&pager->lock);
	while ((page = next_page(pager, &cursor))) {
		ts_assert(page->busy);
		page->pins |= pin;
	}
	ts_mutex_unlock(&pager->lock);
}

void ts_pager_tell_time(struct ts_pager *pager, uint64_t now, uint64_t period)
{
	atomic_store_explicit(&pager->foresee.now, now, memory_order_relaxed);
	atomic_store_explicit(
	        &pager->foresee.period, period, memory_order_relaxed);
}
