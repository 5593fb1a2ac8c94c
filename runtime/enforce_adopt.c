/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A page plan comes into force, and ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"
#include "runtime/enforce_internal.h"
#include "runtime/wait.h"

/* Allocators give small allocations segments of a page. */
static bool is_small(const struct ts_segment *segment)
{
	return segment->unit_count == 1;
}

/* Room for one more; NULL without memory. */
static struct ts_plan_segment *next_run(
        struct ts_enforce_survey *survey, size_t *room)
{
	struct ts_plan_segment *more;

	if (survey->n_segments == *room) {
		*room = 2 * *room + 64;
		more = realloc(survey->segments, *room * sizeof(*more));
		if (!more)
			return NULL;
		survey->segments = more;
	}
	return &survey->segments[survey->n_segments++];
}

/* Runs of pages of @segment that may leave; pinned ones never do. */
static int survey_segment(const struct ts_segment *segment,
        struct ts_enforce_survey *survey, size_t *room)
{
	struct ts_plan_segment *run = NULL;

	for (size_t at = 0; at < segment->unit_count;) {
		const struct ts_page *page = segment->units[at].page;

		at += page->count;
		if (page->pins) {
			survey->fixed_pages += page->count;
			run = NULL;
			continue;
		}
		if (!run) {
			run = next_run(survey, room);
			if (!run)
				return -ENOMEM;
			*run = (struct ts_plan_segment){page->address, 0};
		}
		run->pages += (uint32_t)page->count;
	}
	return 0;
}

int ts_enforce_survey(struct ts_pager *pager, bool small_move,
        struct ts_enforce_survey *ret_survey)
{
	struct ts_map_node *node;
	size_t room = 0;
	int rc = 0;

	*ret_survey =
	        (struct ts_enforce_survey){.page_bytes = pager->unit_bytes};
	ts_mutex_lock(&pager->lock);
	ret_survey->limit_bytes = pager->account.limit_bytes;
	ret_survey->other_bytes = pager->other_bytes;
	for (node = ts_map_ceiling(&pager->segments, 0); node && !rc;
	        node = ts_map_ceiling(&pager->segments, node->key + 1)) {
		struct ts_segment *segment =
		        ts_container_of(node, struct ts_segment, node);

		/* Slabs of the pager's own never move. */
		ret_survey->small_pages += is_small(segment) && !segment->taken;
		if (!segment->taken && (small_move || !is_small(segment)))
			rc = survey_segment(segment, ret_survey, &room);
		else
			ret_survey->fixed_pages += segment->unit_count;
	}
	ts_mutex_unlock(&pager->lock);
	ret_survey->small_stay = ret_survey->small_pages && !small_move;
	if (rc)
		free(ret_survey->segments);
	return rc;
}

/* What is mapped is not as the plan has it: the next one may have it other. */
static void forget_pages(
        struct ts_pager *pager, const struct ts_enforce *enforce)
{
	for (uint32_t s = 0; s < enforce->n_strips; s++) {
		const struct ts_plan_move *strip = &enforce->strips[s];
		struct ts_segment *segment =
		        ts_segment_of(&pager->segments, strip->address);
		size_t at, end;

		if (!segment)
			continue;
		at = (strip->address - segment->base) / pager->unit_bytes;
		end = at + strip->pages;
		while (at < end && at < segment->unit_count) {
			struct ts_page *page = segment->units[at].page;

			page->planned = false;
			at = ts_page_first(page) + page->count;
		}
	}
}

void ts_enforce_end(struct ts_pager *pager)
{
	struct ts_enforce *enforce;

	ts_mutex_lock(&pager->gate);
	ts_mutex_lock(&pager->lock);
	enforce = pager->enforce;
	if (enforce)
		forget_pages(pager, enforce);
	pager->enforce = NULL;
	ts_mutex_unlock(&pager->lock);
	ts_mutex_unlock(&pager->gate);
	ts_enforce_destroy(enforce);
}

/* ---------------------------------------------------- pages as in the plan */

/* Every page that reaches into @strip is to leave. Lock held. */
static int collect_strip(
        struct ts_pager *pager, const struct ts_plan_strip *strip)
{
	struct ts_segment *segment =
	        ts_segment_of(&pager->segments, strip->address);
	size_t at, end;

	if (!segment)
		return -ESTALE;
	at = (strip->address - segment->base) / pager->unit_bytes;
	end = at + strip->pages;
	if (end > segment->unit_count)
		return -ESTALE;
	while (at < end) {
		struct ts_page *page = segment->units[at].page;

		at = ts_page_first(page) + page->count;
		if (page->busy || page->pins)
			return -EBUSY;
		/* Some reach into two strips. */
		if (!page->resident || page->mark == pager->slow_number)
			continue;
		page->mark = pager->slow_number;
		if (ts_pages_add(&pager->victims, page))
			return -ENOMEM;
	}
	return 0;
}

static int empty_all(struct ts_pager *pager, const struct ts_page_plan *plan)
{
	struct ts_shortage shortage = {0};
	int rc = 0;

	pager->victims.count = 0;
	pager->slow_number++;
	for (uint32_t s = 0; s < plan->n_strips && !rc; s++)
		rc = collect_strip(pager, &plan->strips[s]);
	if (!rc && pager->victims.count)
		rc = ts_pager_evict(pager, &shortage);
	return rc;
}

/* True where a page is to begin at unit @at of @strip, or one ended before. */
static bool begins_page(const struct ts_pager *pager,
        const struct ts_page_plan *plan, const struct ts_plan_strip *strip,
        size_t at)
{
	/* Ops that do not fit are to be had by units: see begin_small(). */
	return at == strip->pages || !plan->apart ||
	       pager->page_bytes == pager->unit_bytes ||
	       plan->apart[plan->chunk_of[strip->first_page + at]];
}

/* Unmaps the page at unit @at of @segment, and cuts it there. */
static int cut_at(struct ts_pager *pager, struct ts_segment *segment, size_t at)
{
	struct ts_page *page = segment->units[at].page;
	CUresult result = CUDA_SUCCESS;
	int rc;

	/* An op took it up while others left. */
	if (page->resident)
		return -EBUSY;
	if (page->mapping)
		result = ts_pager_wait_fence(pager, &page->fence);
	if (result == CUDA_SUCCESS && page->mapping)
		result = ts_move_unmap(pager, page);
	rc = ts_gpu_errno(result);
	if (rc || ts_page_first(page) == at)
		return rc;
	rc = ts_page_cut(page, at);
	page = segment->units[at].page;
	if (!rc && ts_page_has_slots(page))
		ts_list_append(&pager->away, &page->list);
	return rc;
}

/* Joins the page before unit @at, of which nothing is mapped, with that. */
static void join_at(
        struct ts_pager *pager, struct ts_segment *segment, size_t at)
{
	struct ts_page *page = segment->units[at - 1].page;

	ts_page_join(page);
	ts_list_remove(&page->list);
	if (ts_page_has_slots(page))
		ts_list_append(&pager->away, &page->list);
}

/* Unmaps what reaches into @strip, and cuts it as the plan has it. */
static int cut_strip(struct ts_pager *pager, const struct ts_page_plan *plan,
        const struct ts_plan_strip *strip)
{
	struct ts_segment *segment =
	        ts_segment_of(&pager->segments, strip->address);
	size_t first = (strip->address - segment->base) / pager->unit_bytes;
	size_t end = first + strip->pages;
	int rc = 0;

	/* A cut takes as long as the page has units. */
	for (size_t at = first; at < end && !rc; at++)
		if (at == first ||
		        begins_page(pager, plan, strip, at - first) ||
		        ts_page_first(segment->units[at].page) == at)
			rc = cut_at(pager, segment, at);
	/* One past the strip's end only where one reaches over it. */
	if (!rc && end < segment->unit_count &&
	        ts_page_first(segment->units[end].page) != end)
		rc = cut_at(pager, segment, end);
	for (size_t i = 1; i < strip->pages && !rc; i++)
		if (!begins_page(pager, plan, strip, i) &&
		        ts_page_first(segment->units[first + i].page) ==
		                first + i)
			join_at(pager, segment, first + i);
	return rc;
}

/* ------------------------------------------------------------------ chunks */

/*
 * What the plan does not know of has to go where it needs the room: it was not
 * there when the plan was made, and comes back when it is used. Lock held, let
 * go.
 */
static int make_space(struct ts_pager *pager, uint64_t bytes)
{
	struct ts_shortage shortage = {0};
	int rc = 0;

	while (!rc && ts_pager_room(pager) < bytes) {
		struct ts_take take = {.bytes = bytes - ts_pager_room(pager)};
		uint64_t taken;

		rc = ts_pager_take_pages(pager, &take, 0, &taken, &shortage);
		if (!rc && !taken)
			rc = -ENOSPC;
		if (!rc)
			rc = ts_gpu_errno(
			        ts_pager_release_idle(pager, UINT64_MAX));
	}
	return rc;
}

/* Of those from @first on that can be one piece of memory. */
static uint32_t count_joined(const struct ts_pager *pager,
        const struct ts_page_plan *plan, uint32_t first)
{
	uint32_t end = first + 1;

	if (!plan->apart || pager->page_bytes == pager->unit_bytes)
		return 1;
	while (end < plan->n_chunks && !plan->apart[end])
		end++;
	return end - first;
}

/* All new ones: they are idle first. Lock held, let go. */
static int create_chunks(struct ts_pager *pager,
        const struct ts_page_plan *plan, struct ts_chunk **chunks)
{
	struct ts_shortage shortage = {0};
	uint32_t joined;
	uint64_t used;
	int rc = ts_pager_measure(pager, &used, &shortage);

	if (!rc)
		rc = make_space(pager, plan->n_chunks * pager->unit_bytes);
	for (uint32_t i = 0; i < plan->n_chunks && !rc; i += joined) {
		CUresult result;

		joined = count_joined(pager, plan, i);
		ts_mutex_unlock(&pager->lock);
		result = ts_chunks_create(
		        &pager->chunks, joined * pager->unit_bytes, &chunks[i]);
		ts_mutex_lock(&pager->lock);
		rc = ts_gpu_errno(result);
		if (!rc)
			ts_chunks_add(&pager->chunks, chunks[i]);
	}
	ts_account_note(&pager->account,
	        pager->other_bytes + pager->chunks.created_bytes);
	return rc;
}

/* Puts its chunk under every page of @strip. */
static CUresult map_strip(struct ts_pager *pager,
        const struct ts_page_plan *plan, const struct ts_plan_strip *strip,
        struct ts_chunk **chunks)
{
	struct ts_segment *segment =
	        ts_segment_of(&pager->segments, strip->address);
	size_t first = (strip->address - segment->base) / pager->unit_bytes;
	CUresult rc = CUDA_SUCCESS;

	for (uint32_t i = 0; i < strip->pages && rc == CUDA_SUCCESS;) {
		struct ts_page *page = segment->units[first + i].page;

		/* Its tenant only while it is mapped. */
		page->chunk = chunks[plan->chunk_of[strip->first_page + i]];
		ts_assert(page->chunk->bytes == page->bytes);
		rc = ts_move_map(pager, page);
		page->chunk = NULL;
		page->planned = rc == CUDA_SUCCESS;
		i += (uint32_t)page->count;
	}
	if (rc != CUDA_SUCCESS)
		return rc;
	ts_mutex_unlock(&pager->lock);
	rc = ts_move_open(
	        pager, strip->address, strip->pages * pager->unit_bytes);
	ts_mutex_lock(&pager->lock);
	for (uint32_t i = 0; i < strip->pages && rc == CUDA_SUCCESS; i++)
		segment->units[first + i].page->opened = true;
	return rc;
}

/* Small blocks share pages; those that stay and are away come first. */
static int bring_fixed(struct ts_pager *pager, const struct ts_enforce *enforce)
{
	struct ts_shortage shortage = {0};
	struct ts_map_node *node = ts_map_ceiling(&pager->segments, 0);
	int rc = 0;

	pager->missing.count = 0;
	for (; node && !rc;
	        node = ts_map_ceiling(&pager->segments, node->key + 1)) {
		struct ts_segment *segment =
		        ts_container_of(node, struct ts_segment, node);
		struct ts_page *page = segment->units[0].page;

		if (!is_small(segment) || page->resident || !page->live_units ||
		        ts_enforce_strip_at(
		                enforce, pager->unit_bytes, page->address))
			continue;
		rc = ts_pages_add(&pager->missing, page);
	}
	if (!rc && pager->missing.count)
		rc = ts_pager_gather(pager, &pager->missing, 0,
		        TS_BEGIN_NO_EVICT, &shortage);
	if (!rc && pager->missing.count)
		rc = ts_pager_bring(pager, &pager->missing, 0, &shortage);
	return rc == -EAGAIN ? -ENOSPC : rc;
}

/* @enforce: what @plan comes to. */
static int take_over(struct ts_pager *pager, const struct ts_page_plan *plan,
        const struct ts_enforce *enforce, struct ts_chunk **chunks)
{
	CUresult result = CUDA_SUCCESS;
	int rc = empty_all(pager, plan);

	for (uint32_t s = 0; s < plan->n_strips && !rc; s++)
		rc = cut_strip(pager, plan, &plan->strips[s]);
	if (!rc)
		rc = ts_gpu_errno(ts_pager_release_idle(pager, UINT64_MAX));
	if (!rc)
		rc = bring_fixed(pager, enforce);
	if (!rc)
		rc = create_chunks(pager, plan, chunks);
	for (uint32_t s = 0; s < plan->n_strips && !rc; s++) {
		result = map_strip(pager, plan, &plan->strips[s], chunks);
		rc = ts_gpu_errno(result);
	}
	return rc;
}

/*
 * Ops that other threads are issuing; the device is idle afterwards. What was
 * issued may itself wait for the program, which comes to a stand here: -EAGAIN
 * rather than waiting for it for ever.
 */
static int wait_idle(struct ts_pager *pager)
{
	struct ts_wait wait = ts_wait_begin(TS_WAIT_NS);
	CUresult result;
	uint64_t number;

	while (pager->busy_count)
		if (!ts_wait_again(&wait, &pager->lock))
			return -EAGAIN;
	number = pager->op_number;
	ts_streams_mark_all(&pager->streams, &pager->lock);
	do {
		result =
		        ts_streams_check(&pager->streams, number, &pager->lock);
	} while (result == CUDA_ERROR_NOT_READY &&
	         ts_wait_again(&wait, &pager->lock));
	return result == CUDA_ERROR_NOT_READY ? -EAGAIN : ts_gpu_errno(result);
}

int ts_enforce_wait_idle(struct ts_pager *pager)
{
	uint64_t out, in;
	bool entered;
	int rc;

	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_context(pager);
	ts_mutex_lock(&pager->lock);
	rc = wait_idle(pager);
	out = pager->out.issued;
	in = pager->in.issued;
	ts_mutex_unlock(&pager->lock);
	/* They wait for ops alone, all of which are done. */
	if (!rc)
		rc = ts_gpu_errno(
		        ts_copyq_wait(&pager->out, out, &pager->lock));
	if (!rc)
		rc = ts_gpu_errno(ts_copyq_wait(&pager->in, in, &pager->lock));
	ts_pager_leave_context(pager, entered);
	ts_mutex_unlock(&pager->gate);
	return rc;
}

int ts_enforce_adopt(
        struct ts_pager *pager, const struct ts_page_plan *plan, uint32_t index)
{
	struct ts_chunk **chunks =
	        calloc(plan->n_chunks + 1ull, sizeof(*chunks));
	struct ts_enforce *enforce = NULL;
	bool entered;
	int rc = -ENOMEM;

	if (plan->page_bytes != pager->unit_bytes)
		rc = -EINVAL;
	else if (chunks)
		rc = ts_enforce_build(plan, &enforce);
	ts_enforce_end(pager);
	if (rc) {
		free(chunks);
		return rc;
	}
	ts_mutex_lock(&pager->gate);
	entered = ts_pager_enter_context(pager);
	ts_mutex_lock(&pager->lock);
	rc = wait_idle(pager);
	if (!rc)
		rc = take_over(pager, plan, enforce, chunks);
	if (!rc)
		ts_enforce_state(enforce, index);
	if (!rc)
		rc = ts_enforce_move(pager, enforce, enforce->strips,
		        enforce->n_strips, true);
	if (!rc) {
		enforce->next = index;
		enforce->seen = pager->moved;
		pager->enforce = enforce;
	}
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_context(pager, entered);
	ts_mutex_unlock(&pager->gate);
	if (rc)
		ts_enforce_destroy(enforce);
	free(chunks);
	return rc;
}

int ts_enforce_others(struct ts_pager *pager, uint64_t *ret_bytes)
{
	struct ts_shortage shortage;
	bool entered = ts_pager_enter_context(pager);
	uint64_t used;
	int rc;

	ts_mutex_lock(&pager->lock);
	rc = ts_pager_measure(pager, &used, &shortage);
	*ret_bytes = pager->other_bytes;
	ts_mutex_unlock(&pager->lock);
	ts_pager_leave_context(pager, entered);
	return rc;
}

uint64_t ts_enforce_known_others(struct ts_pager *pager)
{
	uint64_t bytes;

	ts_mutex_lock(&pager->lock);
	bytes = pager->other_bytes;
	ts_mutex_unlock(&pager->lock);
	return bytes;
}
