/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/grow.h"

struct work {
	const struct ts_recording *step;
	const struct ts_profile *from;
	const struct ts_values *values;
	const struct ts_enforce_survey *survey;
	const struct ts_replay_candidates *candidates;
	struct ts_page_view *view;
	uint32_t n_ops;
};

/* ------------------------------------------------------------------- lives */

static uint32_t op_in_step(const struct work *work, uint64_t number)
{
	if (number <= work->step->first_op)
		return 0;
	number -= work->step->first_op;
	return number < work->n_ops ? (uint32_t)number : work->n_ops;
}

static void find_lives(struct work *work)
{
	const struct ts_recording *step = work->step;

	for (size_t i = 0; i < step->block_count; i++) {
		const struct ts_rec_block *block = &step->blocks[i];
		struct ts_page_range *range = &work->view->ranges[i];

		range->address = block->address;
		range->before = block->born <= step->first_op;
		range->first = range->before ? 0 : work->n_ops;
		range->end = block->died == TS_NEVER
		                     ? work->n_ops
		                     : op_in_step(work, block->died);
	}
	for (uint32_t i = 0; i < work->n_ops; i++) {
		const struct ts_rec_op *op = &step->ops[i];

		for (uint32_t k = 0; k < op->use_count + op->doubt_count; k++) {
			struct ts_page_range *range =
			        &work->view->ranges
			                 [ts_recording_use(step, op, k)->block];

			range->used = true;
			range->idle = i + 1;
			if (i < range->first)
				range->first = i;
			/* Freed by another thread while it was issued. */
			if (range->end <= i)
				range->end = i + 1;
		}
	}
}

/* What of each block lies in a segment that moves. */
static void find_bytes(struct work *work)
{
	uint64_t page = work->survey->page_bytes;

	for (uint32_t i = 0; i < work->view->n_blocks; i++) {
		const struct ts_rec_block *block = &work->step->blocks[i];
		struct ts_page_range *range = &work->view->ranges[i];
		const struct ts_plan_segment *segment;
		uint64_t end;

		if (block->device != work->values->device || !block->bytes ||
		        (!range->used && !range->before))
			continue;
		segment = ts_plan_segment_at(work->survey->segments,
		        work->survey->n_segments, block->address, page);
		if (!segment)
			continue;
		end = segment->base + segment->pages * page;
		if (block->address + block->bytes < end)
			end = block->address + block->bytes;
		range->bytes = end - block->address;
	}
}

/* -------------------------------------------------------------------- uses */

/* What launches are declared to read is for the tape alone. */
static bool is_told(const struct work *work, uint32_t index, uint32_t value)
{
	const struct ts_rec_op *op = &work->step->ops[index];
	uint32_t block = work->values->block_of[value];

	for (uint32_t k = 0; op->kind == TS_REC_COPY && k < op->use_count;
	        k++) {
		const struct ts_rec_use *use =
		        ts_recording_use(work->step, op, k);

		if (use->block == block && use->role == TS_ROLE_READ)
			return true;
	}
	return false;
}

static uint8_t *find_only_read(const struct work *work)
{
	const struct ts_profile *from = work->from;
	uint8_t *only_read = calloc(from->n_uses + 1ull, sizeof(*only_read));

	for (uint32_t i = 0; only_read && i < work->n_ops; i++)
		for (uint32_t k = 0; k < from->ops[i].n_reads; k++) {
			uint32_t use = from->ops[i].first_read + k;

			only_read[use] = is_told(work, i, from->uses[use]);
		}
	return only_read;
}

struct doubts {
	struct ts_page_doubt *list;
	uint32_t count, room;
	bool short_of_memory;
	uint32_t *asked; /* by candidate: one past the last op it was for */
};

static void add_doubt(
        struct doubts *doubts, uint32_t op, uint32_t block, bool edges)
{
	if (!ts_grow(&doubts->list, doubts->count + 1ull, &doubts->room,
	            sizeof(*doubts->list))) {
		doubts->short_of_memory = true;
		return;
	}
	doubts->list[doubts->count++] =
	        (struct ts_page_doubt){op, block, edges};
}

/* The pages that @block shares with others have to be there for op @op. */
static void need_edges(const struct work *work, uint32_t op, uint32_t block,
        struct doubts *doubts)
{
	const uint32_t *shared = work->view->shared[block];
	bool some = false;

	for (int i = 0; i < 2; i++) {
		struct ts_page_range *range;

		if (shared[i] == TS_NONE)
			continue;
		range = &work->view->ranges[shared[i]];
		if (op < range->first || op >= range->end)
			continue;
		some = true;
		/* It is used, though by no op. */
		if (range->idle <= op)
			range->idle = op + 1;
	}
	if (some)
		add_doubt(doubts, op, block, true);
}

/*
 * Op @op may have @value made again first, and what that is made from, too. The
 * model knows of pages that those have for themselves.
 */
static void add_made(const struct work *work, uint32_t op, uint32_t value,
        struct doubts *doubts)
{
	const struct ts_replay_candidate *from =
	        ts_replay_candidate_of(work->candidates, value);
	uint32_t at;

	if (!from)
		return;
	at = (uint32_t)(from - work->candidates->list);
	if (doubts->asked[at] > op)
		return;
	doubts->asked[at] = op + 1;
	for (uint32_t i = 0; i < from->n_reads; i++) {
		uint32_t leaf = work->candidates->pool[from->first_read + i];

		need_edges(work, op, work->values->block_of[leaf], doubts);
		add_made(work, op, leaf, doubts);
	}
}

/* Where doubtful words lead to, and what an op may be preceded by. */
static int find_doubts(const struct work *work, struct doubts *doubts)
{
	const struct ts_profile *from = work->from;
	uint32_t n = work->candidates ? work->candidates->count : 0;

	doubts->asked = calloc(n + 1ull, sizeof(*doubts->asked));
	if (!doubts->asked)
		return -ENOMEM;
	for (uint32_t i = 0; i < work->n_ops; i++) {
		const struct ts_rec_op *op = &work->step->ops[i];

		for (uint32_t k = 0; k < op->doubt_count; k++)
			add_doubt(doubts, i,
			        ts_recording_use(
			                work->step, op, op->use_count + k)
			                ->block,
			        false);
		for (uint32_t k = 0; k < from->ops[i].n_reads; k++)
			add_made(work, i,
			        from->uses[from->ops[i].first_read + k],
			        doubts);
	}
	free(doubts->asked);
	return doubts->short_of_memory ? -ENOMEM : 0;
}

static int fill(struct work *work)
{
	struct ts_page_contents contents = {.profile = work->from,
	        .block_of = work->values->block_of,
	        .n_valued = work->view->n_blocks};
	uint8_t *only_read = find_only_read(work);
	struct doubts doubts = {0};
	int rc = find_doubts(work, &doubts);

	contents.only_read = only_read;
	contents.doubts = doubts.list;
	contents.n_doubts = doubts.count;
	if (!only_read)
		rc = -ENOMEM;
	if (!rc)
		rc = ts_page_view_fill(work->view, &contents);
	free(only_read);
	free(doubts.list);
	return rc;
}

int ts_planned_view_make(const struct ts_recording *step,
        const struct ts_profile *profile, const struct ts_values *values,
        const struct ts_enforce_survey *survey,
        const struct ts_replay_candidates *candidates, bool lets_go,
        struct ts_page_view *ret_view)
{
	struct work work = {.step = step,
	        .from = profile,
	        .values = values,
	        .survey = survey,
	        .candidates = candidates,
	        .view = ret_view,
	        .n_ops = (uint32_t)step->op_count};
	int rc = ts_page_view_init(ret_view, (uint32_t)step->block_count);

	if (!rc) {
		find_lives(&work);
		find_bytes(&work);
		rc = ts_page_view_cut(ret_view, survey->page_bytes, NULL, 0);
	}
	if (!rc && lets_go)
		rc = ts_page_view_let_go(
		        ret_view, work.n_ops, survey->limit_bytes);
	if (!rc)
		rc = fill(&work);
	if (rc)
		ts_page_view_finish(ret_view);
	return rc;
}
