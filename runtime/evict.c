/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Who goes, and the way out. */
#include <errno.h>
#include <string.h>

#include "runtime/pager_internal.h"

static bool may_take(const struct ts_pager *pager, const struct ts_page *page,
        bool capturing)
{
	if (page->busy || page->pins)
		return false;
	return !capturing ||
	       (ts_streams_done(&pager->streams, page->fence.op) &&
	               page->fence.in <= pager->in.done &&
	               page->fence.out <= pager->out.done);
}

/* In the order in which used pages go: what the tape foresees, then clean. */
struct order {
	uint64_t now, period; /* period 0: as they come, longest unused first */
	uint64_t bytes[2 * TS_FORESEE_CLASSES]; /* by rank, that may go */
	size_t least;                           /* of the last that goes */
	uint64_t reach; /* without a period: of the list's beginning */
};

/* What is to be found. */
struct wish {
	const struct ts_pages *wanted; /* may be NULL */
	uint64_t bytes;
	uint64_t clean_until;
	size_t saves; /* slots of host memory that may be taken */
	bool capturing;
};

/* What the wish allows beside that. */
static bool suits(const struct ts_pager *pager, const struct wish *wish,
        struct ts_page *page)
{
	uint64_t now, period, next;

	if (!may_take(pager, page, wish->capturing))
		return false;
	if (!wish->clean_until || page->spare)
		return true;
	now = atomic_load(&pager->foresee.now);
	period = atomic_load(&pager->foresee.period);
	if (!period || page->written || page->fence.out > pager->out.done)
		return false;
	next = ts_foresee_next(page, now, period);
	return !next || next > wish->clean_until;
}

static size_t rank_of(const struct order *order, struct ts_page *page)
{
	return 2 * ts_foresee_class(page, order->now, order->period) +
	       !page->written;
}

/* Who may go: about those that have to, and @slack bytes more. */
static void make_order(struct ts_pager *pager, struct order *order,
        const struct wish *wish, uint64_t slack)
{
	uint64_t found = 0;

	order->now = atomic_load(&pager->foresee.now);
	order->period = atomic_load(&pager->foresee.period);
	order->least = 0;
	order->reach = wish->bytes + slack;
	if (!order->period)
		return;
	memset(order->bytes, 0, sizeof(order->bytes));
	for (struct ts_list *at = pager->used.next; at != &pager->used;
	        at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (suits(pager, wish, page) && (wish->saves || !page->written))
			order->bytes[rank_of(order, page)] += page->bytes;
	}
	order->least = 2 * TS_FORESEE_CLASSES - 1;
	while (order->least &&
	        (found += order->bytes[order->least]) < wish->bytes)
		order->least--;
	while (order->least && (found += order->bytes[order->least - 1]) <=
	                               wish->bytes + slack)
		order->least--;
}

/* New slots that saving the page takes. */
static size_t saves_of(const struct ts_page *page)
{
	size_t saves = 0;

	for (size_t i = 0; i < page->count && page->written; i++)
		saves += page->units[i].live_bytes && !page->units[i].slot;
	return saves;
}

/* Where it may go, it is among the victims from now on. */
static int choose_page(
        struct ts_pager *pager, struct wish *wish, struct ts_page *page)
{
	size_t saves;
	int rc;

	if (page->chosen || !suits(pager, wish, page))
		return 0;
	saves = page->live_units ? saves_of(page) : 0;
	if (saves > wish->saves)
		return 0;
	rc = ts_pages_add(&pager->victims, page);
	if (rc)
		return rc;
	page->chosen = true;
	wish->saves -= saves;
	wish->bytes -= page->bytes < wish->bytes ? page->bytes : wish->bytes;
	return 0;
}

/* Of the ranks from @least up to @most. */
static int choose_from(struct ts_pager *pager, struct ts_list *list,
        struct wish *wish, const struct order *order, size_t least, size_t most)
{
	struct ts_list *at = list->next;
	int rc = 0;

	for (; at != list && wish->bytes && !rc; at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (!order->period || (rank_of(order, page) >= least &&
		                              rank_of(order, page) <= most))
			rc = choose_page(pager, wish, page);
	}
	return rc;
}

/* The best of @list to give its chunk to a page of @bytes; may be NULL. */
static struct ts_page *same_size(struct ts_pager *pager, struct ts_list *list,
        const struct wish *wish, const struct order *order, uint64_t bytes)
{
	struct ts_page *best = NULL;
	uint64_t passed = 0;
	size_t best_rank = 0;

	for (struct ts_list *at = list->next; at != list; at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);
		size_t rank;

		passed += page->bytes;
		if (!order->period && passed > order->reach)
			break;
		if (page->bytes != bytes || page->chosen ||
		        !suits(pager, wish, page))
			continue;
		rank = order->period ? rank_of(order, page) : 0;
		if (rank < order->least || (best && rank <= best_rank))
			continue;
		best = page;
		best_rank = rank;
		if (!order->period)
			break;
	}
	return best;
}

/*
 * Chunks that pages without one can have for no call or fewer. @order says who
 * may go: a little more than would have to.
 */
static int choose_matching(struct ts_pager *pager, struct ts_list *list,
        struct wish *wish, const struct order *order)
{
	size_t count = wish->wanted ? wish->wanted->count : 0;
	int rc = 0;

	for (size_t i = 0; i < count && wish->bytes && !rc; i++) {
		const struct ts_page *page = wish->wanted->items[i];
		struct ts_page *tenant =
		        page->mapping ? page->mapping->tenant : NULL;

		/* Where nothing is foreseen it may have been used just now. */
		if (!page->seeks || !tenant || !tenant->resident ||
		        tenant->spare != (list == &pager->spare) ||
		        (!tenant->spare && !order->period) ||
		        (order->period &&
		                rank_of(order, tenant) < order->least))
			continue;
		rc = choose_page(pager, wish, tenant);
	}
	for (size_t i = 0; i < count && wish->bytes && !rc; i++) {
		const struct ts_page *page = wish->wanted->items[i];
		struct ts_page *other;

		if (!page->seeks || (page->mapping && page->mapping->tenant &&
		                            page->mapping->tenant->chosen))
			continue;
		other = same_size(pager, list, wish, order, page->bytes);
		if (other)
			rc = choose_page(pager, wish, other);
	}
	return rc;
}

static int choose_used(struct ts_pager *pager, struct wish *wish)
{
	struct order order = {0};
	int rc;

	make_order(pager, &order, wish, pager->chunks.created_bytes / 16);
	rc = choose_matching(pager, &pager->used, wish, &order);
	if (rc || !wish->bytes)
		return rc;
	make_order(pager, &order, wish, 0);
	/* Those of the last rank only as far as they are needed. */
	if (order.period)
		rc = choose_from(pager, &pager->used, wish, &order,
		        order.least + 1, SIZE_MAX);
	return rc ? rc
	          : choose_from(pager, &pager->used, wish, &order, order.least,
	                    order.least);
}

/* Free pages first: they owe nobody anything. */
static int choose(struct ts_pager *pager, const struct ts_take *take,
        size_t saves, unsigned int flags)
{
	struct wish wish = {take->wanted, take->bytes, take->clean_until, saves,
	        flags & TS_BEGIN_ANY_CAPTURE};
	struct order any = {.reach = UINT64_MAX};
	int rc;

	pager->victims.count = 0;
	rc = choose_matching(pager, &pager->spare, &wish, &any);
	if (!rc)
		rc = choose_from(pager, &pager->spare, &wish, &any, 0, 0);
	if (!rc && !(flags & TS_BEGIN_CAPTURING) && wish.bytes)
		rc = choose_used(pager, &wish);
	for (size_t i = 0; i < pager->victims.count; i++)
		pager->victims.items[i]->chosen = false;
	return rc;
}

/* Host copies of pages that stay resident: without them those are dirty. */
static void reclaim_slots(struct ts_pager *pager, size_t wanted)
{
	struct ts_list *at = pager->used.next;

	for (; at != &pager->used && pager->host.free_slots < wanted;
	        at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (!page->written && !page->busy && !page->pins)
			continue;
		if (!ts_page_has_slots(page))
			continue;
		for (size_t i = 0; i < page->count; i++)
			ts_unit_forget(pager, &page->units[i]);
		page->written = true;
	}
}

/*
 * With a full host pool: pages that need no slot, and of others as many as
 * there are slots for. Where that finds none the shortage stands. Lock held.
 */
static int choose_without_slots(struct ts_pager *pager,
        const struct ts_take *take, unsigned int flags, int shortage)
{
	int rc;

	reclaim_slots(pager, take->bytes / pager->unit_bytes);
	rc = choose(pager, take, pager->host.free_slots, flags);
	return rc || pager->victims.count ? rc : shortage;
}

/* Pinned slots for all that has to be saved; 1 where the lock was let go. */
static int need_slots(struct ts_pager *pager, struct ts_shortage *ret_shortage)
{
	uint64_t begin = ts_now_ns();
	size_t saves = 0;
	int rc;

	for (size_t i = 0; i < pager->victims.count; i++)
		saves += saves_of(pager->victims.items[i]);
	if (saves <= pager->host.free_slots)
		return 0;
	ts_mutex_unlock(&pager->lock);
	rc = ts_pager_grow_host(pager, saves, true);
	ts_mutex_lock(&pager->lock);
	pager->stats.wait_pinning_ns += ts_now_ns() - begin;
	if (!rc)
		return 1;
	if (rc != -ENOSPC && rc != -ENOMEM) {
		ts_short_of_driver(ret_shortage, ts_gpu_said_last());
		return rc;
	}
	ret_shortage->short_of = TS_SHORT_OF_HOST;
	ret_shortage->host_used_bytes = pager->host.pinned_bytes;
	ret_shortage->host_limit_bytes = pager->host.limit_bytes;
	return rc;
}

static bool is_saved(const struct ts_page *page)
{
	return page->written && page->live_units;
}

/* Units of victims side by side, from the one at @index on, to be copied. */
static size_t units_in_row(const struct ts_pages *victims, size_t index)
{
	uint64_t end = victims->items[index]->address;
	size_t units = 0;

	for (; index < victims->count; index++) {
		const struct ts_page *page = victims->items[index];

		if (page->address != end || !is_saved(page))
			break;
		units += page->count;
		end += page->bytes;
	}
	return units;
}

/*
 * True where the slots of the @units from victim @index on follow on one
 * another as far as slabs let them: then it takes few copies.
 */
static bool slots_run_on(
        const struct ts_pager *pager, size_t index, size_t units)
{
	const char *last = NULL;
	size_t runs = 0;

	for (size_t seen = 0; seen < units; index++) {
		const struct ts_page *page = pager->victims.items[index];

		seen += page->count;
		for (size_t i = 0; i < page->count; i++) {
			const char *slot = page->units[i].slot;

			if (!page->units[i].live_bytes)
				continue;
			runs += !slot || !last ||
			        slot != last + pager->unit_bytes;
			last = slot;
		}
	}
	return runs <= 1 + units / ts_hostpool_run(&pager->host);
}

/*
 * So many units from victim @index on are copied side by side. Where their
 * slots lie elsewhere, each where there was one when it first left, all get
 * others: what is in them is old. How many will find some that follow on one
 * another.
 */
static size_t aim(struct ts_pager *pager, size_t index)
{
	size_t units = units_in_row(&pager->victims, index), seen = 0;

	if (slots_run_on(pager, index, units))
		return units;
	for (size_t i = index; seen < units; i++) {
		struct ts_page *page = pager->victims.items[i];

		seen += page->count;
		for (size_t k = 0; k < page->count; k++)
			ts_unit_forget(pager, &page->units[k]);
	}
	return ts_hostpool_aim(&pager->host, units);
}

/* From here on nobody finds the victims resident. Notes what to copy. */
static int detach_victims(struct ts_pager *pager)
{
	size_t aimed = 0; /* units that go to slots that are known */
	int rc = 0;

	pager->copies.count = 0;
	pager->copies.after = (struct ts_fence){0};
	for (size_t i = 0; i < pager->victims.count; i++) {
		struct ts_page *page = pager->victims.items[i];

		ts_page_delist(pager, page);
		page->resident = false;
		page->leaving = is_saved(page);
		if (!page->leaving)
			continue;
		if (!aimed)
			aimed = aim(pager, i);
		aimed -= page->count < aimed ? page->count : aimed;
		if (page->fence.op > pager->copies.after.op)
			pager->copies.after.op = page->fence.op;
		if (page->fence.in > pager->copies.after.in)
			pager->copies.after.in = page->fence.in;
		if (!rc)
			rc = ts_copies_add(pager, page, true);
	}
	return rc;
}

static void put_back(struct ts_pager *pager, struct ts_page *page)
{
	page->resident = true;
	page->leaving = false;
	ts_page_enlist(pager, page);
}

/* The page is gone from the device; its content, if any, is in the slots. */
static void settle(struct ts_pager *pager, struct ts_page *page, uint64_t batch)
{
	struct ts_chunk *chunk = page->chunk;
	size_t units = page->count;

	/* It may be free by now: what is copied is nobody's any more. */
	if (page->leaving)
		page->fence.out = batch;
	page->leaving = false;
	page->written = false;
	chunk->fence = page->fence;
	page->chunk = NULL;
	ts_chunks_put(&pager->chunks, chunk);
	if (!page->live_units)
		pager->stats.reclaimed_pages += units;
	else
		pager->stats.evicted_pages += units;
	if (ts_page_has_slots(page))
		ts_list_append(&pager->away, &page->list);
}

/* While the lock was let go an op may have begun to use some of them. */
static void drop_used(struct ts_pager *pager)
{
	size_t kept = 0;

	for (size_t i = 0; i < pager->victims.count; i++) {
		struct ts_page *page = pager->victims.items[i];

		if (page->resident && may_take(pager, page, false))
			pager->victims.items[kept++] = page;
	}
	pager->victims.count = kept;
}

/*
 * For tests: what is gone from the device cannot be reached any more, though
 * its memory stays with it. One that fails stays as it is.
 */
static void unmap_victims(struct ts_pager *pager)
{
	for (size_t i = 0; i < pager->victims.count; i++) {
		struct ts_page *page = pager->victims.items[i];

		if (page->mapping && ts_pager_wait_fence(pager, &page->fence) ==
		                             CUDA_SUCCESS)
			ts_move_unmap(pager, page);
	}
}

int ts_pager_evict(struct ts_pager *pager, struct ts_shortage *ret_shortage)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t batch = 0;
	int rc;

	while ((rc = need_slots(pager, ret_shortage)) > 0)
		drop_used(pager);
	if (rc)
		return rc;
	pager->moved++;
	rc = detach_victims(pager);
	if (!rc)
		result = ts_copies_issue(pager, true, &batch);
	for (size_t i = 0; i < pager->victims.count; i++) {
		struct ts_page *page = pager->victims.items[i];

		if (result == CUDA_SUCCESS)
			settle(pager, page, batch);
		else
			put_back(pager, page);
	}
	if (result == CUDA_SUCCESS && pager->unmaps)
		unmap_victims(pager);
	if (result == CUDA_SUCCESS)
		return 0;
	ts_short_of_driver(ret_shortage, result);
	return ts_gpu_errno(result);
}

int ts_pager_take_pages(struct ts_pager *pager, const struct ts_take *take,
        unsigned int flags, uint64_t *ret_taken,
        struct ts_shortage *ret_shortage)
{
	int rc;

	*ret_taken = 0;
	do {
		rc = choose(pager, take, SIZE_MAX, flags);
		if (!rc)
			rc = need_slots(pager, ret_shortage);
	} while (rc > 0);
	if (rc < 0)
		rc = choose_without_slots(pager, take, flags, rc);
	if (rc || !pager->victims.count)
		return rc;
	rc = ts_pager_evict(pager, ret_shortage);
	for (size_t i = 0; i < pager->victims.count && !rc; i++)
		*ret_taken += pager->victims.items[i]->bytes;
	return rc;
}

/* ---------------------------------------------------------- ahead of need */

/* The victims are those to clean: they stay, busy while they are copied. */
static CUresult copy_victims(struct ts_pager *pager)
{
	uint64_t batch = 0;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	int rc = 0;

	pager->copies.count = 0;
	pager->copies.after = (struct ts_fence){0};
	for (size_t i = 0; i < pager->victims.count && !rc; i++) {
		struct ts_page *page = pager->victims.items[i];

		if (page->fence.op > pager->copies.after.op)
			pager->copies.after.op = page->fence.op;
		if (page->fence.in > pager->copies.after.in)
			pager->copies.after.in = page->fence.in;
		rc = ts_copies_add(pager, page, true);
	}
	/* Whoever uses them meanwhile waits for the gate. */
	for (size_t i = 0; i < pager->victims.count; i++)
		pager->victims.items[i]->resident = false;
	if (!rc)
		result = ts_copies_issue(pager, true, &batch);
	for (size_t i = 0; i < pager->victims.count; i++) {
		struct ts_page *page = pager->victims.items[i];

		page->resident = true;
		/* What was free meanwhile sits in the wrong list. */
		ts_page_delist(pager, page);
		ts_page_enlist(pager, page);
		if (result != CUDA_SUCCESS)
			continue;
		page->fence.out = batch;
		page->written = false;
	}
	return result;
}

CUresult ts_pager_clean(
        struct ts_pager *pager, uint64_t reserve_bytes, uint64_t most_bytes)
{
	struct wish wish = {.bytes = reserve_bytes, .saves = SIZE_MAX};
	size_t saves = pager->host.free_slots;
	struct order order = {0};
	uint64_t bytes = 0;

	make_order(pager, &order, &wish, 0);
	if (!order.period)
		return CUDA_SUCCESS;
	pager->victims.count = 0;
	for (struct ts_list *at = pager->used.next;
	        at != &pager->used && bytes < most_bytes; at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);

		if (!page->written || !may_take(pager, page, false) ||
		        rank_of(&order, page) < order.least)
			continue;
		/* More memory is pinned when pages have to go, or before. */
		if (saves_of(page) > saves)
			break;
		if (ts_pages_add(&pager->victims, page))
			break;
		saves -= saves_of(page);
		bytes += page->bytes;
	}
	return pager->victims.count ? copy_victims(pager) : CUDA_SUCCESS;
}
