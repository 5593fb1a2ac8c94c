/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finding chunks: new ones, those of free pages, those of used pages. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "runtime/pager_internal.h"

/* At the limit the driver is asked again after so many needs of a chunk. */
#define MEASURE_INTERVAL 64

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int ts_pager_measure(struct ts_pager *pager, uint64_t *ret_used_bytes,
        struct ts_shortage *ret_shortage)
{
	uint64_t used, total, placed;
	CUresult rc;

	ts_mutex_unlock(&pager->lock);
	rc = ts_account_measure(&pager->account, &used, &total);
	ts_mutex_lock(&pager->lock);
	if (rc != CUDA_SUCCESS) {
		ret_shortage->short_of = TS_SHORT_DRIVER;
		ret_shortage->result = rc;
		return ts_gpu_errno(rc);
	}
	ts_account_note(&pager->account, used);
	placed = pager->chunks.created * pager->page_bytes;
	pager->other_bytes = used > placed ? used - placed : 0;
	*ret_used_bytes = used;
	return 0;
}

/* New chunks, as many as the limit and the device allow, at most @count. */
static int create_chunks(struct ts_pager *pager, size_t count,
        size_t *ret_created, struct ts_shortage *ret_shortage)
{
	CUmemGenericAllocationHandle handle;
	uint64_t used, limit = pager->account.limit_bytes;
	CUresult result = CUDA_SUCCESS;
	int rc;

	*ret_created = 0;
	if (pager->no_room && ++pager->skipped < MEASURE_INTERVAL)
		return 0;
	rc = ts_pager_measure(pager, &used, ret_shortage);
	if (rc)
		return rc;
	pager->skipped = 0;
	pager->no_room = used + count * pager->page_bytes > limit;
	if (pager->no_room)
		count = used < limit ? (limit - used) / pager->page_bytes : 0;
	if (ts_chunks_reserve(&pager->chunks, pager->chunks.created + count))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		ts_mutex_unlock(&pager->lock);
		result = ts_chunks_create(&pager->chunks, &handle);
		ts_mutex_lock(&pager->lock);
		if (result != CUDA_SUCCESS)
			break;
		pager->chunks.created++;
		ts_chunks_put(&pager->chunks, handle);
		++*ret_created;
		ts_account_note(&pager->account,
		        used + *ret_created * pager->page_bytes);
	}
	if (result == CUDA_SUCCESS)
		return 0;
	/* The device may be fuller than it says: then pages are taken. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		pager->no_room = true;
		return 0;
	}
	ret_shortage->short_of = TS_SHORT_DRIVER;
	ret_shortage->result = result;
	return ts_gpu_errno(result);
}

static bool may_take(const struct ts_pager *pager, const struct ts_page *page,
        bool capturing)
{
	if (page->busy || page->pins)
		return false;
	return !capturing || ts_streams_done(&pager->streams, page->last_op);
}

/* In the order in which used pages go: what the tape foresees, then clean. */
struct order {
	uint64_t now, period; /* period 0: as they come, longest unused first */
	size_t pages[2 * TS_FORESEE_CLASSES]; /* by rank, that may go */
	size_t least;                         /* rank of the last that goes */
};

static size_t rank_of(const struct order *order, const struct ts_page *page)
{
	return 2 * ts_foresee_class(page, order->now, order->period) +
	       !page->written;
}

static void make_order(struct ts_pager *pager, struct order *order,
        size_t count, size_t saves, bool capturing)
{
	size_t found = 0;

	order->now = atomic_load(&pager->foresee.now);
	order->period = atomic_load(&pager->foresee.period);
	order->least = 0;
	if (!order->period)
		return;
	memset(order->pages, 0, sizeof(order->pages));
	for (struct ts_list *at = pager->used.next; at != &pager->used;
	        at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (may_take(pager, page, capturing) &&
		        (saves || !page->written))
			order->pages[rank_of(order, page)]++;
	}
	order->least = 2 * TS_FORESEE_CLASSES - 1;
	while (order->least && (found += order->pages[order->least]) < count)
		order->least--;
}

static int add_victim(struct ts_pager *pager, struct ts_page *page, bool copy)
{
	struct ts_move *move = ts_moves_add(&pager->victims);

	if (!move)
		return -ENOMEM;
	*move = (struct ts_move){
	        .page = page,
	        .address = page->address,
	        .handle = page->handle,
	        .life = page->life,
	        .copy = copy,
	};
	return 0;
}

/*
 * Of the ranks from @least up to @most; at most @saves of those chosen have
 * content to save.
 */
static int choose_from(struct ts_pager *pager, struct ts_list *list,
        size_t count, size_t *saves, bool capturing, const struct order *order,
        size_t least, size_t most)
{
	struct ts_list *at = list->next;
	int rc = 0;

	for (; at != list && pager->victims.count < count && !rc;
	        at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);
		bool copy = page->live_bytes && page->written;

		if (!may_take(pager, page, capturing) || (copy && !*saves))
			continue;
		if (order->period && (rank_of(order, page) < least ||
		                             rank_of(order, page) > most))
			continue;
		*saves -= copy;
		rc = add_victim(pager, page, copy);
	}
	return rc;
}

/* Free pages first: they owe nobody anything. */
static int choose(
        struct ts_pager *pager, size_t count, size_t saves, unsigned int flags)
{
	bool capturing = flags & TS_BEGIN_ANY_CAPTURE;
	struct order order = {0};
	int rc;

	pager->victims.count = 0;
	rc = choose_from(
	        pager, &pager->spare, count, &saves, capturing, &order, 0, 0);
	if (rc || flags & TS_BEGIN_CAPTURING || pager->victims.count == count)
		return rc;
	make_order(
	        pager, &order, count - pager->victims.count, saves, capturing);
	/* Those of the last rank only as far as they are needed. */
	if (order.period)
		rc = choose_from(pager, &pager->used, count, &saves, capturing,
		        &order, order.least + 1, SIZE_MAX);
	return rc ? rc
	          : choose_from(pager, &pager->used, count, &saves, capturing,
	                    &order, order.least, order.least);
}

/* Host copies of pages that stay resident: without them those are dirty. */
static void reclaim_slots(struct ts_pager *pager, size_t wanted)
{
	struct ts_list *at = pager->used.next;

	for (; at != &pager->used && pager->host.free_slots < wanted;
	        at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (!page->host || (!page->busy && !page->pins))
			continue;
		ts_page_forget_host(pager, page);
		page->written = true;
	}
}

/*
 * With a full host pool: pages that need no slot, and of others as many as
 * there are slots. Where that finds none the shortage stands. Lock held.
 */
static int choose_without_slots(
        struct ts_pager *pager, size_t count, unsigned int flags, int shortage)
{
	int rc;

	reclaim_slots(pager, count);
	rc = choose(pager, count, pager->host.free_slots, flags);
	return rc || pager->victims.count ? rc : shortage;
}

/* Pinned slots for all that has to be saved; 1 where the lock was let go. */
static int need_slots(struct ts_pager *pager, struct ts_shortage *ret_shortage)
{
	struct ts_hostslab *slab;
	size_t saves = 0;
	int rc;

	for (size_t i = 0; i < pager->victims.count; i++)
		saves += pager->victims.items[i].copy;
	if (saves <= pager->host.free_slots)
		return 0;
	ts_mutex_unlock(&pager->lock);
	rc = ts_hostpool_grow(&pager->host, &slab);
	ts_mutex_lock(&pager->lock);
	if (rc) {
		ret_shortage->short_of = TS_SHORT_OF_HOST;
		ret_shortage->host_used_bytes = pager->host.pinned_bytes;
		ret_shortage->host_limit_bytes = pager->host.limit_bytes;
		return rc;
	}
	ts_hostpool_add(&pager->host, slab);
	return 1;
}

/* From here on nobody finds the victims resident. Returns their last op. */
static uint64_t detach_victims(struct ts_pager *pager)
{
	uint64_t last = 0;

	for (size_t i = 0; i < pager->victims.count; i++) {
		struct ts_move *move = &pager->victims.items[i];

		ts_page_delist(pager, move->page);
		move->page->handle = 0;
		if (move->copy)
			move->host = ts_hostpool_take(&pager->host);
		if (move->page->last_op > last)
			last = move->page->last_op;
	}
	return last;
}

static void put_back(struct ts_pager *pager, const struct ts_move *move)
{
	move->page->handle = move->handle;
	ts_page_enlist(pager, move->page);
	if (move->host)
		ts_hostpool_put(&pager->host, move->host);
}

/* The page is gone from the device; its content, if any, is in the slot. */
static void settle(struct ts_pager *pager, const struct ts_move *move)
{
	struct ts_page *page = move->page;

	ts_chunks_put(&pager->chunks, move->handle);
	if (page->life != move->life || !page->live_bytes)
		pager->stats.reclaimed_pages++;
	else
		pager->stats.evicted_pages++;
	if (!move->host)
		return;
	/* Freed meanwhile: what was saved is nobody's any more. */
	if (page->life != move->life) {
		ts_hostpool_put(&pager->host, move->host);
		return;
	}
	page->host = move->host;
	page->written = false;
}

static CUresult move_victims_out(struct ts_pager *pager, uint64_t last_op)
{
	uint64_t begin = now_ns();
	CUresult rc = ts_streams_wait(&pager->streams, last_op, &pager->lock);

	if (rc == CUDA_SUCCESS) {
		ts_mutex_unlock(&pager->lock);
		rc = ts_move_out(pager, &pager->victims);
		ts_mutex_lock(&pager->lock);
	}
	pager->stats.wait_ns += now_ns() - begin;
	return rc;
}

/* How many victims from @first on lie side by side in one reservation. */
static size_t neighbours(const struct ts_moves *victims, size_t first)
{
	size_t end = first + 1;

	while (end < victims->count &&
	        victims->items[end].page == victims->items[end - 1].page + 1)
		end++;
	return end - first;
}

/* One call for all: it may stop the device, and takes its time. */
static CUresult unmap_run(struct ts_pager *pager, size_t first, size_t count)
{
	CUresult rc;

	ts_mutex_unlock(&pager->lock);
	rc = ts_move_unmap(pager, pager->victims.items[first].address, count);
	ts_mutex_lock(&pager->lock);
	return rc;
}

int ts_pager_take_pages(struct ts_pager *pager, size_t count,
        unsigned int flags, size_t *ret_taken, struct ts_shortage *ret_shortage)
{
	size_t taken = 0;
	CUresult result;
	uint64_t last;
	int rc;

	*ret_taken = 0;
	do {
		rc = choose(pager, count, SIZE_MAX, flags);
		if (!rc)
			rc = need_slots(pager, ret_shortage);
	} while (rc > 0);
	if (rc < 0)
		rc = choose_without_slots(pager, count, flags, rc);
	if (rc || !pager->victims.count)
		return rc;
	rc = ts_chunks_reserve(&pager->chunks, pager->chunks.created);
	if (rc)
		return rc;
	last = detach_victims(pager);
	result = move_victims_out(pager, last);
	for (size_t i = 0, run; i < pager->victims.count; i += run) {
		run = neighbours(&pager->victims, i);
		if (result == CUDA_SUCCESS)
			result = unmap_run(pager, i, run);
		for (size_t j = i; j < i + run; j++) {
			if (result == CUDA_SUCCESS)
				settle(pager, &pager->victims.items[j]);
			else
				put_back(pager, &pager->victims.items[j]);
		}
		taken += result == CUDA_SUCCESS ? run : 0;
	}
	*ret_taken = taken;
	if (taken || result == CUDA_SUCCESS)
		return 0;
	ret_shortage->short_of = TS_SHORT_DRIVER;
	ret_shortage->result = result;
	return ts_gpu_errno(result);
}

int ts_pager_gather(struct ts_pager *pager, size_t count, size_t own_busy,
        unsigned int flags, struct ts_shortage *ret_shortage)
{
	bool asked_again = false, settled = false;

	while (pager->chunks.idle_count < count) {
		size_t wanted = count - pager->chunks.idle_count, got;
		int rc = create_chunks(pager, wanted, &got, ret_shortage);

		if (rc)
			return rc;
		if (got)
			continue;
		if (flags & TS_BEGIN_NO_EVICT)
			return -EAGAIN;
		rc = ts_pager_take_pages(
		        pager, wanted, flags, &got, ret_shortage);
		if (rc)
			return rc;
		if (got)
			continue;
		/* Not every stream may be waited for. */
		if (flags & TS_BEGIN_BESIDE_CAPTURE && !settled) {
			settled = true;
			ts_streams_wait_beside_capture(
			        &pager->streams, &pager->lock);
			continue;
		}
		if (flags & TS_BEGIN_ANY_CAPTURE) {
			ret_shortage->short_of = TS_SHORT_CAPTURING;
			return -EBUSY;
		}
		/* Nothing to take: is there really no room? */
		if (!asked_again) {
			asked_again = true;
			pager->no_room = false;
			continue;
		}
		/* Ops being issued by other threads let their pages go soon. */
		if (pager->busy_count == own_busy) {
			ret_shortage->short_of = TS_SHORT_OF_DEVICE;
			return -ENOMEM;
		}
		ts_cond_wait(&pager->idle, &pager->lock);
	}
	return 0;
}
