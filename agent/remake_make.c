/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes again what was given up. Values that are wanted at once are made
 * together, as far as scratch goes round: an op that several of them need is
 * launched once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/remake_internal.h"
#include "planner/grow.h"

struct group {
	const struct ts_closures *closures;
	ts_stream_key stream;
	uint32_t items[TS_REMAKE_GROUP_MAX];
	uint32_t count;
	uint32_t *ops; /* ascending, each once */
	uint32_t n_ops, op_room;
	struct ts_places places;
	uint64_t *buffers; /* by place; 0: at home */
	struct ts_range *ranges;
	uint32_t n_ranges, range_room;
};

static const struct ts_closure *closure_of(uint32_t item)
{
	return &ts_remake.closures->list[ts_remake.items[item].closure];
}

/* ---------------------------------------------------------- what is wanted */

static bool is_leaf_of(
        const struct ts_given_up *item, const struct ts_kept_use *value)
{
	for (unsigned int i = 0; i < item->leaf_count; i++)
		if (item->leaves[i].serial == value->serial)
			return true;
	return false;
}

/* What is wanted is made from what is given up too: that is wanted as well. */
static void want_leaves(void)
{
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t i = 0; i < ts_remake.count; i++) {
			struct ts_given_up *item = &ts_remake.items[i];

			for (uint32_t k = 0; k < ts_remake.count; k++)
				if (!item->wanted &&
				        ts_remake.items[k].wanted &&
				        is_leaf_of(&ts_remake.items[k],
				                &item->value))
					item->wanted = more = true;
		}
	}
}

/* The program has freed what nobody else is made from: it stays away. */
static void drop_unneeded(void)
{
	for (uint32_t i = 0; i < ts_remake.count;) {
		const struct ts_given_up *item = &ts_remake.items[i];
		bool needed = ts_kept_is_alive(&item->value);

		for (uint32_t k = 0; k < ts_remake.count && !needed; k++)
			needed = ts_remake.items[k].wanted &&
			         is_leaf_of(&ts_remake.items[k], &item->value);
		if (item->wanted && !needed)
			ts_remake_forget_item(i);
		else
			i++;
	}
}

/* The wanted item whose value the step makes first; count: there is none. */
static uint32_t first_wanted(void)
{
	const uint32_t *writer = ts_remake.closures->graph.writer;
	uint32_t found = ts_remake.count;

	for (uint32_t i = 0; i < ts_remake.count; i++)
		if (ts_remake.items[i].wanted &&
		        (found == ts_remake.count ||
		                writer[closure_of(i)->value] <
		                        writer[closure_of(found)->value]))
			found = i;
	return found;
}

/* ----------------------------------------------------------------- a group */

static int add_op(struct group *group, uint32_t op)
{
	uint32_t at = group->n_ops;

	if (!ts_grow(&group->ops, group->n_ops + 1ull, &group->op_room,
	            sizeof(*group->ops)))
		return -ENOMEM;
	while (at && group->ops[at - 1] > op)
		at--;
	if (at && group->ops[at - 1] == op)
		return 0;
	memmove(&group->ops[at + 1], &group->ops[at],
	        (group->n_ops - at) * sizeof(*group->ops));
	group->ops[at] = op;
	group->n_ops++;
	return 0;
}

static const uint32_t *values_of(
        const uint32_t *by_use, const struct group *group, uint32_t op)
{
	const struct ts_recording *step = &group->closures->step->step;

	return by_use + (step->ops[op].first_use - step->first_use);
}

static uint32_t uses_of(const struct group *group, uint32_t op)
{
	return group->closures->step->step.ops[op].use_count;
}

/* Where what the ops of @group make is made. */
static int find_places(const struct group *group, struct ts_places *ret_places)
{
	uint32_t home[TS_REMAKE_GROUP_MAX];

	for (uint32_t i = 0; i < group->count; i++)
		home[i] = closure_of(group->items[i])->value;
	return ts_places_find(&group->closures->profile, group->ops,
	        group->n_ops, home, group->count, ret_places);
}

/* Without memory there is no scratch for it. */
static bool has_scratch(const struct group *group)
{
	struct ts_places places;
	bool fits = !find_places(group, &places) &&
	            places.bytes <= ts_remake.arena_bytes;

	ts_places_finish(&places);
	return fits;
}

/* Adds the item; with it nothing is there yet but ops. */
static int add_item(struct group *group, uint32_t item)
{
	const struct ts_closure *closure = closure_of(item);
	int rc = 0;

	group->items[group->count++] = item;
	for (uint32_t i = 0; i < closure->op_count && !rc; i++) {
		uint32_t op = group->closures->op_list[closure->first_op + i];

		rc = group->closures->kept[op].there ? add_op(group, op)
		                                     : -ESTALE;
	}
	return rc;
}

static int add_buffers(struct group *group)
{
	struct ts_places *places = &group->places;
	int rc = find_places(group, places);

	if (!rc)
		group->buffers =
		        calloc(places->count + 1ull, sizeof(*group->buffers));
	if (!rc && !group->buffers)
		rc = -ENOMEM;
	if (!rc && ts_remake.arena && places->bytes > ts_remake.arena_bytes)
		rc = -ENOSPC;
	for (uint32_t i = 0; i < places->count && !rc; i++) {
		const struct ts_place *place = &places->list[i];

		if (place->home)
			continue;
		if (ts_remake.arena)
			group->buffers[i] = ts_remake.arena + place->offset;
		else
			rc = ts_scratch_get(&ts_proof.scratch, place->bytes,
			        group->stream, &group->buffers[i]);
	}
	return rc;
}

static int add_range(struct group *group, const struct ts_kept_use *use,
        enum ts_access access)
{
	struct ts_range range = {.address = use->address,
	        .bytes = use->bytes,
	        .access = access,
	        .device = group->closures->step->devices[0].device};

	for (uint32_t i = 0; i < group->n_ranges; i++)
		if (group->ranges[i].address == use->address)
			return 0;
	if (!ts_grow(&group->ranges, group->n_ranges + 1ull, &group->range_room,
	            sizeof(*group->ranges)))
		return -ENOMEM;
	group->ranges[group->n_ranges++] = range;
	return 0;
}

/* Memory of a library's own that an op works in, and tells nothing of. */
static int add_workspaces(struct group *group, uint32_t op)
{
	const struct ts_values *values =
	        &group->closures->step->devices[0].values;
	const uint32_t *written = values_of(values->use_write, group, op);
	const uint32_t *read = values_of(values->use_read, group, op);
	int rc = 0;

	for (uint32_t k = 0; k < uses_of(group, op) && !rc; k++) {
		const struct ts_kept_use *use =
		        &group->closures->kept[op].uses[k];

		if (written[k] == TS_NONE && read[k] == TS_NONE &&
		        ts_kept_is_alive(use))
			rc = add_range(group, use, TS_ACCESS_READWRITE);
	}
	return rc;
}

/* All that the launches touch; what is made first, it is written. */
static int add_ranges(struct group *group)
{
	int rc = 0;

	for (uint32_t i = 0; i < group->count && !rc; i++)
		rc = add_range(group, &ts_remake.items[group->items[i]].value,
		        TS_ACCESS_READWRITE);
	for (uint32_t i = 0; i < group->n_ops && !rc; i++)
		rc = add_workspaces(group, group->ops[i]);
	for (uint32_t i = 0; i < group->count && !rc; i++) {
		const struct ts_given_up *item =
		        &ts_remake.items[group->items[i]];

		for (unsigned int k = 0; k < item->leaf_count && !rc; k++)
			rc = add_range(group, &item->leaves[k], TS_ACCESS_READ);
	}
	return rc;
}

/* ---------------------------------------------------------------- launches */

/* Where an op of the group makes @value; 0: none does, or at home. */
static uint64_t buffer_of(const struct group *group, uint32_t value)
{
	const struct ts_place *place = ts_places_get(&group->places, value);

	return place ? group->buffers[place - group->places.list] : 0;
}

static int lead(const struct group *group, struct ts_replay_launch *launch,
        uint32_t op, uint32_t use)
{
	const struct ts_values *values =
	        &group->closures->step->devices[0].values;
	uint32_t written = values_of(values->use_write, group, op)[use];
	uint32_t read = values_of(values->use_read, group, op)[use];
	const struct ts_kept_use *kept = &group->closures->kept[op].uses[use];
	uint32_t value = written != TS_NONE ? written : read;
	uint64_t to = value == TS_NONE ? 0 : buffer_of(group, value);

	if (!to)
		return 0;
	return ts_replay_redirect(launch, kept->address, kept->bytes, to)
	               ? 0
	               : -ENOTSUP;
}

/* A launch of its own, since words are led elsewhere. */
static int launch_op(const struct group *group, uint32_t op)
{
	const struct ts_replay_launch *kept = &group->closures->kept[op].launch;
	struct ts_replay_launch launch = *kept;
	int rc = 0;

	launch.params = malloc(kept->param_bytes + 1);
	if (!launch.params)
		return -ENOMEM;
	memcpy(launch.params, kept->params, kept->param_bytes);
	for (uint32_t i = 0; i < uses_of(group, op) && !rc; i++)
		rc = lead(group, &launch, op, i);
	if (!rc)
		rc = ts_replay_issue(&launch, ts_agent.ops, group->stream);
	free(launch.params);
	ts_remake.launches += !rc;
	return rc;
}

static int begin_all(const struct group *group)
{
	struct ts_shortage shortage;
	uint64_t in = 0, out = 0;

	return ts_pager_begin(ts_remake_pager(), group->ranges, group->n_ranges,
	        ts_agent_begin_flags(), group->stream, &in, &out, &shortage);
}

static int launch_all(const struct group *group)
{
	int rc = begin_all(group);

	/* Others may have taken memory since the values were given up. */
	if (rc == -ENOMEM && group->count == 1) {
		ts_scratch_trim(&ts_proof.scratch);
		ts_agent_after_unmanaged();
		rc = begin_all(group);
	}
	if (rc)
		return rc;
	for (uint32_t i = 0; i < group->n_ops && !rc; i++)
		rc = launch_op(group, group->ops[i]);
	ts_pager_end(ts_remake_pager(), group->ranges, group->n_ranges,
	        group->stream, true);
	return rc;
}

/* ------------------------------------------------------------------- whole */

static void finish(struct group *group)
{
	for (uint32_t i = 0;
	        i < group->places.count && group->buffers && !ts_remake.arena;
	        i++)
		if (group->buffers[i])
			ts_scratch_put(&ts_proof.scratch, group->buffers[i],
			        group->stream);
	ts_places_finish(&group->places);
	free(group->ops);
	free(group->buffers);
	free(group->ranges);
}

/* The wanted items from the first on that go together, as far as they do. */
static int gather(struct group *group, uint32_t most)
{
	uint32_t item = first_wanted();
	int rc;

	*group = (struct group){.closures = ts_remake.closures,
	        .stream = ts_remake.items[item].stream};
	rc = add_item(group, item);
	ts_remake.items[item].wanted = false;
	while (!rc && group->count < most) {
		struct group more = *group;

		item = first_wanted();
		if (item == ts_remake.count ||
		        ts_remake.items[item].stream != group->stream)
			break;
		more.ops = malloc((group->op_room + 1ull) * sizeof(*more.ops));
		if (!more.ops)
			break;
		memcpy(more.ops, group->ops, group->n_ops * sizeof(*more.ops));
		if (add_item(&more, item) || !has_scratch(&more)) {
			free(more.ops);
			break;
		}
		free(group->ops);
		*group = more;
		ts_remake.items[item].wanted = false;
	}
	return rc;
}

static int descending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x > y ? -1 : x < y;
}

/*
 * What was made last may be a leaf of this group, and its scratch is where this
 * group's is. Its stream may be gone by now, though not its work.
 */
static int after_the_last(const struct group *group)
{
	int rc = 0;

	if (ts_remake.launched && ts_remake.stream != group->stream)
		rc = ts_gpu_errno(ts_agent.ops->ctx_synchronize());
	ts_remake.stream = group->stream;
	ts_remake.launched = true;
	return rc;
}

/* 0, or why all of its items are still given up. */
static int make_group(uint32_t most)
{
	struct group group;
	uint64_t held = ts_proof.scratch.held_bytes;
	int rc = gather(&group, most);

	if (!rc)
		rc = add_buffers(&group);
	if (ts_proof.scratch.held_bytes != held)
		ts_agent_after_unmanaged();
	if (!rc)
		rc = add_ranges(&group);
	if (!rc)
		rc = after_the_last(&group);
	if (!rc)
		rc = launch_all(&group);
	if (rc) {
		for (uint32_t i = 0; i < group.count; i++)
			ts_remake.items[group.items[i]].wanted = true;
	} else {
		ts_remake.made += group.count;
		for (uint32_t i = 0; i < group.count; i++)
			ts_remake.shared +=
			        closure_of(group.items[i])->op_count;
		ts_remake.shared -= group.n_ops;
		/* The last one takes the place of one that goes. */
		qsort(group.items, group.count, sizeof(*group.items),
		        descending);
		for (uint32_t i = 0; i < group.count; i++)
			ts_remake_forget_item(group.items[i]);
	}
	finish(&group);
	return rc;
}

int ts_remake_wanted(void)
{
	uint32_t most = ts_remake.plan ? TS_REMAKE_GROUP_MAX : 1;
	int rc = 0;

	/* It would go into the graph. */
	if (atomic_load(&ts_agent.capturing))
		return -EBUSY;
	want_leaves();
	drop_unneeded();
	while (!rc && first_wanted() < ts_remake.count) {
		rc = make_group(most);
		/* Together they may need more than there is. */
		if (rc == -ENOMEM && most > 1) {
			most = 1;
			rc = 0;
		}
	}
	for (uint32_t i = 0; i < ts_remake.count; i++)
		ts_remake.items[i].wanted = false;
	if (rc) {
		ts_remake.failed++;
		ts_log(TS_LOG_ERROR, "a value could not be made again: %s",
		        strerror(-rc));
	}
	return rc;
}
