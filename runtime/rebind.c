/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What depends on contexts. Placed memory belongs to the device, but pinned
 * host memory and streams go with their context, and other devices reach it
 * once one of their contexts may.
 */
#include "runtime/pager_internal.h"

void ts_pager_context_gone(struct ts_pager *pager, CUcontext context)
{
	/* The mover, if at work, is done with its streams and events. */
	ts_mutex_lock(&pager->gate);
	ts_mutex_lock(&pager->lock);
	ts_streams_context_gone(&pager->streams, context);
	ts_pager_new_life(pager);
	ts_mutex_unlock(&pager->lock);
	ts_mutex_unlock(&pager->gate);
}

CUcontext ts_pager_context(struct ts_pager *pager)
{
	CUcontext context;

	ts_mutex_lock(&pager->lock);
	context = pager->context;
	ts_mutex_unlock(&pager->lock);
	return context;
}

static void renew_slots(struct ts_pager *pager)
{
	struct ts_map_node *node = ts_map_ceiling(&pager->segments, 0);

	for (; node; node = ts_map_ceiling(&pager->segments, node->key + 1)) {
		struct ts_segment *segment =
		        ts_container_of(node, struct ts_segment, node);

		for (size_t i = 0; i < segment->unit_count; i++)
			if (segment->units[i].slot)
				segment->units[i].slot = ts_hostpool_moved(
				        &pager->host, segment->units[i].slot);
	}
	ts_hostpool_reindex(&pager->host);
}

/* Under the lock: keys without a context meant the one that was the pager's. */
static void rename_streams(struct ts_streams *streams, CUcontext context)
{
	for (size_t i = 0; i < streams->count; i++) {
		struct ts_stream *stream = &streams->streams[i];

		if (!(stream->key & TS_STREAM_KIND))
			continue;
		if (!(stream->key & ~TS_STREAM_KIND))
			stream->key = ts_stream_in(stream->key, streams->own);
		else if ((stream->key & ~TS_STREAM_KIND) ==
		         (uint64_t)(uintptr_t)context)
			stream->key &= TS_STREAM_KIND;
	}
	streams->own = context;
}

/* The copies under way, which go with the context's streams. */
static CUresult end_copies(struct ts_pager *pager)
{
	struct ts_fence all;
	CUresult rc;
	bool entered = ts_pager_enter_context(pager);

	ts_mutex_lock(&pager->lock);
	all = (struct ts_fence){0, pager->out.issued, pager->in.issued};
	rc = ts_pager_wait_fence(pager, &all);
	ts_mutex_unlock(&pager->lock);
	if (rc == CUDA_SUCCESS) {
		ts_copyq_finish(&pager->out, true);
		ts_copyq_finish(&pager->in, true);
	}
	ts_pager_leave_context(pager, entered);
	return rc;
}

static CUresult copy_house(struct ts_pager *pager, CUcontext context)
{
	CUcontext popped;
	CUstream stream = NULL;
	CUresult rc = pager->ops->ctx_push(context);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = pager->ops->stream_create(&stream, CU_STREAM_NON_BLOCKING);
	if (rc == CUDA_SUCCESS)
		rc = ts_hostpool_rehouse(&pager->host, stream);
	if (stream)
		pager->ops->stream_destroy(stream);
	pager->ops->ctx_pop(&popped);
	return rc;
}

static CUresult move_house(struct ts_pager *pager, CUcontext context)
{
	CUresult rc = end_copies(pager);
	bool entered;

	if (rc == CUDA_SUCCESS)
		rc = copy_house(pager, context);
	if (rc != CUDA_SUCCESS)
		return rc;
	ts_mutex_lock(&pager->lock);
	renew_slots(pager);
	rename_streams(&pager->streams, context);
	ts_mutex_unlock(&pager->lock);
	entered = ts_pager_enter_context(pager);
	ts_hostpool_drop_former(&pager->host);
	ts_pager_leave_context(pager, entered);
	ts_mutex_lock(&pager->lock);
	pager->context = context;
	ts_pager_new_life(pager);
	ts_mutex_unlock(&pager->lock);
	return CUDA_SUCCESS;
}

CUresult ts_pager_rebind(struct ts_pager *pager, CUcontext context)
{
	CUresult rc;

	ts_mutex_lock(&pager->gate);
	ts_mutex_lock(&pager->pinning);
	rc = move_house(pager, context);
	ts_mutex_unlock(&pager->pinning);
	ts_mutex_unlock(&pager->gate);
	return rc;
}

static CUresult open_segment(
        struct ts_pager *pager, const struct ts_segment *segment)
{
	CUresult rc = CUDA_SUCCESS;

	/* Who holds the gate is the one to change what is mapped. */
	for (size_t i = 0; i < segment->unit_count && rc == CUDA_SUCCESS;
	        i += segment->units[i].page->count) {
		const struct ts_page *page = segment->units[i].page;

		if (page->mapping)
			rc = ts_move_open(pager, page->address, page->bytes);
	}
	return rc;
}

CUresult ts_pager_set_peers(struct ts_pager *pager, uint32_t peers)
{
	struct ts_map_node *node;
	CUresult rc = CUDA_SUCCESS;
	uint64_t next = 0;

	ts_mutex_lock(&pager->gate);
	/* What was reachable stays so: only later mappings are closed. */
	if (!(peers & ~pager->peers)) {
		pager->peers = peers;
		goto out;
	}
	pager->peers = peers;
	while (rc == CUDA_SUCCESS) {
		ts_mutex_lock(&pager->lock);
		node = ts_map_ceiling(&pager->segments, next);
		ts_mutex_unlock(&pager->lock);
		if (!node)
			break;
		next = node->key + 1;
		/* Segments are freed under the gate only. */
		rc = open_segment(
		        pager, ts_container_of(node, struct ts_segment, node));
	}
out:
	ts_mutex_unlock(&pager->gate);
	return rc;
}
