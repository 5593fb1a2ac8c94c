/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values and uses of ranges of pages, in place of those of blocks. */
#include "planner/page_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READS = 1, WRITES = 2 };

struct work {
	const struct ts_page_contents *in;
	const struct ts_profile *from;
	struct ts_page_view *view;
	uint32_t n_ops;
	uint32_t *now; /* by range: the value in it, or TS_NONE */
	/* By op: the first range that lives no longer, and by range the next.
	 */
	uint32_t *last, *next_last;
	uint32_t *seen; /* by range: one past the last op that touched it */
	uint8_t *touch; /* by shared range: what the op at hand does */
	uint32_t *touched;
	uint32_t n_touched;
	uint32_t next_doubt;
	uint32_t values_room, uses_room;
};

int ts_page_view_init(struct ts_page_view *view, uint32_t n_blocks)
{
	/* One shared range at most for each of their ends. */
	*view = (struct ts_page_view){
	        .ranges = calloc(3ull * n_blocks + 1, sizeof(*view->ranges)),
	        .shared = malloc((n_blocks + 1ull) * sizeof(*view->shared)),
	        .n_ranges = n_blocks,
	        .n_blocks = n_blocks};
	if (!view->ranges || !view->shared)
		return -ENOMEM;
	memset(view->shared, 0xff, (n_blocks + 1ull) * sizeof(*view->shared));
	return 0;
}

void ts_page_view_finish(struct ts_page_view *view)
{
	free(view->profile.ops);
	free(view->profile.values);
	free(view->profile.rebuilds);
	free(view->profile.uses);
	free(view->ranges);
	free(view->shared);
	free(view->range_of);
	free(view->dirties);
	memset(view, 0, sizeof(*view));
}

/* ------------------------------------------------------------------ values */

static int copy_values(struct work *w)
{
	const struct ts_profile *from = w->from;
	struct ts_page_view *view = w->view;
	struct ts_value *values;

	w->values_room = from->n_values;
	values = malloc((from->n_values + 1ull) * sizeof(*values));
	view->profile.values = values;
	view->range_of =
	        malloc((from->n_values + 1ull) * sizeof(*view->range_of));
	if (!values || !view->range_of)
		return -ENOMEM;
	if (from->n_values)
		memcpy(values, from->values, from->n_values * sizeof(*values));
	for (uint32_t v = 0; v < from->n_values; v++) {
		const struct ts_page_range *range =
		        &view->ranges[w->in->block_of[v]];

		view->range_of[v] = w->in->block_of[v];
		values[v].size_bytes = range->bytes;
		values[v].address = range->address;
	}
	return 0;
}

/* A new value of @range, which is not the profile's; TS_NONE without memory. */
static uint32_t new_value(struct work *w, uint32_t range, uint32_t old)
{
	struct ts_page_view *view = w->view;
	struct ts_profile *profile = &view->profile;
	const struct ts_page_range *of = &view->ranges[range];

	if (profile->n_values == w->values_room) {
		uint32_t room = 2 * w->values_room + 64;
		void *values = realloc(profile->values,
		        (room + 1ull) * sizeof(*profile->values));
		void *range_of;

		if (values)
			profile->values = values;
		range_of = realloc(view->range_of,
		        (room + 1ull) * sizeof(*view->range_of));
		if (range_of)
			view->range_of = range_of;
		if (!values || !range_of)
			return TS_NONE;
		w->values_room = room;
	}
	view->range_of[profile->n_values] = range;
	profile->values[profile->n_values] =
	        (struct ts_value){.size_bytes = of->bytes,
	                .signature = TS_NONE,
	                .kind = TS_KIND_OTHER,
	                .no_replay = true,
	                .in_place_of = old,
	                .address = of->address,
	                .died = TS_NONE,
	                .rebuild = TS_NONE};
	return profile->n_values++;
}

/* What an op finds in such a range; TS_NONE: nothing, it is the first. */
static int find_content(struct work *w, uint32_t range, uint32_t *ret_value)
{
	const struct ts_page_range *at = &w->view->ranges[range];

	if (w->now[range] == TS_NONE && at->before) {
		w->now[range] = new_value(w, range, TS_NONE);
		if (w->now[range] == TS_NONE)
			return -ENOMEM;
		w->view->profile.values[w->now[range]].persistent =
		        at->end == w->n_ops;
	}
	*ret_value = w->now[range];
	return 0;
}

/* What is in the blocks before any op. */
static int find_leaves(struct work *w)
{
	const struct ts_profile *from = w->from;
	bool *made = calloc(from->n_values + 1ull, sizeof(*made));

	if (!made)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_ops; i++)
		for (uint32_t k = 0; k < from->ops[i].n_writes; k++)
			made[from->uses[from->ops[i].first_write + k]] = true;
	for (uint32_t v = 0; v < from->n_values; v++)
		if (!made[v] && from->values[v].in_place_of == TS_NONE)
			w->now[w->in->block_of[v]] = v;
	free(made);
	return 0;
}

/* ------------------------------------------------------------------- uses */

static bool add_use(struct work *w, uint32_t value, bool dirty)
{
	struct ts_page_view *view = w->view;
	struct ts_profile *profile = &view->profile;

	if (profile->n_uses == w->uses_room) {
		uint32_t room = 2 * w->uses_room + 1024;
		uint32_t *uses =
		        realloc(profile->uses, room * sizeof(*profile->uses));
		uint8_t *dirties;

		if (uses)
			profile->uses = uses;
		dirties = realloc(view->dirties, room * sizeof(*dirties));
		if (dirties)
			view->dirties = dirties;
		if (!uses || !dirties)
			return false;
		w->uses_room = room;
	}
	view->dirties[profile->n_uses] = dirty;
	profile->uses[profile->n_uses++] = value;
	return true;
}

/* What the profile tells that an op touches. */
static void see(struct work *w, uint32_t op, uint32_t value, uint8_t how)
{
	uint32_t block = w->in->block_of[value];
	const uint32_t *shared = w->view->shared[block];

	w->now[block] = value;
	w->seen[block] = op + 1;
	for (int i = 0; i < 2; i++) {
		if (shared[i] == TS_NONE)
			continue;
		if (!w->touch[shared[i]])
			w->touched[w->n_touched++] = shared[i];
		w->touch[shared[i]] |= how;
	}
}

/* A read of what is in @range, by an op that the profile tells nothing of. */
static bool read_range(struct work *w, uint32_t op, uint32_t range, bool dirty)
{
	uint32_t value = w->now[range];

	if (w->seen[range] > op)
		return true;
	if (range >= w->in->n_valued && find_content(w, range, &value))
		return false;
	w->seen[range] = op + 1;
	return value == TS_NONE || add_use(w, value, dirty);
}

/*
 * As if the op read what it may use, and what lives for no longer than it does:
 * both have to be there.
 */
static bool read_others(struct work *w, uint32_t op)
{
	const struct ts_page_contents *in = w->in;
	bool ok = true;

	for (; w->next_doubt < in->n_doubts &&
	        in->doubts[w->next_doubt].op == op;
	        w->next_doubt++) {
		uint32_t block = in->doubts[w->next_doubt].block;
		const uint32_t *shared = w->view->shared[block];

		if (!in->doubts[w->next_doubt].edges)
			ok &= read_range(w, op, block, true);
		for (int i = 0; i < 2; i++)
			if (shared[i] != TS_NONE)
				ok &= read_range(w, op, shared[i], true);
	}
	for (uint32_t i = w->last[op]; i != TS_NONE; i = w->next_last[i])
		ok &= read_range(w, op, i, false);
	return ok;
}

/* Who writes a part of a page leaves the other parts as they were. */
static int add_op(struct work *w, uint32_t index)
{
	const struct ts_profile *from = w->from;
	const struct ts_profile_op *was = &from->ops[index];
	struct ts_profile *profile = &w->view->profile;
	struct ts_profile_op *op = &profile->ops[index];
	bool ok = true;

	*op = *was;
	w->n_touched = 0;
	op->first_read = profile->n_uses;
	for (uint32_t k = 0; k < was->n_reads; k++) {
		uint32_t use = was->first_read + k, value = from->uses[use];

		see(w, index, value, READS);
		ok &= add_use(w, value, !w->in->only_read[use]);
	}
	for (uint32_t k = 0; k < was->n_writes; k++)
		see(w, index, from->uses[was->first_write + k], WRITES);
	for (uint32_t k = 0; k < w->n_touched; k++) {
		uint32_t found;

		if (find_content(w, w->touched[k], &found))
			return -ENOMEM;
		if (found != TS_NONE)
			ok &= add_use(w, found, true);
		w->seen[w->touched[k]] = index + 1;
	}
	ok &= read_others(w, index);
	op->n_reads = profile->n_uses - op->first_read;
	op->first_write = profile->n_uses;
	for (uint32_t k = 0; k < was->n_writes; k++)
		ok &= add_use(w, from->uses[was->first_write + k], true);
	for (uint32_t k = 0; k < w->n_touched; k++) {
		uint32_t range = w->touched[k];

		if (w->now[range] == TS_NONE || w->touch[range] & WRITES) {
			w->now[range] = new_value(w, range, w->now[range]);
			ok &= w->now[range] != TS_NONE &&
			      add_use(w, w->now[range], true);
		}
		w->touch[range] = 0;
	}
	op->n_writes = profile->n_uses - op->first_write;
	return ok ? 0 : -ENOMEM;
}

/* What rebuilds values reads too: those of the profile come along. */
static int copy_rebuilds(struct work *w)
{
	const struct ts_profile *from = w->from;
	struct ts_profile *profile = &w->view->profile;
	bool ok = true;

	profile->rebuilds =
	        malloc((from->n_rebuilds + 1ull) * sizeof(*profile->rebuilds));
	if (!profile->rebuilds)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_rebuilds; i++) {
		const struct ts_rebuild *was = &from->rebuilds[i];

		profile->rebuilds[i] = *was;
		profile->rebuilds[i].first_read = profile->n_uses;
		for (uint32_t k = 0; k < was->n_reads; k++)
			ok &= add_use(
			        w, from->uses[was->first_read + k], false);
	}
	return ok ? 0 : -ENOMEM;
}

/* What no op touches, but is there all the time. */
static int add_idle(struct work *w)
{
	for (uint32_t i = w->in->n_valued; i < w->view->n_ranges; i++) {
		const struct ts_page_range *range = &w->view->ranges[i];
		uint32_t ignored;

		if (range->before && range->end == w->n_ops &&
		        find_content(w, i, &ignored))
			return -ENOMEM;
	}
	return 0;
}

/* What lives on after its last use, but not from step to step. */
static void list_last(struct work *w)
{
	for (uint32_t i = 0; i < w->view->n_ranges; i++) {
		const struct ts_page_range *range = &w->view->ranges[i];

		if (!range->used || !range->bytes ||
		        range->idle >= range->end ||
		        (range->before && range->end == w->n_ops))
			continue;
		w->next_last[i] = w->last[range->end - 1];
		w->last[range->end - 1] = i;
	}
}

static int begin(struct work *w)
{
	uint64_t n = w->view->n_ranges + 1ull, n_ops = w->n_ops + 1ull;

	w->now = malloc(n * sizeof(*w->now));
	w->seen = calloc(n, sizeof(*w->seen));
	w->touch = calloc(n, sizeof(*w->touch));
	w->touched = malloc(n * sizeof(*w->touched));
	w->next_last = malloc(n * sizeof(*w->next_last));
	w->last = malloc(n_ops * sizeof(*w->last));
	w->view->profile.ops = malloc(n_ops * sizeof(*w->view->profile.ops));
	if (!w->now || !w->seen || !w->touch || !w->touched || !w->next_last ||
	        !w->last || !w->view->profile.ops)
		return -ENOMEM;
	memset(w->now, 0xff, n * sizeof(*w->now));
	memset(w->last, 0xff, n_ops * sizeof(*w->last));
	list_last(w);
	return find_leaves(w);
}

int ts_page_view_fill(
        struct ts_page_view *view, const struct ts_page_contents *in)
{
	struct work w = {.in = in,
	        .from = in->profile,
	        .view = view,
	        .n_ops = in->profile->n_ops};
	int err;

	view->profile = *in->profile;
	view->profile.ops = NULL;
	view->profile.values = NULL;
	view->profile.rebuilds = NULL;
	view->profile.uses = NULL;
	view->profile.n_uses = 0;
	err = copy_values(&w);
	if (!err)
		err = begin(&w);
	for (uint32_t i = 0; i < w.n_ops && !err; i++)
		err = add_op(&w, i);
	if (!err)
		err = copy_rebuilds(&w);
	if (!err)
		err = add_idle(&w);
	free(w.now);
	free(w.seen);
	free(w.touch);
	free(w.touched);
	free(w.last);
	free(w.next_last);
	return err;
}
