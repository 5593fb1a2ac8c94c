/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a plan to what is on the device when, the input of page assignment. */
#include "planner/model.h"
#include "planner/pages.h"
#include "planner/plan_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stays {
	const struct ts_graph *graph;
	const struct ts_choice *choice;
	const uint32_t *left;
	const uint32_t *back;
	struct ts_stay *list;
	uint32_t n;
	uint64_t invented; /* next address of a value that has none */
};

/*
 * Ops [left, back) that @gap's value is away, the first at or after the gap's
 * beginning; false where it stays. Of a gap that wraps either may lie in the
 * next step.
 */
static bool away(const struct stays *s, uint32_t gap, uint32_t *ret_left,
        uint32_t *ret_back)
{
	const struct ts_gap *info = &s->graph->gaps[gap];
	uint32_t left = s->left[gap], back = s->back[gap];

	if (s->choice->action[gap] == TS_KEEP || left == TS_NONE ||
	        back == TS_NONE)
		return false;
	if (info->to_op >= s->graph->n_ops) {
		if (left < info->from_op)
			left += s->graph->n_ops;
		if (back <= info->from_op)
			back += s->graph->n_ops;
	}
	*ret_left = left;
	*ret_back = back;
	/* At least one op without it. */
	return left + 1 < back;
}

static void add(
        struct stays *s, const struct ts_stay *like, uint64_t from, uint64_t to)
{
	uint32_t n = s->graph->n_ops;
	struct ts_stay stay = *like;

	stay.from_op = (uint32_t)(from >= n ? from - n : from);
	stay.to_op = (uint32_t)(from >= n ? to - n : to);
	s->list[s->n++] = stay;
}

/* Alive from the first op that uses it to the last; away in some gaps. */
static void add_transient(
        struct stays *s, uint32_t object, const struct ts_stay *like)
{
	const struct ts_graph *g = s->graph;
	const struct ts_object *o = &g->objects[object];
	uint32_t from = o->first_op == TS_NONE ? 0 : o->first_op;

	for (uint32_t k = g->object_first[object];
	        k < g->object_first[object + 1]; k++) {
		uint32_t left, back;

		if (!away(s, g->object_gaps[k], &left, &back))
			continue;
		add(s, like, from, left);
		from = back;
	}
	add(s, like, from, o->last_op);
}

/* There in every step: from the end of one absence to the next. */
static void add_persistent(
        struct stays *s, uint32_t object, const struct ts_stay *like)
{
	const struct ts_graph *g = s->graph;
	uint32_t first_left = TS_NONE, from = TS_NONE;

	for (uint32_t k = g->object_first[object];
	        k < g->object_first[object + 1]; k++) {
		uint32_t left, back;

		if (!away(s, g->object_gaps[k], &left, &back))
			continue;
		if (from == TS_NONE)
			first_left = left;
		else
			add(s, like, from, left);
		from = back;
	}
	if (from == TS_NONE)
		add(s, like, 0, g->n_ops - 1);
	else
		add(s, like, from, (uint64_t)first_left + g->n_ops);
}

static void add_object(
        struct stays *s, uint32_t object, const struct ts_stay *like)
{
	const struct ts_object *o = &s->graph->objects[object];

	if (o->persistent)
		add_persistent(s, object, like);
	else if (o->last_op != TS_NONE)
		add_transient(s, object, like);
}

/*
 * The stays of all objects of a page and more, and what their smaller
 * neighbours keep resident; those have addresses only in recorded profiles.
 */
static int list_stays(
        struct stays *s, struct ts_paging *paging, struct ts_stay *resident)
{
	const struct ts_graph *g = s->graph;
	const struct ts_profile *p = g->profile;

	for (uint32_t v = 0; v < p->n_values; v++) {
		uint64_t bytes = p->values[v].size_bytes;
		struct ts_stay like = {p->values[v].address, bytes, 0, 0};

		/* One version speaks for the storage. */
		if (p->values[v].in_place_of != TS_NONE || !bytes)
			continue;
		if (bytes < TS_PAGE_BYTES) {
			if (like.address)
				resident[paging->n_resident++] = like;
			continue;
		}
		if (!like.address) {
			like.address = s->invented;
			s->invented += (bytes + TS_PAGE_BYTES - 1) /
			               TS_PAGE_BYTES * TS_PAGE_BYTES;
			if (s->invented - TS_INVENTED_ADDRESS > TS_MAX_BYTES)
				return -E2BIG;
		}
		add_object(s, g->object_of[v], &like);
	}
	paging->n_stays = s->n;
	return 0;
}

int ts_pages_assign(const struct ts_graph *g, const struct ts_choice *choice,
        const uint32_t *left, const uint32_t *back, uint64_t limit_bytes,
        struct ts_pages *ret_pages)
{
	struct stays s = {g, choice, left, back, NULL, 0, TS_INVENTED_ADDRESS};
	struct ts_paging paging = {
	        .n_ops = g->n_ops, .page_bytes = TS_PAGE_BYTES};
	uint64_t beside = g->profile->resident_bytes;
	uint64_t most = limit_bytes > beside
	                        ? (limit_bytes - beside) / TS_PAGE_BYTES
	                        : 0;
	struct ts_stay *resident =
	        calloc(g->n_objects + UINT64_C(1), sizeof(*resident));
	int err = -ENOMEM;

	memset(ret_pages, 0, sizeof(*ret_pages));
	s.list =
	        calloc(g->n_objects + (uint64_t)g->n_gaps + 1, sizeof(*s.list));
	if (s.list && resident) {
		err = list_stays(&s, &paging, resident);
		paging.stays = s.list;
		paging.resident = resident;
		paging.most_chunks = most < UINT32_MAX ? (uint32_t)most : 0;
		if (!err && g->n_ops)
			err = ts_pages_place(&paging, ret_pages);
	}
	free(resident);
	free(s.list);
	return err;
}

int ts_pages_of_plan(const struct ts_profile *profile,
        const struct ts_plan *plan, struct ts_pages *ret_pages)
{
	struct ts_input_error error;
	struct ts_model *model = NULL;
	struct ts_choice choice = {0};
	struct ts_outcome outcome;
	struct ts_graph g;
	int err = ts_graph_init(&g, profile, &(struct ts_graph_options){0});

	if (err)
		return err;
	err = ts_choice_init(&choice, g.n_gaps);
	if (!err)
		err = ts_plan_to_choice(plan, &g, &choice, &error);
	if (!err)
		err = ts_model_create(&g, plan->limit_bytes, &model);
	if (!err)
		err = ts_model_run(model, &choice, &outcome, NULL);
	if (!err)
		err = outcome.fits ? ts_pages_assign(&g, &choice,
		                             ts_model_left(model),
		                             ts_model_back(model),
		                             plan->limit_bytes, ret_pages)
		                   : -EINVAL;
	ts_model_destroy(model);
	ts_choice_finish(&choice);
	ts_graph_finish(&g);
	return err;
}
