/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What planned_make.c (the search for a limit that a plan fits),
 * planned_place.c (its pages and their chunks) and planned_again.c (what it has
 * made again) share of one plan being made. Pure.
 */
#ifndef TS_PLANNED_MAKE_INTERNAL_H
#define TS_PLANNED_MAKE_INTERNAL_H

#include "agent/planned_make.h"
#include "agent/planned_pace.h"
#include "agent/planned_predict.h"
#include "agent/planned_run.h"

struct ts_planned_work {
	const struct ts_planned_step *step;
	uint32_t n_ops;
	struct ts_page_view *view;
	uint32_t *first_gap; /* by range: offsets into gap_list */
	uint32_t *gap_list;  /* gaps that are not kept, ascending */
	struct ts_plan_hold *holds;
	uint32_t n_holds, holds_room;
	struct ts_planned_run run; /* of the plan at hand */
	bool replays;              /* it may have values made again */
	uint64_t scratch_bytes;    /* for these */
	uint64_t chunks_bytes;     /* of all chunks there are */
	bool apart;                /* no page waits for a chunk of another */
	bool lets_go;              /* what no op uses any more leaves at once */
	bool shares;               /* pages are away where others need chunks */
	uint64_t least_chunks;     /* of plans that need more than these */
	/* A step of a plan by bytes that is longer is not worth its pages. */
	uint64_t most_ns;
	struct ts_plan made; /* the last one by bytes, of @made_of */
	const struct ts_graph *made_of;
	struct ts_planned_move *moves;
	uint32_t n_moves;
};

/* Frees what was made on the way; the run at hand is not part of that. */
void ts_planned_work_finish(struct ts_planned_work *work);

/*
 * Which pages the plan of @made needs when, and which chunks for that: its
 * pages, its moves and what it has made again. 0 or a negative errno; -EAGAIN
 * where its copies need more memory than it was made for.
 */
int ts_planned_place(struct ts_planned_work *work, const struct ts_graph *g,
        struct ts_planned_plan *made);

/* Which chunks pages have, where some are away for others. */
struct ts_planned_sharing {
	struct ts_plan_place *places; /* ascending */
	uint32_t n_places, n_chunks;
	/* By what they end and begin, each once. */
	struct ts_planned_handover *handovers;
	uint32_t n_handovers;
};

/*
 * Finds chunks for all pages of the step whose run by @choice is at hand, and
 * changes @choice, @plan and the run into what that means: who is away when. 0,
 * -ENOSPC, or another negative errno; the caller finishes @ret in any case.
 */
int ts_planned_share(struct ts_planned_work *work, const struct ts_graph *g,
        struct ts_choice *choice, struct ts_plan *plan,
        struct ts_planned_sharing *ret);
void ts_planned_sharing_finish(struct ts_planned_sharing *sharing);

/* The gap ends with the range's life: nothing comes back. */
bool ts_planned_is_last(const struct ts_planned_work *work,
        const struct ts_gap *gap, uint32_t range);

/* How the profile's values are made again. 0 or -ENOMEM. */
int ts_planned_add_rebuilds(struct ts_planned_work *work);

/* Values can be made again with so much scratch, where that was proved. */
void ts_planned_allow_replays(
        struct ts_planned_work *work, uint64_t scratch_bytes);

/* What the run at hand has made again, into @to. 0 or a negative errno. */
int ts_planned_list_replays(struct ts_planned_work *work,
        const struct ts_graph *g, struct ts_planned_plan *to);

/*
 * What each of @replays, as the planner ordered them, takes beside those that
 * are made before the same op, into its duration. 0 or a negative errno.
 */
int ts_planned_time_replays(const struct ts_planned_work *work,
        struct ts_replay *replays, uint32_t count);

/*
 * A plan tells of the ops that are launched, not of what was priced as one. 0
 * or a negative errno.
 */
int ts_planned_tell_ops(
        const struct ts_planned_work *work, struct ts_plan *plan);

#endif
