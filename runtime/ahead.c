/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work that is done before it is needed, once the step is known: what will go
 * next is copied out while it is still there, so that taking its chunk is all
 * that is left to do; and what is used next is brought back, at the cost of
 * what is used later. Every few ops, by the helper or who finds it at work.
 */
#include "runtime/pager_internal.h"

/* Batches that may be under way each way: more would only queue. */
#define BATCHES_OUT 4
#define BATCHES_IN  6
#define PIECE_UNITS 32 /* of one batch */

/* How much of the memory shall be free to take, as a part of it. */
#define RESERVE 16

/* How far ahead pages are brought back, as a part of the step. */
#define HORIZON 6

static uint64_t piece_bytes(const struct ts_pager *pager)
{
	return PIECE_UNITS * pager->unit_bytes;
}

static CUresult clean(struct ts_pager *pager)
{
	uint64_t reserve = pager->chunks.created_bytes / RESERVE;
	uint64_t there = pager->spare_bytes + pager->chunks.idle_bytes;

	if (there >= reserve ||
	        pager->out.issued - pager->out.done >= BATCHES_OUT)
		return CUDA_SUCCESS;
	return ts_pager_clean(pager, reserve - there, piece_bytes(pager));
}

/* The page whose use comes first, after op @after and before @until. */
static struct ts_page *first_used(
        struct ts_pager *pager, uint64_t after, uint64_t until, uint64_t period)
{
	struct ts_page *found = NULL;
	uint64_t now = atomic_load(&pager->foresee.now);

	for (struct ts_list *at = pager->away.next; at != &pager->away;
	        at = at->next) {
		struct ts_page *page =
		        ts_container_of(at, struct ts_page, list);
		uint64_t next = ts_foresee_next(page, now, period);

		if (next <= after || next > until || page->seeks)
			continue;
		found = page;
		until = next - 1;
	}
	return found;
}

/* Pages to bring back, in the order of their uses. */
static uint64_t collect(struct ts_pager *pager)
{
	uint64_t now = atomic_load(&pager->foresee.now), last = 0;
	uint64_t period = atomic_load(&pager->foresee.period), bytes = 0;
	struct ts_page *page;

	pager->early.count = 0;
	while (bytes < piece_bytes(pager)) {
		page = first_used(pager, now, now + period / HORIZON, period);
		if (!page || ts_pages_add(&pager->early, page))
			break;
		page->seeks = true;
		bytes += page->bytes;
		last = ts_foresee_next(page, now, period);
	}
	for (size_t i = 0; i < pager->early.count; i++)
		pager->early.items[i]->seeks = false;
	return last;
}

static void prefetch(struct ts_pager *pager)
{
	struct ts_shortage ignored = {0};
	struct ts_take take = {.wanted = &pager->early};
	uint64_t last, taken, used;

	if (pager->in.issued - pager->in.done >= BATCHES_IN)
		return;
	/* Others may have come since what is left was measured. */
	if (ts_pager_room(pager) >= pager->unit_bytes &&
	        ts_pager_measure(pager, &used, &ignored))
		return;
	last = collect(pager);
	if (!pager->early.count)
		return;
	/* Only for what is used well after that. */
	take.clean_until = last + atomic_load(&pager->foresee.period) / HORIZON;
	take.bytes = ts_pager_missing(pager, &pager->early, 0, 0);
	if (take.bytes &&
	        (ts_pager_take_pages(pager, &take, 0, &taken, &ignored) ||
	                ts_pager_missing(pager, &pager->early, 0, 0)))
		return;
	ts_pager_bring(pager, &pager->early, 0, &ignored);
}

void ts_pager_ahead(struct ts_pager *pager)
{
	CUresult rc = CUDA_SUCCESS;

	ts_mutex_unlock(&pager->lock);
	ts_copyq_poll(&pager->out, &pager->lock);
	ts_copyq_poll(&pager->in, &pager->lock);
	ts_mutex_lock(&pager->lock);
	ts_streams_poll(&pager->streams, &pager->lock);
	/* A plan says itself what is done when. */
	if (pager->enforce)
		return;
	rc = clean(pager);
	if (rc == CUDA_SUCCESS)
		prefetch(pager);
}
