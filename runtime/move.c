/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The driver calls that move pages; the mover's, under the gate. */
#include <stdlib.h>

#include "runtime/pager_internal.h"

struct ts_move *ts_moves_add(struct ts_moves *moves)
{
	if (moves->count == moves->capacity) {
		size_t capacity = moves->capacity ? 2 * moves->capacity : 256;
		void *items =
		        realloc(moves->items, capacity * sizeof(*moves->items));

		if (!items)
			return NULL;
		moves->items = items;
		moves->capacity = capacity;
	}
	return &moves->items[moves->count++];
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

/* Non-blocking: the program may well work on the legacy stream. */
static CUresult need_stream(struct ts_pager *pager)
{
	if (pager->stream)
		return CUDA_SUCCESS;
	return pager->ops->stream_create(
	        &pager->stream, CU_STREAM_NON_BLOCKING);
}

/*
 * How many moves from @first on are neighbours on both sides, so that one copy
 * carries them all.
 */
static size_t copy_run(const struct ts_pager *pager,
        const struct ts_moves *moves, size_t first)
{
	const struct ts_move *items = moves->items;
	size_t i = first + 1;

	while (i < moves->count && items[i].copy &&
	        items[i].address == items[i - 1].address + pager->page_bytes &&
	        (char *)items[i].host ==
	                (char *)items[i - 1].host + pager->page_bytes &&
	        ts_hostpool_runs_on(&pager->host, items[i - 1].host))
		i++;
	return i - first;
}

static CUresult copy_all(
        struct ts_pager *pager, const struct ts_moves *moves, bool out)
{
	CUresult rc = CUDA_SUCCESS;
	uint64_t bytes = 0, copies = 0;

	for (size_t i = 0; i < moves->count && rc == CUDA_SUCCESS; copies++) {
		const struct ts_move *move = &moves->items[i];
		size_t run;

		while (i < moves->count && !moves->items[i].copy)
			i++;
		if (i == moves->count)
			break;
		move = &moves->items[i];
		rc = need_stream(pager);
		if (rc != CUDA_SUCCESS)
			break;
		run = copy_run(pager, moves, i);
		if (out)
			rc = pager->ops->copy_out(move->host, move->address,
			        run * pager->page_bytes, pager->stream);
		else
			rc = pager->ops->copy_in(move->address, move->host,
			        run * pager->page_bytes, pager->stream);
		bytes += run * pager->page_bytes;
		i += run;
	}
	/* Also after a failure: what was begun must not go on. */
	if (copies) {
		CUresult waited =
		        pager->stream
		                ? pager->ops->stream_synchronize(pager->stream)
		                : CUDA_SUCCESS;

		if (rc == CUDA_SUCCESS)
			rc = waited;
	}
	ts_mutex_lock(&pager->lock);
	if (out) {
		pager->stats.out_bytes += bytes;
		pager->stats.copies_out += copies;
	} else {
		pager->stats.in_bytes += bytes;
		pager->stats.copies_in += copies;
	}
	ts_mutex_unlock(&pager->lock);
	return rc;
}

CUresult ts_move_out(struct ts_pager *pager, const struct ts_moves *moves)
{
	return copy_all(pager, moves, true);
}

CUresult ts_move_unmap(struct ts_pager *pager, uint64_t address, size_t count)
{
	return pager->ops->unmap(address, count * pager->page_bytes);
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
	return pager->ops->set_access(address, bytes, access, count);
}

/* Opens runs of neighbouring pages with one call each: it is the dear one. */
static CUresult open_all(struct ts_pager *pager, const struct ts_moves *moves)
{
	CUresult rc = CUDA_SUCCESS;
	size_t i = 0;

	while (i < moves->count && rc == CUDA_SUCCESS) {
		size_t end = i + 1;

		while (end < moves->count &&
		        moves->items[end].address ==
		                moves->items[end - 1].address +
		                        pager->page_bytes)
			end++;
		rc = ts_move_open(pager, moves->items[i].address,
		        (end - i) * pager->page_bytes);
		i = end;
	}
	return rc;
}

CUresult ts_move_in(struct ts_pager *pager, const struct ts_moves *moves)
{
	CUresult rc = CUDA_SUCCESS;
	size_t mapped = 0;

	while (mapped < moves->count && rc == CUDA_SUCCESS) {
		const struct ts_move *move = &moves->items[mapped];

		rc = pager->ops->map(
		        move->address, pager->page_bytes, 0, move->handle, 0);
		mapped += rc == CUDA_SUCCESS;
	}
	if (rc == CUDA_SUCCESS)
		rc = open_all(pager, moves);
	if (rc == CUDA_SUCCESS)
		rc = copy_all(pager, moves, false);
	if (rc == CUDA_SUCCESS)
		return rc;
	while (mapped)
		ts_move_unmap(pager, moves->items[--mapped].address, 1);
	return rc;
}
