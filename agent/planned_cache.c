/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_for(
        const struct ts_planned_entry *entry, const struct ts_recording *step)
{
	bool same = entry->used && step->op_count == entry->follow.n_ops;

	for (uint32_t i = 0; same && i < entry->follow.n_ops; i++)
		same = ts_follow_is(&entry->follow, i,
		        &(struct ts_follow_op){
		                step->ops[i].signature, step->ops[i].stream});
	return same;
}

/* By phase; those after the last one are 0. */
static void find_layouts(const struct ts_observed *observed,
        uint64_t layouts[static TS_CYCLE_MAX])
{
	const struct ts_observed_cycle *cycle = observed->cycle;
	const struct ts_recording *step =
	        cycle ? &cycle->step : &observed->step;
	unsigned int rounds = cycle ? cycle->rounds : 1;
	size_t n = step->op_count / rounds;

	memset(layouts, 0, TS_CYCLE_MAX * sizeof(*layouts));
	for (unsigned int i = 0; i < rounds && i < TS_CYCLE_MAX; i++)
		layouts[i] = ts_cycle_layout(step, i * n, n);
}

static bool has_layout(
        const uint64_t layouts[static TS_CYCLE_MAX], uint64_t layout)
{
	for (unsigned int i = 0; i < TS_CYCLE_MAX; i++)
		if (layouts[i] == layout)
			return true;
	return false;
}

bool ts_planned_cache_lies(const struct ts_planned_entry *entry,
        const struct ts_observed *observed)
{
	uint64_t layouts[TS_CYCLE_MAX];
	bool same = true;

	/* Whichever of the phases it begins with. */
	find_layouts(observed, layouts);
	for (unsigned int i = 0; i < TS_CYCLE_MAX; i++)
		same &= has_layout(entry->layouts, layouts[i]) &&
		        has_layout(layouts, entry->layouts[i]);
	return same;
}

int ts_planned_cache_follow(
        struct ts_planned_entry *entry, const struct ts_observed *observed)
{
	const struct ts_observed_cycle *cycle = observed->cycle;
	const struct ts_recording *step =
	        cycle ? &cycle->step : &observed->step;
	unsigned int rounds = cycle ? cycle->rounds : 1;
	uint32_t n = (uint32_t)(step->op_count / rounds);
	struct ts_follow_op *ops = malloc(n * sizeof(*ops));
	int rc;

	if (!ops)
		return -ENOMEM;
	ts_phases_init(&entry->phases, step, rounds);
	entry->cycle_id = cycle && observed->in_turn ? cycle->id : 0;
	find_layouts(observed, entry->layouts);
	for (uint32_t i = 0; i < n; i++)
		ops[i] = (struct ts_follow_op){
		        step->ops[i].signature, step->ops[i].stream};
	rc = ts_follow_init(&entry->follow, ops, n);
	free(ops);
	return rc;
}

struct ts_planned_entry *ts_planned_cache_find(
        struct ts_planned_cache *cache, const struct ts_observed *observed)
{
	bool in_turn = observed->in_turn && observed->cycle;

	for (int i = 0; i < TS_PLANS_MAX; i++) {
		struct ts_planned_entry *entry = &cache->entries[i];

		if (in_turn ? entry->used &&
		                        entry->cycle_id == observed->cycle->id
		            : is_for(entry, &observed->step))
			return entry;
	}
	return NULL;
}

struct ts_planned_entry *ts_planned_cache_oldest(
        struct ts_planned_cache *cache, const struct ts_planned_entry *keep)
{
	struct ts_planned_entry *oldest = NULL;

	for (int i = 0; i < TS_PLANS_MAX; i++) {
		struct ts_planned_entry *entry = &cache->entries[i];

		if (entry != keep && (!oldest || entry->used < oldest->used))
			oldest = entry;
	}
	return oldest;
}

void ts_planned_cache_add(
        struct ts_planned_cache *cache, struct ts_planned_entry *entry)
{
	cache->count++;
	ts_planned_cache_touch(cache, entry);
}

void ts_planned_cache_touch(
        struct ts_planned_cache *cache, struct ts_planned_entry *entry)
{
	entry->used = ++cache->uses;
}

void ts_planned_cache_drop(
        struct ts_planned_cache *cache, struct ts_planned_entry *entry)
{
	cache->count -= entry->used != 0;
	ts_follow_finish(&entry->follow);
	ts_planned_plan_finish(&entry->made);
	json_decref(entry->json);
	memset(entry, 0, sizeof(*entry));
}

static bool push(struct ts_planned_entry *entry, const struct ts_follow_op *op,
        const struct ts_op *item)
{
	uint32_t before = entry->follow.matched;
	bool whole = ts_follow_push(&entry->follow, op);

	/* What was seen of the ops before was taken for other ones. */
	if (entry->follow.matched <= before)
		ts_phases_forget(&entry->phases);
	if (entry->follow.matched)
		ts_phases_see(&entry->phases, entry->follow.matched - 1, item);
	if (whole)
		ts_phases_pass(&entry->phases);
	return whole;
}

struct ts_planned_entry *ts_planned_cache_push(struct ts_planned_cache *cache,
        const struct ts_follow_op *op, const struct ts_op *item)
{
	struct ts_planned_entry *found = NULL;

	for (int i = 0; i < TS_PLANS_MAX; i++) {
		struct ts_planned_entry *entry = &cache->entries[i];

		if (entry->used && push(entry, op, item) &&
		        (!found || entry->used > found->used))
			found = entry;
	}
	return found;
}

void ts_planned_cache_rewind(struct ts_planned_cache *cache,
        struct ts_planned_entry *entry, uint32_t count)
{
	struct ts_phases known = entry->phases;

	for (int i = 0; i < TS_PLANS_MAX; i++)
		if (cache->entries[i].used)
			ts_follow_reset(&cache->entries[i].follow);
	for (uint32_t i = 0; i < count; i++)
		ts_planned_cache_push(cache, &entry->follow.ops[i], NULL);
	entry->phases = known;
}
