/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a plan to what is on the device when, the input of page assignment. */
#include "planner/model.h"
#include "planner/pages.h"
#include "planner/plan_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Share of its pages that a run leaves for what is new in it. */
#define MARGIN_PERCENT 2

/* Bytes that have to be there over some ops. */
struct range {
	uint64_t address;
	uint64_t size_bytes;
};

struct stays {
	const struct ts_graph *graph;
	const struct ts_choice *choice;
	const uint32_t *left;
	const uint32_t *back;
	struct ts_plan_hold *list;
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

static void add_hold(
        struct stays *s, const struct range *like, uint32_t from, uint32_t end)
{
	s->list[s->n++] = (struct ts_plan_hold){.address = like->address,
	        .bytes = like->size_bytes,
	        .take_op = from,
	        .release_op = end,
	        .from_tick = from,
	        .free_tick = end};
}

/* From op @from to op @to, which may lie in the next step. */
static void add(
        struct stays *s, const struct range *like, uint64_t from, uint64_t to)
{
	uint32_t n = s->graph->n_ops;

	if (from >= n) {
		from -= n;
		to -= n;
	}
	if (to < n) {
		add_hold(s, like, (uint32_t)from, (uint32_t)to + 1);
		return;
	}
	add_hold(s, like, (uint32_t)from, n);
	to -= n;
	add_hold(s, like, 0, to < from ? (uint32_t)to + 1 : (uint32_t)from);
}

/* Alive from the first op that uses it to the last; away in some gaps. */
static void add_transient(
        struct stays *s, uint32_t object, const struct range *like)
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
        struct stays *s, uint32_t object, const struct range *like)
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
        struct stays *s, uint32_t object, const struct range *like)
{
	const struct ts_object *o = &s->graph->objects[object];

	if (o->persistent)
		add_persistent(s, object, like);
	else if (o->last_op != TS_NONE)
		add_transient(s, object, like);
}

/* Of all objects; smaller ones have addresses only in recorded profiles. */
static int list_holds(struct stays *s)
{
	const struct ts_graph *g = s->graph;
	const struct ts_profile *p = g->profile;

	for (uint32_t v = 0; v < p->n_values; v++) {
		uint64_t bytes = p->values[v].size_bytes;
		struct range like = {p->values[v].address, bytes};

		/* One version speaks for the storage. */
		if (p->values[v].in_place_of != TS_NONE || !bytes)
			continue;
		/* Neighbours of small values keep their pages resident. */
		if (bytes < TS_PAGE_BYTES) {
			if (like.address)
				add_hold(s, &like, 0, g->n_ops);
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
	return 0;
}

int ts_pages_hold(const struct ts_graph *g, const struct ts_choice *choice,
        const uint32_t *left, const uint32_t *back,
        struct ts_pages_holds *ret_holds)
{
	/* One by object, one more by gap; what wraps makes two. */
	uint64_t room = 2 * ((uint64_t)g->n_objects + g->n_gaps) + 1;
	struct stays s = {.graph = g,
	        .choice = choice,
	        .left = left,
	        .back = back,
	        .list = calloc(room, sizeof(*s.list)),
	        .invented = TS_INVENTED_ADDRESS};
	int err = s.list ? 0 : -ENOMEM;

	if (!err && g->n_ops)
		err = list_holds(&s);
	if (err)
		free(s.list);
	else
		*ret_holds = (struct ts_pages_holds){s.list, s.n};
	return err;
}

static struct ts_page_plan_input input_of(
        const struct ts_graph *g, const struct ts_pages_holds *holds)
{
	return (struct ts_page_plan_input){.anywhere = true,
	        .holds = holds->list,
	        .n_holds = holds->n,
	        .page_bytes = TS_PAGE_BYTES,
	        .n_ops = g->n_ops,
	        .n_ticks = g->n_ops};
}

int ts_pages_static(const struct ts_graph *g,
        const struct ts_pages_holds *holds, uint32_t *ret_chunks)
{
	struct ts_page_plan_input input = input_of(g, holds);
	struct ts_page_plan plan;
	int err = g->n_ops ? ts_page_plan_find(&input, &plan) : 0;

	if (err)
		return err;
	*ret_chunks = 0;
	if (!g->n_ops)
		return 0;
	*ret_chunks = plan.n_chunks;
	ts_page_plan_finish(&plan);
	return 0;
}

uint64_t ts_pages_limit(uint64_t resident_bytes, uint32_t chunks)
{
	return resident_bytes +
	       chunks * TS_PAGE_BYTES / (100 - MARGIN_PERCENT) * 100;
}

int ts_pages_assign(const struct ts_graph *g,
        const struct ts_pages_holds *holds, uint64_t limit_bytes,
        struct ts_pages *ret_pages)
{
	uint64_t beside = g->profile->resident_bytes;
	struct ts_page_plan_input input = input_of(g, holds);
	struct ts_page_plan plan;
	int err;

	memset(ret_pages, 0, sizeof(*ret_pages));
	err = ts_pages_static(g, holds, &ret_pages->static_chunks);
	if (err || !g->n_ops)
		return err;
	input.may_remap = true;
	input.most_chunks = limit_bytes > beside
	                            ? (limit_bytes - beside) / TS_PAGE_BYTES
	                            : 0;
	err = ts_page_plan_find(&input, &plan);
	if (err)
		return err;
	ret_pages->peak = plan.peak_pages;
	ret_pages->chunks = plan.n_chunks;
	ret_pages->remaps = plan.remaps;
	ts_page_plan_finish(&plan);
	return 0;
}

int ts_pages_of_plan(const struct ts_profile *profile,
        const struct ts_plan *plan, struct ts_pages *ret_pages)
{
	struct ts_pages_holds holds = {0};
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
	if (!err && !outcome.fits)
		err = -EINVAL;
	if (!err)
		err = ts_pages_hold(&g, &choice, ts_model_left(model),
		        ts_model_back(model), &holds);
	if (!err)
		err = ts_pages_assign(&g, &holds, plan->limit_bytes, ret_pages);
	free(holds.list);
	ts_model_destroy(model);
	ts_choice_finish(&choice);
	ts_graph_finish(&g);
	return err;
}
