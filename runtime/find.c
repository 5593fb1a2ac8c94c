/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory for pages: idle chunks, new ones, those of other pages. */
#include <errno.h>

#include "agent/base/log.h"
#include "runtime/pager_internal.h"

/* At the limit the driver is asked again after so many needs of a chunk. */
#define MEASURE_INTERVAL 64
/* One that was refused for a moment is not missed for long: 0, 1, 3, 7, ... */
#define REFUSED_MAX 6

static int driver_says(CUresult result, struct ts_shortage *ret_shortage)
{
	if (result == CUDA_SUCCESS)
		return 0;
	ts_short_of_driver(ret_shortage, result);
	return ts_gpu_errno(result);
}

int ts_pager_measure(struct ts_pager *pager, uint64_t *ret_used_bytes,
        struct ts_shortage *ret_shortage)
{
	uint64_t used, total, placed;
	CUresult rc;

	ts_mutex_unlock(&pager->lock);
	rc = ts_account_measure(&pager->account, &used, &total);
	ts_mutex_lock(&pager->lock);
	if (rc != CUDA_SUCCESS)
		return driver_says(rc, ret_shortage);
	ts_account_note(&pager->account, used);
	placed = pager->chunks.created_bytes;
	pager->other_bytes = used > placed ? used - placed : 0;
	pager->told_bytes = pager->other_bytes;
	*ret_used_bytes = used;
	return 0;
}

/* What others use changes rarely: at the limit it is not asked each time. */
static int measure_again(
        struct ts_pager *pager, struct ts_shortage *ret_shortage)
{
	uint64_t used;
	int rc;

	if (pager->no_room && pager->skipped++ < pager->leaves_out)
		return 0;
	rc = ts_pager_measure(pager, &used, ret_shortage);
	pager->skipped = 0;
	pager->leaves_out = MEASURE_INTERVAL - 1;
	pager->no_room = ts_pager_room(pager) < pager->unit_bytes;
	return rc;
}

/* While something captures only what surely no op uses may change hands. */
static bool usable(const struct ts_pager *pager, const struct ts_chunk *chunk,
        unsigned int flags)
{
	return !(flags & TS_BEGIN_ANY_CAPTURE) ||
	       ts_streams_done(&pager->streams, chunk->fence.op);
}

/* Idle memory of the wrong sizes that is left alone rather than recut. */
static uint64_t scraps_of(const struct ts_pager *pager)
{
	return pager->chunks.created_bytes / 128;
}

/* A page of the size that has found nothing yet. */
static struct ts_page *seeker(const struct ts_pages *pages, uint64_t bytes)
{
	for (size_t i = 0; i < pages->count; i++)
		if (pages->items[i]->seeks && pages->items[i]->bytes == bytes)
			return pages->items[i];
	return NULL;
}

uint64_t ts_pager_missing(const struct ts_pager *pager,
        const struct ts_pages *pages, unsigned int flags, uint64_t scraps)
{
	uint64_t need = 0, found = ts_pager_room(pager), other = 0;
	const struct ts_list *at = pager->chunks.idle.next;

	for (size_t i = 0; i < pages->count; i++)
		pages->items[i]->seeks = true;
	for (; at != &pager->chunks.idle; at = at->next) {
		const struct ts_chunk *chunk =
		        ts_container_of(at, struct ts_chunk, list);
		struct ts_page *page = seeker(pages, chunk->bytes);

		if (!usable(pager, chunk, flags))
			continue;
		if (page)
			page->seeks = false;
		else
			other += chunk->bytes;
	}
	for (size_t i = 0; i < pages->count; i++)
		need += pages->items[i]->seeks ? pages->items[i]->bytes : 0;
	found += other > scraps ? other : 0;
	return found < need ? need - found : 0;
}

/* Nothing could be taken: is there anything left to hope for? */
static int last_resort(struct ts_pager *pager, size_t own_busy,
        unsigned int flags, int *tries, struct ts_shortage *ret_shortage)
{
	++*tries;
	/* Not every stream may be waited for. */
	if (flags & TS_BEGIN_BESIDE_CAPTURE && *tries == 1) {
		ts_streams_wait_beside_capture(&pager->streams, &pager->lock);
		return 0;
	}
	if (flags & TS_BEGIN_ANY_CAPTURE) {
		ret_shortage->short_of = TS_SHORT_CAPTURING;
		return -EBUSY;
	}
	/* Is there really no room? */
	if (*tries == 1) {
		pager->no_room = false;
		return 0;
	}
	/* Ops being issued by other threads let their pages go soon. */
	if (pager->busy_count == own_busy) {
		ret_shortage->short_of = TS_SHORT_OF_DEVICE;
		return -ENOMEM;
	}
	ts_cond_wait(&pager->idle, &pager->lock);
	return 0;
}

int ts_pager_gather(struct ts_pager *pager, const struct ts_pages *pages,
        size_t own_busy, unsigned int flags, struct ts_shortage *ret_shortage)
{
	uint64_t missing, taken, scraps = scraps_of(pager);
	int rc = measure_again(pager, ret_shortage), tries = 0;

	while (!rc &&
	        (missing = ts_pager_missing(pager, pages, flags, scraps))) {
		if (flags & TS_BEGIN_NO_EVICT)
			return -EAGAIN;
		rc = ts_pager_take_pages(pager,
		        &(struct ts_take){missing, pages, 0}, flags, &taken,
		        ret_shortage);
		if (rc || taken)
			continue;
		if (scraps) {
			scraps = 0;
			continue;
		}
		rc = last_resort(pager, own_busy, flags, &tries, ret_shortage);
		if (!rc)
			rc = measure_again(pager, ret_shortage);
	}
	return rc;
}

/* Takes a chunk that nobody uses from all addresses where it is mapped. */
static CUresult unmap_everywhere(struct ts_pager *pager, struct ts_chunk *chunk)
{
	CUresult rc = CUDA_SUCCESS;

	while (!ts_list_empty(&chunk->mappers) && rc == CUDA_SUCCESS) {
		struct ts_page *page = ts_container_of(
		        chunk->mappers.next, struct ts_page, alias);

		rc = ts_pager_wait_fence(pager, &page->fence);
		if (rc == CUDA_SUCCESS)
			rc = ts_move_unmap(pager, page);
	}
	return rc;
}

CUresult ts_pager_release_idle(struct ts_pager *pager, uint64_t bytes)
{
	uint64_t given = 0;

	while (given < bytes && !ts_list_empty(&pager->chunks.idle)) {
		struct ts_chunk *chunk = ts_container_of(
		        pager->chunks.idle.next, struct ts_chunk, list);
		uint64_t chunk_bytes = chunk->bytes;
		CUresult rc = unmap_everywhere(pager, chunk);

		if (rc != CUDA_SUCCESS)
			return rc;
		ts_chunks_remove(&pager->chunks, chunk);
		ts_mutex_unlock(&pager->lock);
		rc = ts_chunks_release(&pager->chunks, chunk);
		ts_mutex_lock(&pager->lock);
		if (rc != CUDA_SUCCESS) {
			ts_chunks_add(&pager->chunks, chunk);
			return rc;
		}
		given += chunk_bytes;
	}
	return CUDA_SUCCESS;
}

/* -EAGAIN where the device is fuller than it says. */
static int create_chunk(struct ts_pager *pager, uint64_t bytes,
        struct ts_chunk **ret_chunk, struct ts_shortage *ret_shortage)
{
	uint64_t room = ts_pager_room(pager);
	CUresult rc = CUDA_SUCCESS;

	if (room < bytes)
		rc = ts_pager_release_idle(pager, bytes - room);
	if (rc != CUDA_SUCCESS)
		return driver_says(rc, ret_shortage);
	if (ts_pager_room(pager) < bytes)
		return -EAGAIN;
	ts_mutex_unlock(&pager->lock);
	rc = ts_chunks_create(&pager->chunks, bytes, ret_chunk);
	ts_mutex_lock(&pager->lock);
	if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
		pager->other_bytes = pager->account.limit_bytes -
		                     pager->chunks.created_bytes;
		pager->no_room = true;
		pager->skipped = 0;
		pager->leaves_out = (1u << pager->refused) - 1;
		pager->refused += pager->refused < REFUSED_MAX;
		return -EAGAIN;
	}
	if (rc != CUDA_SUCCESS)
		return driver_says(rc, ret_shortage);
	pager->refused = 0;
	ts_chunks_add(&pager->chunks, *ret_chunk);
	ts_account_note(&pager->account,
	        pager->told_bytes + pager->chunks.created_bytes);
	return 0;
}

static void take(
        struct ts_pager *pager, struct ts_chunk *chunk, struct ts_page *page)
{
	ts_chunks_take(&pager->chunks, chunk, page);
	page->chunk = chunk;
}

/* An idle chunk of the size, rather one that no other page hopes for. */
static struct ts_chunk *idle_chunk(
        struct ts_pager *pager, uint64_t bytes, unsigned int flags)
{
	struct ts_list *at = pager->chunks.idle.next;
	struct ts_chunk *found = NULL;

	for (; at != &pager->chunks.idle; at = at->next) {
		struct ts_chunk *chunk =
		        ts_container_of(at, struct ts_chunk, list);

		if (chunk->bytes != bytes || !usable(pager, chunk, flags))
			continue;
		found = chunk;
		if (ts_list_empty(&chunk->mappers))
			break;
	}
	return found;
}

/* Beside a plan: what waits for its pages is not for others while there is
 * room. */
static bool is_free(const struct ts_pager *pager, const struct ts_chunk *chunk)
{
	return !pager->enforce || ts_list_empty(&chunk->mappers) ||
	       ts_pager_room(pager) < chunk->bytes;
}

/* Those that need no call first, for what the others take may be theirs. */
static int take_chunks(struct ts_pager *pager, struct ts_pages *pages,
        unsigned int flags, struct ts_shortage *ret_shortage)
{
	struct ts_chunk *chunk;
	int rc = 0;

	for (size_t i = 0; i < pages->count; i++) {
		struct ts_page *page = pages->items[i];

		if (page->mapping && !page->mapping->tenant &&
		        usable(pager, page->mapping, flags))
			take(pager, page->mapping, page);
	}
	for (size_t i = 0; i < pages->count; i++) {
		struct ts_page *page = pages->items[i];

		chunk = page->chunk ? NULL
		                    : idle_chunk(pager, page->bytes, flags);
		if (chunk && is_free(pager, chunk))
			take(pager, chunk, page);
	}
	for (size_t i = 0; i < pages->count && !rc; i++) {
		struct ts_page *page = pages->items[i];

		if (page->chunk)
			continue;
		/* What was made just now may have taken the room. */
		chunk = idle_chunk(pager, page->bytes, flags);
		if (!chunk || !is_free(pager, chunk))
			rc = create_chunk(
			        pager, page->bytes, &chunk, ret_shortage);
		if (!rc)
			take(pager, chunk, page);
	}
	return rc;
}

static CUresult map_all(struct ts_pager *pager, struct ts_pages *pages)
{
	CUresult rc = CUDA_SUCCESS;

	for (size_t i = 0; i < pages->count && rc == CUDA_SUCCESS; i++) {
		struct ts_page *page = pages->items[i];

		if (page->mapping == page->chunk)
			continue;
		if (page->mapping) {
			rc = ts_pager_wait_fence(pager, &page->fence);
			if (rc == CUDA_SUCCESS)
				rc = ts_move_unmap(pager, page);
		}
		if (rc == CUDA_SUCCESS)
			rc = ts_move_map(pager, page);
	}
	return rc;
}

/* Opens runs of neighbouring pages with one call each: it is the dear one. */
static CUresult open_all(struct ts_pager *pager, struct ts_pages *pages)
{
	CUresult rc = CUDA_SUCCESS;
	size_t i = 0;

	while (i < pages->count && rc == CUDA_SUCCESS) {
		uint64_t begin = pages->items[i]->address, end = begin;
		size_t next = i;

		while (next < pages->count && !pages->items[next]->opened &&
		        pages->items[next]->address == end)
			end += pages->items[next++]->bytes;
		if (next == i) {
			i++;
			continue;
		}
		ts_mutex_unlock(&pager->lock);
		rc = ts_move_open(pager, begin, end - begin);
		ts_mutex_lock(&pager->lock);
		for (; i < next && rc == CUDA_SUCCESS; i++)
			pages->items[i]->opened = true;
	}
	return rc;
}

static CUresult copy_all(struct ts_pager *pager, struct ts_pages *pages)
{
	struct ts_copies *copies = &pager->copies;
	uint64_t batch;
	CUresult rc;

	copies->count = 0;
	copies->after = (struct ts_fence){0};
	for (size_t i = 0; i < pages->count; i++) {
		struct ts_page *page = pages->items[i];

		if (!ts_page_has_slots(page))
			continue;
		/* After what was in the chunk, and its own way out. */
		ts_fence_join(&copies->after, &page->chunk->fence);
		ts_fence_join(&copies->after, &page->fence);
		if (ts_copies_add(pager, page, false))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	rc = ts_copies_issue(pager, false, &batch);
	for (size_t i = 0; i < pages->count && rc == CUDA_SUCCESS; i++) {
		struct ts_page *page = pages->items[i];

		if (ts_page_has_slots(page))
			page->fence.in = batch;
	}
	return rc;
}

/* Its next op comes after whatever was done in the chunk. */
static void move_in(struct ts_pager *pager, struct ts_page *page)
{
	const struct ts_fence *before = &page->chunk->fence;

	if (before->op > page->former_op)
		page->former_op = before->op;
	ts_fence_join(&page->fence, before);
	page->former = true;
	page->resident = true;
	ts_list_remove(&page->list);
	ts_page_enlist(pager, page);
}

static void give_up(struct ts_pager *pager, struct ts_page *page)
{
	if (page->chunk)
		ts_chunks_put(&pager->chunks, page->chunk);
	page->chunk = NULL;
}

int ts_pager_bring(struct ts_pager *pager, struct ts_pages *pages,
        unsigned int flags, struct ts_shortage *ret_shortage)
{
	CUresult result = CUDA_SUCCESS;
	int rc;

	pager->moved++;
	rc = take_chunks(pager, pages, flags, ret_shortage);
	if (!rc) {
		result = map_all(pager, pages);
		if (result == CUDA_SUCCESS)
			result = open_all(pager, pages);
		if (result == CUDA_SUCCESS)
			result = copy_all(pager, pages);
		rc = driver_says(result, ret_shortage);
	}
	for (size_t i = 0; i < pages->count; i++) {
		if (!rc)
			move_in(pager, pages->items[i]);
		else
			give_up(pager, pages->items[i]);
	}
	return rc;
}
