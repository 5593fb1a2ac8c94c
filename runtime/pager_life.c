/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a pager begins and ends. */
#include <errno.h>
#include <stdlib.h>

#include "runtime/enforce.h"
#include "runtime/pager_internal.h"

#define UNITS_PER_PAGE 16

void ts_pager_new_life(struct ts_pager *pager)
{
	static _Atomic uint64_t lives;

	pager->life = atomic_fetch_add(&lives, 1) + 1;
}

static void init_parts(
        struct ts_pager *pager, const struct ts_pager_options *options)
{
	pager->unit_bytes = pager->chunks.unit_bytes;
	if (!(pager->unit_bytes & (pager->unit_bytes - 1)))
		pager->unit_shift =
		        (unsigned int)__builtin_ctzll(pager->unit_bytes);
	pager->page_bytes = options->page_bytes
	                            ? options->page_bytes
	                            : UNITS_PER_PAGE * pager->unit_bytes;
	if (pager->page_bytes < pager->unit_bytes)
		pager->page_bytes = pager->unit_bytes;
	ts_mutex_init(&pager->lock, TS_RANK_PAGER);
	ts_mutex_init(&pager->gate, TS_RANK_GATE);
	ts_mutex_init(&pager->pinning, TS_RANK_PINNING);
	pager->unmaps = options->unmaps;
	ts_helper_init(
	        &pager->helper, options->helper_thread, ts_pager_help, pager);
	pthread_cond_init(&pager->idle, NULL);
	ts_map_init(&pager->segments);
	ts_list_init(&pager->slabs);
	ts_list_init(&pager->deferred);
	ts_list_init(&pager->used);
	ts_list_init(&pager->spare);
	ts_list_init(&pager->away);
	ts_streams_init(&pager->streams, pager->ops, pager->context);
	ts_copyq_init(&pager->out, pager->ops);
	ts_copyq_init(&pager->in, pager->ops);
	ts_hostpool_init(&pager->host, pager->ops, pager->unit_bytes,
	        options->host_limit_bytes);
}

int ts_pager_create(const struct ts_gpu_ops *ops,
        const struct ts_pager_options *options, struct ts_pager **ret_pager)
{
	static _Atomic uint64_t last_id;
	struct ts_pager *pager = calloc(1, sizeof(*pager));
	uint64_t used, total;
	int rc = -ENOMEM;

	if (!pager)
		return rc;
	pager->ops = ops;
	pager->id = ++last_id;
	pager->device = options->device;
	ts_pager_new_life(pager);
	pager->account.ops = ops;
	rc = ts_gpu_errno(ops->ctx_get_current(&pager->context));
	if (!rc)
		rc = ts_gpu_errno(
		        ts_account_measure(&pager->account, &used, &total));
	if (!rc)
		rc = ts_chunks_init(&pager->chunks, ops, options->device,
		        options->unit_bytes);
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
	pager->told_bytes = used;
	init_parts(pager, options);
	*ret_pager = pager;
	return 0;
}

uint64_t ts_pager_id(const struct ts_pager *pager)
{
	return pager->id;
}

/* Everything there is, while the driver still answers. */
static void strip_all(struct ts_pager *pager)
{
	struct ts_map_node *node;

	pager->ops->ctx_synchronize();
	ts_mutex_lock(&pager->gate);
	ts_mutex_lock(&pager->lock);
	pager->out.done = pager->out.issued;
	pager->in.done = pager->in.issued;
	node = ts_map_ceiling(&pager->segments, 0);
	for (; node; node = ts_map_ceiling(&pager->segments, node->key + 1))
		ts_pager_strip(
		        pager, ts_container_of(node, struct ts_segment, node));
	/* The rest too, where the driver keeps one. */
	if (ts_pager_release_idle(pager, UINT64_MAX) != CUDA_SUCCESS)
		ts_pager_release_idle(pager, UINT64_MAX);
	ts_mutex_unlock(&pager->lock);
	ts_mutex_unlock(&pager->gate);
}

/* Chunks that the driver would not take back. */
static void forget_chunks(struct ts_list *list)
{
	while (!ts_list_empty(list)) {
		struct ts_chunk *chunk =
		        ts_container_of(list->next, struct ts_chunk, list);

		ts_list_remove(&chunk->list);
		free(chunk);
	}
}

void ts_pager_rest(struct ts_pager *pager)
{
	ts_helper_rest(&pager->helper);
}

void ts_pager_quiet(struct ts_pager *pager)
{
	ts_helper_stop(&pager->helper, true);
}

void ts_pager_destroy(struct ts_pager *pager, bool driver_alive)
{
	if (!pager)
		return;
	ts_helper_stop(&pager->helper, false);
	ts_enforce_end(pager);
	if (driver_alive)
		strip_all(pager);
	while (pager->segments.root) {
		struct ts_segment *segment = ts_container_of(
		        pager->segments.root, struct ts_segment, node);

		for (size_t i = 0; i < segment->unit_count;
		        i += segment->units[i].page->count)
			free(segment->units[i].page->chunk);
		ts_pager_remove_segment(pager, segment);
		ts_segment_destroy(pager->ops, segment, driver_alive);
	}
	ts_copyq_finish(&pager->out, driver_alive);
	ts_copyq_finish(&pager->in, driver_alive);
	ts_hostpool_finish(&pager->host, driver_alive);
	forget_chunks(&pager->chunks.idle);
	ts_streams_finish(&pager->streams, driver_alive);
	free(pager->missing.items);
	free(pager->victims.items);
	free(pager->early.items);
	free(pager->copies.items);
	pthread_cond_destroy(&pager->idle);
	ts_helper_finish(&pager->helper);
	ts_mutex_finish(&pager->pinning);
	ts_mutex_finish(&pager->gate);
	ts_mutex_finish(&pager->lock);
	free(pager);
}
