/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long it takes to make values again that are made together: an op that
 * several of them need is launched once (remake_make.c), as far as scratch
 * goes round.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/places.h"
#include "agent/planned_make_internal.h"
#include "agent/remake.h"

struct shared {
	const struct ts_planned_work *work;
	uint32_t *op_in; /* by op: the last group it is of, from 1 on */
	uint32_t group;
	uint32_t values[TS_REMAKE_GROUP_MAX]; /* of the group */
	uint32_t count;
	uint32_t *ops; /* of the group */
	uint32_t n_ops;
};

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Is there scratch for what the group's ops write and none of its values is?
 * Without memory there is none. */
static bool has_scratch(struct shared *shared)
{
	struct ts_places places;
	bool fits;

	qsort(shared->ops, shared->n_ops, sizeof(*shared->ops), by_number);
	fits = !ts_places_find(shared->work->step->profile, shared->ops,
	               shared->n_ops, shared->values, shared->count, &places) &&
	       places.bytes <= shared->work->scratch_bytes;
	ts_places_finish(&places);
	return fits;
}

/* Adds a value to the group; the time of the ops that come with it. */
static uint64_t add(
        struct shared *shared, const struct ts_replay_candidate *candidate)
{
	const struct ts_planned_step *step = shared->work->step;
	uint64_t ns = 0;

	shared->values[shared->count++] = candidate->value;
	for (uint32_t i = 0; i < candidate->n_ops; i++) {
		uint32_t op = step->candidates->pool[candidate->first_op + i];

		if (shared->op_in[op] == shared->group)
			continue;
		shared->op_in[op] = shared->group;
		shared->ops[shared->n_ops++] = op;
		ns += step->profile->ops[op].duration_ns;
	}
	return ns;
}

static void begin_group(struct shared *shared)
{
	shared->group++;
	shared->count = 0;
	shared->n_ops = 0;
}

static uint64_t time_of(
        struct shared *shared, const struct ts_replay_candidate *candidate)
{
	uint64_t ns;

	if (shared->count == TS_REMAKE_GROUP_MAX)
		begin_group(shared);
	ns = add(shared, candidate);
	if (shared->count == 1 || has_scratch(shared))
		return ns;
	begin_group(shared);
	return add(shared, candidate);
}

/* One that is made again: in the order in which the step makes them. */
struct turn {
	uint32_t writer, replay;
	const struct ts_replay_candidate *candidate;
};

static int by_writer(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->writer < y->writer ? -1 : x->writer > y->writer;
}

/* Those of @replays that are made before one op, as many as @count. */
static int time_together(struct shared *shared, struct ts_replay *replays,
        uint32_t count, struct turn *turns)
{
	const struct ts_replay_candidates *all = shared->work->step->candidates;

	for (uint32_t i = 0; i < count; i++) {
		const struct ts_replay_candidate *candidate =
		        ts_replay_candidate_of(shared->work->step->candidates,
		                replays[i].value);

		if (!candidate)
			return -EINVAL;
		turns[i] =
		        (struct turn){.writer = all->pool[candidate->first_op +
		                                          candidate->n_ops - 1],
		                .replay = i,
		                .candidate = candidate};
	}
	qsort(turns, count, sizeof(*turns), by_writer);
	begin_group(shared);
	for (uint32_t i = 0; i < count; i++)
		replays[turns[i].replay].duration_ns =
		        time_of(shared, turns[i].candidate);
	return 0;
}

int ts_planned_time_replays(const struct ts_planned_work *work,
        struct ts_replay *replays, uint32_t count)
{
	const struct ts_profile *profile = work->step->profile;
	struct shared shared = {.work = work,
	        .op_in = calloc(profile->n_ops + 1ull, sizeof(uint32_t)),
	        .ops = malloc((profile->n_ops + 1ull) * sizeof(uint32_t))};
	struct turn *turns = malloc((count + 1ull) * sizeof(*turns));
	uint32_t end;
	int rc = -ENOMEM;

	if (!shared.op_in || !shared.ops || !turns)
		goto out;
	rc = 0;
	for (uint32_t i = 0; i < count && !rc; i = end) {
		for (end = i + 1; end < count && replays[end].before_op ==
		                                         replays[i].before_op;)
			end++;
		rc = time_together(&shared, &replays[i], end - i, turns);
	}
out:
	free(shared.op_in);
	free(shared.ops);
	free(turns);
	return rc;
}
