/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The driver calls that move pages; the mover's, under the gate. */
#include <errno.h>
#include <stdlib.h>

#include "agent/base/stack.h"
#include "runtime/enforce.h"
#include "runtime/pager_internal.h"

/* Room for one more item of @size bytes; false without memory. */
static bool grow(void **items, size_t count, size_t *capacity, size_t size)
{
	size_t wanted = *capacity ? 2 * *capacity : 256;
	void *grown;

	if (count < *capacity)
		return true;
	grown = realloc(*items, wanted * size);
	if (!grown)
		return false;
	*items = grown;
	*capacity = wanted;
	return true;
}

int ts_pages_add(struct ts_pages *pages, struct ts_page *page)
{
	void *items = pages->items;

	if (!grow(&items, pages->count, &pages->capacity,
	            sizeof(pages->items[0])))
		return -ENOMEM;
	pages->items = items;
	pages->items[pages->count++] = page;
	return 0;
}

bool ts_pager_enter_context(struct ts_pager *pager)
{
	CUcontext current = NULL;

	if (pager->ops->ctx_get_current(&current) == CUDA_SUCCESS &&
	        current == pager->context)
		return false;
	return pager->ops->ctx_push(pager->context) == CUDA_SUCCESS;
}

void ts_pager_leave_context(struct ts_pager *pager, bool entered)
{
	CUcontext popped;

	if (entered)
		pager->ops->ctx_pop(&popped);
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

static CUresult wait_ops(struct ts_pager *pager, uint64_t number)
{
	uint64_t begin = ts_now_ns();
	CUresult rc = ts_streams_wait(&pager->streams, number, &pager->lock);

	pager->stats.wait_ops_ns += ts_now_ns() - begin;
	return rc;
}

static CUresult wait_copies(
        struct ts_pager *pager, const struct ts_fence *until)
{
	uint64_t begin = ts_now_ns();
	CUresult rc;

	ts_mutex_unlock(&pager->lock);
	rc = ts_copyq_wait(&pager->out, until->out, &pager->lock);
	if (rc == CUDA_SUCCESS)
		rc = ts_copyq_wait(&pager->in, until->in, &pager->lock);
	ts_mutex_lock(&pager->lock);
	pager->stats.wait_copies_ns += ts_now_ns() - begin;
	return rc;
}

CUresult ts_pager_wait_fence(
        struct ts_pager *pager, const struct ts_fence *fence)
{
	const struct ts_fence until = *fence;
	CUresult rc = CUDA_SUCCESS;

	if (!ts_streams_done(&pager->streams, until.op))
		rc = wait_ops(pager, until.op);
	if (rc == CUDA_SUCCESS &&
	        (until.out > pager->out.done || until.in > pager->in.done))
		rc = wait_copies(pager, &until);
	return rc;
}

/* ----------------------------------------------------------------- mapping */

CUresult ts_move_map(struct ts_pager *pager, struct ts_page *page)
{
	struct ts_chunk *chunk = page->chunk;
	CUresult rc;

	ts_mutex_unlock(&pager->lock);
	rc = ts_gpu_said("cuMemMap", pager->ops->map(page->address, page->bytes,
	                                     0, chunk->handle, 0));
	ts_mutex_lock(&pager->lock);
	if (rc != CUDA_SUCCESS)
		return rc;
	page->mapping = chunk;
	ts_list_append(&chunk->mappers, &page->alias);
	return rc;
}

CUresult ts_move_unmap(struct ts_pager *pager, struct ts_page *page)
{
	CUresult rc;

	ts_mutex_unlock(&pager->lock);
	rc = ts_gpu_said(
	        "cuMemUnmap", pager->ops->unmap(page->address, page->bytes));
	ts_mutex_lock(&pager->lock);
	if (rc != CUDA_SUCCESS)
		return rc;
	page->mapping = NULL;
	page->planned = false;
	page->opened = false;
	ts_list_remove(&page->alias);
	ts_enforce_disturb(pager);
	return rc;
}

CUresult ts_move_open(struct ts_pager *pager, uint64_t address, uint64_t bytes)
{
	CUmemAccessDesc access[1 + 32];
	size_t count = 0;

	access[count++] = (CUmemAccessDesc){
	        .location = pager->chunks.prop.location,
	        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	for (int device = 0; device < 32; device++) {
		if (!(pager->peers >> device & 1))
			continue;
		access[count] = access[0];
		access[count++].location.id = device;
	}
	return ts_gpu_said("cuMemSetAccess",
	        pager->ops->set_access(address, bytes, access, count));
}

/* ------------------------------------------------------------------ copies */

/* True where the unit goes on where the last copy noted ends. */
static bool goes_on(
        const struct ts_copies *copies, uint64_t address, const char *host)
{
	const struct ts_copy *last;

	if (!copies->count)
		return false;
	last = &copies->items[copies->count - 1];
	return last->address + last->bytes == address &&
	       (const char *)last->host + last->bytes == host &&
	       last->bytes < last->most_bytes;
}

static int add_copy(struct ts_pager *pager, uint64_t address, void *host)
{
	struct ts_copies *copies = &pager->copies;
	void *items = copies->items;

	if (goes_on(copies, address, host)) {
		copies->items[copies->count - 1].bytes += pager->unit_bytes;
		return 0;
	}
	if (!grow(&items, copies->count, &copies->capacity,
	            sizeof(copies->items[0])))
		return -ENOMEM;
	copies->items = items;
	copies->items[copies->count++] = (struct ts_copy){
	        .address = address,
	        .bytes = pager->unit_bytes,
	        .host = host,
	        .most_bytes = ts_hostpool_rest(&pager->host, host) *
	                      pager->unit_bytes,
	};
	return 0;
}

int ts_copies_add(struct ts_pager *pager, struct ts_page *page, bool out)
{
	int rc = 0;

	for (size_t i = 0; i < page->count && !rc; i++) {
		struct ts_unit *unit = &page->units[i];

		if (out && unit->live_bytes && !unit->slot)
			unit->slot = ts_hostpool_take(&pager->host);
		if (!unit->slot || (out && !unit->live_bytes))
			continue;
		rc = add_copy(pager, page->address + i * pager->unit_bytes,
		        unit->slot);
	}
	return rc;
}

/* The slots copied to are not overwritten before they were read. Lock held. */
static void come_after_reads(struct ts_pager *pager)
{
	const struct ts_copies *copies = &pager->copies;

	for (size_t i = 0; i < copies->count; i++) {
		uint64_t read =
		        ts_hostpool_read(&pager->host, copies->items[i].host,
		                copies->items[i].bytes / pager->unit_bytes);

		if (read > pager->copies.after.in)
			pager->copies.after.in = read;
	}
}

/* Batch @in reads the slots copied from. Lock held. */
static void note_reads(struct ts_pager *pager, uint64_t in)
{
	const struct ts_copies *copies = &pager->copies;

	for (size_t i = 0; i < copies->count; i++)
		ts_hostpool_set_read(&pager->host, copies->items[i].host,
		        copies->items[i].bytes / pager->unit_bytes, in);
}

/* Lock not held. */
static CUresult order(struct ts_pager *pager, struct ts_copyq *queue,
        const struct ts_fence *after)
{
	struct ts_copyq *other =
	        queue == &pager->out ? &pager->in : &pager->out;
	uint64_t number = queue == &pager->out ? after->in : after->out;
	uint64_t *waits =
	        queue == &pager->out ? &queue->waits.in : &queue->waits.out;
	CUresult rc = CUDA_SUCCESS;
	bool over;

	if (after->op > queue->waits.op) {
		ts_mutex_lock(&pager->lock);
		rc = ts_streams_order(&pager->streams, after->op, 0,
		        queue->stream, &pager->lock);
		ts_mutex_unlock(&pager->lock);
		if (rc != CUDA_SUCCESS)
			return rc;
		queue->waits.op = after->op;
	}
	if (number <= *waits)
		return rc;
	ts_mutex_lock(&pager->lock);
	over = number <= other->done;
	ts_mutex_unlock(&pager->lock);
	if (!over)
		rc = ts_copyq_order(other, number, queue->stream);
	if (rc == CUDA_SUCCESS)
		*waits = number;
	return rc;
}

static CUresult issue(
        struct ts_pager *pager, const struct ts_copy *copy, bool out)
{
	if (out)
		return ts_gpu_said("cuMemcpyDtoHAsync",
		        pager->ops->copy_out(copy->host, copy->address,
		                copy->bytes, pager->out.stream));
	return ts_gpu_said("cuMemcpyHtoDAsync",
	        pager->ops->copy_in(copy->address, copy->host, copy->bytes,
	                pager->in.stream));
}

/* Adds up what was issued; the caller counts it. */
static CUresult issue_all(struct ts_pager *pager, bool out, uint64_t *ret_bytes)
{
	struct ts_copies *copies = &pager->copies;
	CUresult rc = CUDA_SUCCESS;
	size_t i;

	*ret_bytes = 0;
	for (i = 0; i < copies->count; i++) {
		rc = issue(pager, &copies->items[i], out);
		if (rc != CUDA_SUCCESS)
			break;
		*ret_bytes += copies->items[i].bytes;
	}
	copies->count = i;
	return rc;
}

/* Lock held. */
static void count_copies(struct ts_pager *pager, bool out, uint64_t bytes)
{
	struct ts_pager_stats *stats = &pager->stats;

	*(out ? &stats->out_bytes : &stats->in_bytes) += bytes;
	*(out ? &stats->copies_out : &stats->copies_in) += pager->copies.count;
}

CUresult ts_copies_issue(struct ts_pager *pager, bool out, uint64_t *ret_batch)
{
	struct ts_copyq *queue = out ? &pager->out : &pager->in;
	struct ts_fence after;
	uint64_t bytes = 0;
	CUresult rc;

	*ret_batch = queue->issued;
	if (!pager->copies.count)
		return CUDA_SUCCESS;
	if (out)
		come_after_reads(pager);
	after = pager->copies.after;
	ts_stack_soil();
	pager->streams.marks = true;
	ts_mutex_unlock(&pager->lock);
	rc = ts_copyq_start(&pager->out);
	if (rc == CUDA_SUCCESS)
		rc = ts_copyq_start(&pager->in);
	if (rc == CUDA_SUCCESS)
		rc = order(pager, queue, &after);
	if (rc == CUDA_SUCCESS) {
		rc = issue_all(pager, out, &bytes);
		/* What was begun must not go on unseen. */
		if (rc == CUDA_SUCCESS)
			rc = ts_copyq_close(queue, &pager->lock);
		else
			pager->ops->stream_synchronize(queue->stream);
	}
	ts_mutex_lock(&pager->lock);
	if (bytes)
		count_copies(pager, out, bytes);
	if (!out && rc == CUDA_SUCCESS)
		note_reads(pager, queue->issued);
	*ret_batch = queue->issued;
	return rc;
}
